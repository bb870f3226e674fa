"""Patch resources: single fields of objects that somebody else made, by server-side apply as a manager of their own."""

from __future__ import annotations

from typing import ClassVar

from karpstack.rehearsal.attachment.resource import Properties
from karpstack.rehearsal.cluster.objects import Object
from karpstack.rehearsal.cluster.provider.api import Api
from karpstack.rehearsal.cluster.provider.connection import Connection
from karpstack.rehearsal.cluster.provider.objects import MANAGER, KubernetesObject

_SUFFIX = "Patch"


def kubernetes_patch(token: str, connection: Connection) -> KubernetesPatch | None:
    """The resource for a type token such as `kubernetes:apps/v1:DaemonSetPatch`; None for what is no patch."""
    parsed = patched_kind(token)
    return KubernetesPatch(token, *parsed, connection) if parsed else None


def patched_kind(token: str) -> tuple[str, str] | None:
    """API version and kind of the objects that a type token patches; None for what is no patch."""
    package, group_version, kind = (*token.split(":"), "", "")[:3]
    if package != "kubernetes" or "/" not in group_version or not kind.endswith(_SUFFIX):
        return None
    return group_version.removeprefix("core/"), kind.removesuffix(_SUFFIX)


class KubernetesPatch(KubernetesObject):
    """Fields of an object of one kind, which is awaited like an own one. ID: the object's; it may have one patch."""

    manager: ClassVar[str] = f"{MANAGER}-patch"

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """No dry run: the same deployment may only make the object."""
        return {**state, **inputs}

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Let go of the fields, which go where no other manager has them. The object stays."""
        api = self._api_for_deletion()
        if api is None:
            return
        path = self._path(self._find(api, state), state, id)
        if api.get(path) is not None:
            metadata = {key: state["metadata"][key] for key in ("name", "namespace") if key in state["metadata"]}
            body = {"apiVersion": state["apiVersion"], "kind": state["kind"], "metadata": metadata}
            api.apply(path, body, self.manager, force=False)

    def _create(self, api: Api, inputs: Properties) -> Object:
        kind = self._find(api, inputs)
        return self._apply(api, kind, self._path(kind, inputs), inputs, dry_run=False)
