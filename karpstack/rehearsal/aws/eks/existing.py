"""An EKS cluster that the simulated account has already: as a file beside the stack's describes it.

The file is in the words of the EKS API and of kubectl (docs/how-to/eks/existing-cluster.md). What it describes is made
by the requests that would make it, so that EKS refuses what it refuses of anybody, before the stack's first request.

Simplified: launch templates of node groups are left out, and an add-on has the version that the file says, whichever
that is. Roles are made with the policies that EKS's user guide has them get.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError, ParamValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.aws.ec2.existing import named
from karpstack.rehearsal.aws.eks import node_group, resources
from karpstack.rehearsal.aws.eks.addon_workloads import NAMESPACE, WORKLOADS
from karpstack.rehearsal.aws.resource import Session
from karpstack.rehearsal.cluster.control_plane import Cluster
from karpstack.rehearsal.cluster.objects import ApiError
from karpstack.rehearsal.host import description_files
from karpstack.rehearsal.host.description_files import DescriptionError

#: DaemonSets that make nodes ready here.
_NETWORKS: Final = frozenset({"aws-node", "cilium"})
#: Seconds that nodes without a network get to join: they never become ready.
_JOIN_SECONDS: Final = 3.0
#: What the API server writes into an object, and nobody into a file.
_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid")
#: What `kubectl get --output json` prints beside the items.
_OF_A_LIST: Final = frozenset({"apiVersion", "kind", "metadata"})
_CLUSTER_POLICIES: Final = ("AmazonEKSClusterPolicy",)
_NODE_POLICIES: Final = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy")
_ADDON_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {"vpc-cni": ("AmazonEKS_CNI_Policy",)}


class ClusterFileError(DescriptionError):
    """The file is not what EKS would answer, or the rehearsal cannot play it; the text names file, place and fix."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Access(_Part):
    authentication_mode: str = "API_AND_CONFIG_MAP"
    #: EKS says it in no answer: whether whoever deploys is an administrator of the cluster.
    bootstrap_cluster_creator_admin_permissions: bool = True


class _Services(_Part):
    service_ipv4_cidr: str = "172.20.0.0/16"


class _Vpc(_Part):
    vpc_id: str = ""
    subnet_ids: list[str]
    security_group_ids: list[str] = []
    cluster_security_group_id: str = ""
    endpoint_public_access: bool = True
    endpoint_private_access: bool = False
    public_access_cidrs: list[str] = []


class _Issuer(_Part):
    issuer: str = ""


class _Identity(_Part):
    oidc: _Issuer = _Issuer()


class _AutoMode(_Part):
    enabled: bool = False


class _Cluster(_Part):
    name: str
    version: str
    role_arn: str
    status: str = "ACTIVE"
    resources_vpc_config: _Vpc
    kubernetes_network_config: _Services = _Services()
    access_config: _Access = _Access()
    identity: _Identity = _Identity()
    compute_config: _AutoMode = _AutoMode()
    tags: dict[str, str] = {}


class _NodeGroup(_Part):
    nodegroup_name: str
    node_role: str
    subnets: list[str]
    scaling_config: dict[str, int]
    instance_types: list[str] = Field(min_length=1)
    ami_type: str = "AL2023_x86_64_STANDARD"
    capacity_type: str = "ON_DEMAND"
    disk_size: int = 20
    version: str = ""
    release_version: str = ""
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    tags: dict[str, str] = {}


class _Addon(_Part):
    addon_name: str
    addon_version: str = ""
    service_account_role_arn: str = ""


class _Provider(_Part):
    arn: str = Field(alias="Arn")


class Description(_Part):
    """What the file has."""

    cluster: _Cluster
    nodegroups: list[_NodeGroup] = []
    addons: list[_Addon] = []
    providers: list[_Provider] = Field([], alias="OpenIDConnectProviderList")
    items: list[dict[str, Any]] = []

    @classmethod
    def load(cls, path: Path) -> Description:
        """Read a file.

        Raises:
            ClusterFileError: It is not what EKS would answer.
        """
        return description_files.read(
            path,
            cls._of,
            ClusterFileError,
            what="cluster",
            command="aws eks describe-...",
            page="docs/how-to/eks/existing-cluster.md",
        )

    @classmethod
    def _of(cls, said: Any) -> Description:
        known = {field.alias or name for name, field in cls.model_fields.items()} | _OF_A_LIST
        if isinstance(said, dict) and (unknown := sorted(said.keys() - known)):
            raise ClusterFileError(
                f"{unknown[0]} is no part of it, and would be left out of the rehearsed cluster; its parts "
                f"are {', '.join(sorted(known - _OF_A_LIST))}, see docs/how-to/eks/existing-cluster.md"
            )
        found = cls.model_validate(said)
        description_files.refuse_calls(found.items)
        return found

    @property
    def has_provider(self) -> bool:
        """Whether the account has an OIDC provider of IAM for the cluster's issuer."""
        issuer = self.cluster.identity.oidc.issuer.removeprefix("https://")
        return bool(issuer) and any(one.arn.partition(":oidc-provider/")[2] == issuer for one in self.providers)


def make(description: Description, session: Session) -> None:
    """Make the cluster in the account, let it run, and wait until its nodes and add-ons are as they are described.

    Raises:
        ClusterFileError: EKS refuses it, or this machine cannot run it.
    """
    try:
        _Maker(description, session).make()
    except (ClientError, ParamValidationError, RefusedError, ApiError, ValueError, KeyError) as error:
        raise ClusterFileError(
            f"the cluster that it describes cannot be: {error}; so it was not made; write it as EKS answers it"
        ) from error


class _Maker:
    def __init__(self, description: Description, session: Session) -> None:
        self._description = description
        self._cluster = description.cluster
        self._session = session
        self._account = session.account
        self._roles: set[str] = set()
        self._groups: dict[str, Properties] = {}

    def make(self) -> None:
        running = self._control_plane()
        self._apply(running, self._description.items)
        for addon in self._description.addons:
            self._addon(running, addon)
        for group in self._description.nodegroups:
            self._node_group(running, group)
        self._account.eks.records[self._cluster.name].joining = self._join_later
        for addon in self._description.addons:
            self._settle(running, addon)
        if self._description.has_provider:
            issuer = self._account.eks.issuer(self._cluster.name)
            self._account.client("iam").create_open_id_connect_provider(
                Url=issuer, ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40]
            )
        self._account.eks.cluster(self._cluster.name).status = self._cluster.status

    def _control_plane(self) -> Cluster:
        cluster, network = self._cluster, self._cluster.resources_vpc_config
        self._role(cluster.role_arn, "eks.amazonaws.com", _CLUSTER_POLICIES)
        vpc_config = network.model_dump(by_alias=True, exclude={"cluster_security_group_id", "vpc_id"})
        if not network.public_access_cidrs:
            vpc_config.pop("publicAccessCidrs")
        inputs = {
            "name": cluster.name,
            "version": cluster.version,
            "roleArn": cluster.role_arn,
            "bootstrapSelfManagedAddons": False,
            "vpcConfig": vpc_config,
            "kubernetesNetworkConfig": cluster.kubernetes_network_config.model_dump(by_alias=True),
            "accessConfig": cluster.access_config.model_dump(by_alias=True),
            "tags": cluster.tags,
        }
        with named("security_groups", "random_security_group_id", network.cluster_security_group_id):
            resources.Cluster(self._session).make(inputs)
        made = self._account.eks.cluster(cluster.name).resources_vpc_config["vpcId"]
        if network.vpc_id not in ("", made):
            raise ClusterFileError(
                f"its vpcId is {network.vpc_id}, and its subnets ({', '.join(network.subnet_ids)}) are in {made}, so "
                "one of them is wrong"
            )
        self._account.eks.records[cluster.name].auto_mode = cluster.compute_config.enabled
        # It was made long ago.
        knows = cluster.access_config.bootstrap_cluster_creator_admin_permissions
        services = cluster.kubernetes_network_config.service_ipv4_cidr
        return resources.start_control_plane(self._session, cluster.name, services, 0 if knows else None)

    def _addon(self, running: Cluster, addon: _Addon) -> None:
        """Make an add-on, and apply its workload; it gets ready when there are nodes."""
        kind = resources.Addon(self._session)
        name = addon.addon_name
        kind.make({"clusterName": self._cluster.name, "addonName": name})
        record = self._account.eks.records[self._cluster.name].addons[name]
        if addon.addon_version:
            record["addonVersion"] = addon.addon_version
        if addon.service_account_role_arn:
            self._role(addon.service_account_role_arn, "pods.eks.amazonaws.com", _ADDON_POLICIES.get(name, ()))
            record["serviceAccountRoleArn"] = addon.service_account_role_arn
        self._apply(running, kind.manifests(self._cluster.name, name))

    def _settle(self, running: Cluster, addon: _Addon) -> None:
        """An add-on whose pods find no node is DEGRADED, as EKS says it."""
        hopeful = self._has_network and bool(self._groups)
        seconds = resources.ADDON_SECONDS if hopeful else _JOIN_SECONDS
        problem = ""
        for kind, name in WORKLOADS[addon.addon_name].awaited:
            problem = problem or running.wait_available(kind, NAMESPACE, name, seconds)
        self._account.eks.settle_addon(self._cluster.name, addon.addon_name)
        if problem:
            self._account.eks.settle_addon(self._cluster.name, addon.addon_name, problem)

    def _node_group(self, running: Cluster, group: _NodeGroup) -> None:
        self._role(group.node_role, "ec2.amazonaws.com", _NODE_POLICIES)
        kind = node_group.NodeGroup(self._session)
        inputs = {
            "clusterName": self._cluster.name,
            "nodeGroupName": group.nodegroup_name,
            "nodeRoleArn": group.node_role,
            "subnetIds": group.subnets,
            "version": group.version or self._cluster.version,
            **group.model_dump(
                by_alias=True,
                include={"scaling_config", "instance_types", "ami_type", "capacity_type", "disk_size", "labels"},
            ),
            "taints": group.taints,
            "tags": group.tags,
            **({"releaseVersion": group.release_version} if group.release_version else {}),
        }
        made = kind.make(inputs)
        self._groups[group.nodegroup_name] = inputs
        if self._has_network:
            kind.complete(made, inputs, node_group.JOIN_SECONDS)
        else:
            kind.join(made, inputs, _JOIN_SECONDS)

    def _join_later(self, group: str) -> None:
        """Let the new nodes of a group join that somebody has scaled; those that are there already stay."""
        kind, inputs = node_group.NodeGroup(self._session), self._groups[group]
        arguments = (f"{self._cluster.name}:{group}", inputs, node_group.JOIN_SECONDS)
        threading.Thread(target=kind.join, args=arguments, name=f"node-group-{group}", daemon=True).start()

    @property
    def _has_network(self) -> bool:
        daemons = {one["metadata"]["name"] for one in self._description.items if one.get("kind") == "DaemonSet"}
        addons = {one.addon_name for one in self._description.addons}
        return bool(_NETWORKS & daemons) or "vpc-cni" in addons

    def _role(self, arn: str, service: str, policies: tuple[str, ...]) -> None:
        """Make a role that the file names."""
        if arn in self._roles:
            return
        self._roles.add(arn)
        prefix, _, path = arn.partition(":role/")
        if prefix != f"arn:aws:iam::{self._account.account_id}" or not path:
            raise ClusterFileError(
                f"{arn} is no role of the simulated account, {self._account.account_id}: name that account in "
                "aws:allowedAccountIds of the stack's file, or write its id here"
            )
        folder, _, name = path.rpartition("/")
        trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
        iam = self._account.client("iam")
        iam.create_role(
            RoleName=name,
            Path=f"/{folder}/" if folder else "/",
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        )
        for policy in policies:
            iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")

    def _apply(self, running: Cluster, manifests: list[dict[str, Any]]) -> None:
        running.apply(map(_applicable, manifests))


def _applicable(item: dict[str, Any]) -> dict[str, Any]:
    """An object as kubectl prints it, without what the API server writes into it."""
    metadata = {key: value for key, value in item.get("metadata", {}).items() if key not in _SERVERS}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}
