"""All checks of an AWS account, by the names that the table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..finding import Finding
from . import (
    account,
    charts,
    cluster,
    images,
    instance_types,
    names,
    network,
    quotas,
    rights,
    spot_role,
    versions,
    volumes,
)
from .subject import ExistingSubject, Subject

CHECKS: Final[Mapping[str, Callable[[Subject], Iterable[Finding]]]] = {
    "account": account.account,
    "rights": rights.rights,
    "Kubernetes version": versions.kubernetes_version,
    "network": network.existing,
    "path to the API server": network.check_new_vpc_access,
    "public access": network.public_access,
    "zones": instance_types.zones,
    "system node type": instance_types.system_nodes,
    "NodePool types": instance_types.node_pools,
    "node class images": images.images,
    "chart registry": charts.sign_in,
    "volume key": volumes.default_key,
    "spot role": spot_role.spot_role,
    "quota of system nodes": quotas.system_nodes,
    "quota of NodePools": quotas.node_pools,
    "quota of VPCs": quotas.vpcs,
    "quota of addresses": quotas.addresses,
    "quota of NAT gateways": quotas.gateways,
    "quota of endpoints": quotas.endpoints,
    "quota of clusters": quotas.clusters,
    "cluster's name": names.cluster,
    "log group's name": names.log_group,
    "flow log group name": names.flow_log_group,
    "role names": names.roles,
    "policy names": names.policies,
    "queue's name": names.queue,
    "event rule names": names.event_rules,
    "launch template's name": names.launch_template,
    "key alias": names.key_alias,
}
#: Those of a stack that puts Karpenter on a cluster that is there.
EXISTING: Final[Mapping[str, Callable[[ExistingSubject], Iterable[Finding]]]] = {
    "account": account.account,
    "rights": rights.rights,
    "cluster": cluster.existing,
    "public access": network.public_access,
    "NodePool types": instance_types.node_pools,
    "node class images": images.images,
    "chart registry": charts.sign_in,
    "volume key": volumes.default_key,
    "spot role": spot_role.spot_role,
    "quota of NodePools": quotas.node_pools,
    "role names": names.roles,
    "policy names": names.policies,
    "queue's name": names.queue,
    "event rule names": names.event_rules,
}
