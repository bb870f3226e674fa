"""The nodes of a snapshot as NodeClaims, each of which Karpenter launches as what it was.

Karpenter's controller of a NodeClaim's life launches every NodeClaim that it finds, whoever made it
(sigs.k8s.io/karpenter, pkg/controllers/nodeclaim/lifecycle). These are as its provisioner makes them of the NodePool
(`ToNodeClaim` in pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go), with requirements that leave one
instance type, zone and capacity type. What a node was launched for is not asked for again: the type is known, and one
that has a little less here would not be launched at all. Hashes of the node class come from the cloud's part of
Karpenter when it launches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from karpstack.karpenter.instance_types import (
    ARCHITECTURE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OPERATING_SYSTEM,
    REGION,
    ZONE,
    Facts,
)
from karpstack.karpenter.requirements import Requirement, RequirementError, allows, fits, own, requirements, value_for

from .manifests import DO_NOT_DISRUPT
from .model import Node, NodeClaim, Snapshot
from .portability import Place

#: On a NodeClaim and its node: the node of the snapshot that it stands for.
STANDS_FOR: Final = "karpstack.io/snapshot-node"
#: Annotation of a NodeClaim whose node in the snapshot has `karpenter.sh/do-not-disrupt: "true"` of its own.
KEPT_THERE: Final = "karpstack.io/snapshot-do-not-disrupt"
NODE_POOL: Final = "karpenter.sh/nodepool"
#: By which Karpenter sees that a NodePool is another than when it made a NodeClaim; its own, of the NodePool.
HASHES: Final = ("karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version")
#: Labels under kubernetes.io that follow from the machine; Karpenter resolves others there like the users' own.
_OF_THE_MACHINE: Final = frozenset(
    {
        ARCHITECTURE,
        INSTANCE_TYPE,
        OPERATING_SYSTEM,
        REGION,
        ZONE,
        "kubernetes.io/hostname",
        "node.kubernetes.io/windows-build",
    }
)
#: Conditions of a NodeClaim that Karpenter deletes, and its taint on the node (pkg/controllers/disruption/queue.go).
_GOING: Final = frozenset({"DisruptionReason", "InstanceTerminating"})
_DISRUPTED: Final = ("karpenter.sh/disrupted", "NoSchedule")
#: Taints by which Karpenter and Kubernetes tell states of nodes.
_STATES: Final = (
    "karpenter.sh/",
    *(f"node.kubernetes.io/{state}" for state in ("not-ready", "unreachable", "unschedulable")),
)
_NAMED: Final = 3  # of a sentence that names many
_DIGITS: Final = 10  # of a hash in a name: equal ones are not to be met among thousands of nodes


@dataclass(frozen=True)
class Claims:
    """Nodes of a snapshot as they are to be made.

    Attributes:
        of: How many nodes of NodePools the snapshot has.
        claims: NodeClaims to make.
        left_out: Which nodes are not made, and why, and which are made without a state that they have: a sentence each.
    """

    of: int
    claims: tuple[dict[str, Any], ...]
    left_out: tuple[str, ...]


def node_claims(
    snapshot: Snapshot, place: Place, pools: Mapping[str, Mapping[str, Any]], zones: Mapping[str, Collection[str]]
) -> Claims:
    """The NodeClaims of a snapshot's nodes.

    Args:
        snapshot: The snapshot.
        place: The cloud and the region of the cluster.
        pools: Name -> NodePool of the cluster, as the API server has it.
        zones: NodePool -> zones in which it has subnets, where that is known.
    """
    by_node = {claim.node: claim for claim in snapshot.node_claims if claim.node}
    judge = _Judge(snapshot, place, pools, zones)
    made: dict[str, dict[str, Any]] = {}
    left_out: dict[str, list[str]] = {}
    state: dict[str, list[str]] = {}
    of = 0
    for node in snapshot.nodes:
        node = _completed(node, by_node.get(node.name))
        of += node.node_pool is not None
        why = judge.why_not(node)
        if why is None and (name := _name(node)) in made:
            why = f"NodeClaim {name} is another node's of the snapshot"
        if why:
            left_out.setdefault(why, []).append(node.name)
        else:
            pool = pools[str(node.node_pool)]
            made[_name(node)] = _claim(node, pool)
            for words in _lost_state(node, by_node.get(node.name), pool["spec"]):
                state.setdefault(words, []).append(node.name)
    told = [sentence(why, names) for why, names in left_out.items()]
    for words, names in state.items():
        told.append(
            f"{len(names)} of the snapshot's nodes {'is' if len(names) == 1 else 'are'} {words} ({_shown(names)})"
        )
    known = {node.name for node in snapshot.nodes}
    if launching := [one.name for one in snapshot.node_claims if one.node not in known and not one.deleting]:
        told.append(
            f"{len(launching)} of the snapshot's NodeClaims not made: they have no node yet, so Karpenter launches "
            f"nodes for their pods again ({_shown(launching)})"
        )
    return Claims(of, tuple(made.values()), tuple(told))


def sentence(why: str, names: Collection[str]) -> str:
    """Of some nodes, why they are not made."""
    return f"{len(names)} of the snapshot's nodes not made as they were: {why} ({_shown(names)})"


def _shown(names: Collection[str]) -> str:
    return ", ".join(list(names)[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _lost_state(node: Node, claim: NodeClaim | None, spec: Mapping[str, Any]) -> Iterator[str]:
    """What a node has in the cluster, and not in the rehearsal.

    Args:
        node: The node.
        claim: Its NodeClaim, if it is known.
        spec: That of its NodePool, whose taints it gets.
    """
    # BuildDisruptionBudgetMapping in pkg/controllers/disruption/helpers.go
    counts = "in the cluster, each counts against the disruption budget of its NodePool"
    conditions, taints = claim.conditions if claim else (), {(one.key, one.effect) for one in node.taints}
    if not node.ready:
        yield f"not ready in the cluster, but ready in the rehearsal; {counts}"
    if node.unschedulable:
        yield "cordoned in the cluster, but not in the rehearsal, so pods can be placed there"
    if node.deleting or (claim and claim.deleting) or _GOING & {*conditions} or _DISRUPTED in taints:
        yield f"being deleted or replaced in the cluster, but not in the rehearsal; {counts}"
    elif "Drifted" in conditions:
        yield (
            "drifted already in the cluster, but not in the rehearsal; in the cluster, Karpenter replaces each anyway "
            "within the disruption budget of its NodePool, and the new node is of the changed NodePool"
        )
    template = spec["template"]["spec"]
    given = {(one["key"], one["effect"]) for key in ("taints", "startupTaints") for one in template.get(key) or ()}
    if any(taint not in given and not taint[0].startswith(_STATES) for taint in taints):
        yield "tainted in the cluster by others than Karpenter, but not in the rehearsal, so pods can be placed there"


@dataclass(frozen=True)
class _Judge:
    """Whether a node can be made: by what is there and by what the NodePools admit."""

    snapshot: Snapshot
    place: Place
    pools: Mapping[str, Mapping[str, Any]]
    zones: Mapping[str, Collection[str]]

    def why_not(self, node: Node) -> str | None:
        if node.node_pool is None:
            return "of no NodePool, as those of managed node groups"
        pool = self.pools.get(node.node_pool)
        if pool is None:
            return f"the base has no NodePool {node.node_pool}"
        if pool["spec"].get("replicas") is not None:
            return f"NodePool {node.node_pool} has a fixed number of nodes and makes them itself"
        if not (node.instance_type and node.zone and node.capacity_type):
            return "their instance type, zone or capacity type is not in the snapshot"
        if not self.place.same_region(self.snapshot.cluster):
            return f"their zones are not of {self.place.region}"
        known = self.zones.get(node.node_pool)
        if known is not None and node.zone not in known:
            return f"NodePool {node.node_pool} has no subnet in {node.zone}"
        if not self._admitted(node, pool["spec"]):
            return f"NodePool {node.node_pool} does not admit {node.instance_type} on {node.capacity_type}"
        if keys := [key for key, value in _resolved(node, pool["spec"]).items() if value is None]:
            return f"NodePool {node.node_pool} leaves no value of the label {', '.join(keys)}"
        return None

    def _admitted(self, node: Node, spec: Mapping[str, Any]) -> bool:
        """Whether the NodePool's requirements leave the node; what the facts do not know, Karpenter says."""
        wanted = _requirements(spec)
        if not allows(wanted, CAPACITY_TYPE, node.capacity_type) or not allows(wanted, ZONE, node.zone):
            return False
        facts = Facts.load(self.place.cloud) if self.place.cloud else None
        type_ = facts.types.get(str(node.instance_type)) if facts else None
        if facts is None or type_ is None:
            return allows(wanted, INSTANCE_TYPE, node.instance_type)
        return fits(wanted, type_, self.place.region, facts.known_labels(self.place.region))


def _completed(node: Node, claim: NodeClaim | None) -> Node:
    """A node with what its NodeClaim says where it says nothing itself."""
    if claim is None:
        return node
    missing = {
        key: getattr(claim, key)
        for key in ("node_pool", "instance_type", "zone", "capacity_type")
        if getattr(node, key) is None
    }
    return node.model_copy(update={**missing, "node_claim": node.node_claim or claim.name})


def _claim(node: Node, pool: Mapping[str, Any]) -> dict[str, Any]:
    name, template = pool["metadata"]["name"], pool["spec"]["template"]
    metadata, spec = template.get("metadata") or {}, template["spec"]
    reference, hashes = spec["nodeClassRef"], pool["metadata"].get("annotations") or {}
    labels = {
        **(metadata.get("labels") or {}),
        NODE_POOL: name,
        f"{reference['group']}/{reference['kind'].lower()}": reference["name"],
        **{key: value for key, value in _resolved(node, pool["spec"]).items() if value is not None},
    }
    only = {**labels, INSTANCE_TYPE: node.instance_type, ZONE: node.zone, CAPACITY_TYPE: node.capacity_type}
    rest = [one for one in spec.get("requirements") or () if one["key"] not in only]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": _name(node),
            "labels": labels,
            "annotations": {
                **(metadata.get("annotations") or {}),
                **{key: hashes[key] for key in HASHES if key in hashes},
                STANDS_FOR: node.name,
                **({KEPT_THERE: "true"} if node.do_not_disrupt else {}),
                DO_NOT_DISRUPT: "true",  # until all pods are there
            },
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodePool",
                    "name": name,
                    "uid": pool["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            **spec,
            "requirements": [
                # Of how many kinds there must be to choose from says nothing where one is left.
                *({key: value for key, value in one.items() if key != "minValues"} for one in rest),
                *({"key": key, "operator": "In", "values": [value]} for key, value in only.items()),
            ],
        },
    }


def _name(node: Node) -> str:
    return node.node_claim or f"{node.node_pool}-{hashlib.sha256(node.name.encode()).hexdigest()[:_DIGITS]}"


def _requirements(spec: Mapping[str, Any]) -> list[Requirement]:
    """Those of a NodePool's spec; none where one is not known, for the API server has taken it."""
    try:
        return requirements(spec)
    except RequirementError:
        return []


def _resolved(node: Node, spec: Mapping[str, Any]) -> dict[str, str | None]:
    """The labels that follow from no machine and that the requirements ask for; None where they leave no value.

    The node's own value where they admit it, else one that they leave. A NodeClaim without such a label drifts at once
    (`areRequirementsDrifted` in pkg/controllers/nodeclaim/disruption), so Karpenter gives each that it makes a value:
    `resolveCustomLabelsFromRequirements`, beside `ToNodeClaim`.
    """
    wanted = _requirements(spec)
    given = {one.key for one in wanted if one.given}
    found: dict[str, str | None] = {}
    for key in dict.fromkeys(one.key for one in wanted if one.key not in given and _is_custom(one.key)):
        value = node.labels.get(key)
        if value is None or not allows(wanted, key, value):
            value = value_for(wanted, key)
        if value is not None or not allows(wanted, key, None):
            found[key] = value
    return found


def _is_custom(key: str) -> bool:
    """Whether Karpenter itself gives the label its value: one that neither it nor the cloud knows."""
    domain = key.partition("/")[0]
    return own(key) or (domain.endswith("kubernetes.io") and key not in _OF_THE_MACHINE)
