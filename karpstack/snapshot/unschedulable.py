"""Workloads whose pods no node of their cloud could ever hold: too large, or of labels that no such node has.

What the facts do not list is skipped, so that what is said is so; pods that are not named may still never find a
node, for there must be a NodePool too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from karpstack.karpenter.instance_types import Facts, InstanceType
from karpstack.karpenter.quantities import quantity
from karpstack.karpenter.requirements import Requirement, RequirementError, contradiction, fits, requirement

from .managed_groups import labels_of_groups, only_in_groups
from .model import Snapshot, Workload
from .pod import Pod

_CLOUDS: Final = ("aws", "azure")
_GIB: Final = 2**30
_NO_NODE_POOL: Final = ", and none that Karpenter makes"
_OF_GROUPS: Final = ", unless the stack's own system nodes have it"


def unschedulable(snapshot: Snapshot) -> list[str]:
    """A sentence for each workload whose pods nothing can ever schedule; none where its cloud is not known."""
    cloud = snapshot.cluster.cloud
    if cloud not in _CLOUDS:
        return []
    facts = Facts.load(cloud)
    region = snapshot.cluster.region or ""
    known = facts.known_labels(region)
    managed = labels_of_groups(snapshot)
    return [
        f"{workload.namespace}/{workload.name}: {why}; its pods ({workload.replicas}) will wait for ever"
        f"{_OF_GROUPS if why.endswith(_NO_NODE_POOL) else ''}"
        for workload in snapshot.workloads
        if workload.controller.kind not in ("DaemonSet", "Node")
        and (why := _why(workload, facts, region, known, managed))
    ]


def _why(workload: Workload, facts: Facts, region: str, known: Set[str], managed: Set[str]) -> str | None:
    requests = workload.pod.requests
    cpu, memory = (quantity(requests.get(resource, "0")) for resource in ("cpu", "memory"))
    large = [type_ for type_ in facts.types.values() if type_.vcpus >= cpu and type_.memory >= memory]
    if not large:
        return f"no instance type of {facts.cloud} has {_size(cpu, memory)}"
    try:
        choices = list(_choices(workload.pod))
    except RequirementError as error:
        return f"Kubernetes takes no such requirement: {error.requirement}"
    if labels := only_in_groups(choices, managed):
        asked = ", ".join(dict.fromkeys(map(str, labels)))
        # Where the stack's own system nodes have the labels, as those of an agent pool `system`, the pods go there.
        return f"only nodes of a managed node group or agent pool have {asked}{_NO_NODE_POOL}"
    if any(_some(choice, large, region, known) for choice in choices):
        return None
    if any(_some(choice, facts.types.values(), region, known) for choice in choices):
        return f"no instance type of {facts.cloud} that has the labels which they ask for has {_size(cpu, memory)} too"
    asked = "; or ".join(", ".join(map(str, choice)) for choice in choices[:3])
    return f"no instance type of {facts.cloud} has the labels which they ask for: {asked}"


def _some(choice: Sequence[Requirement], types: Iterable[InstanceType], region: str, known: Set[str]) -> bool:
    return not contradiction(choice) and any(fits(choice, type_, region, known) for type_ in types)


def _choices(pod: Pod) -> Iterator[list[Requirement]]:
    """What a pod needs of its node, in each of the ways that its affinity leaves."""
    selector = [requirement(key, "In", (value,)) for key, value in pod.node_selector.items()]
    affinity = pod.affinity.node_affinity if pod.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    if not terms:
        yield selector
    for term in terms:
        yield [*selector, *(requirement(one.key, one.operator, one.values) for one in term.match_expressions)]


def _size(cpu: float, memory: float) -> str:
    return f"{cpu:g} CPUs and {memory / _GIB:.4g} GiB"
