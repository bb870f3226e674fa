"""A snapshot as its cluster would be after `kubectl apply` of manifests of what Karpenter decides by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from karpstack.karpenter import crds
from karpstack.karpenter.instance_types import CAPACITY_TYPE
from karpstack.text.shown import listed

from . import unseen
from .api_fields import mapping, mappings
from .api_nodes import CLOUDS, OF_CLASSES, OF_TEMPLATES, class_of, overlay_of, pool_of
from .controller import KIND as CONTROLLER
from .controller import karpenter_of
from .drift import is_same
from .left_out import Ledger
from .manifest_files import Manifests
from .model import NodeClass, NodePool, Snapshot
from .pod_limits import class_name
from .problems import SnapshotError, broken, finding, mistake

_POOL: Final = "NodePool"
_OVERLAY: Final = "NodeOverlay"
_IMAGES: Final = "amiSelectorTerms"
_NAMED: Final = 5  # objects in a note
_RESERVED: Final = (
    "{subject}: reserved capacity is not rehearsed, because the rehearsal has no capacity reservations; Karpenter "
    "launches spot or on-demand nodes instead where the requirements allow them, and else none"
)


class Applied(NamedTuple):
    """The result of applying manifests.

    Attributes:
        snapshot: The snapshot with other NodePools, NodeOverlays and node classes, or another controller.
        notes: What of the manifests is not in it: a sentence each.
        unseen: What may change without being seen, because a snapshot does not have it: a sentence each.
    """

    snapshot: Snapshot
    notes: list[str]
    unseen: list[str]


def applied(
    snapshot: Snapshot, manifests: Manifests, before: Manifests | None = None, *, is_base: bool = False
) -> Applied:
    """Apply manifests to a snapshot.

    Args:
        snapshot: The cluster before.
        manifests: What is applied. What it does not name stays, and what it removes goes.
        before: What was applied earlier from the same place, and is in the snapshot: what is in this alone goes, as it
            does where manifests are pruned, and what a snapshot does not have can be compared. A plan says it itself.
        is_base: Whether these are the manifests before a change: the cluster may have older ones.

    Raises:
        SnapshotError: An object is not as Karpenter has it, is of another cloud, or differs from `before`, or from the
            cluster if this is no base, in a field or a kind that a snapshot, and so a rehearsal, does not have.
    """
    # What a plan has no more is perhaps only not known yet; what it deletes, it says.
    gone = before.objects.keys() - manifests.objects.keys() if before else set()
    cluster = _Cluster(snapshot, is_base=is_base)
    if manifests.before and not before:
        before = manifests.before
        cluster.check_plan(applied(snapshot, before, is_base=True).snapshot)
    notes = list(unseen.of_others(before, manifests)) if before else []
    removed = sorted(gone | manifests.removed)
    cluster.unseen += unseen.of_kept(before.objects[key] for key in removed if before and key in before.objects)
    absent = [f"{kind} {name}" for kind, name in removed if not cluster.remove(kind, name)]
    if absent:
        notes.append(f"the change removes {listed(absent, _NAMED)}, which the cluster does not have")
    for (kind, name), item in manifests.objects.items():
        earlier = before.objects.get((kind, name)) if before else None
        cluster.unseen += unseen.of_metadata(f"{kind} {name}", item, earlier)
        try:
            notes += cluster.apply(kind, name, item, earlier)
        except (ValidationError, AttributeError, KeyError, TypeError) as error:
            why = mistake(error) if isinstance(error, ValidationError) else broken(error)
            if isinstance(error, KeyError):
                why = f"it has no {error}"
            raise SnapshotError.of(
                finding("snapshot-manifest-not-karpenters", "", f"{kind} {name}", why=why)
            ) from error
    cluster.check_classes()
    reserved = list(cluster.reserved(manifests, before))
    notes += [said for said, is_same in reserved if is_same]
    notes += cluster.unnamed({*manifests.objects})
    told = [
        *cluster.unseen,
        *(said for said, is_same in reserved if not is_same),
        *cluster.moved(manifests, before),
        *cluster.idle_overlays(),
        *unseen.of_a_plan(manifests),
        *unseen.of_unrehearsed(before, manifests),
    ]
    if manifests.ignored:
        counted = ", ".join(f"{count} {kind}" for kind, count in manifests.ignored.items())
        notes.append(f"ignored in the manifests: {counted}")
    return Applied(cluster.snapshot(), notes, told)


class _Cluster:
    """The objects of a snapshot that manifests change.

    Attributes:
        unseen: What may change without being seen: a sentence each.
    """

    def __init__(self, snapshot: Snapshot, *, is_base: bool) -> None:
        self.unseen: list[str] = []
        self._is_base = is_base
        self._before = snapshot
        self._cloud = str(snapshot.cluster.cloud)
        self._zones = sorted({zone for one in snapshot.node_classes for zone in one.zones})
        self._ledger = Ledger()
        self._karpenter = snapshot.karpenter
        left_out = {one.what for one in snapshot.left_out}
        self._annotated = OF_TEMPLATES in left_out
        self._dropped = {one.removesuffix(OF_CLASSES) for one in left_out if one.endswith(OF_CLASSES)}
        self._pools = {one.name: one for one in snapshot.node_pools}
        self._classes = {one.name: one for one in snapshot.node_classes}
        self._overlays = {one.name: one for one in snapshot.node_overlays}

    def snapshot(self) -> Snapshot:
        """The snapshot as it is after the manifests."""
        changed = {
            "node_pools": list(self._pools.values()),
            "node_classes": list(self._classes.values()),
            "node_overlays": list(self._overlays.values()),
            "karpenter": self._karpenter,
        }
        return self._before.model_copy(update=changed)

    def remove(self, kind: str, name: str) -> bool:
        """Remove an object; whether there was one."""
        if kind == CONTROLLER:
            raise SnapshotError.of(finding("snapshot-manifest-unseen-setting", "", f"{kind} {name}", keys="all of it"))
        if kind in CLOUDS and CLOUDS[kind] != self._cloud:
            return False
        of_kind: dict[str, dict[str, Any]] = {_POOL: self._pools, _OVERLAY: self._overlays}
        return of_kind.get(kind, self._classes).pop(name, None) is not None

    def apply(self, kind: str, name: str, item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[str]:
        """Apply an object, and return notes on it.

        Args:
            kind, name: Whose it is.
            item: The object.
            earlier: The object before, if it is known.
        """
        if kind == _POOL:
            had = self._pools.get(name)
            made = pool_of(item, self._ledger).model_copy(update={"ready": had is None or had.ready})
            if had or earlier is not None:  # a new one has no nodes that could drift
                self.unseen += unseen.of_annotations(item, earlier, had=self._annotated)
            self._pools[name] = made
            return _whole(self._cloud, had, made)
        if kind == _OVERLAY:
            new, old = overlay_of(item).model_copy(update={"ready": True}), self._overlays.get(name)
            self._overlays[name] = old if old and old.spec == new.spec else new
            return []
        if kind == CONTROLLER:
            self._karpenter = karpenter_of(item)
            self.unseen += unseen.of_controller(item, earlier)
            return self._unknown_controller(kind, name, earlier)
        if CLOUDS[kind] != self._cloud:
            raise SnapshotError.of(finding("snapshot-manifest-cloud", "", f"{kind} {name}", cloud=self._cloud))
        of_class = self._classes.get(name)
        if of_class or earlier is not None:
            known = None if self._is_base else of_class
            self.unseen += unseen.of_node_class(known, item, earlier, self._dropped)
        made_class = class_of(item, self._ledger)
        kept = {
            "zones": of_class.zones if of_class else self._zones,
            "architectures": self._architectures(made_class, of_class),
            "ready": of_class is None or of_class.ready,
        }
        self._classes[name] = made_class.model_copy(update=kept)
        return list(unseen.of_older_images(of_class, item)) if self._is_base and of_class else []

    def _architectures(self, made: NodeClass, of_class: NodeClass | None) -> list[str]:
        """The architectures of a node class's images; a new one has those of the others that select images like it."""
        like = [
            one
            for one in ([of_class] if of_class else self._before.node_classes)
            if (one.spec.get(_IMAGES) or []) == (made.spec.get(_IMAGES) or [])
        ]
        known = all(one.architectures for one in like)
        return sorted({each for one in like for each in one.architectures}) if known else []

    def _unknown_controller(self, kind: str, name: str, earlier: Mapping[str, Any] | None) -> list[str]:
        if self._before.karpenter or earlier is not None:
            return []
        return [
            f"{kind} {name}: the snapshot does not have Karpenter's settings, so a base without this Deployment has "
            "those of the stack file, and what differs counts as changed; take the snapshot again, or give the "
            "Deployment before the change with --base"
        ]

    def moved(self, manifests: Manifests, before: Manifests | None) -> Iterator[str]:
        """Say what is not rehearsed where pods come to another node class: with their NodePool, or to a new one.

        Args:
            manifests: The manifests.
            before: Those before the change, if they are known.
        """
        used = {node.node_pool for node in self._before.nodes}
        known = {one.name for one in self._before.node_classes}
        had = {one.name: class_name(one.spec) for one in self._before.node_pools}
        kind = next(kind for kind, cloud in CLOUDS.items() if cloud == self._cloud)
        moves: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for pool, new in ((pool, class_name(one.spec)) for pool, one in self._pools.items()):
            if new not in self._classes or new == had.get(pool) or (pool not in used and new in known):
                continue
            old = [had[pool]] if pool in used else sorted(known)
            specs = [_spec_in((before, manifests), kind, name) for name in old]
            if keys := unseen.of_move(kind, specs, _spec_in((manifests, before), kind, new)):
                moves.setdefault((new, tuple(keys)), []).append(pool)
        for (name, fields), pools in moves.items():
            moved = f"nodes of NodePool {listed(pools, _NAMED)}"
            if name in known:
                yield f"{kind} {name}: {', '.join(fields)} of it is not rehearsed, and {moved} move to it"
            else:
                yield (
                    f"{kind} {name}: it is new, and {', '.join(fields)} of it is not rehearsed; {moved} come with the "
                    "images and in the zones of your other node classes"
                )

    def reserved(self, manifests: Manifests, before: Manifests | None) -> Iterator[tuple[str, bool]]:
        """Say which NodePools of manifests may launch reserved capacity, and whether that stays as it was."""
        had = {one.name: one for one in self._before.node_pools}
        for name in (name for kind, name in manifests.objects if kind == _POOL):
            was, now = (
                one is not None and _reserves(one, _spec_in(of, "EC2NodeClass", class_name(one.spec)) or {})
                for one, of in ((had.get(name), (before, manifests)), (self._pools[name], (manifests, before)))
            )
            if was or now:
                yield _RESERVED.format(subject=f"{_POOL} {name}"), was == now

    def check_plan(self, planned: Snapshot) -> None:
        """Say which objects a plan has otherwise before it than the cluster: then their change is another one."""
        had = {(_POOL, one.name): one.spec for one in self._before.node_pools}
        had |= {(one.kind, one.name): one.spec for one in self._before.node_classes}
        then = {(_POOL, one.name): one.spec for one in planned.node_pools}
        then |= {(one.kind, one.name): one.spec for one in planned.node_classes}
        differing = [
            f"{kind} {name}"
            for (kind, name), spec in then.items()
            if (kind, name) not in had or not is_same(self._cloud, kind, had[kind, name], spec)
        ]
        if differing:
            self.unseen.append(
                f"before the plan, the plan and the snapshot do not have the same of {listed(differing, _NAMED)}; take "
                "the snapshot again"
            )

    def check_classes(self) -> None:
        """Refuse the removal of a node class that a NodePool names: it launches no nodes then."""
        gone = {one.name for one in self._before.node_classes} - self._classes.keys()
        for name, pool in self._pools.items():
            if (missing := class_name(pool.spec)) in gone:
                raise SnapshotError.of(finding("snapshot-manifest-no-class", "", f"{_POOL} {name}", missing))

    def idle_overlays(self) -> Iterator[str]:
        """Say which NodeOverlays are not Ready, where others change: one that conflicts with them may become it."""
        before = {one.name: one.spec for one in self._before.node_overlays}
        idle = [one.name for one in self._overlays.values() if not one.ready]
        if idle and before != {one.name: one.spec for one in self._overlays.values()}:
            yield (
                f"{_OVERLAY} {listed(idle, _NAMED)}: not Ready in the cluster, so the rehearsal does not have it, and "
                "whether the change of other NodeOverlays makes it Ready is not known"
            )

    def unnamed(self, named: Collection[tuple[str, str]]) -> list[str]:
        """Say what the cluster has and the manifests do not name."""
        before = self._before
        stay = [(_POOL, one.name) for one in before.node_pools if one.name in self._pools]
        stay += [(one.kind, one.name) for one in before.node_classes if one.name in self._classes]
        stay += [(_OVERLAY, one.name) for one in before.node_overlays if one.name in self._overlays]
        told = ", ".join(f"{kind} {name}" for kind, name in stay if (kind, name) not in named)
        return [f"the manifests do not have {told}, which stay as the snapshot has them"] if told else []


def _spec_in(of: Sequence[Manifests | None], kind: str, name: str | None) -> Mapping[str, Any] | None:
    """The spec of an object in the first manifests that have it."""
    found = (one.objects[kind, name] for one in of if one and name and (kind, name) in one.objects)
    return next((item.get("spec") or {} for item in found), None)


def _reserves(pool: NodePool, of_class: Mapping[str, Any]) -> bool:
    """Whether a NodePool may launch reserved capacity: it names it, or its node class does and nothing excludes it."""
    of_nodes = mapping(mapping(pool.spec.get("template")).get("spec"))
    asked = [one for one in mappings(of_nodes.get("requirements")) if one.get("key") == CAPACITY_TYPE]
    named = [("reserved" in (one.get("values") or ())) == (one.get("operator") == "In") for one in asked]
    return all(named) and bool(
        of_class.get("capacityReservationSelectorTerms") or any(one.get("operator") == "In" for one in asked)
    )


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
