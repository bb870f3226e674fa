"""Kubernetes objects of every kind, by server-side apply against the real API server.

The API server judges: schemas, CEL rules, immutable fields, names. What the real provider waits for after creation
is simplified: the kinds of `readiness.KINDS` are awaited, others only where `pulumi.com/waitFor` names a condition.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from karpstack.rehearsal.attachment.resource import (
    Created,
    Failure,
    IncompleteError,
    Properties,
    RefusedError,
    Resource,
    has_unknowns,
)
from karpstack.rehearsal.cluster import readiness
from karpstack.rehearsal.cluster.objects import Object
from karpstack.rehearsal.cluster.provider.api import Api, ApiError, CancelledError, Kind, NoKindError
from karpstack.rehearsal.cluster.provider.connection import Connection, UnreachableError

MANAGER: Final = "pulumi-kubernetes"
#: The environment variable that says that `pulumi up` does not wait until deleted NodePools have no nodes any more.
NODES_STAY: Final = "REHEARSAL_NODES_STAY"
#: API groups of objects that Karpenter keeps until their nodes are gone, which a held pod can delay for ever.
_OF_NODES: Final = frozenset({"karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com"})
_AUTONAMED: Final = "pulumi.com/autonamed"
_SKIP_AWAIT: Final = "pulumi.com/skipAwait"
_WAIT_FOR: Final = "pulumi.com/waitFor"
_TIMEOUT: Final = "pulumi.com/timeoutSeconds"
_PATCH_FORCE: Final = "pulumi.com/patchForce"
_PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
#: Annotations of Pulumi's that change what the real provider does and that this one does not know.
_UNSUPPORTED: Final = ("pulumi.com/patchFieldManager", "pulumi.com/replaceUnready")
_CONDITION: Final = "condition="
_POLICIES: Final = {"background": "Background", "orphan": "Orphan"}

#: Pauses in seconds before another try when a namespace or a CustomResourceDefinition is not there yet. The real
#: provider tries five times too, over half a minute.
_RETRIES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)

#: API version -> kind -> fields whose change replaces an object of the kind, besides its identity.
_REPLACE_ON: Final[Mapping[str, Mapping[str, list[str]]]] = yaml.safe_load(
    Path(__file__).with_name("replace_on.yaml").read_text(encoding="utf-8")
)
_IDENTITY: Final = frozenset({"metadata.name", "metadata.namespace"})
_WAY_OUT: Final = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the "
    'PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)
#: Set by the API server, different in each object, so not part of what a preview shows.
_FRESH: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def kubernetes_object(token: str, connection: Connection) -> KubernetesObject | None:
    """The resource for a type token such as `kubernetes:apps/v1:Deployment`; None for what is no object."""
    parsed = object_kind(token)
    return KubernetesObject(token, *parsed, connection) if parsed else None


def object_kind(token: str) -> tuple[str, str] | None:
    """API version and kind of a type token; None for what is no object."""
    package, group_version, kind = (*token.split(":"), "", "")[:3]
    group, _, version = group_version.partition("/")
    if package != "kubernetes" or not version or not kind or kind.endswith(("Patch", "List")):
        return None
    if group in ("helm.sh", "yaml", "kustomize"):
        return None
    return version if group == "core" else group_version, kind


class KubernetesObject(Resource):
    """Objects of one kind. ID: `<namespace>/<name>`, or the name alone."""

    name_digits: int = 8
    #: Field manager: whose the fields are that are applied.
    manager: ClassVar[str] = MANAGER

    def __init__(self, token: str, api_version: str, kind: str, connection: Connection) -> None:
        self.token = token
        self.replace_on = _IDENTITY.union(_REPLACE_ON.get(api_version, {}).get(kind, ()))
        is_secret = (api_version, kind) == ("v1", "Secret")
        self.secret_outputs = frozenset({"data", "stringData"}) if is_secret else frozenset()
        self._api_version = api_version
        self._kind = kind
        self._connection = connection

    def unknown(self, inputs: Properties) -> list[str]:
        """None: the API server judges names of fields."""
        return []

    def autoname(self, inputs: Properties, old: Mapping[str, Any], proposed: str | None) -> Properties:
        """Fill in metadata.name and mark the object, so that a replacement may draw another name."""
        metadata = inputs.get("metadata") or {}
        if not isinstance(metadata, dict) or metadata.get("name") is not None:
            return inputs
        kept = old.get("metadata", {}).get("name") if _annotation(old, _AUTONAMED) == "true" else None
        if (kept or proposed) is None:
            return inputs
        annotations = {**(metadata.get("annotations") or {}), _AUTONAMED: "true"}
        return {**inputs, "metadata": {**metadata, "name": kept or proposed, "annotations": annotations}}

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """Complete apiVersion and kind; refuse annotations of Pulumi's that would have no effect here."""
        checked = {"apiVersion": self._api_version, "kind": self._kind, **inputs}
        failures = [
            Failure(
                "metadata",
                f"the rehearsal does not know the annotation {annotation}, so it would have no effect; remove it",
            )
            for annotation in _UNSUPPORTED
            if _annotation(inputs, annotation)
        ]
        failures += [
            Failure(
                "metadata",
                f"{_WAIT_FOR}: {wanted!r}: the rehearsal waits for conditions only; write it as {_CONDITION}<type>",
            )
            for wanted in _awaited_conditions(inputs)
            if not wanted.startswith(_CONDITION)
        ]
        metadata = inputs.get("metadata") or {}
        if isinstance(metadata, dict) and not metadata.get("name"):
            failures.append(
                Failure("metadata", "autonaming is disabled, resource requires the .metadata.name field to be set")
            )
        return checked, failures

    def deletes_first(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether the new object has the old one's place."""
        return _annotation(new, _AUTONAMED) != "true" and _place(old) == _place(new)

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """A dry run at the API server, where there is one and everything is known."""
        shown = {**state, **inputs}
        if has_unknowns(inputs):
            return shown
        try:
            api = self._connection.api()
            kind = self._find(api, inputs)
        except (UnreachableError, NoKindError):
            return shown
        path = self._path(kind, inputs, id)
        if not id and api.get(path) is not None:
            return shown  # it is in the way now; whether it still is when the deployment comes here is unknown
        try:
            seen = self._apply(api, kind, path, inputs, dry_run=True)
        except ApiError as error:
            if error.code in (403, 404):  # a namespace that the same deployment makes
                return shown
            raise
        if not id:
            seen.pop("status", None)
            for name in _FRESH:
                seen["metadata"].pop(name, None)
        return seen

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """Apply it as a new object, and wait for what is awaited."""
        name = _place(inputs)[1]
        api = self._api()
        self._connection.cluster().define_policy(self._api_version, self._kind)
        try:
            made = self._retried(api, f"creation of {self._kind} {name}", lambda: self._create(api, inputs))
        except NoKindError as error:
            raise RefusedError(
                f"creation of resource {name!r} with kind {self._api_version}/{self._kind} failed because the "
                "Kubernetes API server reported that the apiVersion for this resource does not exist. Verify that any "
                f"required CRDs have been created: {error}"
            ) from error
        except ApiError as error:
            raise RefusedError(
                f"resource {name!r} was not successfully created by the Kubernetes API server: {error}"
            ) from error
        id = "/".join(part for part in _place(made) if part)
        return Created(id, self._awaited(api, inputs, made, id, timeout))

    def read(self, id: str, state: Properties) -> Properties | None:
        """The live object."""
        try:
            api = self._connection.api()
        except UnreachableError as error:
            if self._connection.deletes_unreachable:
                return None
            raise RefusedError(
                f"failed to read resource state due to unreachable cluster. {_WAY_OUT} ({error})"
            ) from error
        try:
            kind = self._find(api, state)
        except NoKindError:
            return None
        live = api.get(self._path(kind, state, id))
        return _outputs(live) if live else None

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """As for all; for an import the live object without what the API server adds."""
        if old:
            return super().inputs_of(outputs, old)
        metadata = {name: value for name, value in outputs["metadata"].items() if name not in _FRESH}
        return {**{name: value for name, value in outputs.items() if name != "status"}, "metadata": metadata}

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        """Apply it again: fields that the program dropped are removed."""
        api = self._api()
        try:
            kind = self._find(api, new)
            made = self._apply(api, kind, self._path(kind, new, id), new, dry_run=False)
        except RefusedError as error:
            raise RefusedError(
                f"update of resource {id!r} failed because the Kubernetes API server reported: {error}"
            ) from error
        return self._awaited(api, new, made, id, timeout)

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Delete it with its dependents and wait until it is gone, finalizers included.

        A what-if does not wait for what is gone only with its nodes: it records how they go, and judges what is left.
        """
        api = self._api_for_deletion()
        if api is None:
            return
        try:
            kind = self._find(api, state)
        except NoKindError:
            return
        path = self._path(kind, state, id)
        propagation = _POLICIES.get((_annotation(state, _PROPAGATION) or "").lower(), "Foreground")
        if not api.delete(path, propagation) or _annotation(state, _SKIP_AWAIT) == "true" or self._goes_with_nodes:
            return
        timeout = _timeout(state, timeout)
        uid = state.get("metadata", {}).get("uid")
        try:
            api.wait(
                path,
                lambda seen: seen is None or seen["metadata"]["uid"] != (uid or seen["metadata"]["uid"]),
                timeout,
                f"deletion of {self._kind} {id}",
            )
        except TimeoutError as error:
            raise RefusedError(_still_there(self._kind, id, error.args[0], timeout)) from error

    # -- helpers

    @property
    def _goes_with_nodes(self) -> bool:
        return bool(os.environ.get(NODES_STAY)) and self._api_version.partition("/")[0] in _OF_NODES

    def _api(self) -> Api:
        try:
            return self._connection.api()
        except UnreachableError as error:
            raise RefusedError(f"configured Kubernetes cluster is unreachable: {error}") from error

    def _api_for_deletion(self) -> Api | None:
        """None where the cluster is gone, and its objects with it."""
        try:
            return self._connection.api()
        except UnreachableError as error:
            if self._connection.deletes_unreachable:
                return None
            raise RefusedError(f"configured Kubernetes cluster is unreachable. {_WAY_OUT} ({error})") from error

    def _find(self, api: Api, properties: Mapping[str, Any]) -> Kind:
        return api.kind(properties.get("apiVersion") or self._api_version, properties.get("kind") or self._kind)

    def _path(self, kind: Kind, properties: Mapping[str, Any], id: str = "") -> str:
        namespace, name = _place(properties)
        if id:
            namespace, _, name = id.rpartition("/")
        return kind.path(namespace or self._connection.namespace, name)

    def _create(self, api: Api, inputs: Properties) -> Object:
        kind = self._find(api, inputs)
        path = self._path(kind, inputs)
        if api.get(path) is not None:
            # Applying would take the object over; the real provider posts, and this is the API server's answer.
            group = kind.prefix.split("/")[2:-1]
            raise ApiError(
                409,
                f'{".".join([kind.plural, *group])} "{_place(inputs)[1]}" already exists\n\nThe '
                "resource already exists in the cluster. To manage it, import it with `pulumi import`",
            )
        return self._apply(api, kind, path, inputs, dry_run=False)

    def _apply(self, api: Api, kind: Kind, path: str, inputs: Properties, *, dry_run: bool) -> Object:
        metadata = {**inputs["metadata"]}
        metadata.pop("namespace", None)
        if kind.namespaced:
            metadata["namespace"] = _place(inputs)[0] or self._connection.namespace
        body = {**inputs, "metadata": metadata}
        try:
            return _outputs(
                api.apply(path, body, self.manager, force=_annotation(inputs, _PATCH_FORCE) == "true", dry_run=dry_run)
            )
        except ApiError as error:
            if error.code != 409:
                raise
            raise ApiError(
                409,
                "server-side apply field conflict detected\nThe resource managed by field manager "
                f"{self.manager!r} had an apply conflict: {error}\nTo take the fields over, set the "
                f'annotation {_PATCH_FORCE}: "true"',
            ) from error

    def _retried(self, api: Api, what: str, attempt: Callable[[], Object]) -> Object:
        for pause in _RETRIES:
            try:
                return attempt()
            except NoKindError:
                pass
            except ApiError as error:
                if error.code != 404:
                    raise
            api.pause(pause, what)
        return attempt()

    def _awaited(self, api: Api, inputs: Properties, made: Object, id: str, timeout: float) -> Object:
        if _annotation(inputs, _SKIP_AWAIT) == "true":
            return made
        timeout = _timeout(inputs, timeout)
        wanted = _awaited_conditions(inputs)
        path = self._path(self._find(api, inputs), inputs, id)
        what = f"{self._kind} {id}"
        if wanted:
            timeout = min(timeout, self._connection.cluster().timing.condition)
            try:
                api.wait(path, lambda seen: all(_meets(seen, condition) for condition in wanted), timeout, what)
            except TimeoutError as error:
                # The real provider says no more: neither which condition nor what the object's controller says of it.
                raise self._unwell(id, error.args[0] or made, "timed out waiting for the condition") from error
            except CancelledError as error:
                raise self._unwell(id, made, str(error)) from error
        elif readiness.KINDS.get(self._kind) == self._api_version:
            namespace, _, name = id.rpartition("/")
            if reason := readiness.wait_available(
                api.client, [(self._kind, namespace, name)], timeout, all_replicas=True, problem=api.cancellation
            ):
                raise self._unwell(id, api.get(path) or made, reason)
        return _outputs(api.get(path) or made)

    def _unwell(self, id: str, seen: Object, reason: str) -> IncompleteError:
        return IncompleteError(
            f"resource {id!r} was successfully created, but the Kubernetes API server reported that "
            f"it failed to fully initialize or become live: {reason}",
            Created(id, _outputs(seen)),
        )


def _outputs(live: Object) -> Object:
    metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    return {**live, "metadata": metadata}


def _place(properties: Mapping[str, Any]) -> tuple[str, str]:
    metadata = properties.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _annotation(properties: Mapping[str, Any], name: str) -> str | None:
    metadata = properties.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(name) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else None


def _timeout(properties: Mapping[str, Any], timeout: float) -> float:
    seconds = _annotation(properties, _TIMEOUT) or ""
    return float(seconds) if seconds.isdigit() else timeout


def _awaited_conditions(properties: Mapping[str, Any]) -> list[str]:
    """What the annotation asks to wait for: one expression, or a JSON array of them."""
    wanted = _annotation(properties, _WAIT_FOR)
    try:
        several = json.loads(wanted) if wanted else []
    except ValueError:
        several = None
    return [str(each) for each in several] if isinstance(several, list) else [str(wanted)]


def _meets(seen: Object | None, expression: str) -> bool:
    """Whether an object has a condition, `condition=<type>[=<status>]`, for the generation that it has now."""
    kind, _, status = expression.removeprefix(_CONDITION).partition("=")
    generation = (seen or {}).get("metadata", {}).get("generation", 0)
    return any(
        condition["type"].lower() == kind.lower()
        and condition["status"].lower() == (status or "True").lower()
        and condition.get("observedGeneration", generation) >= generation
        for condition in (seen or {}).get("status", {}).get("conditions", [])
    )


def _still_there(kind: str, id: str, seen: Object | None, timeout: float) -> str:
    metadata = (seen or {}).get("metadata", {})
    finalizers = ", ".join(metadata.get("finalizers", [])) or "none"
    return (
        f"{kind} {id} was still there {timeout:g} s after its deletion was asked for; finalizers might be "
        f"preventing deletion ({finalizers}). See what the controller behind each finalizer says, or give it more "
        "time with customTimeouts"
    )
