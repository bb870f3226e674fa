"""An AKS cluster that the simulated subscription has already: as a file beside the stack's describes it.

The file is in the words of `az aks show` and of kubectl (docs/how-to/aks/existing-cluster.md); ARM's own, of `az
resource show`, are taken too. What it describes is made by the requests that would make it, so that ARM refuses what it
refuses of anybody, before the stack's first request. Afterwards the cluster follows its agent pools and its profile of
node auto provisioning, whoever changes them. Simplified: an identity of AKS's own (SystemAssigned) is played as one of
the owner's, its roles on the subnets are given to it, and the cluster's patch version is the one that the rehearsal has
of the minor version.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.identifiers import GROUP_TYPE, ResourceId, group_id
from karpstack.rehearsal.azure.arm.rows import latest
from karpstack.rehearsal.azure.clusters import http_proxy
from karpstack.rehearsal.azure.clusters.resources import JOIN_SECONDS, ManagedCluster, remove_pools_but
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.identities import IDENTITY_TYPE
from karpstack.rehearsal.azure.identity.roles import Role
from karpstack.rehearsal.azure.resource import Session
from karpstack.rehearsal.cluster.objects import ApiError
from karpstack.rehearsal.host import description_files
from karpstack.rehearsal.host.description_files import DescriptionError

_log = logging.getLogger(__name__)
_PAGE: Final = "docs/how-to/aks/existing-cluster.md"
#: ARM's spelling of names that the Azure CLI spells otherwise (`vnetSubnetId`), by their lower case.
_SPELLED: Final = {
    name.lower(): name
    for name in (
        *("adminGroupObjectIDs", "enableAzureRBAC", "enableRBAC", "diskEncryptionSetID", "dnsServiceIP"),
        *("enableFIPS", "enableNodePublicIP", "issuerURL", "osDiskSizeGB", "osSKU", "podSubnetID", "privateDNSZone"),
        *("privateFQDN", "serverAppID", "tenantID", "clientAppID", "vnetSubnetID", "customCATrustCertificates"),
    )
}
#: What AKS computes of a pool, and nobody asks for.
_COMPUTED_OF_POOLS: Final = frozenset(
    {"currentOrchestratorVersion", "eTag", "nodeImageVersion", "orchestratorVersion", "powerState", "provisioningState"}
)
#: What the API server writes into an object, and nobody into a file.
_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid")
#: What `kubectl get --output json` prints beside the items.
_OF_A_LIST: Final = frozenset({"apiVersion", "kind", "metadata"})


class ClusterFileError(DescriptionError):
    """The file is not what Azure would answer, or the rehearsal cannot play it; the text names file, place and fix."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Pool(_Part):
    name: str
    vmSize: str  # noqa: N815  ARM's name
    mode: str = "User"
    vnetSubnetID: str = ""  # noqa: N815


class _Cluster(_Part):
    id: str = Field(
        pattern=r"(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ContainerService"
        r"/managedClusters/[^/]+$"
    )
    location: str
    kubernetesVersion: str  # noqa: N815
    dnsPrefix: str  # noqa: N815
    agentPoolProfiles: list[_Pool] = Field(min_length=1)  # noqa: N815
    provisioningState: str = "Succeeded"  # noqa: N815
    identity: dict[str, Any] = {}


class Description(_Part):
    """What the file has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: _Cluster
    items: list[dict[str, Any]] = []

    @classmethod
    def load(cls, path: Path) -> Description:
        """Read a file.

        Raises:
            ClusterFileError: It is not what Azure would answer.
        """
        return description_files.read(
            path, cls._of, ClusterFileError, what="cluster", command="az aks show", page=_PAGE
        )

    @classmethod
    def _of(cls, said: Any) -> Description:
        if isinstance(said, dict):
            said = {key: value for key, value in said.items() if key not in _OF_A_LIST}
            said["cluster"] = _as_arm_has_it(said.get("cluster"))
        found = cls.model_validate(said)
        description_files.refuse_calls(found.items)
        return found


def make(description: Description, session: Session) -> None:
    """Make the cluster in the subscription, let it run, and wait until its nodes are ready.

    Raises:
        ClusterFileError: ARM refuses it, or this machine cannot run it.
    """
    try:
        _Maker(description, session).make()
    except (ArmError, RefusedError, ApiError, ValueError, KeyError) as error:
        told = error.message if isinstance(error, ArmError) else str(error)
        raise ClusterFileError(
            f"the cluster that it describes cannot be: {told}; so it was not made; write it as Azure answers it"
        ) from error


class _Maker:
    def __init__(self, description: Description, session: Session) -> None:
        self._description = description
        self._said: dict[str, Any] = description.cluster.model_dump()
        self._id = ResourceId.parse(description.cluster.id)
        self._session = session
        self._arm = session.subscription.arm
        self._kind = ManagedCluster(session)
        self._following = threading.Lock()

    def make(self) -> None:
        wrong = [problem.reason for problem in self._kind.examine(self._said)]
        self._group(self._id.group)
        if identity := self._identity():
            self._give(identity)
        try:
            self._arm.put(self._id.text, self._kind.default_version, self._body(identity))
        except ArmError as error:
            wrong.append(error.message)
        if wrong:
            raise ClusterFileError("; and ".join(wrong))
        self._kind.follow(self._id.text, self._arm.get(self._id.text, self._kind.default_version), JOIN_SECONDS)
        running = self._session.clusters.get(self._id.name)
        if running is not None:
            running.apply(map(_applicable, self._description.items))
        self._session.subscription.was_there(
            self._id.text,
            state=self._description.cluster.provisioningState,
            power=str((self._said.get("powerState") or {}).get("code") or "Running"),
            changed=self._follow_later,
        )

    def _body(self, identity: str) -> dict[str, Any]:
        """The request that would make it: without what AKS computes, and with the identity that it is given."""
        beside = ("location", "sku", "tags")
        envelope: dict[str, Any] = {name: self._said[name] for name in beside if name in self._said}
        properties = {
            name: value
            for name, value in self._said.items()
            if name in ManagedCluster.body and name not in (*envelope, "identity", "identityProfile")
        }
        version = properties["kubernetesVersion"]
        properties["kubernetesVersion"] = ".".join(version.split(".")[:2])
        properties["agentPoolProfiles"] = [
            {name: value for name, value in pool.items() if name not in _COMPUTED_OF_POOLS}
            for pool in properties["agentPoolProfiles"]
        ]
        for pool in properties["agentPoolProfiles"]:
            if not pool.get("vnetSubnetID"):
                pool.pop("vnetSubnetID", None)
        if "httpProxyConfig" in properties:
            properties["httpProxyConfig"] = http_proxy.request_from_response(properties["httpProxyConfig"])
        if "oidcIssuerProfile" in properties:
            properties["oidcIssuerProfile"] = {"enabled": bool(properties["oidcIssuerProfile"].get("enabled"))}
        if kubelet := self._foreign_kubelet():
            properties["identityProfile"] = {"kubeletidentity": {"resourceId": kubelet}}
        given = {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}} if identity else {"type": "None"}
        return {**envelope, "identity": given, "properties": properties}

    def _identity(self) -> str:
        """The control plane's identity, made; empty where the cluster works as a service principal."""
        kind = self._said["identity"].get("type")
        if kind in (None, "None"):
            return ""
        named = self._said["identity"].get("userAssignedIdentities") or {}
        return self._made(
            next(iter(named), "")
            or f"{group_id(self._id.subscription, self._id.group)}/providers/{IDENTITY_TYPE}/{self._id.name}-system"
        )

    def _foreign_kubelet(self) -> str:
        """The kubelet's identity, where it is none that AKS makes."""
        profile = (self._said.get("identityProfile") or {}).get("kubeletidentity") or {}
        identity = str(profile.get("resourceId") or "")
        group = str(self._said.get("nodeResourceGroup") or "")
        is_foreign = identity and ResourceId.parse(identity).group.lower() != group.lower()
        return identity if is_foreign else ""

    def _give(self, identity: str) -> None:
        """The roles that it has had since long: on its pools' subnets, and on the kubelet's identity."""
        for subnet in {pool.vnetSubnetID for pool in self._description.cluster.agentPoolProfiles if pool.vnetSubnetID}:
            self._grant(identity, subnet, roles.NETWORK_CONTRIBUTOR)
        if kubelet := self._foreign_kubelet():
            self._grant(identity, self._made(kubelet), roles.MANAGED_IDENTITY_OPERATOR)

    def _made(self, identity: str) -> str:
        self._group(ResourceId.parse(identity).group)
        self._arm.put(identity, latest(IDENTITY_TYPE), {"location": self._said["location"]})
        return identity

    def _group(self, name: str) -> None:
        group = group_id(self._id.subscription, name)
        self._arm.put(group, latest(GROUP_TYPE), {"location": self._said["location"]})

    def _grant(self, identity: str, scope: str, role: Role) -> None:
        principal = self._arm.get(identity, latest(IDENTITY_TYPE))["properties"]["principalId"]
        self._session.subscription.grant(principal, scope, role)

    def _follow_later(self) -> None:
        threading.Thread(target=self._follow, name=f"cluster-{self._id.name}", daemon=True).start()

    def _follow(self) -> None:
        """Bring nodes and node auto provisioning to what ARM says of the cluster now."""
        with self._following:
            try:
                answer = self._arm.get(self._id.text, self._kind.default_version)
                running = self._session.clusters.get(self._id.name)
                if running is not None:
                    remove_pools_but(running, {pool["name"] for pool in answer["properties"]["agentPoolProfiles"]})
                self._kind.follow(self._id.text, answer, JOIN_SECONDS)
            except (ArmError, RefusedError, ApiError, OSError) as error:
                _log.warning("The cluster %s does not follow what ARM says of it: %s", self._id.name, error)


def _as_arm_has_it(value: Any) -> Any:
    """What the Azure CLI prints, with ARM's names, with all properties at the top and nothing that is null."""
    if isinstance(value, list):
        return [_as_arm_has_it(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    renamed = dict(_renamed(value))
    properties = renamed.pop("properties", None)
    return {**renamed, **properties} if isinstance(properties, dict) else renamed


def _renamed(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if inner is not None:
            yield _SPELLED.get(str(key).lower(), str(key)), _as_arm_has_it(inner)


def _applicable(item: dict[str, Any]) -> dict[str, Any]:
    """An object as kubectl prints it, without what the API server writes into it."""
    metadata = {key: value for key, value in item.get("metadata", {}).items() if key not in _SERVERS}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}
