"""What all azure-native resource types of the stand-in share: from Pulumi's flat properties to ARM's requests and back.

azure-native is generated, and so is this in spirit: a type's row (types.yaml) says its API version and its properties,
and everything else is the same for all. The facts are those of pulumi-azure-native 3.29.0; a test compares them with
the SDK. Properties that the rehearsal gives no meaning to are left out, so that they are refused by name. Nothing is
kept here; the subscription keeps it.

Simplified: of ARM's nested resources only those that a type names in `nested` can be given; all are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from karpstack.rehearsal.attachment.lifecycle import RowResource
from karpstack.rehearsal.attachment.resource import (
    AUTOMATIC,
    UNKNOWN,
    Created,
    Failure,
    IncompleteError,
    Properties,
    RefusedError,
    Unknown,
    has_unknowns,
    without_unknowns,
)
from karpstack.rehearsal.attachment.rows import Row
from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.identifiers import GROUP_TYPE, ResourceId
from karpstack.rehearsal.azure.arm.rows import ROWS, each

if TYPE_CHECKING:
    from karpstack.rehearsal.azure.subscription import Subscription
    from karpstack.rehearsal.cluster.control_plane import Clusters

#: Path of a resource group, with which most others begin.
GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
#: Names that stand beside `properties` in a resource of ARM, and not in it.
ENVELOPE: Final = frozenset(
    {
        "id",
        "name",
        "type",
        "etag",
        "location",
        "tags",
        "identity",
        "sku",
        "kind",
        "managedBy",
        "extendedLocation",
        "zones",
        "plan",
    }
)
#: What azure-native answers for every type.
_COMMON: Final = frozenset({"name", "type", "azureApiVersion"})
#: Rows of the types that Pulumi knows, by their tokens.
BY_TOKEN: Final = {f"azure-native:{row.pulumi['token']}": row for row in ROWS.values() if row.pulumi}
_PARAMETER = re.compile(r"\{(\w+)\}")
_SUBSCRIPTION: Final = "subscriptionId"
#: Parameters of paths that are IDs themselves.
_IDS: Final = frozenset({"resourceUri", "scope"})
#: ARM judges names by patterns of its own.
_LONGEST_NAME: Final = 1 << 20
_GONE: Final = frozenset({"ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound"})

_NO_LOCATION = (
    "missing required property 'location'. Either set it explicitly or configure it with "
    "'pulumi config set azure-native:location <value>'."
)
_EXISTS = "cannot create already existing resource {id!r}; import it, or choose another name"


@dataclass(frozen=True)
class Session:
    """What the resource types of one provider instance share.

    Attributes:
        subscription: The simulated subscription.
        clusters: The clusters that run in it.
        definitions: Folder with Karpenter's resource definitions, which AKS brings for node auto provisioning.
        location: The provider's default location, empty without one.
    """

    subscription: Subscription
    clusters: Clusters
    definitions: Path
    location: str = ""

    def stop_control_plane(self, cluster_id: str) -> None:
        """Stop the control plane of a managed cluster; nothing happens when it is another cluster's that runs."""
        name = ResourceId.parse(cluster_id).name
        running = self.clusters.get(name)
        if running is not None and running.cloud is self.subscription.cloud(cluster_id):
            self.clusters.stop(name)


class AzureResource(RowResource):
    """A resource type of azure-native. Its ID is ARM's."""

    #: ARM's path, with the names of the inputs that go into it in braces; the last one is the resource's name.
    path: ClassVar[str]
    #: API version that the SDK's unversioned type uses.
    default_version: ClassVar[str]
    #: Inputs that go into the request's body.
    body: ClassVar[frozenset[str]]
    #: What ARM computes and the provider answers, besides the body.
    outputs: ClassVar[frozenset[str]]
    #: Required inputs, the path's apart.
    required: ClassVar[frozenset[str]]
    #: Whether azure-native lifts `properties` to the top.
    flat: ClassVar[bool]
    #: Inputs that stand beside `properties` in the body.
    envelope: ClassVar[frozenset[str]]
    #: Inputs that are lists of resources with `properties` of their own.
    nested: ClassVar[frozenset[str]]
    #: Inputs of the path; found from it.
    parameters: ClassVar[tuple[str, ...]]
    #: What ARM adds to an input that is an object, or to each item of it.
    added: ClassVar[Mapping[str, Sequence[str]]]
    #: Values that the rehearsal knows, by ARM's paths.
    known: ClassVar[Mapping[str, Sequence[Any]]]
    _in_path: ClassVar[re.Pattern[str]]
    #: As azure-native names: eight hex digits after the logical name, and a child by the logical name alone.
    name_digits: int
    name_separator: str = ""
    default_timeout: float = 3600.0
    missing = "missing required property {name!r}: {title} cannot be created without it; set it"

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        row = BY_TOKEN[cls.token]
        told = row.pulumi
        cls.path = _path(row.type, told["names"])
        cls.default_version = str(told["version"])
        cls.body, cls.outputs, cls.required, cls.nested = (
            frozenset(told.get(name, ())) for name in ("body", "outputs", "required", "nested")
        )
        cls.flat, cls.added, cls.known = told.get("flat", True), told.get("added", {}), row.known
        cls.envelope = ENVELOPE - frozenset(told.get("inside", ()))
        cls.name_digits = 0 if row.type.count("/") > 1 else 8
        cls.parameters = tuple(name for name in _PARAMETER.findall(cls.path) if name != _SUBSCRIPTION)
        cls.name_property = cls.parameters[-1]
        values = {name: f"(?P<{name}>{'.+' if name in _IDS else '[^/]+'})" for name in _PARAMETER.findall(cls.path)}
        cls._in_path = re.compile(re.sub(r"\\\{(\w+)\\\}", lambda one: values[one[1]], re.escape(cls.path)), re.I)
        cls.accepts = cls.body | set(cls.parameters)
        cls.replace_on = frozenset({*cls.parameters, *({"location"} & cls.body), *told.get("fixed", ())})
        fixed = frozenset(path for path in cls.replace_on if "." not in path)
        cls.row = Row(
            token=cls.token,
            title=cls.token,
            updates=cls.accepts - fixed,
            replaces=cls.replace_on,
            required=cls.required | set(cls.parameters),
            name=cls.name_property,
            name_limit=_LONGEST_NAME,
        )

    def __init__(self, session: Session) -> None:
        self.session = session
        self.arm = session.subscription.arm

    # What a type may add.

    def follow(self, id: str, answer: Mapping[str, Any], timeout: float) -> None:
        """Do what the resource causes beyond ARM, after a PUT; must find what is done already.

        Raises:
            RefusedError: It went wrong; the resource stays, as it does in Azure.
        """

    # The order of calls, the same for all.

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """As for every row, with the location."""
        if "location" not in self.body:
            return super().check(inputs, name=name)
        location = inputs.get("location") or self.session.location
        # ARM writes "West US 2" as "westus2": left as it is, it would be drift for ever.
        plain = location if isinstance(location, Unknown) else location.replace(" ", "").lower()
        checked, failures = super().check({**inputs, "location": plain}, name=name)
        return checked, failures if location else [Failure("location", _NO_LOCATION), *failures]

    def deletes_first(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether the old name was not a random one: azure-native deletes first otherwise (provider.go, Diff)."""
        return not self.name_digits or self.name_property not in old.get(AUTOMATIC, [])

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """What the program says. Of all else, azure-native knows the name, and only at an update (its provider.go).

        So a program does not ask for the credentials of a cluster that does not exist yet.
        """
        known = self.body | self.outputs | {"name"}
        body = {name: value for name, value in inputs.items() if name in known and not _reshaped(name, value)}
        for path, names in self.added.items():
            name = path.removesuffix("[]")
            if name in body:
                body[name] = _with_unknowns(body[name], names, each_item=name != path)
        return {**body, "name": state["name"]} if "name" in state else body

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Find values that Azure takes and the rehearsal does not; a value that is missing is Azure's default."""
        given = {name: value for name, value in without_unknowns(inputs).items() if value is not None}
        for path, known in self.known.items():
            for value in each(self.request(given), path):
                if value not in known:
                    where, names = path.removesuffix("[]"), ", ".join(str(one) for one in known if one is not None)
                    reason = f"the rehearsal does not support {where} = {value!r}; it supports {names}"
                    yield Failure(where.partition(".")[0], reason, unsupported=True)

    def make(self, inputs: Properties) -> str:
        """The ID of what does not exist yet."""
        id = self.resource_id(inputs)
        if self._seen(id, {}) is not None:
            raise RefusedError(_EXISTS.format(id=id))
        return id

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """PUT it, then `follow`."""
        with refusals():
            self.follow(id, self.arm.put(id, self.default_version, self.request(inputs)), timeout)

    def current_outputs(self, id: str, state: Properties) -> Properties:
        """What ARM has now."""
        return self.answered(self.arm.get(id, self.default_version))

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """As at its creation."""
        try:
            self.complete(id, new, timeout)
        except RefusedError as error:
            self.failed(id, new, timeout, error)
            raise

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it in ARM, and what `follow` created."""
        self.arm.delete(id, self.default_version)

    def failed(self, id: str, inputs: Properties, timeout: float, error: BaseException) -> None:
        """What ARM has of it stays."""
        left = self._seen(id, {}) if isinstance(error, RefusedError) else None
        if left is not None:
            raise IncompleteError(str(error), Created(id, left)) from error

    def is_gone(self, error: Exception) -> bool:
        """Whether ARM says that it does not exist."""
        return isinstance(error, ArmError) and error.code in _GONE

    def telling(self, action: str, subject: str) -> AbstractContextManager[None]:
        """Show what ARM refuses; azure-native says nothing of its own."""
        return refusals()

    def imported(self, id: str) -> tuple[str, Properties]:
        """With the inputs that stand in the ID, as azure-native takes them from it (its provider.go, Read).

        Raises:
            RefusedError: It is the ID of another type.
        """
        found = self._in_path.fullmatch(id)
        if found is None:
            raise RefusedError(f"resource id {id!r} is not of the form {self.path}")
        return id, {name: found[name] for name in self.parameters}

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """As for every resource; the IDs of identities are a list as an input, and a map as an output."""
        identity = outputs.get("identity")
        if isinstance(identity, dict) and isinstance(identity.get("userAssignedIdentities"), dict):
            given = (old.get("identity") or {}).get("userAssignedIdentities") or []
            assigned = {id.lower(): id for id in identity["userAssignedIdentities"]}
            # In the program's order and spelling where they are the same.
            ids = [id for id in given if assigned.pop(str(id).lower(), None)] + list(assigned.values())
            outputs = {**outputs, "identity": {**identity, "userAssignedIdentities": ids}}
        return super().inputs_of({name: value for name, value in outputs.items() if name != "type"}, old)

    def refreshed(self, outputs: Properties, old: Mapping[str, Any], before: Mapping[str, Any]) -> Properties:
        """What ARM answers as it did before is no drift, whatever ARM had added to it: azure-native compares the two.

        As a whole here, where azure-native looks into it.
        """
        if not old:
            return {
                **self.inputs_of(outputs, old),
                **{name: before[name] for name in self.parameters if name in before},
            }
        same = {name for name in old if name in before and before[name] == outputs.get(name)}
        return {**self.inputs_of(outputs, old), **{name: value for name, value in old.items() if name in same}}

    # Help for the types.

    def resource_id(self, inputs: Mapping[str, Any]) -> str:
        """ARM's ID of the resource that the inputs describe."""
        values = {name: str(inputs[name]).strip("/") for name in self.parameters}
        values[_SUBSCRIPTION] = self.session.subscription.subscription_id
        return self.path.format(**values)

    def request(self, inputs: Mapping[str, Any]) -> Properties:
        """The body of a PUT."""
        body: Properties = {}
        properties: Properties = {}
        for name in sorted(self.body & inputs.keys()):
            value = inputs[name]
            if name in self.nested:
                value = [_folded(item) for item in value]
            elif name == "identity":
                value = _identities_as_map(value)
            (body if name in self.envelope else properties)[name] = value
        return {**body, "properties": properties} if properties else body

    def answered(self, answer: Mapping[str, Any]) -> Properties:
        """The outputs for an answer of ARM."""
        known = self.body | self.outputs | _COMMON
        values = {**answer, **answer.get("properties", {})} if self.flat else answer
        outputs = {name: value for name, value in values.items() if name in known and value is not None}
        outputs = {name: _all_lifted(value) for name, value in outputs.items()}
        # A pool's own type is an input of this name; the resource's is the output.
        return {**outputs, "type": answer["type"], "azureApiVersion": self.default_version}


def _path(resource_type: str, names: Sequence[str]) -> str:
    """ARM's path of a type, with the names of the inputs that go into it in braces."""
    if resource_type == GROUP_TYPE:
        return GROUP
    scope, named = (f"/{{{names[0]}}}", names[1:]) if names[0] in _IDS else (GROUP, names)
    namespace, *parts = resource_type.split("/")
    pairs = "/".join(f"{part}/{{{name}}}" for part, name in zip(parts, named, strict=True))
    return f"{scope}/providers/{namespace}/{pairs}"


@contextmanager
def refusals() -> Iterator[None]:
    """Show what ARM refuses in the words of the provider and of ARM."""
    try:
        yield
    except ArmError as error:
        raise RefusedError(f'Status={error.status} Code="{error.code}" Message="{error.message}"') from error


def _reshaped(name: str, value: Any) -> bool:
    """Whether an output looks different from the input of its name."""
    return name == "identity" and (has_unknowns(value) or bool(value.get("userAssignedIdentities")))


def _with_unknowns(value: Any, names: Sequence[str], *, each_item: bool) -> Any:
    """An object with values that only ARM knows; with `each_item`, each object of a list or a map."""
    if each_item and isinstance(value, list):
        return [_with_unknowns(item, names, each_item=False) for item in value]
    if not isinstance(value, dict):
        return value
    if each_item:
        return {name: _with_unknowns(item, names, each_item=False) for name, item in value.items()}
    return {**dict.fromkeys(names, UNKNOWN), **value}


def _identities_as_map(identity: Mapping[str, Any]) -> Properties:
    assigned = identity.get("userAssignedIdentities")
    return {**identity, "userAssignedIdentities": {id: {} for id in assigned}} if assigned else dict(identity)


def _folded(item: Mapping[str, Any]) -> Properties:
    """A nested resource as ARM has it."""
    envelope = {name: value for name, value in item.items() if name in ENVELOPE}
    return {**envelope, "properties": {name: value for name, value in item.items() if name not in ENVELOPE}}


def _lifted(item: Mapping[str, Any]) -> Properties:
    """A nested resource as azure-native has it, with those that are nested in it."""
    flat = {**{name: value for name, value in item.items() if name != "properties"}, **item["properties"]}
    return {name: _all_lifted(value) for name, value in flat.items()}


def _all_lifted(value: Any) -> Any:
    """The same of a list; whatever else it is stays."""
    if not isinstance(value, list):
        return value
    return [
        _lifted(item) if isinstance(item, dict) and isinstance(item.get("properties"), dict) else item for item in value
    ]
