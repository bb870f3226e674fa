"""What ARM does with a resource of any type, by its row in the table of types."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import ArmError, invalid_reference
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, same
from karpstack.rehearsal.azure.arm.rows import ROWS, Row, each, refusal
from karpstack.rehearsal.azure.arm.store import Resource

if TYPE_CHECKING:
    from karpstack.rehearsal.azure.context import Context

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
    """One type of resource, which its row describes. What a row cannot say, a class of the type adds in `fill`, `check`
    and the methods after them. All of them raise `ArmError` to refuse.
    """

    #: The type in Azure's spelling, a row of types.yaml.
    type: ClassVar[str]
    row: ClassVar[Row]

    def __init_subclass__(cls) -> None:
        cls.row = ROWS[cls.type]

    def __init__(self, context: Context) -> None:
        self.context = context

    # What a type may add.

    def fill(self, request: Request, resource: Resource) -> None:
        """Fill in defaults that a row cannot say; the row's refusals come after it."""

    def check(self, request: Request, resource: Resource) -> None:
        """Refuse what takes a look at other resources, and fill in what ARM computes."""

    def created(self, resource: Resource, request: Request) -> None:
        """Called when a resource was stored: children and neighbours that come with it are made here."""

    def deleted(self, resource: Resource) -> None:
        """Called when a resource is gone: what goes with it is removed here."""

    def groups(self, resource: Resource) -> Iterator[str]:
        """Ids of the resource groups that are its own and go with it."""
        return iter(())

    def failure(self, resource: Resource) -> ArmError | None:
        """Why an accepted PUT will fail in the end; None when it succeeds."""
        return None

    def post(self, resource: Resource, action: str, body: Mapping[str, Any]) -> Body:
        """Answer an action."""
        raise ArmError("InvalidResourceAction", f"The action '{action}' is not known for the type {self.type}.", 404)

    def words(self) -> dict[str, str]:
        """Words of computed properties, besides those of every type."""
        return {}

    # The same for all.

    def check_name(self, identifier: ResourceId) -> None:
        """Refuse a name that Azure refuses."""
        if not re.fullmatch(self.row.name, identifier.name):
            raise refusal(self.row.name_refused, name=identifier.name, pattern=self.row.name, type=self.type)

    def put(self, request: Request) -> Resource:
        """Check a PUT and make the resource that it leaves; it is stored by the caller."""
        if self.row.never:
            raise refusal(self.row.never)
        for name, version in self.row.since.items():
            if name in (request.body.get("properties") or {}) and request.version < version:
                raise ArmError(
                    "UnmarshalError",
                    f'UnmarshalEntity encountered error: json: unknown field "{name}". The API version '
                    f"{request.version} does not have it: use {version} or newer.",
                )
        resource = self._resource(request)
        self.fill(request, resource)
        self.row.refuse(resource.body, id=request.id.text, name=request.id.name)
        for path in self.row.references:
            for identifier in each(resource.body, path):
                if self.context.get(ResourceId.parse(str(identifier)).text) is None:
                    raise invalid_reference(str(identifier), request.id.text)
        if request.existing:
            self.row.check_fixed(request.existing.body, resource.body)
        self.check(request, resource)
        return resource

    def shown(self, resource: Resource) -> Body:
        """What GET answers."""
        body = resource.shown()
        if self.row.lists_users and (users := [{"id": user.id.text} for user in self.users(resource)]):
            body["properties"]["subnets"] = users
        return body

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Resources that use this one, so that it cannot be deleted."""
        for resource_type, path in self.row.users.items():
            for user in self.context.store.of_type(resource_type):
                if any(same(str(identifier), resource.id.text) for identifier in each(user.body, path)):
                    yield user

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return refusal(self.row.in_use, id=resource.id.text, name=resource.id.name, user=user.id.text)

    def check_delete(self, resource: Resource) -> None:
        """Refuse a deletion while the resource is in use."""
        if self.row.never:
            raise refusal(self.row.never)
        user = next(self.users(resource), None)
        if user:
            raise self.in_use(resource, user)

    def patch(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Apply a PATCH of what the row names: tags are others, identities are more."""
        if others := sorted(set(body) - set(self.row.patched)):
            known = " and ".join(self.row.patched)
            raise ArmError(
                "InvalidRequestContent", f"The rehearsal patches {known} of {self.type} only, not {', '.join(others)}."
            )
        if "tags" in body:
            resource.body["tags"] = dict(body["tags"] or {})

    def seconds(self, what: str) -> float:
        """How long a `create`, an `update` or a `delete` takes."""
        return float(getattr(self.context.durations, self.row.takes[what])) if what in self.row.takes else 0.0

    def linked(self, request: Request) -> list[tuple[str, str]]:
        """Actions on other resources that a PUT needs: (action, id)."""
        return [
            (action, str(identifier))
            for action, path in self.row.linked.items()
            for identifier in each(request.body, path)
            if str(identifier).startswith("/")
        ]

    def _resource(self, request: Request) -> Resource:
        """The resource that a body leaves: what ARM adds to every type is added, and what the row says."""
        row, existing = self.row, request.existing
        identifier = existing.id if existing else request.id
        own = {"id": identifier.text, "name": request.id.name, "type": self.type, "etag": f'W/"{uuid.uuid4()}"'}
        body = {key: value for key, value in request.body.items() if value is not None} | own
        private = dict(existing.private) if existing else {}
        properties = dict(body.get("properties") or {})
        body["properties"] = properties
        for name in row.hidden:
            if name in properties:
                private[name] = properties.pop(name)
        for name, value in row.defaults.items():
            if name != "properties":
                body.setdefault(name, deepcopy(value))
        for name, value in row.defaults.get("properties", {}).items():
            properties.setdefault(name, deepcopy(value))
        if row.location:
            body["location"] = row.location
        else:
            body["location"] = self.context.location(str(body.get("location") or ""), self.type)
        if row.location == "none":
            del body["location"]
        if not row.stateless:
            properties["provisioningState"] = "Succeeded"
        for name, form in row.computed.items():
            kept = existing.properties.get(name) if existing else None
            properties[name] = kept or properties.get(name) or self._drawn(form, request, properties)
        for part in row.parts:
            for item in properties.get(part) or []:
                item["id"] = request.id.child(part, str(item.get("name")))
                item.setdefault("properties", {})["provisioningState"] = "Succeeded"
        return Resource(identifier, self.type, body, private)

    def _drawn(self, form: Any, request: Request, properties: Mapping[str, Any]) -> Any:
        if isinstance(form, Mapping):
            return {key: self._drawn(inner, request, properties) for key, inner in form.items()}
        words = {"name": request.id.name, "lower": request.id.name.lower(), "region": self.context.region}
        drawn = {"guid": uuid.uuid4(), "hex": uuid.uuid4().hex, "tenant": self.context.directory.tenant}
        return form.format(**{**properties, **words, **drawn, "now": clock.utcnow().isoformat(), **self.words()})


def at(body: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """A value at a dotted path, `networkProfile.podCidr`; the default where any part is missing or null."""
    value: Any = body
    for part in path.split("."):
        if not isinstance(value, Mapping) or value.get(part) is None:
            return default
        value = value[part]
    return value
