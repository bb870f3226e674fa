"""What Pulumi knows of AKS: the cluster and its agent pools.

ARM's entry is the subscription's business. Here is what it causes: a cluster starts a control plane with AKS's
own workloads, its agent pools' instances join as nodes, and node auto provisioning runs Karpenter (`provisioning`).

Simplified: nodes take nothing from upgrade settings, kubelet or OS configuration.
Absent: upgrades, changes of the labels and taints of running nodes, dataplanes other than Cilium.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from karpstack.rehearsal.attachment.resource import UNKNOWN, Failure, Properties, RefusedError
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.cloud import AzureCloud
from karpstack.rehearsal.azure.clusters import provisioning
from karpstack.rehearsal.azure.resource import AzureResource
from karpstack.rehearsal.cluster.control_plane import Cluster
from karpstack.rehearsal.cluster.objects import ApiError

MANIFESTS: Final = Path(__file__).with_name("manifests")
#: Seconds that the rehearsal gives nodes to become Ready; AKS waits far longer, but here it takes seconds.
JOIN_SECONDS: Final = 90.0

_POOL_LABEL: Final = "kubernetes.azure.com/agentpool"

_NOT_READY = (
    "the nodes {nodes} of the agent pool {pool} registered and did not become Ready in {seconds:g} s; see "
    "their events (kubectl get events)"
)
_NO_DATAPLANE = (
    "the rehearsal plays the nodes of the Cilium dataplane only, not {given!r}: they would never be "
    "Ready; set networkDataplane to cilium"
)
_NOT_RUNNING = "the control plane of the cluster {name} does not run, so no node can join; create the cluster"
_OTHER = (
    "the control plane of another cluster named {name} runs, and a rehearsal has one at a time, so {id} cannot "
    "be created; put it into a stack of its own"
)


class ManagedCluster(AzureResource):
    """A managed cluster and its control plane."""

    token = "azure-native:containerservice:ManagedCluster"

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """As for every resource; the rehearsal has nodes of one dataplane."""
        yield from super().examine(inputs)
        profile = inputs.get("networkProfile")
        if isinstance(profile, dict) or profile is None:
            given = (profile or {}).get("networkDataplane")
            if given is not UNKNOWN and given != "cilium":
                yield Failure("networkProfile", _NO_DATAPLANE.format(given=given or "azure"), unsupported=True)

    def follow(self, id: str, answer: Mapping[str, Any], timeout: float) -> None:
        """Start the control plane, let the nodes join, and provision nodes automatically where that is on."""
        properties = answer["properties"]
        cloud = self.session.subscription.cloud(id)
        cluster = self._control_plane(id, cloud, properties)
        for pool in properties["agentPoolProfiles"]:
            join(cluster, cloud, pool, timeout)
        provisioning.settle(cluster, cloud, properties, self.session.definitions)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it, with all its nodes, and stop the control plane."""
        super().remove(id, state, timeout)
        self.session.stop_control_plane(id)

    def _control_plane(self, id: str, cloud: AzureCloud, properties: Mapping[str, Any]) -> Cluster:
        name, network = ResourceId.parse(id).name, properties["networkProfile"]
        running = self.session.clusters.get(name)
        minor = ".".join(properties["currentKubernetesVersion"].split(".")[:2])
        if running is not None:
            if running.cloud is not cloud:
                raise RefusedError(_OTHER.format(name=name, id=id))
            if running.version != minor:
                self.session.clusters.upgrade(name, minor)
            return running
        try:
            started = self.session.clusters.start(
                name,
                version=minor,
                service_cidr=network["serviceCidr"],
                issuer=cloud.issuer,
                cloud=cloud,
                deployer_known=self._deployer_known(properties),
            )
        except ValueError as error:
            # Not what AKS would refuse, but what one machine cannot do: another version, a second cluster.
            raise RefusedError(str(error)) from error
        cloud.bind(started)
        started.apply(system_workloads(started.endpoint, network["dnsServiceIP"]))
        return started

    def _deployer_known(self, properties: Mapping[str, Any]) -> float:
        """Seconds until the deployer's role counts in the cluster; an administrator's certificate counts at once."""
        return self.session.subscription.timing.deployer_known if properties.get("disableLocalAccounts") else 0.0


class AgentPool(AzureResource):
    """An agent pool as a resource of its own."""

    token = "azure-native:containerservice:AgentPool"

    def follow(self, id: str, answer: Mapping[str, Any], timeout: float) -> None:
        """Let its nodes join, or go."""
        join(
            self._cluster(id),
            self.session.subscription.cloud(ResourceId.parse(id).parent),
            {**answer["properties"], "name": answer["name"]},
            timeout,
        )

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it, and its nodes."""
        super().remove(id, state, timeout)
        parsed = ResourceId.parse(id)
        cluster = self.session.clusters.get(parsed.names[0])
        if cluster is not None:
            cluster.remove_nodes(_nodes(cluster, parsed.name))

    def _cluster(self, id: str) -> Cluster:
        name = ResourceId.parse(id).names[0]
        cluster = self.session.clusters.get(name)
        if cluster is None:
            raise RefusedError(_NOT_RUNNING.format(name=name))
        return cluster


def join(cluster: Cluster, cloud: AzureCloud, pool: Mapping[str, Any], timeout: float) -> None:
    """Make the nodes of an agent pool those that its scale set has, and wait until the new ones are Ready.

    Raises:
        RefusedError: Some did not become Ready.
    """
    machines = {machine.node_name: machine for machine in cloud.agent_pool(pool["name"])}
    present = _nodes(cluster, pool["name"])
    cluster.remove_nodes(sorted(present - machines.keys()))
    seconds = min(timeout, JOIN_SECONDS)
    waiting = cluster.join(
        [machine for name, machine in machines.items() if name not in present],
        taints=[_taint(text) for text in pool.get("nodeTaints") or []],
        timeout=seconds,
    )
    if waiting:
        raise RefusedError(_NOT_READY.format(nodes=", ".join(sorted(waiting)), pool=pool["name"], seconds=seconds))


def remove_pools_but(cluster: Cluster, pools: Collection[str]) -> None:
    """Remove the nodes of agent pools that are not among `pools`; Karpenter's own stay.

    Raises:
        RefusedError: The cluster does not say which nodes it has.
    """
    try:
        nodes = cluster.objects.list("/api/v1/nodes", labels=f"{_POOL_LABEL},!karpenter.sh/nodepool")
    except ApiError as error:
        raise RefusedError(str(error)) from error
    cluster.remove_nodes(
        sorted(node["metadata"]["name"] for node in nodes if node["metadata"]["labels"][_POOL_LABEL] not in pools)
    )


def system_workloads(endpoint: str, dns: str) -> list[dict[str, Any]]:
    """What AKS deploys by itself on a cluster with the Cilium dataplane, as far as it matters here.

    Args:
        endpoint: URL of the API server.
        dns: Address of the DNS service.
    """
    address = urlsplit(endpoint)
    text = Template(_text("system.yaml")).substitute(host=address.hostname, port=address.port or 443, dns=dns)
    return list(yaml.load_all(text, yaml.CSafeLoader))


def _nodes(cluster: Cluster, pool: str) -> set[str]:
    try:
        nodes = cluster.objects.list("/api/v1/nodes", labels=f"{_POOL_LABEL}={pool},!karpenter.sh/nodepool")
    except ApiError as error:
        raise RefusedError(str(error)) from error
    return {node["metadata"]["name"] for node in nodes}


def _taint(text: str) -> dict[str, str]:
    """A taint as AKS writes it, `CriticalAddonsOnly=true:NoSchedule`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


@cache
def _text(name: str) -> str:
    return (MANIFESTS / name).read_text()
