"""What all AWS resource types of the stand-in share: the order of calls, names, tags, errors and drift.

A type says what is particular to it (`make`, `complete`, `look`, `change`, `remove`, `retag`); it holds no state,
the simulated account does. What the account refuses is shown in the words of the provider and of AWS.
"""

from __future__ import annotations

import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from botocore.exceptions import ClientError, ParamValidationError

from rehearsal.attachment.resource import AUTOMATIC, UNKNOWN, Created, Failure, Properties, RefusedError, Resource
from rehearsal.aws import tags as tags_of

if TYPE_CHECKING:
    from rehearsal.aws.account import Account
    from rehearsal.cluster.control_plane import Clusters

_log = logging.getLogger(__name__)
_GONE = re.compile(r"NotFound|NoSuchEntity|NonExistentQueue|QueueDoesNotExist")
#: Properties with keys of the user's: of a block, what the program leaves out is AWS's to choose; of these it is gone.
_MAPS = frozenset({"tags", "tagsAll", "labels"})


@dataclass
class Session:
    """What the resource types of one daemon share.

    Attributes:
        account: The simulated account.
        clusters: The clusters that run in it.
        default_tags: The provider's `defaultTags`, once the engine has configured it.
        deployer: Options by which `aws eks get-token` asks for the identity that the provider has.
    """

    account: Account
    clusters: Clusters
    default_tags: dict[str, str] = field(default_factory=dict)
    deployer: Mapping[str, str] = field(default_factory=dict)


class AwsRefusalError(RefusedError):
    """AWS would answer the request with this error code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"api error {code}: {message}")
        self.code = code


@dataclass(frozen=True)
class TagCalls:
    """How the API of a service changes the tags of a type: `tag_<noun>` and `untag_<noun>`.

    Attributes:
        key: The parameter that names the resource; the other parameters are written like it.
        named_by: The output that the parameter takes; empty for the ID.
        noun: What the calls are named after.
        pair: The names of key and value in a list of tags; empty where tags are an object.
    """

    key: str
    named_by: str = ""
    noun: str = "resource"
    pair: tuple[str, ...] = ()


class AwsResource(Resource):
    """A resource type of pulumi-aws.

    Creation is `make` (one call, gives the ID), `complete` (everything that needs the ID) and `look`; when one of
    the last two fails, what was made is removed again, so that the next `pulumi up` finds no left-over.
    """

    #: What the real provider calls the type in its messages, for example `EC2 VPC`.
    title: ClassVar[str]
    #: The boto3 client in use.
    service: ClassVar[str]
    required: ClassVar[frozenset[str]] = frozenset()
    #: How many characters AWS takes for the name.
    name_limit: ClassVar[int] = 255
    #: What AWS chooses when the program leaves it out; leaving it out later is no change. Properties, or dotted paths
    #: into their blocks. Of properties, what the SDK calls optional as input and not as output (a test holds them
    #: against each other); of blocks, what the Terraform provider's schema calls Optional and Computed.
    computed: ClassVar[frozenset[str]] = frozenset()
    #: What AWS does not tell, and the provider gives to a resource that it imports; other such properties it leaves
    #: unset, so that the first update after an import sets them in Pulumi's state. They are what the provider's own
    #: tests of imports leave out (ImportStateVerifyIgnore).
    unread: ClassVar[Mapping[str, Any]] = {}
    #: How its tags are changed; only of types that have tags.
    tag_calls: ClassVar[TagCalls]
    #: What the provider fills in when the program leaves it out. What is not in `accepts` can have no other value.
    defaults: ClassVar[Mapping[str, Any]] = {}
    #: What the provider answers of what a resource does not have; recorded, see docs/recorded.md.
    unset: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, session: Session) -> None:
        self.session = session
        self.account = session.account

    @property
    def client(self) -> Any:
        """The boto3 client of this type's service (boto3 ships no types)."""
        return self.account.client(self.service)

    # What a type says about itself.

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Find what the provider refuses before any call; may meet `UNKNOWN`."""
        yield from ()

    @abstractmethod
    def make(self, inputs: Properties) -> str:
        """Send the request that creates the resource and give its ID."""

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Do what creation takes beyond the first request: attach, set attributes, wait."""

    @abstractmethod
    def look(self, id: str, state: Properties) -> Properties | None:
        """Ask the account; all its tags as a dict under `tags`. None or an error of AWS's not-found kind: gone.

        What the API does not report is left out: it keeps the value of `state`.
        """

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Change everything but tags in place."""
        raise RefusedError("the provider stand-in cannot change in place: " + ", ".join(sorted(self.differs(old, new))))

    @abstractmethod
    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it and wait; an error of AWS's not-found kind counts as done."""

    def retag(self, id: str, state: Properties, put: dict[str, str], drop: list[str]) -> None:
        """Set and remove tags by the calls that `tag_calls` describes."""
        calls = self.tag_calls
        named = {calls.key: state[calls.named_by] if calls.named_by else id}
        tags, keys = ("Tags", "TagKeys") if calls.key[0].isupper() else ("tags", "tagKeys")
        if drop:
            getattr(self.client, f"untag_{calls.noun}")(**named, **{keys: drop})
        if put:
            written = tags_of.pairs(put, *calls.pair) if calls.pair else put
            getattr(self.client, f"tag_{calls.noun}")(**named, **{tags: written})

    # The order of calls, the same for all.

    def deletes_first(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """As the bridge has it (nameRequiresDeleteBeforeReplace): also where the program gave another name."""
        named = new.get(self.name_property) is not None and self.name_property not in new.get(AUTOMATIC, [])
        return self.delete_before_replace or named

    def unknown(self, inputs: Properties) -> list[str]:
        """As for every resource; what would be answered anyway changes nothing, so it is taken."""
        told = {**self.unset, **self.defaults}
        return [name for name in super().unknown(inputs) if name not in told or inputs[name] != told[name]]

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """Fill in the provider's defaults and all tags, and find what is missing or malformed."""
        given = {key: value for key, value in inputs.items() if value is not None}
        checked = {**self.defaults, **given}
        if "tags" in self.accepts and (checked.get("tags") or self.session.default_tags):
            checked["tagsAll"] = self.tags(checked) if is_known(checked.get("tags")) else UNKNOWN
        failures = [
            Failure(key, f"Missing required argument: {self.title} cannot be created without {key}; set it")
            for key in sorted((self.required | {self.name_property} - {""}) - checked.keys())
        ]
        physical = checked.get(self.name_property)
        if isinstance(physical, str) and len(physical) > self.name_limit:
            failures.append(
                Failure(
                    self.name_property,
                    f"{physical!r} has {len(physical)} characters, AWS takes "
                    f"{self.name_limit} for an {self.title}; choose a shorter one",
                )
            )
        failures.extend(tags_of.failures(checked.get("tags")))
        if not failures:
            failures.extend(self.examine(checked))
        return checked, failures

    def imported(self, id: str) -> tuple[str, Properties]:
        """As for every resource, with what the provider makes of what AWS does not tell."""
        return id, dict(self.unread)

    def before(self, inputs: Properties, state: Properties, new: Properties) -> Properties:
        """The state, as bridged providers compare (pulumi-terraform-bridge, Provider.Diff), and not the inputs before.

        Where the program says nothing, what AWS chose itself is left out, and what is empty.
        """
        names = (*self.accepts, *self.defaults, "tagsAll")
        compared = {name: self._compared(name, state.get(name), new.get(name)) for name in names}
        return {name: value for name, value in compared.items() if value is not None}

    def _compared(self, path: str, seen: Any, given: Any) -> Any:
        if given is None:
            chosen = path in self.computed or not seen or seen == self.unset.get(path)
            return None if chosen else seen
        seen = same(given, seen)
        if isinstance(seen, dict) and isinstance(given, dict) and path.rpartition(".")[2] not in _MAPS:
            block = {key: self._compared(f"{path}.{key}", value, given.get(key)) for key, value in seen.items()}
            return {key: value for key, value in block.items() if value is not None}
        if isinstance(seen, list) and isinstance(given, list) and len(seen) == len(given):
            return [self._compared(path, *pair) for pair in zip(seen, given, strict=True)]
        return seen

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """Inputs and what stays as it is; all tags are known as soon as its own are."""
        tags = {"tagsAll": self.tags(inputs)} if "tags" in self.accepts and is_known(inputs.get("tags")) else {}
        kept = {name: value for name, value in state.items() if name != "tagsAll"}
        return {**kept, **self._region(), **inputs, **tags}

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """Make, complete, look; see the class."""
        with self._telling("creating", str(inputs.get(self.name_property, ""))):
            id = self.make(inputs)
        with self._telling("creating", id):
            try:
                self.complete(id, inputs, timeout)
                outputs = self._seen(id, inputs)
            except BaseException:
                try:
                    self.remove(id, inputs, timeout)
                except Exception:
                    _log.exception("%s (%s) could not be removed again after its creation failed", self.title, id)
                raise
        if outputs is None:
            raise RefusedError(f"creating {self.title} ({id}): it was gone before it could be read")
        return Created(id, outputs)

    def read(self, id: str, state: Properties) -> Properties | None:
        """What the account holds now, in the shapes of the program where they mean the same."""
        with self._telling("reading", id):
            return self._seen(id, state)

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        """Change tags, then the rest, and look."""
        kept = {key: value for key, value in old.items() if key not in self.accepts and key != "tagsAll"}
        with self._telling("updating", id):
            if "tags" in self.accepts:
                before, after = old.get("tagsAll", self.tags(old)), self.tags(new)
                put = {key: value for key, value in after.items() if before.get(key) != value}
                drop = sorted(before.keys() - after.keys())
                if put or drop:
                    self.retag(id, {**kept, **new}, put, drop)
            if self.differs(old, new):
                self.change(id, old, new, timeout)
            outputs = self._seen(id, {**kept, **new})
        if outputs is None:
            raise RefusedError(f"updating {self.title} ({id}): it does not exist any more; run pulumi refresh")
        return outputs

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Remove it; what is gone already is well."""
        with self._telling("deleting", id):
            try:
                self.remove(id, state, timeout)
            except ClientError as error:
                if not is_gone(error):
                    raise

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """As for every resource; an import takes as inputs what is neither empty nor a default, and what is required.

        So it is in bridged providers (pulumi-terraform-bridge, extractSchemaInputsObject).
        """
        if not old:
            usual = {**self.unset, **self.defaults}
            outputs = {
                name: value
                for name, value in outputs.items()
                if name in self.required or (value != usual[name] if name in usual else value)
            }
        return super().inputs_of(outputs, old)

    # Help for the types.

    def tags(self, inputs: Properties) -> dict[str, str]:
        """All tags that the resource gets: the provider's default ones and its own."""
        return {**self.session.default_tags, **(inputs.get("tags") or {})}

    def arn(self, service: str, rest: str) -> str:
        """An ARN in this account and region."""
        return f"arn:aws:{service}:{self.account.region}:{self.account.account_id}:{rest}"

    def differs(self, old: Properties, new: Properties) -> set[str]:
        """The accepted properties, tags apart, in which new inputs differ from old outputs."""
        before = self.before(old, old, new)
        # An empty map, an empty list and false are what AWS answers for something that was not set.
        return {key for key in self.accepts - {"tags"} if (before.get(key) or None) != (new.get(key) or None)}

    def _seen(self, id: str, state: Properties) -> Properties | None:
        try:
            seen = self.look(id, state)
        except ClientError as error:
            if is_gone(error):
                return None
            raise
        if seen is None:
            return None
        if "tags" in self.accepts:
            everything = {key: value for key, value in seen.pop("tags", {}).items() if not key.startswith("aws:")}
            own = state.get("tags") or {}
            default = {
                key
                for key, value in self.session.default_tags.items()
                if key not in own and everything.get(key) == value
            }
            seen["tagsAll"] = everything
            seen["tags"] = {key: value for key, value in everything.items() if key not in default}
            if not seen["tags"] and state.get("tags") is None:
                del seen["tags"]
        kept = {key: value for key, value in state.items() if key in self.accepts and key != "tags"}
        found = {key: same(kept.get(key), value) for key, value in {**kept, **seen}.items()}
        fixed = {key: value for key, value in self.defaults.items() if key not in self.accepts}
        empty = {key: value for key, value in self.unset.items() if found.get(key) is None}
        return {**self._region(), **fixed, **found, **empty}

    def _region(self) -> Properties:
        # IAM is the same in all regions.
        return {} if self.service == "iam" else {"region": self.account.region}

    @contextmanager
    def _telling(self, action: str, subject: str) -> Iterator[None]:
        what = f"{action} {self.title}" + (f" ({subject})" if subject else "")
        try:
            yield
        except ClientError as error:
            detail = error.response["Error"]
            service = self.service.upper()
            raise RefusedError(
                f"{what}: operation error {service}: {error.operation_name}, "
                f"api error {detail['Code']}: {detail['Message']}"
            ) from error
        except ParamValidationError as error:
            raise RefusedError(f"{what}: {error}") from error
        except RefusedError as error:
            raise RefusedError(f"{what}: {error}") from error


def is_gone(error: ClientError) -> bool:
    """Whether AWS says that the thing does not exist."""
    return bool(_GONE.search(error.response["Error"]["Code"]))


def is_known(value: Any) -> bool:
    """Whether a value and everything in it is known."""
    if isinstance(value, Mapping):
        return all(is_known(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_known(item) for item in value)
    return value is not UNKNOWN


def same(kept: Any, seen: Any) -> Any:
    """What was seen, in the form of what the program wrote when both mean the same.

    Sets come back in another order, documents with other white space, blocks with what AWS filled in: none of it
    is drift.
    """
    if isinstance(kept, dict) and isinstance(seen, dict):
        return {key: same(kept.get(key), value) for key, value in seen.items()}
    if isinstance(kept, list) and isinstance(seen, list) and len(kept) == len(seen):
        if sorted(map(_text, kept)) == sorted(map(_text, seen)):
            return kept
        return [same(before, now) for before, now in zip(kept, seen, strict=True)]
    if isinstance(kept, str) and isinstance(seen, str) and kept.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            return kept if json.loads(kept) == json.loads(seen) else seen
    return seen


def halves(id: str, between: str, form: str) -> tuple[str, str]:
    """The two parts of an ID by which the provider imports a resource.

    Raises:
        RefusedError: It has another form.
    """
    first, _, second = id.partition(between)
    if not first or not second:
        raise RefusedError(f"unexpected format of ID ({id!r}), expected {form}")
    return first, second


def api(inputs: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The named properties that have a value, with the API's names: the same with a capital."""
    return {capital(name): inputs[name] for name in sorted(names) if inputs.get(name) is not None}


def properties(answer: Mapping[str, Any], names: Iterable[str]) -> Properties:
    """The named properties out of an answer of the API; what it leaves out is left out."""
    return {name: answer[capital(name)] for name in sorted(names) if capital(name) in answer}


def capital(name: str) -> str:
    """`cidrBlock` as the API writes it: `CidrBlock`."""
    return name[:1].upper() + name[1:]


def moment(time: datetime) -> str:
    """A time as the provider writes it: `2026-01-31T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
