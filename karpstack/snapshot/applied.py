"""A snapshot as its cluster would be after `kubectl apply` of manifests: other NodePools and node classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from karpstack.karpenter import crds
from karpstack.text.shown import listed

from .api_nodes import CLOUDS, OF_THE_IMAGE, class_of, pool_of, spec_of_class
from .left_out import Ledger
from .manifest_files import Manifests
from .manifests import DO_NOT_DISRUPT
from .model import NodeClass, NodePool, Snapshot
from .problems import SnapshotError, broken, finding, mistake

_POOL: Final = "NodePool"
#: API groups of Karpenter and of its providers.
_GROUPS: Final = ("karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com")
_NAMED: Final = 5  # objects in a note
_ANNOTATIONS: Final = "template.metadata.annotations"


class Applied(NamedTuple):
    """The result of applying manifests.

    Attributes:
        snapshot: The snapshot with other NodePools and node classes.
        notes: What of the manifests is not in it: a sentence each.
    """

    snapshot: Snapshot
    notes: list[str]


def applied(snapshot: Snapshot, manifests: Manifests, before: Manifests | None = None) -> Applied:
    """Apply manifests to a snapshot.

    Args:
        snapshot: The cluster before.
        manifests: What is applied. What it does not name stays, and what it removes goes.
        before: What was applied earlier from the same place, and is in the snapshot: what is in this alone goes, as it
            does where manifests are pruned, and what a snapshot does not have can be compared.

    Raises:
        SnapshotError: An object is not as Karpenter has it, is of another cloud, or differs from `before` in a field
            or a kind that a snapshot, and so a rehearsal, does not have.
    """
    notes = list(_others(before, manifests)) if before else []
    ledger = Ledger()
    pools = {one.name: one for one in snapshot.node_pools}
    classes = {one.name: one for one in snapshot.node_classes}
    gone = before.objects.keys() - manifests.objects.keys() if before else set()
    removed = sorted(gone | manifests.removed)
    absent = [f"{kind} {name}" for kind, name in removed if name not in (pools if kind == _POOL else classes)]
    if absent:
        notes.append(f"the change removes {listed(absent, _NAMED)}, which the cluster does not have")
    for kind, name in removed:
        (pools if kind == _POOL else classes).pop(name, None)
    zones = sorted({zone for one in snapshot.node_classes for zone in one.zones})
    for (kind, name), item in manifests.objects.items():
        try:
            earlier = before.objects.get((kind, name)) if before else None
            if kind == _POOL:
                notes += _unseen_annotations(item, earlier)
                made_pool = pool_of(item, ledger)
                notes += _whole(str(snapshot.cluster.cloud), pools.get(name), made_pool)
                pools[name] = made_pool
                continue
            if CLOUDS[kind] != (cloud := str(snapshot.cluster.cloud)):
                raise SnapshotError.of(finding("snapshot-manifest-cloud", "", f"{kind} {name}", cloud=cloud))
            notes += _unseen(classes.get(name), item, earlier)
            made = class_of(item, ledger)
            had = classes.get(name)
            classes[name] = made.model_copy(update={"zones": had.zones if had else zones})
        except (ValidationError, AttributeError, KeyError, TypeError) as error:
            why = mistake(error) if isinstance(error, ValidationError) else broken(error)
            raise SnapshotError.of(
                finding("snapshot-manifest-not-karpenters", "", f"{kind} {name}", why=why)
            ) from error
    notes += _left(snapshot, manifests, pools, classes)
    if before is None:
        same = list(pools.values()) == snapshot.node_pools and list(classes.values()) == snapshot.node_classes
        notes += _unknown(manifests, is_all=same)
    if manifests.ignored:
        counted = ", ".join(f"{count} {kind}" for kind, count in manifests.ignored.items())
        notes.append(f"ignored in the manifests: {counted}")
    changed = {"node_pools": list(pools.values()), "node_classes": list(classes.values())}
    return Applied(snapshot.model_copy(update=changed), notes)


def _others(before: Manifests, after: Manifests) -> Iterator[str]:
    """Say which objects of other kinds change; refuse a change of those that Karpenter reads."""
    keys = sorted({*before.others, *after.others})
    changed = [key for key in keys if before.others.get(key) != after.others.get(key)]
    for kind, name in changed:
        item = after.others.get((kind, name)) or before.others[kind, name]
        if _is_karpenters(item):
            raise SnapshotError.of(finding("snapshot-manifest-kind-unseen", "", f"{kind} {name}", kind=kind))
    if changed:
        yield f"also changed in the manifests, and not rehearsed: {listed([' '.join(key) for key in changed], _NAMED)}"


def _whole(cloud: str, had: NodePool | None, made: NodePool) -> list[str]:
    """Refuse a part of a NodePool, which the API server would refuse too; say what the cluster's has besides.

    A manifest is a whole object: what it does not have counts as removed.
    """
    if cloud not in CLOUDS.values():
        return []  # the stack file is refused for it
    subject = f"{_POOL} {made.name}"
    missing = [
        ".".join(map(str, ("spec", *one.path)))
        for one in crds.problems(cloud, _POOL, made.spec)
        if one.code == "missing"
    ]
    if missing:
        raise SnapshotError.of(finding("snapshot-manifest-part", "", subject, keys=", ".join(missing)))
    old, new = (crds.completed(cloud, _POOL, one.spec) if one else {} for one in (had, made))
    gone = [".".join(("spec", *path)) for path in _gone(old, new, made.spec)]
    if not gone:
        return []
    return [f"{subject}: the manifest does not have {', '.join(gone)}, so they count as removed, or have their default"]


def _gone(old: Mapping[str, Any], new: Mapping[str, Any], given: Any) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the fields that become another because they are not given."""
    for key, value in old.items():
        part = given.get(key) if isinstance(given, Mapping) else None
        if part is None and new.get(key) != value:
            yield (key,)
        elif isinstance(value, Mapping) and isinstance(new.get(key), Mapping):
            yield from ((key, *rest) for rest in _gone(value, new[key], part))


def _unknown(manifests: Manifests, *, is_all: bool) -> Iterator[str]:
    """Say which objects that Karpenter reads may change unseen; refuse them if nothing else changes."""
    found = [key for key, item in sorted(manifests.others.items()) if _is_karpenters(item)]
    if found and is_all:
        kind, name = found[0]
        raise SnapshotError.of(finding("snapshot-manifest-kind-alone", "", f"{kind} {name}", kind=kind))
    if found:
        named = listed([" ".join(key) for key in found], _NAMED)
        yield f"not rehearsed, so the answer leaves out what they do and whether they change: {named}"


def _is_karpenters(item: Mapping[str, Any]) -> bool:
    return str(item.get("apiVersion")).partition("/")[0] in _GROUPS


def _unseen(had: NodeClass | None, item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[str]:
    """Say which fields of a node class are not rehearsed; refuse a change of them, as far as one can be seen."""
    subject, spec = f"{item['kind']} {item['metadata']['name']}", item.get("spec") or {}
    kept = spec_of_class(spec)
    # Of some fields, such as disks, a snapshot has a part.
    unseen = sorted({key for key in spec if key in OF_THE_IMAGE or kept.get(key) != spec[key]})
    if earlier is not None:
        old = earlier.get("spec") or {}
        seen = spec_of_class(old)
        changed = sorted(
            key
            for key in {*spec, *old}
            if spec.get(key) != old.get(key) and (key in OF_THE_IMAGE or kept.get(key) == seen.get(key))
        )
    else:
        changed = [
            key for key in OF_THE_IMAGE if had and had.spec.get(key) and kept.get(key) not in (None, [], had.spec[key])
        ]
    return _told(subject, unseen, changed, is_first=earlier is None)


def _unseen_annotations(item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[str]:
    """The same for the annotations that a NodePool gives its nodes: Karpenter's hash of a NodePool has them."""
    now, old = (_annotations(one) for one in (item, earlier or {}))
    unseen = [_ANNOTATIONS] if now else []
    changed = [_ANNOTATIONS] if earlier is not None and now != old else []
    return _told(f"{item['kind']} {item['metadata']['name']}", unseen, changed, is_first=earlier is None)


def _annotations(pool: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations in the template of a NodePool that a snapshot does not have."""
    metadata = ((pool.get("spec") or {}).get("template") or {}).get("metadata") or {}
    return {key: value for key, value in (metadata.get("annotations") or {}).items() if key != DO_NOT_DISRUPT}


def _told(subject: str, unseen: Sequence[str], changed: Sequence[str], *, is_first: bool) -> list[str]:
    """Refuse changed fields that a rehearsal would not see; say which there are if it is not known what changes."""
    if changed:
        raise SnapshotError.of(finding("snapshot-manifest-unseen", "", subject, keys=", ".join(changed)))
    if is_first and unseen:
        return [
            f"{subject}: a snapshot does not have all of {', '.join(unseen)}, so the answer assumes that the cluster "
            "has them as the manifests do; if one of them is changed, all of its nodes drift as well"
        ]
    return []


def _left(
    snapshot: Snapshot, manifests: Manifests, pools: Mapping[str, NodePool], classes: Mapping[str, NodeClass]
) -> list[str]:
    """Say what the cluster has and the manifests do not name."""
    named = {name for kind, name in manifests.objects if kind == _POOL}
    others = {name for kind, name in manifests.objects if kind != _POOL}
    stay = [f"NodePool {one.name}" for one in snapshot.node_pools if one.name in pools and one.name not in named]
    stay += [
        f"{one.kind} {one.name}" for one in snapshot.node_classes if one.name in classes and one.name not in others
    ]
    return [f"the manifests do not have {', '.join(stay)}, which stay as the snapshot has them"] if stay else []
