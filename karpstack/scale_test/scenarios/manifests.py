"""Plain Kubernetes manifests in a scenario: which kinds may be pasted in, and what the scale test reads of them.

All else of a manifest is left to the API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..labels import SCENARIO_LABEL, WORKLOAD_LABEL, WORKLOAD_SELECTOR
from . import security
from .formats import DnsLabel, DnsName, Pods
from .problems import refuse

#: The kinds with pods, and the field of `spec` that says how many; none where there is one on each node.
COUNTED: dict[str, str | None] = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "DaemonSet": None,
    "Job": "parallelism",
}
#: Other kinds that a story may make in its namespace, and those that are in none.
_IN_NAMESPACE = {
    "PodDisruptionBudget": "policy/v1",
    "PersistentVolumeClaim": "v1",
    "ConfigMap": "v1",
    "Service": "v1",
}
IN_NO_NAMESPACE = {
    "PriorityClass": "scheduling.k8s.io/v1",
    "PersistentVolume": "v1",
    "StorageClass": "storage.k8s.io/v1",
}
KINDS = {
    **{kind: "batch/v1" if kind == "Job" else "apps/v1" for kind in COUNTED},
    **_IN_NAMESPACE,
    **IN_NO_NAMESPACE,
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
#: Key of a node class of a story's: the stack's of which it is a copy, but for the patch that is its `spec`.
COPY_OF = "copyOf"
_OURS = (WORKLOAD_SELECTOR.split("=")[0], SCENARIO_LABEL, WORKLOAD_LABEL)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Labelled(_Part):
    labels: dict[str, str] | None = None


class _Metadata(_Labelled):
    name: DnsName
    namespace: DnsLabel | None = None
    annotations: dict[str, str] | None = None


class _Container(_Part):
    image: str | None = None


class _PodSpec(_Part):
    containers: list[_Container] = Field(min_length=1)


class _Template(_Part):
    metadata: _Labelled = Field(default_factory=_Labelled)
    spec: _PodSpec


class _Selector(_Part):
    match_labels: dict[str, str] | None = Field(None, alias="matchLabels")


class _WorkloadSpec(_Part):
    replicas: Pods | None = None
    parallelism: Pods | None = None
    selector: _Selector | None = None
    template: _Template


class _WorkloadMetadata(_Metadata):
    name: DnsLabel


class _Workload(_Part):
    metadata: _WorkloadMetadata
    spec: _WorkloadSpec


class _BudgetSpec(_Part):
    selector: _Selector | None = None
    min_available: int | str | None = Field(None, alias="minAvailable")
    max_unavailable: int | str | None = Field(None, alias="maxUnavailable")


class _Budget(_Part):
    spec: _BudgetSpec


class _Object(_Part):
    metadata: _Metadata


def _manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise refuse("kind-unknown", known=list(KINDS))
    if manifest.get("apiVersion") != KINDS[kind]:
        raise refuse("api-version", version=KINDS[kind])
    _Object.model_validate(manifest)
    if more := sorted(map(str, manifest["metadata"].keys() - _Metadata.model_fields)):
        raise refuse("metadata-not-ours", more=more, known=list(_Metadata.model_fields))
    if kind in COUNTED:
        _Workload.model_validate(manifest)
    if kind == "PodDisruptionBudget":
        _Budget.model_validate(manifest)
    _keeps_nodes_closed(manifest)
    if kind == "PriorityClass" and manifest.get("globalDefault"):
        raise refuse("global-default")
    if kind == "PriorityClass" and manifest["metadata"]["name"].startswith("system-"):
        raise refuse("system-priority")
    if kind == "StorageClass" and _DEFAULT_CLASS in (manifest["metadata"].get("annotations") or {}):
        raise refuse("default-storage-class", annotation=_DEFAULT_CLASS)
    if COPY_OF in manifest:
        raise refuse("copy-of-elsewhere", key=COPY_OF)
    if given := [f"{path} {key}" for path, key in _ours(manifest)]:
        raise refuse("labels-of-the-story", given=given)
    return manifest


def _keeps_nodes_closed(manifest: Mapping[str, Any]) -> None:
    kind = manifest["kind"]
    if kind in COUNTED and (given := list(security.pods(manifest["spec"]["template"]))):
        raise refuse("rights-over-the-node", given=[f"spec.template.{path}" for path in given])
    spec = manifest.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    if kind == "Service" and (given := list(security.service(manifest))):  # CVE-2020-8554, and others
        raise refuse("traffic-of-others", given=given)
    if kind == "PersistentVolume":
        if paths := list(security.volume(spec)):
            raise refuse("volume-of-the-node", path=paths[0])
        if given := list(security.foreign_volume_sources(spec)):
            raise refuse("volume-of-others", given=given)
    if kind == "PersistentVolumeClaim" and (given := list(security.claim(spec))):
        raise refuse("volume-of-others", given=given)
    if kind == "StorageClass" and (given := list(security.storage_class(manifest))):
        raise refuse("volume-of-others", given=given)
    if kind == "StatefulSet":
        claims = manifest["spec"].get("volumeClaimTemplates")
        specs = [one.get("spec") for one in claims if isinstance(one, Mapping)] if isinstance(claims, list) else []
        if given := [found for one in specs if isinstance(one, Mapping) for found in security.claim(one)]:
            raise refuse("volume-of-others", given=[f"spec.volumeClaimTemplates: {found}" for found in given])


def safe_patch(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the patch of a node class; one that opens nodes is refused, as the policies do not see it."""
    if given := list(security.node_class(spec)):
        raise refuse("node-class-less-safe", given=given)
    return spec


def _ours(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where a manifest sets or selects labels that are the story's, and which: paths and keys."""
    kind, spec = manifest["kind"], manifest.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    set_there = [("metadata.labels", _labels(manifest["metadata"]))]
    if kind in COUNTED:
        set_there.append(("spec.template.metadata.labels", _labels(spec["template"].get("metadata") or {})))
        set_there.append(("spec.selector.matchLabels", (spec.get("selector") or {}).get("matchLabels") or {}))
    for path, labels in set_there:
        yield from ((path, key) for key in _OURS if key in labels)
    told = {path for path, _ in set_there}
    for path, keys in _selectors(spec, "spec"):
        # By their workload pods may be chosen; that label they do have.
        yield from ((path, key) for key in _OURS if key in keys and key != WORKLOAD_LABEL and path not in told)
    if kind == "Service" and isinstance(spec.get("selector"), Mapping):
        yield from (("spec.selector", key) for key in _OURS if key in spec["selector"] and key != WORKLOAD_LABEL)


def _selectors(given: Any, path: str) -> Iterator[tuple[str, list[str]]]:
    """The selectors by labels within a part of a manifest: path and keys of each."""
    if isinstance(given, list):
        for index, inner in enumerate(given):
            yield from _selectors(inner, f"{path}.{index}")
    if not isinstance(given, Mapping):
        return
    for key, inner in given.items():
        if key == "matchLabels" and isinstance(inner, Mapping):
            yield f"{path}.{key}", list(inner)
        elif key == "matchExpressions" and isinstance(inner, list):
            yield f"{path}.{key}", [str(one["key"]) for one in inner if isinstance(one, Mapping) and "key" in one]
        else:
            yield from _selectors(inner, f"{path}.{key}")


#: A manifest of one of `KINDS`.
Manifest = Annotated[dict[str, Any], AfterValidator(_manifest)]


@dataclass(frozen=True)
class ExpectedWorkload:
    """What should be there of a workload.

    Attributes:
        pods: How many pods; None where there is one on each node.
        image: Image of their first container; empty where it is not known.
    """

    pods: int | None
    image: str


def expected_workload(manifest: Mapping[str, Any]) -> ExpectedWorkload:
    """What the manifest of a workload asks for."""
    spec, count = manifest["spec"], COUNTED[manifest["kind"]]
    number = spec.get(count) if count else None
    image = spec["template"]["spec"]["containers"][0].get("image") or ""
    return ExpectedWorkload(None if count is None else 1 if number is None else int(number), image)


def title(manifest: Mapping[str, Any]) -> str:
    """Kind and name of an object."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def with_pods(manifest: Mapping[str, Any], pods: int) -> dict[str, Any]:
    """A workload that has a number of pods, scaled."""
    return {**manifest, "spec": {**manifest["spec"], COUNTED[manifest["kind"]]: pods}}


def keep_replicas(manifest: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload that is applied over another, with the other's replicas if it sets none."""
    count = COUNTED[manifest["kind"]]
    if count is None or manifest["spec"].get(count) is not None or before["spec"].get(count) is None:
        return dict(manifest)
    return with_pods(manifest, before["spec"][count])


def with_image(manifest: Mapping[str, Any], image: str) -> dict[str, Any]:
    """A workload with another image of its first container."""
    spec = manifest["spec"]
    template = spec["template"]
    first, *others = template["spec"]["containers"]
    pod = {**template["spec"], "containers": [{**first, "image": image}, *others]}
    return {**manifest, "spec": {**spec, "template": {**template, "spec": pod}}}


def owned(manifest: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A manifest as a story makes it: in its namespace, with its labels, on the pods of a workload too.

    Args:
        manifest: The manifest.
        namespace: The story's namespace.
        labels: The story's labels.
    """
    kind, metadata = manifest["kind"], manifest["metadata"]
    mine = {**metadata, "labels": {**_labels(metadata), **labels}}
    if kind not in IN_NO_NAMESPACE:
        mine["namespace"] = namespace
    if kind == "PersistentVolume" and isinstance(spec := manifest.get("spec"), Mapping):
        # For a claim of the story's, and no other namespace's.
        manifest = {**manifest, "spec": {**spec, "claimRef": {**spec["claimRef"], "namespace": namespace}}}
    if kind not in COUNTED:
        return {**manifest, "metadata": mine}
    template = manifest["spec"]["template"]
    inner = template.get("metadata") or {}
    pods = {**inner, "labels": {**_labels(inner), **labels, WORKLOAD_LABEL: metadata["name"]}}
    return {
        **manifest,
        "metadata": mine,
        "spec": {**manifest["spec"], "template": {**template, "metadata": pods}},
    }


def _labels(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("labels") or {}
