"""What every type of resource has: names, API versions, and the points at which it may refuse or add."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import ResourceId
from rehearsal.azure.arm.store import Resource

if TYPE_CHECKING:
    from rehearsal.azure.context import Context

Body = dict[str, Any]


@dataclass
class Request:
    """One PUT as a kind sees it.

    Attributes:
        id: The id in the request.
        body: The request's body; a kind turns it into what GET answers.
        existing: The resource as it is, None for a new one.
        version: API version.
        caller: Object id of the principal, empty for the person who deploys.
    """

    id: ResourceId
    body: Body
    existing: Resource | None
    version: str = ""
    caller: str = ""


class Kind:
    """One type of resource. Methods raise `ArmError` to refuse."""

    #: The type in Azure's spelling.
    type: ClassVar[str]
    #: API versions that the resource provider knows.
    versions: ClassVar[tuple[str, ...]]
    #: What a name must match as a whole.
    name: ClassVar[re.Pattern[str]]
    #: Code of the refusal of a name.
    name_error: ClassVar[str] = "InvalidResourceName"
    #: Whether it has a location of its own.
    located: ClassVar[bool] = True
    #: What GET hides of the properties.
    hidden: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        self.context = context

    def check_name(self, identifier: ResourceId) -> None:
        """Refuse a name that Azure refuses."""
        if not self.name.fullmatch(identifier.name):
            raise ArmError(
                self.name_error,
                f"Resource name {identifier.name} is invalid. The name must match the pattern {self.name.pattern} for "
                f"the type {self.type}.",
            )

    def put(self, request: Request) -> Resource:
        """Check a PUT and make the resource that it leaves; it is stored by the caller.

        The default keeps the body as it is.
        """
        return self.resource(request)

    def created(self, resource: Resource, request: Request) -> None:
        """Called when a resource was stored: children and neighbours that come with it are made here."""

    def shown(self, resource: Resource) -> Body:
        """What GET answers."""
        return resource.shown()

    def groups(self, resource: Resource) -> Iterator[str]:
        """Ids of the resource groups that are its own and go with it."""
        return iter(())

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Resources that use this one, so that it cannot be deleted."""
        return iter(())

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return ArmError("ResourceInUse", f"The resource {resource.id.text} is used by {user.id.text}.", 409)

    def check_delete(self, resource: Resource) -> None:
        """Refuse a deletion while the resource is in use."""
        user = next(self.users(resource), None)
        if user:
            raise self.in_use(resource, user)

    def deleted(self, resource: Resource) -> None:
        """Called when a resource is gone: what goes with it is removed here."""

    def patch(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Apply a PATCH; the default takes tags and refuses all else."""
        if set(body) - {"tags"}:
            raise ArmError(
                "InvalidRequestContent",
                f"The rehearsal patches tags of {self.type} only, not {', '.join(sorted(set(body) - {'tags'}))}.",
            )
        resource.body["tags"] = dict(body.get("tags") or {})

    def post(self, resource: Resource, action: str, body: Mapping[str, Any]) -> Body:
        """Answer an action."""
        raise ArmError("InvalidResourceAction", f"The action '{action}' is not known for the type {self.type}.", 404)

    def put_seconds(self, new: bool) -> float:
        """How long a PUT takes."""
        return 0.0

    def delete_seconds(self) -> float:
        """How long a deletion takes."""
        return 0.0

    def failure(self, resource: Resource) -> ArmError | None:
        """Why an accepted PUT will fail in the end; None when it succeeds."""
        return None

    def linked(self, request: Request) -> list[tuple[str, str]]:
        """Actions on other resources that a PUT needs: (action, id)."""
        return []

    def resource(self, request: Request) -> Resource:
        """The resource that a body leaves: what ARM adds to every type is added."""
        body = {key: value for key, value in request.body.items() if value is not None}
        private = dict(request.existing.private) if request.existing else {}
        body |= {
            "id": request.existing.id.text if request.existing else request.id.text,
            "name": request.id.name,
            "type": self.type,
        }
        properties = dict(body.get("properties") or {})
        for name in self.hidden:
            if name in properties:
                private[name] = properties.pop(name)
        body["properties"] = {**properties, "provisioningState": "Succeeded"}
        if self.located:
            body["location"] = self.context.location(str(body.get("location") or ""), self.type)
        else:
            body.pop("location", None)
        body["etag"] = f'W/"{uuid.uuid4()}"'
        identifier = request.existing.id if request.existing else request.id
        return Resource(identifier, self.type, body, private)


def at(body: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """A value at a dotted path, `networkProfile.podCidr`; the default where any part is missing or null."""
    value: Any = body
    for part in path.split("."):
        if not isinstance(value, Mapping) or value.get(part) is None:
            return default
        value = value[part]
    return value
