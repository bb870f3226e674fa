"""Plays what Cilium's agents and its operator do to nodes; no packet is handled.

The pods are those of the real chart, on nodes that kwok plays. Rules from the operator's source
(operator/watchers/node_taint.go) and the agent's start: an agent needs the API server, which without kube-proxy it
reaches only by the endpoint that the chart was given, and an operator, which makes its resource definitions and
assigns its pod network. A node is ready for pods once its agent is up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from karpstack.rehearsal.cluster.feed import Event, Player
from karpstack.rehearsal.cluster.nodes import CNI_ANNOTATION, has_taint, without_taint
from karpstack.rehearsal.cluster.objects import MERGE, STRATEGIC, ApiError, Object, Objects, now, try_patch, warn
from karpstack.rehearsal.timing import Timing

TAINT = "node.cilium.io/agent-not-ready"
READY_ANNOTATION = "rehearsal.karpstack/ready"

_AGENT = "k8s-app=cilium"
_OPERATOR = "io.cilium/app=operator"
_PROXY = "k8s-app=kube-proxy"
_CONFIGURATION = "cilium-config"
_TRIES = 5
_LOG = logging.getLogger(__name__)


def unreachable(pod: Mapping[str, Any], endpoint: str, *, kube_proxy: bool) -> str:
    """Why a pod of Cilium cannot reach the API server; empty when it can.

    Args:
        kube_proxy: Whether kube-proxy runs on the pod's node.
    """
    address = urlsplit(endpoint)
    host, port = address.hostname or "", str(address.port or 443)
    spec = pod["spec"]
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        variables = {each["name"]: each.get("value", "") for each in container.get("env", [])}
        # Containers that do not talk to the API server are not given its address.
        if container["name"] not in ("config", "cilium-agent", "cilium-operator"):
            continue
        given_host = variables.get("KUBERNETES_SERVICE_HOST")
        given_port = variables.get("KUBERNETES_SERVICE_PORT") or "443"
        if not given_host:
            if kube_proxy:
                continue
            return (
                f"container {container['name']} would reach the API server through the service `kubernetes`, but "
                "nothing serves services before Cilium does, because there is no kube-proxy; set the chart values "
                f"k8sServiceHost={host} and k8sServicePort={port}"
            )
        if (given_host, given_port) != (host, port):
            return (
                f"container {container['name']} looks for the API server at {given_host}:{given_port}, but the "
                f"cluster's endpoint is {host}:{port}; set the chart values k8sServiceHost and k8sServicePort so"
            )
    return ""


def changed_taints(
    taints: Iterable[Mapping[str, str]], key: str, *, up: bool, set_taint: bool, remove_taint: bool
) -> list[dict[str, str]] | None:
    """The taints that the operator gives a node on which an agent is scheduled; None when it leaves them.

    Args:
        key: Key of the taint for a node whose agent is not ready.
        up: Whether the agent is.
        set_taint: The operator's option `set-cilium-node-taints`.
        remove_taint: The operator's option `remove-cilium-node-taints`.
    """
    taints = list(taints)
    if up and remove_taint and has_taint(taints, key):
        return without_taint(taints, key)
    if not up and set_taint and not has_taint(taints, key):
        # As the operator does it: new pods stay away, those that are there already do not go.
        return [*(dict(taint) for taint in taints), {"key": key, "effect": "NoSchedule"}]
    return None


def mark_ready(objects: Objects, pod: Object, value: str = "true") -> bool:
    """Say whether a pod that the rehearsal plays is ready; return False if the pod is gone."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return try_patch(objects, path, {"metadata": {"annotations": {READY_ANNOTATION: value}}})


class Cilium(Player):
    """The agents and the operator of one cluster."""

    name = "cilium"
    watches: ClassVar = {
        "nodes": {"path": "/api/v1/nodes"},
        "agents": {"path": "/api/v1/pods", "labels": _AGENT},
        "operators": {"path": "/api/v1/pods", "labels": _OPERATOR},
    }

    def __init__(self, objects: Objects, endpoint: str, timing: Timing) -> None:
        super().__init__(objects)
        self._endpoint = endpoint
        self._timing = timing
        self._agents: dict[str, Object] = {}
        self._operators: dict[str, Object] = {}
        self._operator_was_up = False
        self._nodes: dict[str, Object] = {}
        self._starting: set[str] = set()
        self._started: set[str] = set()
        self._problems: dict[str, str] = {}

    def _handle(self, event: Event) -> None:
        metadata = event.object.get("metadata", {})
        if event.source == "nodes":
            _keep(self._nodes, metadata["name"], event)
            self._judge(metadata["name"])
        elif event.source == "agents":
            node = event.object["spec"].get("nodeName")
            if node and self._is_agent_of(node, event):
                _keep(self._agents, node, event)
                self._judge(node)
        elif event.source == "operators":
            _keep(self._operators, metadata["uid"], event)
            up = self.operator_up
            if up != self._operator_was_up:
                for node in list(self._agents):
                    self._judge(node)
                self._operator_was_up = up
        elif event.source == "start":
            self._start_agent(event.object["node"], event.object["uid"])

    def _is_agent_of(self, node: str, event: Event) -> bool:
        # The end of an old agent says nothing about the new one on the same node.
        known = self._agents.get(node)
        return event.type != "DELETED" or known is None or known["metadata"]["uid"] == event.object["metadata"]["uid"]

    @property
    def operator_up(self) -> bool:
        """Whether an operator runs that reaches the API server."""
        return any(
            _running(pod) and not unreachable(pod, self._endpoint, kube_proxy=self._proxied(pod))
            for pod in list(self._operators.values())
        )

    def _proxied(self, pod: Object) -> bool:
        node = pod["spec"].get("nodeName", "")
        pods = self._objects.list("/api/v1/pods", labels=_PROXY, fields=f"spec.nodeName={node}")
        return any(_running(each) for each in pods)

    def _judge(self, node: str) -> None:
        """Do to a node what the state of its agent asks for."""
        agent = self._agents.get(node)
        if agent is None or node not in self._nodes or "deletionTimestamp" in agent["metadata"]:
            return
        uid = agent["metadata"]["uid"]
        if uid in self._started:
            self._mark(node, agent, up=True)
            return
        problem = unreachable(agent, self._endpoint, kube_proxy=False)
        if problem and self._proxied(agent):
            problem = unreachable(agent, self._endpoint, kube_proxy=True)
        if problem:
            self._tell(node, agent, problem)
        if not self.operator_up:
            return
        if not problem and uid not in self._starting:
            self._starting.add(uid)
            self._feed.after(self._timing.agent_start, "start", {"node": node, "uid": uid})
        self._mark(node, agent, up=False)

    def _tell(self, node: str, agent: Object, problem: str) -> None:
        uid = agent["metadata"]["uid"]
        if self._problems.get(uid) != problem:
            self._problems[uid] = problem
            warn(self._objects, agent, "kubelet", "BackOff", problem)
            warn(
                self._objects,
                self._nodes[node],
                "kubelet",
                "NetworkPluginNotReady",
                f"the Cilium agent does not start: {problem}",
            )

    def _start_agent(self, node: str, uid: str) -> None:
        """The agent has started, unless its pod has gone meanwhile."""
        agent = self._agents.get(node)
        self._starting.discard(uid)
        if agent is None or agent["metadata"]["uid"] != uid or node not in self._nodes:
            return
        if mark_ready(self._objects, agent):
            self._started.add(uid)
            self._mark(node, agent, up=True)

    def _mark(self, node: str, agent: Object, *, up: bool) -> None:
        """Give the node the taints, the mark and the condition that fit its agent's state."""
        current: Object | None = self._nodes[node]
        options: Mapping[str, str] | None = None
        for _ in range(_TRIES):
            if current is None:
                return
            marked = CNI_ANNOTATION in current["metadata"].get("annotations", {})
            taints = current["spec"].get("taints", [])
            if up and marked and not has_taint(taints, TAINT):
                return
            if not up and has_taint(taints, TAINT):
                return
            options = self._options(agent) if options is None else options
            change: Object = {"metadata": {"resourceVersion": current["metadata"]["resourceVersion"]}}
            changed = changed_taints(
                taints,
                options.get("agent-not-ready-taint-key", TAINT),
                up=up,
                set_taint=options.get("set-cilium-node-taints") == "true",
                remove_taint=options.get("remove-cilium-node-taints") == "true",
            )
            if changed is not None:
                change["spec"] = {"taints": changed}
            if up and not marked:
                change["metadata"]["annotations"] = {CNI_ANNOTATION: "cilium"}
            if changed is None and (marked or not up):
                return
            try:
                self._nodes[node] = self._objects.patch(f"/api/v1/nodes/{node}", change, MERGE)
            except ApiError as error:
                if error.status == 404:
                    return
                if error.status != 409:
                    raise
                current = self._objects.get(f"/api/v1/nodes/{node}")
                continue
            if up and not marked and options.get("set-cilium-is-up-condition") == "true":
                self._set_condition(node)
            return
        _LOG.warning("node %s changed %d times while its taints were set; the next event tries again", node, _TRIES)

    def _set_condition(self, node: str) -> None:
        # With both times, as Cilium writes it: kwok renews no condition of a node that has one without.
        time = now()
        condition = {
            "type": "NetworkUnavailable",
            "status": "False",
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
            "reason": "CiliumIsUp",
            "message": "Cilium is running on this node",
        }
        try_patch(self._objects, f"/api/v1/nodes/{node}/status", {"status": {"conditions": [condition]}}, STRATEGIC)

    def _options(self, agent: Object) -> Mapping[str, str]:
        namespace = agent["metadata"]["namespace"]
        found = self._objects.get(f"/api/v1/namespaces/{namespace}/configmaps/{_CONFIGURATION}")
        data: Mapping[str, str] = (found or {}).get("data", {})
        return data


def _keep(known: dict[str, Object], key: str, event: Event) -> None:
    if event.type == "DELETED":
        known.pop(key, None)
    else:
        known[key] = event.object


def _running(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") == "Running"
