"""What the Pulumi engine says of a preview: its digest (`--json`) with the resources, its event log with the policies.

Both are needed: the digest leaves the policies out, the log leaves out from which resource a value comes. In both
the engine has put `[secret]` in the place of each secret, and one constant in the place of each unknown value. Of an
update that was made, the stack's state stands for the digest; in it each secret is encrypted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from rules.tokens import plain
from rules.values import readable

#: What the engine writes for a secret.
SECRET: Final = "[secret]"  # noqa: S105  it is none
#: Said of a value that waits for nothing that can be named.
ONLY_THEN: Final = "known only once it is created"
_NAMED: Final = 4
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_MARKUP: Final = re.compile(r"<\{%[^%]*%\}>")
_PROVIDER: Final = "pulumi:providers:"
_NO_DIGEST: Final = "`pulumi preview --json` wrote something that is no digest of a preview"
_NO_STATE: Final = "`pulumi stack export` wrote something that is no state of a stack"


_T = TypeVar("_T", bound=BaseModel)


class EngineError(Exception):
    """The engine's words could not be read; the text says which, and what to do."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, said: Any) -> Any:
        """Go writes null for what is empty."""
        return {key: value for key, value in said.items() if value is not None} if isinstance(said, dict) else said


class State(_Said):
    """A resource in the digest."""

    type: str
    custom: bool = False
    provider: str = ""
    inputs: dict[str, Any] = Field(default_factory=dict)
    outputs: dict[str, Any] = Field(default_factory=dict)
    property_dependencies: dict[str, list[str] | None] | None = Field(default=None, alias="propertyDependencies")


class Step(_Said):
    """One step of the digest."""

    op: str
    urn: str
    new: State | None = Field(default=None, alias="newState")
    old: State | None = Field(default=None, alias="oldState")
    replace_reasons: list[str] | None = Field(default=None, alias="replaceReasons")
    diff_reasons: list[str] | None = Field(default=None, alias="diffReasons")
    detailed_diff: dict[str, Any] | None = Field(default=None, alias="detailedDiff")


class Diagnostic(_Said):
    """A line that the engine, the program or a provider said."""

    urn: str = ""
    message: str = ""
    severity: str = "info"


class Digest(_Said):
    """`pulumi preview --json`."""

    config: dict[str, str] = Field(default_factory=dict)
    steps: list[Step] = Field(default_factory=list)
    diagnostics: list[Diagnostic] = Field(default_factory=list)


class PolicyEvent(_Said):
    """What a policy reported."""

    urn: str = Field(default="", alias="resourceUrn")
    message: str
    policy: str = Field(alias="policyName")
    pack: str = Field(default="", alias="policyPackName")
    version: str = Field(default="", alias="policyPackVersion")
    level: str = Field(alias="enforcementLevel")
    severity: str = ""


class _Summary(_Said):
    """What the engine says at the end."""

    is_preview: bool = Field(default=False, alias="isPreview")
    result: str = "succeeded"
    packs: dict[str, str] = Field(default_factory=dict, alias="PolicyPacks")


class _Subject(_Said):
    urn: str


class _Outputs(_Said):
    """Said of each resource that is made."""

    metadata: _Subject


#: The events that are read.
_EVENTS: Final[Mapping[str, type[BaseModel]]] = {
    "policyEvent": PolicyEvent,
    "resOutputsEvent": _Outputs,
    "summaryEvent": _Summary,
}


class _Made(State):
    """A resource in the state."""

    urn: str
    delete: bool = False


class _Deployment(_Said):
    resources: list[_Made] = Field(default_factory=list)


class _Export(_Said):
    deployment: _Deployment


def read_digest(text: str) -> Digest:
    """The digest.

    Raises:
        EngineError: The text is none.
    """
    return _read(Digest, text, _NO_DIGEST)


def read_state(text: str) -> Digest:
    """The digest of a preview that would change nothing, from `pulumi stack export`.

    Raises:
        EngineError: The text is no state.
    """
    made = _read(_Export, text, _NO_STATE).deployment.resources
    return Digest(steps=[Step(op="same", urn=one.urn, newState=one) for one in made if not one.delete])


def _read(kind: type[_T], text: str, wrong: str) -> _T:
    try:
        return kind.model_validate(_blinded(json.loads(text)))
    except ValidationError as error:
        # Where it is and what is wrong with it; not the value, which may be anything.
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise EngineError(f"{wrong}: {readable(where)}: {first['msg'].lower()}") from error
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{wrong}: {readable(str(error))}") from error


def read_log(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The engine's events of an event log, in order.

    Raises:
        EngineError: A line is no event.
    """
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            event |= {name: kind.model_validate(event[name]) for name, kind in _EVENTS.items() if event.get(name)}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise EngineError(f"line {number} of the engine's event log is no event of Pulumi's") from error
        events.append(event)
    return events


def policy_events(log: Iterable[Mapping[str, Any]]) -> list[PolicyEvent]:
    """The policies' events of a log, in order and each once."""
    events: dict[tuple[str, ...], PolicyEvent] = {}
    for entry in log:
        if event := entry.get("policyEvent"):
            event = event.model_copy(update={"message": _MARKUP.sub("", event.message).strip()})
            events[(event.policy, event.urn, event.message, event.level)] = event
    return list(events.values())


def _summary(events: Sequence[Mapping[str, Any]]) -> _Summary | None:
    return next((one["summaryEvent"] for one in reversed(events) if one.get("summaryEvent")), None)


def is_judged(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the pack was run, by what the engine says last."""
    summary = _summary(events)
    return summary is not None and any(pack.partition("|")[0] == "karpstack" for pack in summary.packs)


def check_update(events: Sequence[Mapping[str, Any]], stack: str) -> None:
    """See that an event log is of an update of this stack that the pack has judged and that came to its end.

    Args:
        events: The log's.
        stack: Name of the stack.

    Raises:
        EngineError: It is not, and so nothing can be said by it.
    """
    summary = _summary(events)
    if summary is None or summary.is_preview:
        raise EngineError("the event log is of no update that came to its end; give what `pulumi up` wrote, all of it")
    if summary.result != "succeeded":
        raise EngineError("the event log is of an update that failed, so not all is made; mend it, and run it again")
    if not is_judged(events):
        raise EngineError("the pack did not judge that update; run `pulumi up` with --policy-pack policies")
    urns = (one["resOutputsEvent"].metadata.urn for one in events if one.get("resOutputsEvent"))
    of = {urn.removeprefix("urn:pulumi:").partition("::")[0] for urn in urns}
    if of != {stack}:
        raise EngineError(f"the event log is of {', '.join(sorted(of)) or 'no stack'}, and the review of {stack}")


def _blinded(value: Any) -> Any:
    """The value with nothing in it that is marked as secret, should an engine ever write one so."""
    if isinstance(value, dict):
        if _SIGNATURE in value and ("ciphertext" in value or "plaintext" in value):
            return SECRET
        return {key: _blinded(entry) for key, entry in value.items()}
    return [_blinded(entry) for entry in value] if isinstance(value, list) else value


def is_known(value: Any) -> bool:
    """Whether all of a value is known and no secret."""
    if isinstance(value, Mapping):
        return all(map(is_known, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_known, value))
    return not isinstance(value, str) or value not in (UNKNOWN_STRING_VALUE, SECRET)


@dataclass(frozen=True)
class Resource:
    """A resource as it will be: what the review looks at.

    Attributes:
        inputs: Raw: with the engine's constants for what is secret or unknown.
        comes_from: URNs of the resources from which a property's value comes.
        provider: Type and inputs of its provider; None where the digest has none of it.
    """

    token: str
    name: str
    urn: str
    custom: bool
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    comes_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provider: tuple[str, Mapping[str, Any]] | None = None

    @property
    def checked(self) -> Any:
        """The inputs as a rule sees them: what is unknown raises UnknownValueError; and a secret is as unknown."""
        return checked(self.inputs)

    def source(self, *path: str) -> tuple[str, ...]:
        """The URNs that a property comes from, whose path is asked from the longest on."""
        for length in range(len(path), 0, -1):
            if urns := self.comes_from.get(".".join(path[:length])):
                return urns
        return ()


def checked(inputs: Mapping[str, Any]) -> Any:
    """Inputs as a rule sees them: reading what is unknown, or secret, raises UnknownValueError."""
    return unknown_checking_proxy(_hidden(inputs))


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(entry) for entry in value]
    return UNKNOWN_STRING_VALUE if value == SECRET else value


def resources(digest: Digest) -> list[Resource]:
    """The resources that the stack will have, in the program's order; providers and deletions are left out."""
    providers = {
        step.urn: (step.new.type, step.new.inputs) for step in digest.steps if step.new and is_provider(step.new.type)
    }
    return [
        Resource(
            token=plain(new.type),
            name=name_of(step.urn),
            urn=step.urn,
            custom=new.custom,
            inputs=new.inputs,
            outputs=new.outputs,
            comes_from={key: tuple(urns or ()) for key, urns in (new.property_dependencies or {}).items()},
            # A reference is the provider's URN and its id.
            provider=providers.get(new.provider.rpartition("::")[0]) or _default(new.provider),
        )
        for step, new in _made(digest)
    ]


def _made(digest: Digest) -> Iterator[tuple[Step, State]]:
    """The steps on what the program registers, with the new states: no provider, no deletion, each resource once."""
    seen = set()
    for step in digest.steps:
        if (
            step.new is None
            or step.urn in seen
            or is_provider(step.new.type)
            or step.op.startswith(("delete", "discard"))
        ):
            continue
        seen.add(step.urn)
        yield step, step.new


def by_urn(resources: Iterable[Resource]) -> dict[str, Resource]:
    """Resources by URN."""
    return {resource.urn: resource for resource in resources}


def is_provider(token: str) -> bool:
    """Whether a resource is a provider, which exists in the state only."""
    return token.startswith(_PROVIDER)


def _default(reference: str) -> tuple[str, Mapping[str, Any]] | None:
    """The type of a default provider, of which the engine tells nothing else."""
    parts = reference.split("::")
    return (parts[2], {}) if len(parts) > 3 and is_provider(parts[2]) else None


def waits(resource: Resource, *path: str) -> str:
    """Why a value is not known: `known once eks-queue and eks-node-role exist`."""
    # Sorted, for the engine tells them in any order, and the same preview shall make the same document.
    names = sorted(name_of(urn) for urn in resource.source(*path))
    if not names:
        return ONLY_THEN
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    if len(names) == 1:
        return f"known once {names[0]} exists"
    return f"known once {', '.join(names[:-1])} and {names[-1]} exist"


def name_of(urn: str) -> str:
    """The logical name in a URN."""
    return urn.rsplit("::", 1)[-1]


def token_of(urn: str) -> str:
    """The resource's own type in a URN, which has its parents' before it."""
    parts = urn.split("::")
    return parts[2].rsplit("$", 1)[-1] if len(parts) > 3 else ""
