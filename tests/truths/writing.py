"""Writes cases as what a cluster and a what-if take: objects, a snapshot, and the steps of the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karpstack.components.documents.manifests import AKS_DATAPLANE_LABEL, AKS_NODE_CLASS, EC2_NODE_CLASS, node_pool
from karpstack.karpenter.instance_types import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpstack.snapshot.model import KIND, VERSION

from .cases import STACKS, Case, Pool, Workload

#: On nodes and in the node selectors of pods: the case that they are of.
LABEL: Final = "karpstack-truth"
_API: Final = "karpenter.sh/v1"
_DEPLOYMENT: Final = "apps/v1"

Object = dict[str, Any]


def node_pools(case: Case, pools: Mapping[str, Pool]) -> list[Object]:
    """Return the NodePools of a case."""
    aws = case.stack == "eks"
    return [
        node_pool(
            case.named(name),
            _spec(case, pool),
            node_class=EC2_NODE_CLASS if aws else AKS_NODE_CLASS,
            labels=None if aws else AKS_DATAPLANE_LABEL,
        )
        for name, pool in pools.items()
    ]


def node_classes(case: Case, classes: Mapping[str, Mapping[str, Any]], default: Object) -> list[Object]:
    """Return node classes of a case.

    Args:
        case: The case.
        classes: Name -> what of it differs from the stack's own class.
        default: The stack's own class, as the API server has it.
    """
    own = {key: value for key, value in default["spec"].items() if value is not None}
    return [
        {
            "apiVersion": default["apiVersion"],
            "kind": default["kind"],
            "metadata": {"name": case.named(name)},
            "spec": merged(own, _class(keys, default)),
        }
        for name, keys in classes.items()
    ]


def snapshot(cases: Sequence[Case], region: str) -> Object:
    """Return the snapshot of the clusters of some cases, as one cluster."""
    return {
        "kind": KIND,
        "version": VERSION,
        "taken": "2026-11-22T10:00:00Z",
        "source": "made",
        "cluster": {"cloud": "aws" if cases[0].stack == "eks" else "azure", "region": region},
        "priorityClasses": [
            {"name": case.named(name), "value": priority}
            for case in cases
            for name, workload in case.workloads.items()
            if (priority := (workload.model_extra or {}).get("priority")) is not None
        ],
        "workloads": [_workload(case, name, one) for case in cases for name, one in case.workloads.items()],
        "podDisruptionBudgets": [
            _pod_budget(case, name, one) for case in cases for name, one in case.pod_disruption_budgets.items()
        ],
        "nodes": [_node(case, name, words) for case in cases for name, words in case.nodes.items()],
    }


def steps(case: Case, default: Object | None) -> Iterator[Object]:
    """Yield the steps of a case's change: what is done, the object, and its patch.

    Args:
        case: The case.
        default: The stack's own node class, where the case changes one of its own.
    """
    if case.change.classes and default:
        after = {name: {**case.classes[name], **keys} for name, keys in case.change.classes.items()}
        before = node_classes(case, {name: case.classes[name] for name in after}, default)
        yield from _patches(before, node_classes(case, after, default))
    for name, overlay in case.change.overlays.items():
        yield {"do": "create", "object": _overlay(case, name, overlay.types, overlay.price)}
    kept = {name: pool for name, pool in case.pools.items() if name not in case.change.delete}
    yield from _patches(node_pools(case, kept), node_pools(case, case.changed()))
    for name in case.change.delete:
        yield {"do": "delete", "object": _named("NodePool", case.named(name))}
    for name, replicas in case.change.scale.items():
        workload = {
            "apiVersion": _DEPLOYMENT,
            "kind": case.workloads[name].kind,
            "metadata": {"name": name, "namespace": case.name},
        }
        yield {"do": "patch", "object": workload, "patch": {"spec": {"replicas": replicas}}}
    for name in case.change.interrupt:
        yield {"do": "interrupt", "object": _named("NodeClaim", case.named(name))}


def overlays(case: Case) -> list[Object]:
    """Return the NodeOverlays that the change of a case makes."""
    return [_overlay(case, name, one.types, one.price) for name, one in case.change.overlays.items()]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """Return the JSON merge patch that makes one mapping of another."""
    found: Object = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := difference(old, value):
                found[key] = inner
        elif key not in before or old != value:
            found[key] = value
    return found


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> Object:
    """Return a mapping with the keys of another one put into it; mappings in it are merged."""
    inner = {
        key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in more.items()
    }
    return {**base, **inner}


def _patches(before: Iterable[Object], after: Iterable[Object]) -> Iterator[Object]:
    for old, new in zip(before, after, strict=True):
        if patch := difference({"spec": old["spec"]}, {"spec": new["spec"]}):
            yield {
                "do": "patch",
                "object": {key: new[key] for key in ("apiVersion", "kind", "metadata")},
                "patch": patch,
            }


def _spec(case: Case, pool: Pool) -> Object:
    choices = ((INSTANCE_TYPE, pool.types), (ZONE, pool.zones), (CAPACITY_TYPE, pool.capacity or ["on-demand"]))
    template: Object = {
        "requirements": [
            *({"key": key, "operator": "In", "values": values} for key, values in choices if values),
            *pool.requirements,
        ],
        "expireAfter": pool.expire_after,
    }
    optional = {
        "taints": pool.taints,
        "startupTaints": pool.startup_taints,
        "terminationGracePeriod": pool.termination_grace_period,
        "nodeClassRef": pool.node_class and {"name": case.named(pool.node_class)},
    }
    template |= {key: value for key, value in optional.items() if value}
    metadata: Object = {"labels": {LABEL: case.name, **pool.labels}}
    if pool.annotations:
        metadata["annotations"] = pool.annotations
    spec: Object = {
        "template": {"metadata": metadata, "spec": template},
        "disruption": {
            "consolidationPolicy": pool.policy,
            "consolidateAfter": pool.consolidate_after,
            "budgets": pool.budgets,
        },
    }
    more = {"weight": pool.weight, "limits": pool.limits or None, "replicas": pool.replicas}
    return spec | {key: value for key, value in more.items() if value is not None}


def _class(keys: Mapping[str, Any], default: Object) -> Object:
    """What differs from the stack's class, with the subnets of zones in place of their names."""
    given = {key: value for key, value in keys.items() if key != "zones"}
    if "zones" in keys:
        subnets = [one["id"] for one in default["status"]["subnets"] if one["zone"] in keys["zones"]]
        given["subnetSelectorTerms"] = [{"id": one} for one in subnets]
    return given


def _overlay(case: Case, name: str, types: list[str], price: str) -> Object:
    requirements = [
        {"key": INSTANCE_TYPE, "operator": "In", "values": types},
        {"key": LABEL, "operator": "In", "values": [case.name]},
    ]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": case.named(name)},
        "spec": {"requirements": requirements, "price": price},
    }


def _workload(case: Case, name: str, workload: Workload) -> Object:
    pod = dict(workload.model_extra or {})
    if "priority" in pod:
        pod["priorityClassName"] = case.named(name)
    return {
        "namespace": case.name,
        "name": name,
        "controller": {"apiVersion": _DEPLOYMENT, "kind": workload.kind},
        "replicas": workload.count,
        "pod": {
            **pod,
            "labels": {"app": name},
            "requests": {"cpu": workload.cpu, "memory": workload.memory},
            "nodeSelector": {LABEL: case.name, **pod.get("nodeSelector", {})},
        },
        "volumes": [{"size": "1Gi", "places": [{"zones": [workload.volume_in], "pods": workload.count}]}]
        if workload.volume_in
        else [],
        "nodes": {case.named(node): count for node, count in workload.at.items()},
    }


def _pod_budget(case: Case, name: str, keys: Mapping[str, Any]) -> Object:
    selects = {"matchLabels": {"app": keys.get("selects", name)}}
    rest = {key: value for key, value in keys.items() if key != "selects"}
    return {"namespace": case.name, "name": name, "selector": selects, **rest}


def _node(case: Case, name: str, words: str) -> Object:
    pool, type_, zone, capacity = [*words.split(), *[""] * 2][:4]
    return {
        "name": case.named(name),
        "nodeClaim": case.named(name),
        "nodePool": case.named(pool),
        "instanceType": type_,
        "zone": zone or STACKS[case.stack],
        "capacityType": capacity or "on-demand",
    }


def _named(kind: str, name: str) -> Object:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}}
