"""What a change of manifests may do that a rehearsal does not show, because a snapshot does not have it.

Each function refuses a change of such a part with a `SnapshotError`, as far as one can be seen, and returns a sentence
for each part of which it is not known whether it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karpstack.text.shown import listed

from .api_fields import differing_keys, mapping
from .api_nodes import CLOUDS, OF_THE_IMAGE, spec_of_class
from .controller import KIND as CONTROLLER
from .controller import is_named_karpenter, karpenter_of, replaced, sources, unseen
from .drift import HARMLESS, differing
from .manifest_files import OF_PLAN, Manifests
from .manifests import DO_NOT_DISRUPT
from .model import NodeClass
from .problems import SnapshotError, finding

#: API groups of Karpenter and of its providers.
_GROUPS: Final = ("karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com")
_OWNERS: Final = "ownerReferences"
_SECURITY: Final = "securityContext"
#: Labels that each release of a chart changes.
_OF_CHARTS: Final = frozenset({"helm.sh/chart", "app.kubernetes.io/version"})
_HOOKS: Final = ("argocd.argoproj.io/hook", "helm.sh/hook")
_SYNC, _FORCE = "argocd.argoproj.io/sync-options", "Force=true"
#: Annotations with which tools keep an object that they no longer have, and what is in their values.
_KEPT: Final[Mapping[str, str]] = {
    _SYNC: "Prune=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS: Final = "template.metadata.annotations"
#: Other kinds that decide nothing about nodes, and of which no program makes such objects.
_QUIET: Final = frozenset(
    {
        "Ingress.networking.k8s.io",
        "NetworkPolicy.networking.k8s.io",
        "PodMonitor.monitoring.coreos.com",
        "PrometheusRule.monitoring.coreos.com",
        "Service",
        "ServiceMonitor.monitoring.coreos.com",
    }
)
_NAMED: Final = 5  # objects in a sentence


def of_others(before: Manifests, after: Manifests) -> Iterator[str]:
    """Say which objects of other kinds change; refuse a change of those that Karpenter reads, or is defined by."""
    changed = _changed(before, after)
    controllers = [item for one in (before, after) for (kind, _), item in one.objects.items() if kind == CONTROLLER]
    read = {source for one in controllers for source in sources(one)}
    for (kind, name), item in changed.items():
        # Another release brings its own definitions, which the rehearsal has as well.
        defines = _defines(item) and ((kind, name) not in after.others or _is_same_release(before, after))
        if _is_karpenters(item) or defines or (kind, name.rpartition("/")[2]) in read:
            raise SnapshotError.of(
                finding("snapshot-manifest-kind-unseen", "", _named((kind, name)), kind=kind.partition(".")[0])
            )
    if changed:
        yield f"also changed in the manifests, and not rehearsed: {_listed(changed)}"


def of_unrehearsed(before: Manifests | None, after: Manifests) -> Iterator[str]:
    """Say which objects, and documents that are none, change or may change, so that more may happen than is rehearsed.

    A chart's values are such a document. Another release of Karpenter brings its own roles.
    """
    is_brought = before is not None and not _is_same_release(before, after)
    changed = after.others if before is None else _changed(before, after)
    found = [
        key
        for key, item in sorted(changed.items())
        if key[0] not in _QUIET
        and key[0] != OF_PLAN
        and not (is_brought and (is_named_karpenter(item) or _defines(item)))
    ]
    if found:
        how = "not rehearsed, so the answer leaves out what they do" + (
            " and whether they change" if not before else ""
        )
        yield f"{how}: {_listed(found)}"


def of_a_plan(manifests: Manifests) -> Iterator[str]:
    """Say what a plan of Terraform's changes besides objects that are read: a new version of a cluster moves nodes."""
    if found := [name for kind, name in manifests.others if kind == OF_PLAN]:
        yield f"the plan also changes {listed(found, _NAMED)}, and what that does to nodes is not rehearsed"


def of_controller(item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[str]:
    """Say which settings of the controller are not rehearsed; refuse a change of them, as far as one can be seen."""
    now, subject = unseen(item), f"{item['kind']} {item['metadata']['name']}"
    if earlier is None:
        assumed = (
            f"{subject}: a snapshot does not have {', '.join(sorted(now))}, so the answer assumes that the cluster's "
            "controller has them as the manifests do"
        )
        return [assumed] if now else []
    made, had = karpenter_of(item), karpenter_of(earlier)
    same_release = made is not None and had is not None and made.version == had.version
    settings, others = differing_keys(now, unseen(earlier)), replaced(item, earlier)
    # Another release's chart brings its own.
    brought = [] if same_release else [*settings, *(key for key in others if key == _SECURITY)]
    if changed := [key for key in (*settings, *others) if key not in brought]:
        raise SnapshotError.of(finding("snapshot-manifest-unseen-setting", "", subject, keys=", ".join(changed)))
    return [f"{subject}: {', '.join(brought)} changes with the release, and is not rehearsed"] if brought else []


def of_metadata(subject: str, item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> Iterator[str]:
    """Refuse other owners, with which Kubernetes deletes an object; say which labels and annotations change.

    Tools that deploy read them. Those that the controller, kubectl and charts write do not count. Helm and Argo CD
    delete a hook before they create it again, and so does Argo CD with Force.
    """
    now = item["metadata"]
    annotations = mapping(now.get("annotations"))
    if any(one in annotations for one in _HOOKS) or _FORCE in str(annotations.get(_SYNC)):
        yield f"{subject}: its annotations may let a tool delete it and create it again, which is not rehearsed"
    if earlier is None:
        return
    old = mapping(earlier.get("metadata"))
    if now.get(_OWNERS) != old.get(_OWNERS):
        raise SnapshotError.of(finding("snapshot-manifest-unseen", "", subject, keys=f"metadata.{_OWNERS}"))
    for part in ("annotations", "labels"):
        keys = differing_keys(mapping(now.get(part)), mapping(old.get(part)))
        told = [key for key in keys if key not in {_LAST_APPLIED, *_OF_CHARTS} and key.partition("/")[0] not in _GROUPS]
        if told:
            yield f"{subject}: {part} change, and what tools do about that is not rehearsed: {listed(told, _NAMED)}"


def of_kept(removed: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say which objects that are removed a tool may keep in the cluster."""
    for item in removed:
        annotations = mapping(mapping(item.get("metadata")).get("annotations"))
        if any(text in str(annotations.get(key)) for key, text in _KEPT.items()):
            name = f"{item['kind']} {item['metadata']['name']}"
            yield f"{name}: its annotations may let a tool keep it, and the rehearsal removes it"


def of_node_class(
    had: NodeClass | None, item: Mapping[str, Any], earlier: Mapping[str, Any] | None, dropped: Collection[str]
) -> list[str]:
    """Say which fields of a node class are not rehearsed; refuse a change of them, as far as one can be seen.

    Args:
        had: The node class of the cluster.
        item: The one in the manifests.
        earlier: The one in the manifests before the change, if they are known.
        dropped: Fields that the snapshot left out of node classes: the manifests may remove them.
    """
    kind, spec = item["kind"], item.get("spec") or {}
    subject, kept = f"{kind} {item['metadata']['name']}", spec_of_class(spec)
    unseen = sorted({*dropped, *_not_rehearsed(kind, spec)} - HARMLESS[kind])
    if earlier is not None:
        old = earlier.get("spec") or {}
        rehearsed = differing(CLOUDS[kind], kind, spec_of_class(old), kept) - {*OF_THE_IMAGE}
        # Beside a change of what a rehearsal has of the kubelet, one of the rest would pass unseen.
        of_kubelet = {f"kubelet.{key}" for key in differing_keys(*map(_unkept_kubelet, (spec, old)))}
        rehearsed |= {"kubelet"} if of_kubelet else set()
        changed = sorted(of_kubelet | differing(CLOUDS[kind], kind, old, spec) - rehearsed)
    else:
        changed = _other_images(had, kept) if had else []
    return _told(subject, unseen, changed, is_first=earlier is None)


def of_older_images(had: NodeClass, item: Mapping[str, Any]) -> Iterator[str]:
    """Say that the cluster has other images than the manifests before a change."""
    if keys := _other_images(had, spec_of_class(item.get("spec") or {})):
        yield (
            f"{item['kind']} {had.name}: {', '.join(keys)} of the base is not that of the snapshot, and what this does "
            "to nodes is no part of the answer; if the base is deployed, take the snapshot again"
        )


def of_move(kind: str, old: Sequence[Mapping[str, Any] | None], new: Mapping[str, Any] | None) -> list[str]:
    """What is not rehearsed where pods come to nodes of another node class: fields that differ, if both are known.

    Args:
        kind: Kind of the node classes.
        old: Specs, in manifests, of node classes that pods come from: the one that is most alike counts.
        new: The spec in manifests of the one that they come to.
    """
    if new is None:
        return ["what a snapshot does not have"]
    differing_fields = [
        [
            key
            for key in sorted({*_not_rehearsed(kind, one), *_not_rehearsed(kind, new)})
            if one.get(key) != new.get(key)
        ]
        for one in old
        if one is not None
    ]
    return min(differing_fields, key=len, default=_not_rehearsed(kind, new))


def of_annotations(item: Mapping[str, Any], earlier: Mapping[str, Any] | None, *, had: bool) -> list[str]:
    """The same for the annotations that a NodePool gives its nodes: Karpenter's hash of a NodePool has them."""
    now, old = (_annotations(one) for one in (item, earlier or {}))
    unseen = [_ANNOTATIONS] if now or had else []
    changed = [_ANNOTATIONS] if earlier is not None and now != old else []
    return _told(f"{item['kind']} {item['metadata']['name']}", unseen, changed, is_first=earlier is None)


def _not_rehearsed(kind: str, spec: Mapping[str, Any]) -> list[str]:
    """The fields of a node class that a rehearsal does not have, or not all of, such as disks."""
    kept = spec_of_class(spec)
    fields = spec.keys() - HARMLESS[kind]
    return sorted(key for key in fields if key in OF_THE_IMAGE or kept.get(key) != spec[key])


def _other_images(had: NodeClass, kept: Mapping[str, Any]) -> list[str]:
    return [key for key in OF_THE_IMAGE if had.spec.get(key) and kept.get(key) not in (None, had.spec[key])]


def _changed(before: Manifests, after: Manifests) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The objects of other kinds that change, as they become, or were; not those that only a chart's version labels."""
    keys = sorted({*before.others, *after.others})
    sides = [{key: _without_chart(one.others[key]) for key in keys if key in one.others} for one in (before, after)]
    return {key: sides[1].get(key) or sides[0][key] for key in keys if sides[0].get(key) != sides[1].get(key)}


def _without_chart(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = mapping(item.get("metadata"))
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key not in _OF_CHARTS}
    return {**item, "metadata": {**metadata, "labels": labels}}


def _listed(keys: Iterable[tuple[str, str]]) -> str:
    return listed(list(map(_named, keys)), _NAMED)


def _named(key: tuple[str, str]) -> str:
    """An object's kind, without its API group, and its name."""
    kind, name = key
    return f"{kind.partition('.')[0]} {name}"


def _is_karpenters(item: Mapping[str, Any]) -> bool:
    return str(item.get("apiVersion")).partition("/")[0] in _GROUPS


def _is_same_release(before: Manifests, after: Manifests) -> bool:
    """Whether Karpenter's release stays, as far as manifests say it."""
    releases = ({one.version for item in of.objects.values() if (one := karpenter_of(item))} for of in (before, after))
    return next(releases) == next(releases)


def _defines(item: Mapping[str, Any]) -> bool:
    """Whether an object defines a kind of Karpenter's."""
    return item.get("kind") == "CustomResourceDefinition" and mapping(item.get("spec")).get("group") in _GROUPS


def _unkept_kubelet(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What of a node class's `kubelet` a snapshot does not have."""
    kept = spec_of_class(spec).get("kubelet", {})
    return {key: value for key, value in mapping(spec.get("kubelet")).items() if key not in kept}


def _annotations(pool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The annotations in the template of a NodePool that a snapshot does not have. None and no one hash otherwise."""
    given = mapping(mapping(mapping(pool.get("spec")).get("template")).get("metadata")).get("annotations")
    if not given:
        return given
    return {key: value for key, value in mapping(given).items() if key != DO_NOT_DISRUPT} or None


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
