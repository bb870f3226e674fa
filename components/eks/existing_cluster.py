"""An EKS cluster that is there, with its network: looked at before anything is made, and left as it is.

Account and cluster are asked by calls that wait for their answers, at each preview and `up`: what is wrong is refused
while nothing has been created. Nothing here makes a resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pulumi
from pulumi_aws import eks, iam

from ..documents.endpoints import host_names
from ..documents.kubeconfig import eks as eks_kubeconfig
from ..problems import warnings_only
from ..settings import ExistingEksSettings
from ..settings import existing_cluster as judged
from ..settings.existing_cluster import FoundCluster
from ..settings.workloads import Workloads
from ..workloads import eks as existing_workloads
from . import existing_network
from .lookups import exists, get_if_exists, name_missing_permission


@dataclass(frozen=True, kw_only=True)
class ExistingClusterArgs:
    """Arguments of `ExistingCluster`.

    Attributes:
        role_arn: That the deployer takes, for the kubeconfig; empty for none.
        settings: The stack's.
    """

    role_arn: str
    settings: ExistingEksSettings


class ExistingCluster(pulumi.ComponentResource):
    """The cluster.

    Attributes:
        name, arn, endpoint, issuer, kubeconfig: As `Cluster` has them.
        subnet_terms, security_group_terms: As `Network` has them.
        nodes_need_cni_rights: Whether the VPC CNI acts with the role of the node that it runs on.
        direct: What is inside: the API server, ranges, and names of the VPC's endpoints.
    """

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    issuer: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    subnet_terms: Sequence[Mapping[str, Any]]
    security_group_terms: Sequence[Mapping[str, Any]]
    nodes_need_cni_rights: bool
    direct: Sequence[str]

    def __init__(self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:ExistingCluster", name, {}, opts)
        settings = args.settings
        ask = pulumi.InvokeOptions(parent=self)
        with name_missing_permission(
            "cluster", "existing", settings.cluster.existing, "whether Karpenter can work on it"
        ):
            seen = _described(settings.cluster.existing, ask)
            if seen is None:
                raise judged.missing(settings)
            kubeconfig = eks_kubeconfig(
                cluster_name=seen.name,
                region=settings.region,
                endpoint=seen.endpoint,
                certificate_authority=next((one.data for one in seen.certificate_authorities), ""),
                profile=settings.profile,
                role_arn=args.role_arn,
            )
            found = _found(seen, kubeconfig, settings, ask)
        for doubt in warnings_only(judged.problems(settings, found)):
            pulumi.log.warn(str(doubt), self)

        network = judged.node_network(settings, found.vpc_id, found.subnet_ids)
        self.subnet_terms = (
            [{"tags": dict(network.subnet_tags)}]
            if network.subnet_tags
            else [{"id": subnet.id} for subnet in found.network.node_subnets(network)]
        )
        self.security_group_terms = [{"id": one} for one in (found.security_group_id, *network.node_security_group_ids)]
        self.nodes_need_cni_rights = found.nodes_need_cni_rights
        self.direct = [
            *(urlsplit(seen.endpoint).hostname or "",),
            *found.network.cidrs,
            *filter(None, [found.service_cidr, str(settings.network.pod_cidr or "")]),
            *host_names(sorted(found.network.endpoints), settings.region),
        ]
        self.name = pulumi.Output.from_input(seen.name)
        self.arn = pulumi.Output.from_input(seen.arn)
        self.endpoint = pulumi.Output.from_input(seen.endpoint)
        self.issuer = pulumi.Output.from_input(_issuer(seen))
        self.kubeconfig = pulumi.Output.secret(kubeconfig)
        self.register_outputs(
            {"name": self.name, "endpoint": self.endpoint, "issuer": self.issuer, "kubeconfig": self.kubeconfig}
        )


def _described(name: str, ask: pulumi.InvokeOptions) -> eks.GetClusterResult | None:
    """What EKS says of a cluster; None where there is none of that name."""
    return eks.get_cluster(name=name, opts=ask) if name in eks.get_clusters(opts=ask).names else None


def _found(
    seen: eks.GetClusterResult, kubeconfig: str, settings: ExistingEksSettings, ask: pulumi.InvokeOptions
) -> FoundCluster:
    vpc = seen.vpc_config
    subnet_ids = settings.network.subnet_ids or _of_node_groups(seen.name, ask)
    selection = judged.node_network(settings, vpc.vpc_id, subnet_ids)
    is_active = seen.status == "ACTIVE"
    return FoundCluster(
        status=seen.status,
        version=seen.version,
        authentication_mode=next((one.authentication_mode for one in seen.access_configs), ""),
        auto_mode=any(one.enabled for one in seen.compute_configs),
        service_cidr=next((one.service_ipv4_cidr for one in seen.kubernetes_network_configs), ""),
        vpc_id=vpc.vpc_id,
        security_group_id=vpc.cluster_security_group_id,
        subnet_ids=subnet_ids,
        has_provider=settings.karpenter.identity != "irsa" or _has_provider(_issuer(seen), ask),
        cni_role=_cni_role(seen.name, ask),
        network=existing_network.find(vpc.vpc_id, selection, seen.name, ask),
        workloads=existing_workloads.read_workloads(kubeconfig, settings.name) if is_active else Workloads(),
    )


def _of_node_groups(cluster: str, ask: pulumi.InvokeOptions) -> list[str]:
    """Subnets of the managed node groups: where nodes of the cluster are known to live."""
    groups = eks.get_node_groups(cluster_name=cluster, opts=ask).names
    found = (eks.get_node_group(cluster_name=cluster, node_group_name=one, opts=ask) for one in sorted(groups))
    return sorted({subnet for group in found for subnet in group.subnet_ids})


def _has_provider(issuer: str, ask: pulumi.InvokeOptions) -> bool:
    return exists(
        lambda: iam.get_open_id_connect_provider(url=issuer, opts=ask),
        "whether the account has an OIDC provider for its issuer, by which the controller gets its credentials",
    )


def _cni_role(cluster: str, ask: pulumi.InvokeOptions) -> bool:
    """Whether the VPC CNI, as an add-on of EKS, has a role of its own."""
    addon = get_if_exists(
        lambda: eks.get_addon(cluster_name=cluster, addon_name="vpc-cni", opts=ask),
        "whether its VPC CNI has a role of its own: where it has none, Karpenter's nodes need its rights",
    )
    return addon is not None and bool(addon.service_account_role_arn or addon.pod_identity_associations)


def _issuer(seen: eks.GetClusterResult) -> str:
    return next((oidc.issuer for identity in seen.identities for oidc in identity.oidcs), "")
