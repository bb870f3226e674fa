"""Loads the pods of a snapshot onto the nodes that they had.

While they are made, an admission policy gives them the name of a scheduler that nobody is: no scheduler places them,
and Karpenter, which provides for pods that a scheduler has refused, makes no nodes for them. Each pod whose node is
there is bound to it. Then the policy goes, and the pods that are left go and come again, for the scheduler to place.
Nothing of it stays: what a controller makes later, of the same template, is scheduled as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from karpstack.karpenter import clock
from karpstack.karpenter.quantities import exact
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.judging.replay import OF_DAEMON_SETS
from karpstack.scale_test.labels import WORKLOAD_LABEL
from karpstack.snapshot.effective_requests import requests
from karpstack.snapshot.manifests import IMAGE
from karpstack.snapshot.model import Workload
from karpstack.snapshot.placement import Room, place_pods

from .labels import LABELS, SELECTOR

_NOBODY: Final = "karpstack-whatif"  # a scheduler that is not there
_API: Final = "admissionregistration.k8s.io/v1"
_NUMBER: Final = "apps.kubernetes.io/pod-index"
_PAUSE: Final = 1.0  # seconds between two looks
_SECONDS_OF_A_POLICY: Final = 60.0  # the API server looks at its policies once a second
_SECONDS_WITHOUT_A_POD: Final = 60.0
_STILL: Final = 3  # looks without a pod that nobody schedules

_HOLD: Final[tuple[dict[str, Any], ...]] = (
    {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": _NOBODY, "labels": LABELS},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "objectSelector": {
                    "matchLabels": LABELS,
                    "matchExpressions": [{"key": OF_DAEMON_SETS, "operator": "DoesNotExist"}],
                },
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
            },
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {
                        "expression": f'[JSONPatch{{op: "add", path: "/spec/schedulerName", value: "{_NOBODY}"}}]'
                    },
                }
            ],
        },
    },
    {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": _NOBODY, "labels": LABELS},
        "spec": {"policyName": _NOBODY},
    },
)
# What is asked for to see whether the policy acts; it is never made.
_PROBE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": _NOBODY, "namespace": "default", "labels": LABELS},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [{"name": "pause", "image": IMAGE}],
    },
}


@dataclass(frozen=True)
class PlacementResult:
    """The result of placing the pods.

    Attributes:
        pods: How many are on the node that they had.
        without_room: How many had no room there.
    """

    pods: int
    without_room: int


@contextmanager
def hold_pods(
    cluster: Cluster, clock: Callable[[], float] = clock.monotonic, sleep: Callable[[float], None] = clock.sleep
) -> Iterator[None]:
    """Within it, pods of the workload that are made wait for nobody; afterwards, for the scheduler as ever.

    Raises:
        ClusterError: The API server does not answer or refuses, or does not know such policies.
    """
    try:
        for one in _HOLD:
            cluster.create(one)
        _wait_for(cluster, clock, sleep, held=True)
        yield
    finally:
        remove_policy(cluster)
        _wait_for(cluster, clock, sleep, held=False)
        _let_go(cluster, sleep)


def remove_policy(cluster: Cluster) -> None:
    """Remove the policy, if one is there that is a what-if's.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    for one in reversed(_HOLD):
        live = cluster.read(one)
        if live and LABELS.items() <= (live["metadata"].get("labels") or {}).items():
            cluster.delete(one, live["metadata"]["uid"])


@clock.waiting()
def place(
    cluster: Cluster,
    workloads: Mapping[str, Workload],
    standing: Mapping[str, str],
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], None] = clock.sleep,
) -> PlacementResult:
    """Bind the pods of workloads, as they come, to the nodes that they had.

    Args:
        cluster: The cluster, in which pods are held.
        workloads: Value of the label of a workload -> the workload.
        standing: Node of the snapshot -> the one that stands for it.
        clock: Tells seconds.
        sleep: Waits so many seconds.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    planned = place_pods(workloads, _rooms(cluster, standing))
    left = {name: dict(enumerate(nodes)) for name, nodes in planned.nodes.items()}
    seen, placed = set[str](), 0
    expected = sum(len(nodes) for nodes in planned.nodes.values())
    end = clock() + _SECONDS_WITHOUT_A_POD
    while len(seen) < expected and clock() < end:
        new = [pod for pod in _held(cluster) if pod["metadata"]["uid"] not in seen]
        for pod in new:
            seen.add(pod["metadata"]["uid"])
            node = _take(left.get(pod["metadata"]["labels"].get(WORKLOAD_LABEL, ""), {}), pod)
            placed += node is not None and cluster.bind(pod, node)
        end = clock() + _SECONDS_WITHOUT_A_POD if new else end
        sleep(0 if new else _PAUSE)
    return PlacementResult(placed, planned.without_room)


def _take(left: dict[int, str | None], pod: Mapping[str, Any]) -> str | None:
    """The node of a pod: of its number, or for one that has none, the next."""
    number = pod["metadata"]["labels"].get(_NUMBER)
    if number is not None:
        return left.pop(int(number), None)
    return left.pop(next(iter(left))) if left else None


def _held(cluster: Cluster) -> list[dict[str, Any]]:
    """Pods that nobody schedules and that have no node."""
    return [
        pod
        for pod in cluster.labelled("v1", "Pod", SELECTOR)
        if pod["spec"].get("schedulerName") == _NOBODY
        and not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
    ]


def _let_go(cluster: Cluster, sleep: Callable[[float], None]) -> None:
    """Delete the pods that nobody schedules, which come again; one may still be on its way when the policy goes."""
    still = 0
    while still < _STILL:
        found = _held(cluster)
        for pod in found:
            cluster.delete({"apiVersion": "v1", "kind": "Pod", **pod}, pod["metadata"]["uid"])
        still = 0 if found else still + 1
        sleep(_PAUSE)


def _wait_for(cluster: Cluster, clock: Callable[[], float], sleep: Callable[[float], None], *, held: bool) -> None:
    end = clock() + _SECONDS_OF_A_POLICY
    while (cluster.tried(_PROBE)["spec"]["schedulerName"] == _NOBODY) != held:
        if clock() > end:
            raise ClusterError(
                f"the admission policy {_NOBODY} {'does nothing' if held else 'still acts'} after "
                f"{_SECONDS_OF_A_POLICY:g} seconds, so pods would get {'other nodes' if held else 'none'}; let "
                "Karpenter choose the nodes: nodes=fresh"
            )
        sleep(_PAUSE / 5)


def _rooms(cluster: Cluster, standing: Mapping[str, str]) -> dict[str, Room]:
    """Node of the snapshot -> the room on the one that stands for it, beside what is there already."""
    live = {node["metadata"]["name"]: node for node in cluster.labelled("v1", "Node", "")}
    by_name = {
        name: Room(
            name,
            live[name]["metadata"]["labels"].get("topology.kubernetes.io/zone", ""),
            {resource: exact(amount) for resource, amount in live[name]["status"]["allocatable"].items()},
        )
        for name in set(standing.values()) & live.keys()
    }
    # Several managed nodes may be stood for by one.
    rooms = {of: by_name[name] for of, name in standing.items() if name in by_name}
    for pod in cluster.labelled("v1", "Pod", ""):
        room = by_name.get(pod["spec"].get("nodeName", ""))
        ours = LABELS.items() <= (pod["metadata"].get("labels") or {}).items()
        if room and not ours and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            room.take(requests(pod["spec"]), must=True)
    return rooms
