"""What all AWS resource types of the stand-in share: a type's row, and the calls of AWS's API that it names.

A row (types.yaml) says which calls make, describe, change and delete a resource; a type whose behaviour it cannot say
has a class besides. No state is held here, the simulated account does. What the account refuses is shown in the words
of the provider and of AWS.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self
from urllib.parse import unquote

from botocore.exceptions import ClientError, ParamValidationError

from karpstack.rehearsal.attachment.lifecycle import RowResource
from karpstack.rehearsal.attachment.resource import AUTOMATIC, UNKNOWN, Failure, Properties, RefusedError, has_unknowns
from karpstack.rehearsal.attachment.rows import Row, load
from karpstack.rehearsal.aws import tags as tags_of
from karpstack.rehearsal.aws.calls import (
    AwsRefusalError,
    Step,
    evaluated,
    is_gone,
    matching_properties,
    members,
    search,
    steps,
)

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.account import Account
    from karpstack.rehearsal.cluster.control_plane import Clusters

__all__ = ["ROWS", "AwsRefusalError", "AwsResource", "AwsRow", "Session"]

_log = logging.getLogger(__name__)
#: Properties with keys of the user's: of a block, what the program leaves out is AWS's to choose; of these it is gone.
_MAPS = frozenset({"tags", "tagsAll", "labels"})
_QUOTA = "Cannot exceed quota for {quota}: {limit}"
_STEPS = ("create", "then", "read", "update", "delete", "tags")


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


@dataclass(frozen=True, kw_only=True)
class AwsRow(Row):
    """A row of types.yaml, see there."""

    service: str
    source: str = ""
    arn: str = ""
    kind: str = ""
    outputs: Sequence[str] = ()
    documents: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    create: Sequence[Step] = ()
    id: str = ""
    parts: str = ""
    imports: Sequence[str] = ()
    then: Sequence[Step] = ()
    read: Sequence[Step] = ()
    update: Sequence[Step] | None = None
    delete: Sequence[Step] = ()
    tags: Sequence[Step] = ()

    @classmethod
    def of(cls, token: str, written: Mapping[str, Any]) -> Self:
        """As for every row, with the calls."""
        return super().of(token, {key: steps(one) if key in _STEPS else one for key, one in written.items()})


#: Each type's row by its token.
ROWS: Final = load(AwsRow, Path(__file__).with_name("types.yaml"))


class AwsResource(RowResource):
    """A resource type of pulumi-aws.

    When something fails after its creation, it is removed again, so that the next `pulumi up` finds no left-over.
    """

    #: The type, of those that have a class of their own.
    type: ClassVar[str] = ""
    row: AwsRow

    def __init__(self, session: Session, token: str = "") -> None:
        super().__init__(ROWS[token or self.type])
        self.session = session
        self.account = session.account

    @property
    def client(self) -> Any:
        """The boto3 client of this type's service (boto3 ships no types)."""
        return self.account.client(self.row.service)

    # What a type may add.

    def make(self, inputs: Properties) -> str:
        """Send the request that creates the resource and give its ID."""
        self.check_documents(inputs)
        if self.row.service == "iam":
            tags_of.check_iam(self.tags(inputs))
        words = self.words("", inputs)
        *before, create = self.row.create
        for step in before:
            step.run(self.client, words)
        more = tags_of.parameter(self.client, create.operation, self._kind, self.tags(inputs)) or {}
        if not create.exact:
            parameters = {key: key for key in members(self.client, create.operation) if key not in create.given}
            called = matching_properties(self.accepts - {"tags"}, parameters)
            more |= {key: inputs[name] for name, key in called if inputs.get(name) is not None}
        return self.identity(words, create.send(self.client, words, more))

    def identity(self, inputs: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
        """The ID, from the inputs or from the answer to the creation."""
        return self.row.id.format(**inputs) if "{" in self.row.id else str(search(self.row.id, answer, inputs))

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Do what creation takes beyond the first request: attach, set attributes, wait."""
        words = self.words(id, inputs)
        for step in self.row.then:
            step.run(self.client, words)
        tags, create = self.tags(inputs), self.row.create[-1:]
        takes_tags = create and tags_of.parameter(self.client, create[0].operation, self._kind, tags) is not None
        if "tags" in self.accepts and tags and create and not takes_tags:
            self.retag(id, words, tags, [])

    def describe(self, id: str, state: Properties) -> Properties | None:
        """Ask the account; all its tags under `tags`. None or an error of AWS's not-found kind: gone.

        What the API does not report is left out: it keeps the value of `state`. None says that there is nothing.
        """
        words = self.words(id, state)
        names = {*self.accepts, *self.row.outputs}
        seen = {name: words[name] for name in names & self._parts(id).keys()}
        for step in self.row.read:
            found = search(step.at, step.send(self.client, words), words)
            if not found:
                return None
            words["before"] = found
            seen |= dict(matching_properties(names, found))
            seen |= {name: search(expression, found, words) for name, expression in step.take.items()}
        if self.row.arn and "arn" in self.row.outputs:
            seen["arn"] = words["arn"]
        return seen

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Change everything but tags in place."""
        differs = self.differs(old, new)
        if self.row.update is None:
            raise RefusedError("the provider stand-in cannot change in place: " + ", ".join(sorted(differs)))
        self.check_documents(new)
        outputs = {key: value for key, value in old.items() if key not in self.accepts}
        words = self.words(id, {**outputs, **new})
        for step in self.row.update:
            step.run(self.client, words, differs)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it and wait; an error of AWS's not-found kind counts as done."""
        words = self.words(id, state)
        for step in self.row.delete:
            step.run(self.client, words)

    # The order of calls, the same for all.

    def deletes_first(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """As the bridge has it (nameRequiresDeleteBeforeReplace): also where the program gave another name."""
        named = new.get(self.name_property) is not None and self.name_property not in new.get(AUTOMATIC, [])
        return self.delete_before_replace or named

    def autoname(self, inputs: Properties, old: Mapping[str, Any], proposed: str | None) -> Properties:
        """As for every row; a name that is drawn begins with the program's prefix for it, such as `namePrefix`."""
        key = f"{self.name_property}Prefix"
        prefix = inputs.get(key)
        if not self.name_property or not prefix or inputs.get(self.name_property) is not None:
            return super().autoname(inputs, old, proposed)
        if not isinstance(prefix, str):
            return {**inputs, self.name_property: UNKNOWN, AUTOMATIC: [self.name_property]}
        drawn = proposed and prefix + proposed.rpartition("-")[2]
        return super().autoname(inputs, old if old.get(key) == prefix else {}, drawn)

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """As for every row, with all tags."""
        checked, failures = super().check(inputs, name=name)
        own, prefix = checked.get(self.name_property), checked.get(f"{self.name_property}Prefix")
        if isinstance(own, str) and isinstance(prefix, str) and not own.startswith(prefix):
            failures.append(
                Failure(f"{self.name_property}Prefix", f"it conflicts with {self.name_property}; leave out one")
            )
        failures.extend(tags_of.failures(checked.get("tags")))
        if "tags" in self.accepts and (checked.get("tags") or self.session.default_tags):
            checked["tagsAll"] = UNKNOWN if has_unknowns(checked.get("tags")) else self.tags(checked)
        return checked, failures

    def imported(self, id: str) -> tuple[str, Properties]:
        """As for every row; some types are imported by an ID of another form."""
        if not self.row.imports:
            return super().imported(id)
        form, said = self.row.imports
        found = read_form(form, id)
        if not found:
            raise RefusedError(f"unexpected format of ID ({id!r}), expected {said}")
        return found.pop("id", "") or self.identity(found, {}), {**self.row.unread, **found}

    def before(self, inputs: Properties, state: Properties, new: Properties) -> Properties:
        """The state, as bridged providers compare (pulumi-terraform-bridge, Provider.Diff), and not the inputs before.

        Where the program says nothing, what AWS chose itself is left out, and what is empty.
        """
        names = (*self.accepts, *self.row.defaults, "tagsAll")
        compared = {name: self._compared(name, state.get(name), new.get(name)) for name in names}
        return {name: value for name, value in compared.items() if value is not None}

    def _compared(self, path: str, seen: Any, given: Any) -> Any:
        if given is None:
            chosen = path in self.row.computed or not seen or seen == self.row.unset.get(path)
            return None if chosen else seen
        if path in self.row.blocks and isinstance(seen, list) and isinstance(given, list):
            seen = _aligned(seen, given)
        seen = same(given, seen)
        if isinstance(seen, dict) and isinstance(given, dict) and path.rpartition(".")[2] not in _MAPS:
            block = {key: self._compared(f"{path}.{key}", value, given.get(key)) for key, value in seen.items()}
            return {key: value for key, value in block.items() if value is not None}
        if isinstance(seen, list) and isinstance(given, list) and len(seen) == len(given):
            return [self._compared(path, *pair) for pair in zip(seen, given, strict=True)]
        return seen

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """Inputs and what stays as it is; all tags are known as soon as its own are."""
        known = "tags" in self.accepts and not has_unknowns(inputs.get("tags"))
        tags = {"tagsAll": self.tags(inputs)} if known else {}
        kept = {name: value for name, value in state.items() if name != "tagsAll"}
        return {**kept, **self._region(), **inputs, **tags}

    def failed(self, id: str, inputs: Properties, timeout: float, error: BaseException) -> None:
        """Remove it again."""
        try:
            self.remove(id, inputs, timeout)
        except Exception:
            _log.exception("%s (%s) could not be removed again after its creation failed", self.row.title, id)

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Change tags, then the rest."""
        if "tags" in self.accepts:
            before, after = old.get("tagsAll", self.tags(old)), self.tags(new)
            put = {key: value for key, value in after.items() if before.get(key) != value}
            drop = sorted(before.keys() - after.keys())
            if put or drop:
                self.retag(id, self.words(id, {**old, **new}), put, drop)
        if self.differs(old, new):
            self.adjust(id, old, new, timeout)

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """As for every resource; an import takes as inputs what is neither empty nor a default, and what is required.

        So it is in bridged providers (pulumi-terraform-bridge, extractSchemaInputsObject).
        """
        if not old:
            usual = self.row.usual
            outputs = {
                name: value
                for name, value in outputs.items()
                if name in self.row.required or (value != usual[name] if name in usual else value)
            }
        return super().inputs_of(outputs, old)

    def current_outputs(self, id: str, state: Properties) -> Properties | None:
        """What the account holds now, in the shapes of the program where they mean the same."""
        seen = self.describe(id, state)
        if seen is None:
            return None
        if "tags" in self.accepts:
            given = tags_of.unpaired(seen.pop("tags", {}))
            tags = {key: value for key, value in given.items() if not key.startswith("aws:")}
            own = state.get("tags") or {}
            default = {
                key for key, value in self.session.default_tags.items() if key not in own and tags.get(key) == value
            }
            seen["tagsAll"] = tags
            seen["tags"] = {key: value for key, value in tags.items() if key not in default}
            if not seen["tags"] and state.get("tags") is None:
                del seen["tags"]
        kept = {key: value for key, value in state.items() if key in self.accepts and key != "tags"}
        everything = {**kept, **{key: self._shown(key, value) for key, value in seen.items()}}
        found = {key: same(kept.get(key), value) for key, value in everything.items() if value is not None}
        fixed = {key: value for key, value in self.row.defaults.items() if key not in self.accepts}
        empty = {key: value for key, value in self.row.unset.items() if key not in found}
        return {**self._region(), **fixed, **found, **empty}

    def is_gone(self, error: Exception) -> bool:
        """Whether AWS says that the thing does not exist."""
        return isinstance(error, ClientError) and is_gone(error)

    @contextmanager
    def telling(self, action: str, subject: str) -> Iterator[None]:
        """Show what the account refuses as the provider shows AWS's refusals."""
        what = f"{action} {self.row.title}" + (f" ({subject})" if subject else "")
        try:
            yield
        except ClientError as error:
            detail = error.response["Error"]
            raise RefusedError(
                f"{what}: operation error {self.row.service.upper()}: {error.operation_name}, "
                f"api error {detail['Code']}: {detail['Message']}"
            ) from error
        except (ParamValidationError, RefusedError) as error:
            raise RefusedError(f"{what}: {error}") from error

    # Help for the types.

    def describes_blocks(self, name: str, state: Mapping[str, Any]) -> bool:
        """Whether the blocks of an input are this resource's: the program has some, or the resource is imported."""
        return bool(state.get(name)) or not self.row.required <= state.keys()

    def words(self, id: str, state: Mapping[str, Any]) -> Properties:
        """What the expressions of the row find: inputs or outputs, and what the ID says."""
        account = self.account
        own = {"id": id, "last": id.rpartition("/")[2], "account": account.account_id, "region": account.region}
        found = {**self._parts(id), **state, **own}
        return {**found, "arn": self.arn(self.row.arn.format(**own))} if self.row.arn else found

    def tags(self, inputs: Mapping[str, Any]) -> dict[str, str]:
        """All tags that the resource gets: the provider's default ones and its own."""
        return {**self.session.default_tags, **(inputs.get("tags") or {})} if "tags" in self.accepts else {}

    def retag(self, id: str, words: Properties, put: dict[str, str], drop: list[str]) -> None:
        """Set and remove tags by the calls `tag_<noun>` and `untag_<noun>`, or EC2's."""
        (step,) = self.row.tags or steps({"create_tags": {"Resources": ["id"]}})
        named = evaluated(step.given, words)
        if drop and step.operation == "create_tags":
            self.client.delete_tags(**named, Tags=[{"Key": key} for key in drop])
        elif drop:
            operation = f"un{step.operation}"
            (keys,) = (name for name in members(self.client, operation) if name.lower() == "tagkeys")
            getattr(self.client, operation)(**named, **{keys: drop})
        if put:
            tags = tags_of.parameter(self.client, step.operation, "", put) or {}
            getattr(self.client, step.operation)(**named, **tags)

    def arn(self, rest: str) -> str:
        """An ARN in this account and region."""
        return f"arn:aws:{self.row.service}:{self.account.region}:{self.account.account_id}:{rest}"

    def differs(self, old: Properties, new: Properties) -> set[str]:
        """The accepted properties, tags apart, in which new inputs differ from old outputs."""
        before = self.before(old, old, new)
        # An empty map, an empty list and false are what AWS answers for something that was not set.
        return {key for key in self.accepts - {"tags"} if (before.get(key) or None) != (new.get(key) or None)}

    @property
    def _kind(self) -> str:
        return self.row.kind or self.row.arn.partition("/")[0]

    def _parts(self, id: str) -> dict[str, str]:
        """The properties that stand in the ID."""
        form = self.row.parts or self.row.id
        return read_form(form, id) if id and "{" in form else {}

    def check_documents(self, inputs: Properties) -> None:
        """Refuse documents that are longer than IAM takes; white space does not count."""
        for name, (quota, limit) in self.row.documents.items():
            if len(re.sub(r"\s", "", inputs[name])) > limit:
                raise AwsRefusalError("LimitExceeded", _QUOTA.format(quota=quota, limit=limit))

    def _shown(self, name: str, value: Any) -> Any:
        if isinstance(value, datetime):
            return moment(value)
        if name in self.row.documents:  # boto3 decodes documents into dicts, or leaves them encoded for a URL
            return unquote(value) if isinstance(value, str) else json.dumps(value)
        return value

    def _region(self) -> Properties:
        # IAM is the same in all regions.
        return {} if self.row.service == "iam" else {"region": self.account.region}


class AwsResourceWithBlocks(AwsResource):
    """A resource with parts, such as routes, that a program may write as blocks of its inputs."""

    def set_blocks(self, id: str, inputs: Properties) -> None:
        """Make the parts those of the program; without blocks, they stay as they are."""
        raise NotImplementedError

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Complete the resource, then its parts."""
        super().complete(id, inputs, timeout)
        self.set_blocks(id, inputs)

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Change the resource, then its parts."""
        super().adjust(id, old, new, timeout)
        self.set_blocks(id, new)


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


def _aligned(seen: list[Any], given: list[Any]) -> list[Any]:
    """The blocks that were seen, in the order of those that mean the same in the program: blocks are a set."""
    left = [*seen]
    found: list[Any] = []
    for block in given:
        pairs = [(key, value) for key, value in block.items() if value is not None] if isinstance(block, dict) else []
        match = next(
            (one for one in left if pairs and all(same(value, one.get(key)) == value for key, value in pairs)), 0
        )
        found.append(match)
        if match:
            left.remove(match)
    return [one or left.pop(0) for one in found if one or left] + left


def in_order(seen: Iterable[str], written: Sequence[str]) -> list[str]:
    """Return what was seen in the order in which the program wrote it; what it did not write is last."""
    return sorted(seen, key=lambda one: (written.index(one) if one in written else len(written), one))


def moment(time: datetime) -> str:
    """A time as the provider writes it: `2026-01-31T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def capital(name: str) -> str:
    """`cidrBlock` as the API writes it: `CidrBlock`."""
    return name[:1].upper() + name[1:]


def read_form(form: str, text: str) -> dict[str, str]:
    """What stands in a text for the names of a form such as `{clusterName}:{addonName}`; nothing in another one."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(form))
    found = re.fullmatch(pattern, text)
    return found.groupdict() if found else {}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
