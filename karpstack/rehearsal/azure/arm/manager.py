"""Azure Resource Manager: the one way to read and change what the subscription has.

Callers in this process use `put`, `get`, `delete`, `list`, `patch` and `post`, which wait for long-running
operations; the wire uses `begin_put` and `begin_delete`, which do not. A caller without a name is the person who
deploys, who may do everything; any other is authorised against the stored role assignments.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karpstack.rehearsal.azure.arm import locks
from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.identifiers import GROUP_TYPE, SUBSCRIPTION_TYPE, ResourceId, group_id, within
from karpstack.rehearsal.azure.arm.kind import Body, Kind, Request
from karpstack.rehearsal.azure.arm.operations import Operation
from karpstack.rehearsal.azure.arm.store import Resource

if TYPE_CHECKING:
    from karpstack.rehearsal.azure.context import Context
    from karpstack.rehearsal.azure.identity.access import Access

_VERBS = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}

#: An action that another part of the rehearsal answers: (cluster, body) -> answer.
Action = Callable[[Resource, Mapping[str, Any]], Body]


@dataclass(frozen=True)
class Accepted:
    """An accepted PUT or DELETE.

    Attributes:
        body: The resource as GET answers it now; empty after a DELETE.
        operation: What still runs; None when nothing changed (a DELETE of nothing).
        created: Whether the resource is new.
    """

    body: Body
    operation: Operation | None
    created: bool = False


class Arm:
    """ARM over one subscription's store."""

    def __init__(self, context: Context, kinds: Iterable[type[Kind]], access: Access) -> None:
        """`kinds` are the types of resources that exist."""
        self._context = context
        self._kinds: dict[str, Kind] = {kind.type.lower(): kind(context) for kind in kinds}
        self._actions: dict[tuple[str, str], Action] = {}
        self.access = access

    def answer(self, resource_type: str, action: str, answer: Action) -> None:
        """Let another part answer an action of a type."""
        self._actions[(resource_type.lower(), action.lower())] = answer

    def put(self, resource_id: str, api_version: str, body: Mapping[str, Any]) -> Body:
        """Create or update, and wait until it is done.

        Args:
            resource_id: Full id, in any case.
            api_version: As in the URL.
            body: The request's body: location, tags, properties, ...

        Returns:
            What GET answers, the outputs that ARM computes included.

        Raises:
            ArmError: With ARM's refusal.
        """
        accepted = self.begin_put(resource_id, api_version, body)
        if accepted.operation:
            self._context.operations.wait(accepted.operation)
        return self._shown(resource_id) or accepted.body

    def get(self, resource_id: str, api_version: str, caller: str = "") -> Body:
        """The resource.

        Raises:
            ArmError: It does not exist (`ResourceNotFound`, `ResourceGroupNotFound`), or may not be read.
        """
        with self._call():
            identifier = ResourceId.parse(resource_id)
            kind = self._kind(identifier.type, api_version)
            self._authorise("GET", kind, identifier.text, caller)
            self._check_scope(identifier)
            self._throttle("GET", kind)
            return kind.shown(self._existing(identifier, kind))

    def list(self, collection: str, api_version: str, caller: str = "") -> list[Body]:
        """The resources of a collection, `/subscriptions/<id>/resourceGroups/<name>/providers/<type>` for example."""
        with self._call():
            scope, resource_type = _collection(collection)
            kind = self._kind(resource_type, api_version)
            self._authorise("GET", kind, scope, caller)
            if scope.count("/") > 2:
                self._check_scope(
                    ResourceId.parse(f"{collection.rstrip('/')}/any")
                    if resource_type != GROUP_TYPE
                    else ResourceId.parse(scope)
                )
            self._throttle("GET", kind)
            return [kind.shown(resource) for resource in self._context.store.of_type(kind.type, scope)]

    def delete(self, resource_id: str, api_version: str) -> None:
        """Delete, and wait until it is gone; deleting what does not exist succeeds, as in ARM."""
        accepted = self.begin_delete(resource_id, api_version)
        if accepted.operation:
            self._context.operations.wait(accepted.operation)

    def patch(self, resource_id: str, api_version: str, body: Mapping[str, Any], caller: str = "") -> Body:
        """Change parts of a resource."""
        with self._call():
            identifier = ResourceId.parse(resource_id)
            kind = self._kind(identifier.type, api_version)
            self._authorise("PATCH", kind, identifier.text, caller)
            self._throttle("PATCH", kind)
            locks.check(self._context.store, identifier.text, "write")
            resource = self._existing(identifier, kind)
            kind.patch(resource, copy.deepcopy(dict(body)))
            return kind.shown(resource)

    def post(
        self, resource_id: str, name: str, api_version: str, body: Mapping[str, Any] | None = None, caller: str = ""
    ) -> Body:
        """Run an action of a resource, `listClusterUserCredential` for example."""
        with self._call():
            identifier = ResourceId.parse(resource_id)
            kind = self._kind(identifier.type, api_version)
            self.access.require(caller, f"{kind.type}/{name}/action", identifier.text)
            resource = self._existing(identifier, kind)
            answer = self._actions.get((kind.type.lower(), name.lower()))
            return answer(resource, body or {}) if answer else kind.post(resource, name, body or {})

    def begin_put(self, resource_id: str, api_version: str, body: Mapping[str, Any], caller: str = "") -> Accepted:
        """Accept a PUT, or refuse it; see `put`."""
        with self._call():
            identifier = ResourceId.parse(resource_id)
            kind = self._kind(identifier.type, api_version)
            self._authorise("PUT", kind, identifier.text, caller)
            kind.check_name(identifier)
            self._check_scope(identifier, "write")
            self._check_registered(kind)
            locks.check(self._context.store, identifier.text, "write")
            existing = self._context.store.get(identifier.text)
            request = Request(identifier, copy.deepcopy(dict(body)), existing, api_version, caller)
            if caller:
                for linked, target in kind.linked(request):
                    self.access.require_linked(caller, f"{kind.type}/write", identifier.text, linked, target)
            self._throttle("PUT", kind, request.body)
            resource = kind.put(request)
            failure = kind.failure(resource)
            self._context.store.add(resource)
            try:
                kind.created(resource, request)
            except Exception:
                # A refused child, and one that cannot be read, refuses the whole request.
                self._context.store.add(existing) if existing else self._context.store.remove(identifier.text)
                raise
            operation = self._start(
                resource, kind.seconds("update" if existing else "create"), existing is None, failure
            )
            return Accepted(kind.shown(resource), operation, existing is None)

    def begin_delete(self, resource_id: str, api_version: str, caller: str = "") -> Accepted:
        """Accept a DELETE, or refuse it; see `delete`."""
        with self._call():
            identifier = ResourceId.parse(resource_id)
            kind = self._kind(identifier.type, api_version)
            self._authorise("DELETE", kind, identifier.text, caller)
            self._throttle("DELETE", kind)
            locks.check(self._context.store, identifier.text, "delete")
            if identifier.type.lower() == GROUP_TYPE.lower():
                return Accepted({}, self._delete_group(identifier))
            self._check_scope(identifier)
            resource = self._context.store.get(identifier.text)
            if resource is None:
                return Accepted({}, None)
            kind.check_delete(resource)
            if "provisioningState" in resource.properties:
                resource.state = "Deleting"
            return Accepted(
                {},
                self._context.operations.begin(
                    identifier.key, kind.seconds("delete"), lambda: self._remove(resource, kind)
                ),
            )

    def _start(self, resource: Resource, seconds: float, new: bool, failure: ArmError | None) -> Operation:
        if "provisioningState" in resource.properties and seconds > 0:
            resource.state = "Creating" if new else "Updating"

        def finish() -> None:
            if "provisioningState" in resource.properties and resource.state != "Deleting":
                resource.state = "Failed" if failure else "Succeeded"

        return self._context.operations.begin(resource.id.key, seconds, finish, failure)

    def _remove(self, resource: Resource, kind: Kind) -> None:
        self._context.store.remove(resource.id.text)
        kind.deleted(resource)

    def _delete_group(self, identifier: ResourceId) -> Operation:
        group = self._context.store.get(identifier.text)
        if group is None:
            raise refused("ResourceGroupNotFound", name=identifier.name)
        held = [resource for resource in self._context.store.below(identifier.text) if len(resource.id.names) == 1]
        cluster = group.body.get("managedBy")
        if cluster:
            raise refused("ResourceGroupManagedByMismatch", name=identifier.name, cluster=cluster)
        # Everything in the group goes at once: only who is outside can hold it, and not the nodes of its own clusters.
        going = [identifier.text]
        for resource in held:
            going += self._kinds[resource.type.lower()].groups(resource)
        for resource in held:
            kind = self._kinds[resource.type.lower()]
            for user in kind.users(resource):
                if not any(within(user.id.text, scope) for scope in going):
                    raise refused(
                        "ResourceGroupDeletionBlocked",
                        name=identifier.name,
                        text=resource.id.text,
                        message=kind.in_use(resource, user).message,
                    )

        def finish() -> None:
            for resource in held:
                self._remove(resource, self._kinds[resource.type.lower()])
            self._context.store.remove(identifier.text)

        seconds = max((self._kinds[resource.type.lower()].seconds("delete") for resource in held), default=0.0)
        return self._context.operations.begin(identifier.key, seconds, finish)

    def _kind(self, resource_type: str, version: str) -> Kind:
        kind = self._kinds.get(resource_type.lower())
        if kind is None:
            namespace, _, rest = resource_type.partition("/")
            if not any(known.startswith(f"{namespace.lower()}/") for known in self._kinds):
                raise refused("InvalidResourceNamespace", namespace=namespace)
            raise refused("InvalidResourceType", type=rest, namespace=namespace, version=version)
        if not version:
            raise refused("MissingApiVersionParameter")
        if version not in kind.row.versions:
            raise refused(
                "NoRegisteredProviderFound",
                region=self._context.region,
                version=version,
                type=kind.type.partition("/")[2],
                versions=", ".join(reversed(kind.row.versions)),
            )
        return kind

    def _existing(self, identifier: ResourceId, kind: Kind) -> Resource:
        resource = self._context.store.get(identifier.text)
        if resource is None:
            raise (
                refused("ResourceGroupNotFound", name=identifier.name)
                if kind.type == GROUP_TYPE
                else refused(
                    "ResourceNotFound", resource_type=kind.type, name="/".join(identifier.names), group=identifier.group
                )
            )
        return resource

    def _check_scope(self, identifier: ResourceId, verb: str = "") -> None:
        """Refuse what lies in a subscription, group or parent that does not exist."""
        if identifier.subscription.lower() != self._context.subscription:
            raise refused("SubscriptionNotFound", id=identifier.subscription)
        if identifier.type.lower() == GROUP_TYPE.lower():
            return
        if identifier.group and self._context.store.get(group_id(identifier.subscription, identifier.group)) is None:
            raise refused("ResourceGroupNotFound", name=identifier.group)
        parent = ResourceId.parse(identifier.parent)
        if verb and parent.type != SUBSCRIPTION_TYPE and self._context.store.get(parent.text) is None:
            raise refused("ParentResourceNotFound/scope", verb=verb, type=identifier.type, parent=parent.text)

    def _authorise(self, method: str, kind: Kind, scope: str, caller: str) -> None:
        self.access.require(caller, f"{kind.type}/{_VERBS[method]}", scope)

    def _check_registered(self, kind: Kind) -> None:
        namespace = kind.type.partition("/")[0]
        if namespace.lower() in self._context.unregistered:
            raise refused("MissingSubscriptionRegistration", namespace=namespace)

    def _throttle(self, method: str, kind: Kind, body: Body | None = None) -> None:
        error = self._context.faults.meet(method, kind.type, self._context.region, body)
        if error:
            raise error

    def _shown(self, resource_id: str) -> Body | None:
        with self._context.store.lock:
            resource = self._context.store.get(resource_id)
            return self._kinds[resource.type.lower()].shown(resource) if resource else None

    @contextmanager
    def _call(self) -> Iterator[None]:
        """One call: what is due is finished first, and nobody else changes the store meanwhile."""
        with self._context.store.lock:
            self._context.operations.settle()
            yield


def _collection(path: str) -> tuple[str, str]:
    """Scope and type of a collection."""
    parts = path.strip("/").split("/")
    lower = [part.lower() for part in parts]
    if len(parts) == 3 and lower[2] == "resourcegroups":
        return "/" + "/".join(parts[:2]), GROUP_TYPE
    if "providers" in lower:
        start = len(lower) - 1 - lower[::-1].index("providers")
        rest = parts[start + 1 :]
        if len(rest) >= 2 and len(rest) % 2 == 0:
            scope = parts[:start] if len(rest) == 2 else parts[:-1]
            return "/" + "/".join(scope), "/".join([rest[0], *rest[1::2]])
    raise refused("InvalidRequest", path=path)
