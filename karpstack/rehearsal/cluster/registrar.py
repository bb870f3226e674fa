"""Plays the kubelets: machines become nodes after their boot time, and nodes whose machine is gone are removed.

It launches and ends nothing; that is the cloud's. A machine that the cloud's stand-in would not let join never
becomes a node, and says why in an event, as the kubelet's log would on the machine.

With a node go its pods, those of DaemonSets too: Kubernetes' own pod garbage collector would leave them there for 40 to
60 seconds, and whoever deletes their DaemonSet meanwhile would wait for a kubelet that is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import ClassVar

from karpstack.rehearsal.cluster.cloud import Cloud, Machine
from karpstack.rehearsal.cluster.feed import UNSERVED, Event, Feed, Player
from karpstack.rehearsal.cluster.nodes import Taint, claim_node, group_node, is_ready
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects, has_condition, warn
from karpstack.rehearsal.timing import Timing

_CLAIMS = "nodeclaims.karpenter.sh"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"
_NODES = "/api/v1/nodes"
_SECONDS_UNTIL_SERVED = 0.2
_LOG = logging.getLogger(__name__)


class Registrar(Player):
    """The nodes of one cluster."""

    name = "registrar"
    #: Seconds. A kubelet tries on while its machine lives, so access that is granted later lets it join.
    between_tries = 3.0
    #: Seconds. A cloud offers no watch: its controllers look from time to time too.
    between_looks = 2.0
    #: Seconds. Controllers and scheduler learn a moment late, under load some seconds late, that a node is gone, and
    #: until then still make pods for it and bind them to it.
    until_swept: tuple[float, ...] = (0.5, 2.0, 8.0)
    watches: ClassVar = {
        "definitions": {"path": _DEFINITIONS, "fields": f"metadata.name={_CLAIMS}"},
        "nodes": {"path": _NODES},
    }

    def __init__(self, objects: Objects, cloud: Cloud, timing: Timing) -> None:
        super().__init__(objects)
        self._cloud = cloud
        self._timing = timing
        self._established = False
        self._watching = False
        self._claims: dict[str, Object] = {}
        self._booting: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._nodes: dict[str, Object] = {}

    def start(self) -> None:
        """Begin to watch, and to look for machines that are gone; return at once."""
        self._feed.every(self.between_looks, "look")
        super().start()

    def join(
        self, machines: Iterable[Machine], taints: Iterable[Taint], labels: Mapping[str, str], timeout: float
    ) -> list[str]:
        """Register the nodes of a managed group and wait until they are Ready.

        Args:
            timeout: Seconds.

        Returns:
            The names of the machines' nodes that are not Ready; a refused machine is one of them at once.

        Raises:
            ValueError: A machine does not say its capacity.
        """
        machines, taints = list(machines), list(taints)
        missing = {machine.node_name for machine in machines}
        waiting = set(missing)
        with closing(Feed(self._objects)) as feed:
            feed.after(self._timing.system_node_boot, "boot")
            feed.watch("nodes", _NODES)
            for event in feed.until(timeout) if waiting else ():
                if event.source == "boot":
                    waiting -= {
                        machine.node_name for machine in machines if not self._register(machine, taints, labels)
                    }
                elif event.type != "DELETED" and is_ready(event.object):
                    waiting.discard(event.object["metadata"]["name"])
                    missing.discard(event.object["metadata"]["name"])
                if not waiting:
                    break
        return sorted(missing)

    def remove(self, names: Iterable[str]) -> None:
        """Remove nodes and what ran on them, at once: their machines have ended."""
        for name in names:
            self._objects.delete(f"{_NODES}/{name}")
            self._remove_pods(name)

    def _handle(self, event: Event) -> None:
        if event.source == "definitions":
            self._definition(event)
        elif event.source == "claims":
            self._claim(event)
        elif event.source == "nodes":
            name = event.object["metadata"]["name"]
            if event.type == "DELETED":
                self._nodes.pop(name, None)
                for seconds in self.until_swept:
                    self._feed.after(seconds, "sweep", {"name": name})
            else:
                self._nodes[name] = event.object
        elif event.source == "sweep":
            if event.object["name"] not in self._nodes:  # another machine may have got the name
                self._remove_pods(event.object["name"])
        elif event.source == "serve":
            self._watch_claims()
        elif event.source == "boot":
            self._boot(event.object["name"], event.object["provider_id"])
        elif event.source == "look":
            self._remove_gone_nodes()

    def _definition(self, event: Event) -> None:
        """NodeClaims are watched from the moment that their kind is established until it goes."""
        self._established = event.type != "DELETED" and has_condition(event.object, "Established")
        if self._established:
            self._watch_claims()
        else:
            self._feed.unwatch("claims")
            self._watching = False
            self._claims.clear()

    def _watch_claims(self) -> None:
        if self._established and not self._watching:
            self._watching = True
            self._feed.watch("claims", _CLAIMS_PATH)

    def _claim(self, event: Event) -> None:
        if event.type == UNSERVED:
            # A kind is established a moment before it is served.
            self._watching = False
            self._feed.after(_SECONDS_UNTIL_SERVED, "serve")
            return
        name = event.object["metadata"]["name"]
        if event.type == "DELETED":
            self._claims.pop(name, None)
            return
        self._claims[name] = event.object
        provider_id = event.object.get("status", {}).get("providerID", "")
        if provider_id and provider_id not in self._booting:
            self._booting.add(provider_id)
            self._feed.after(self._timing.node_boot, "boot", {"name": name, "provider_id": provider_id})

    def _boot(self, name: str, provider_id: str) -> None:
        """A machine has booted (or tries once more): register its node unless machine or claim are gone."""
        claim = self._claims.get(name)
        machine = self._cloud.machine(provider_id)
        if claim is None or machine is None:
            _LOG.info("machine %s of NodeClaim %s is gone before it joined", provider_id, name)
            self._refusals.pop(provider_id, None)
            return
        if not machine.refusal:
            if self._create(claim_node(machine, claim)):
                return
        elif self._refusals.get(provider_id) != machine.refusal:
            self._refusals[provider_id] = machine.refusal
            warn(
                self._objects,
                claim,
                "kubelet",
                "NodeRegistrationFailed",
                f"{machine.node_name} ({provider_id}) cannot join the cluster: {machine.refusal}",
            )
        self._feed.after(self.between_tries, "boot", {"name": name, "provider_id": provider_id})

    def _register(self, machine: Machine, taints: Iterable[Taint], labels: Mapping[str, str]) -> bool:
        node = group_node(machine, taints, labels)
        if machine.refusal:
            _LOG.warning("%s (%s) cannot join the cluster: %s", machine.node_name, machine.provider_id, machine.refusal)
            return False
        return self._create(node)

    def _create(self, node: Object) -> bool:
        """Register a node; not while there is one of its name for a machine that had its address before."""
        name, provider_id = node["metadata"]["name"], node["spec"]["providerID"]
        try:
            self._objects.create(_NODES, node)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            there = self._objects.get(f"{_NODES}/{name}")
            if there is None or there["spec"].get("providerID") != provider_id:
                _LOG.info("node %s is still that of an earlier machine, so %s waits", name, provider_id)
                return False
        _LOG.info("node %s registered", name)
        return True

    def _remove_gone_nodes(self) -> None:
        """Remove nodes whose machine is gone, as a cloud's node controller does.

        One that Karpenter launched keeps its finalizer, so that Karpenter sees it go and makes up for it.
        """
        for name, node in list(self._nodes.items()):
            provider_id = node["spec"].get("providerID", "")
            if not provider_id or "deletionTimestamp" in node["metadata"]:
                continue
            if not self._cloud.has_machine(provider_id):
                _LOG.info("the machine %s is gone: removing its node %s", provider_id, name)
                self.remove([name])

    def _remove_pods(self, node: str) -> None:
        for pod in self._objects.list("/api/v1/pods", fields=f"spec.nodeName={node}"):
            metadata = pod["metadata"]
            self._objects.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", grace=0)
