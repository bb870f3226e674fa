"""Reads Karpenter's own manifests: files, folders of them, and what `terraform show -json` prints of a plan."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from karpstack.text import json_file
from karpstack.text.json_file import FileError
from karpstack.text.projects import KUSTOMIZATIONS
from karpstack.text.shown import cut, visible
from karpstack.text.yaml_file import DEPTH, YamlError, parse_all

from .api_fields import mapping, mappings
from .controller import KIND as CONTROLLER
from .controller import is_controller
from .problems import SnapshotError, finding

#: Kinds that a what-if applies, each with the API version that Karpenter serves.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "NodePool": ("karpenter.sh/v1",),
    "NodeOverlay": ("karpenter.sh/v1alpha1",),
    "EC2NodeClass": ("karpenter.k8s.aws/v1",),
    "AKSNodeClass": ("karpenter.azure.com/v1", "karpenter.azure.com/v1beta1"),
}
_KARPENTER: Final = "karpenter"
_NUMBERED: Final = re.compile(rb"\\[xuU][0-9a-fA-F]")
#: Kind of what a plan of Terraform's changes besides objects that are read: a chart, a cluster, a subnet.
OF_PLAN: Final = "resource that the plan changes"
_QUIET: Final = (["no-op"], ["read"])  # actions of a plan that change nothing
_OF_KUSTOMIZE: Final = "kustomize.config.k8s.io"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_MOST: Final = 16 * 2**20  # bytes; charts with CRDs print two million
_FILES: Final = 2_000
_VALUES: Final = 4_000_000  # of a file in JSON
_PLAN: Final = "planned_values"
_IN_HIDDEN: Final = "file in a hidden folder"
_OF_LFS: Final = "version https://git-lfs.github.com/spec/"
_BESIDES: Final = "besides"
_NO_OBJECT: Final = "document that is no object"


@dataclass(frozen=True)
class Manifests:
    """What files hold.

    Attributes:
        objects: NodePools, NodeOverlays, node classes and the Deployment of Karpenter, by kind and name.
        ignored: How many objects of each other kind there are.
        others: These objects, by kind with its API group, and name; and files in hidden folders. Where several have one
            name, one has the others in `besides`.
        removed: Kind and name of each such object that a plan of Terraform's deletes.
        before: What a plan of Terraform's says of the time before it; None of other files.
    """

    objects: Mapping[tuple[str, str], Mapping[str, Any]]
    ignored: Mapping[str, int]
    others: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    removed: frozenset[tuple[str, str]] = frozenset()
    before: Manifests | None = None


@dataclass(frozen=True)
class _Earlier:
    """An object as it is before a plan, and whether this deletes it."""

    item: Mapping[str, Any]
    goes: bool


def read(path: Path) -> Manifests:
    """Read the manifests of a file, or of all files below a folder.

    Raises:
        SnapshotError: A file is not readable or not YAML or JSON, an object is there twice or of an API version that
            Karpenter does not serve, two Deployments are Karpenter's controller, or no object is Karpenter's.
    """
    objects: dict[tuple[str, str], Mapping[str, Any]] = {}
    places: dict[tuple[str, str], Path] = {}
    ignored: dict[str, int] = {}
    others: dict[tuple[str, str], Mapping[str, Any]] = {}
    removed: set[tuple[str, str]] = set()
    earlier: dict[tuple[str, str], Mapping[str, Any]] = {}
    for file in _files(path):
        documents = _documents(file)
        if any(_is_kustomization(file, one) for one in documents):
            raise SnapshotError.of(finding("snapshot-manifest-kustomization", file))
        for one in (one for one in documents if isinstance(one, _Earlier) and _is_applied(one.item)):
            earlier[_key(one.item)] = _without_nulls(one.item)
            removed |= {_key(one.item)} if one.goes else set()
        for number, item in enumerate(_items(documents)):
            kind, name = _key(item)
            if not _is_applied(item):
                ignored[kind] = ignored.get(kind, 0) + 1
                key = _other(item) if kind != _NO_OBJECT else (kind, f"{file.relative_to(path)}:{number}")
                others[key] = {**item, _BESIDES: others[key]} if key in others else item
                continue
            if kind in KINDS and item.get("apiVersion") not in KINDS[kind]:
                served = " or ".join(KINDS[kind])
                version = str(item.get("apiVersion"))
                raise SnapshotError.of(
                    finding("snapshot-manifest-version", file, f"{kind} {name}: apiVersion", version, served=served)
                )
            same = [place for key, place in places.items() if key == (kind, name) or key[0] == kind == CONTROLLER]
            if same:
                raise SnapshotError.of(finding("snapshot-manifest-twice", file, f"{kind} {name}", other=same[0]))
            objects[kind, name], places[kind, name] = _without_nulls(item), file
    if hidden := [file for file in _below(path) if _is_hidden(path, file)]:
        ignored[_IN_HIDDEN] = len(hidden)
        others |= {(_IN_HIDDEN, str(file.relative_to(path))): _hidden_file(file) for file in hidden}
    for kind, name in removed & objects.keys():
        why = f"{visible(f'{kind} {name}')} is deleted and created again, with all of its nodes; that is not rehearsed"
        raise SnapshotError.of(finding("snapshot-manifest-unreadable", path, why=why))
    if not objects and not removed:
        raise SnapshotError.of(finding("snapshot-manifest-none", path, kinds=", ".join(KINDS)))
    # All other changes of a plan are in `others`, as addresses of resources.
    before = Manifests(earlier, {}, others) if earlier else None
    return Manifests(objects, dict(sorted(ignored.items())), others, frozenset(removed), before)


def _is_applied(item: Mapping[str, Any]) -> bool:
    return _is_read(item) or is_controller(item)


def _is_read(item: Mapping[str, Any]) -> bool:
    """Whether an object is of a kind that a what-if applies; other API groups have kinds of such names too."""
    kind, group = str(item.get("kind")), str(item.get("apiVersion")).partition("/")[:2]
    return kind in KINDS and (not group[1] or group[0] == KINDS[kind][0].partition("/")[0])


def _without_nulls(value: Any) -> Any:
    """The same without fields that are null, which the API server drops."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("kind")), str((item.get("metadata") or {}).get("name"))


def _other(item: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of an object, as `kubectl get` takes them, with the namespace."""
    kind, name = _key(item)
    group, has_group, _ = str(item.get("apiVersion")).partition("/")
    namespace = item["metadata"].get("namespace")
    return f"{kind}.{group}" if has_group else kind, f"{namespace}/{name}" if namespace else name


def _files(path: Path) -> list[Path]:
    if not _is_folder(path):
        return [path]
    found = [file for file in _below(path) if not _is_hidden(path, file)]
    if not found or len(found) > _FILES:
        raise SnapshotError.of(
            finding("snapshot-manifest-folder", path, count=len(found), most=_FILES, suffixes=", ".join(_SUFFIXES))
        )
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that no file can have
        return False


def _below(folder: Path) -> list[Path]:
    """The files below a folder that can be manifests, in its order. Nothing of a repository can be in `.git`."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        # As Go has suffixes: the whole of `.yaml` is one.
        if (file.name.endswith(_SUFFIXES) or file.name in KUSTOMIZATIONS)
        and file.is_file()
        and ".git" not in file.relative_to(folder).parts
    ]


def _is_hidden(folder: Path, file: Path) -> bool:
    """Whether a file is in a hidden folder. A hidden file is none: `kubectl apply` takes it."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts[:-1])


def _hidden_file(file: Path) -> dict[str, Any]:
    """A file in a hidden folder as an object: one that names Karpenter may be Karpenter's."""
    try:
        content = json_file.content(file, most=_MOST)
    except FileError as error:
        raise SnapshotError.of(finding("snapshot-manifest-unreadable", file, why=error.why)) from error
    group = "karpenter.sh" if _may_name_karpenter(content) else ""
    return {"apiVersion": f"{group}/v1", "kind": _IN_HIDDEN, "content": hashlib.sha256(content).hexdigest()}


def _may_name_karpenter(content: bytes) -> bool:
    try:
        return _KARPENTER in json.dumps(parse_all(content, _MOST))
    except YamlError:
        # Perhaps a tool reads it that is no YAML for us: characters may be written as their numbers.
        return _KARPENTER in content.replace(b"\0", b"").decode(errors="replace") or bool(_NUMBERED.search(content))


def _documents(file: Path) -> list[Any]:
    try:
        found = _parsed(json_file.content(file, most=_MOST), file)
        if any(isinstance(one, str) and one.startswith(_OF_LFS) for one in found):
            raise YamlError("it is a pointer of Git LFS, and what it points at is not here; run git lfs pull")
        return [part for one in found for part in (_planned(one) if _is_plan(one) else [one])]
    except (FileError, YamlError) as error:
        why = error.why if isinstance(error, FileError) else str(error)
        raise SnapshotError.of(finding("snapshot-manifest-unreadable", file, why=why)) from error


def _parsed(content: bytes, file: Path) -> list[Any]:
    """The documents of a file, of which one in JSON may have what is no YAML, such as halves of a character."""
    if content.lstrip().startswith(b"{"):
        with suppress(FileError):
            return [json_file.parse(content, file, depth=DEPTH, values=_VALUES)]
    return parse_all(content, _MOST)


def _is_plan(document: Any) -> bool:
    """Whether a document is a plan of Terraform's: an object with such a key stays one, and is applied as one."""
    return isinstance(document, dict) and _PLAN in document and "kind" not in document


def _items(documents: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of documents, also those of lists, as kubectl has them.

    Whatever has a list of items is one, and its kind is that of items which do not say theirs.
    """
    for one in documents:
        if isinstance(one, dict) and isinstance(items := one.get("items"), list):
            common = {"apiVersion": one.get("apiVersion"), "kind": str(one.get("kind")).removesuffix("List")}
            yield from _items(_as_in_list(item, common) for item in items)
        elif isinstance(one, dict) and _is_object(one):
            yield one
        elif one is not None and not isinstance(one, _Earlier):
            yield {"kind": _NO_OBJECT, "metadata": {}, "content": one}


def _is_kustomization(file: Path, document: Any) -> bool:
    """Whether a document is Kustomize's. Objects of Flux are in files of such names too."""
    group = str(mapping(document).get("apiVersion", _OF_KUSTOMIZE)).partition("/")[0]
    return file.name in KUSTOMIZATIONS and isinstance(document, dict) and group == _OF_KUSTOMIZE


def _is_object(one: Mapping[str, Any]) -> bool:
    return isinstance(one.get("kind"), str) and isinstance(one.get("metadata"), dict) and "items" not in one


def _as_in_list(item: Any, common: Mapping[str, Any]) -> Any:
    """An item of a list, with what it does not say, or says with an empty text."""
    return {**item, **{key: item.get(key) or of for key, of in common.items()}} if isinstance(item, dict) else item


def _planned(plan: Mapping[str, Any]) -> Iterator[Any]:
    """The manifests of a plan of Terraform's: of resources kubernetes_manifest and kubectl_manifest.

    Those before the plan are in `_Earlier`.

    Raises:
        YamlError: One is not YAML, or a part of a NodePool or NodeOverlay is not known yet: the plan leaves it out.
    """
    if plan.get("errored") is True:
        raise YamlError("it is a plan that ended with an error, so it does not have all changes; plan again")
    unknown = {}
    for one in mappings(plan.get("resource_changes")):
        change = mapping(one.get("change"))
        unknown[str(one.get("address"))] = mapping(change.get("after_unknown"))
        yield from _changed(one)
    for one in mappings(plan.get("deferred_changes")):
        yield from _changed(mapping(one.get("resource_change")))
    for one in (*mappings(plan.get("action_invocations")), *mappings(plan.get("deferred_action_invocations"))):
        invoked = mapping(one.get("action_invocation")) or one
        yield {"kind": OF_PLAN, "metadata": {"name": str(invoked.get("address"))}}
    modules = list(mappings([mapping(plan[_PLAN]).get("root_module")]))
    while modules:
        module = modules.pop()
        modules += mappings(module.get("child_modules"))
        for resource in mappings(module.get("resources")):
            values, address = mapping(resource.get("values")), str(resource.get("address"))
            needed = mapping(values.get("manifest")).get("kind") in ("NodePool", "NodeOverlay")
            if needed and _has_unknown(unknown.get(address, {}).get("manifest")):
                raise YamlError(f"of {cut(visible(address), 200)} a part is known after apply alone; apply that first")
            yield from _manifests_of(values)


def _changed(resource: Mapping[str, Any]) -> Iterator[Any]:
    """Objects before a plan; and a resource that it changes of which not all is an object that is read."""
    change = mapping(resource.get("change"))
    actions = change.get("actions")
    old, new = (list(_items(_manifests_of(mapping(change.get(side))))) for side in ("before", "after"))
    yield from (_Earlier(one, isinstance(actions, list) and "delete" in actions) for one in old)
    shown = old if actions == ["delete"] else new
    # What is not known yet is as if it were not there.
    is_known = not _has_unknown(mapping(change.get("after_unknown")).get("manifest"))
    is_shown = bool(shown) and is_known and all(map(_is_applied, shown))
    if actions not in (None, *_QUIET) and not is_shown:
        yield {"kind": OF_PLAN, "metadata": {"name": str(resource.get("address"))}}


def _manifests_of(values: Mapping[str, Any]) -> Iterator[Any]:
    """The manifests of a resource of Terraform's, by its values."""
    if isinstance(manifest := values.get("manifest"), dict):
        yield manifest
    elif isinstance(text := values.get("yaml_body") or manifest, str):  # of kustomization_resource it is text
        yield from parse_all(text.encode(), _MOST)


def _has_unknown(parts: Any) -> bool:
    """Whether a part of a value is not known yet: `after_unknown` of a plan has true in its place."""
    inner = parts.values() if isinstance(parts, dict) else parts if isinstance(parts, list) else ()
    return parts is True or any(map(_has_unknown, inner))
