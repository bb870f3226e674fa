"""What was asked of a cloud's access control while a rehearsal ran, as a file: `.rehearsal/<stack>/rights.json`.

Each question is kept once for all that differ in names only which the cloud or Karpenter make up (ids of instances,
names of NodeClaims), with the values of the first and how many there were. So a run of an hour is some hundred of
them. Beside them are the documents by which they were answered.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.text import files, json_file

Cloud = Literal["aws", "azure"]
#: Condition keys and their values; several values where a key has several at once (`aws:TagKeys`).
Context = Mapping[str, str | Sequence[str]]
#: A policy document of AWS, or role and scope of an assignment of Azure.
Document = Mapping[str, Any]

VERSION: Final = 1
_MOST, _DEPTH, _VALUES = 64 * 2**20, 50, 2_000_000  # bytes, levels and values of a recording
#: The resource of an action of which the stand-in does not know what is asked about it.
UNKNOWN: Final = "unknown"
#: Context of a question that any role in the subscription answers with yes: reads of what Azure offers.
ANY_ROLE: Final[Context] = {"any role": "suffices"}
_MOST_CALLS: Final = 10**12  # of one question; more than any run can make
# UUIDs; EC2's ids, hashes and long numbers in names; names of nodes; of machines on Azure; the ends of names that
# Kubernetes makes up, which have no vowels.
_MADE_UP = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){2,3}-[0-9a-f]{12}"
    r"|(?<=[-_/])[0-9a-f]{8,}\b"
    r"|\bip-[0-9]+(-[0-9]+){3}\b"
    r"|(?<=/aks-)[a-z0-9-]+-[bcdfghjklmnpqrstvwxz2456789]{5}(?=$|/)"
    r"|(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?=$|/)"
)


@dataclass(frozen=True)
class Question:
    """One thing that access control is asked about a request; a request can need several.

    Attributes:
        action: `ec2:RunInstances`, `Microsoft.Compute/virtualMachines/write`.
        resource: ARN, or resource ID; `*` where an action of AWS knows no resources.
        context: What conditions are held against.
    """

    action: str
    resource: str
    context: Context = field(default_factory=dict)

    @property
    def pattern(self) -> str:
        """The resource, with a `*` for each part that was made up."""
        return generalised(self.resource)

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for all questions that differ in made-up names only."""
        values = (
            (name, tuple(map(generalised, [value] if isinstance(value, str) else value)))
            for name, value in sorted(self.context.items())
        )
        return self.action, self.pattern, tuple(values)


@dataclass(frozen=True)
class Use:
    """A question, and how often it was asked.

    Attributes:
        question: The first one of its kind.
        count: How many there were.
        refused: How many of them were answered with a refusal.
    """

    question: Question
    count: int
    refused: int = 0


@dataclass(frozen=True)
class Principal:
    """What one role or identity was allowed and what it asked.

    Attributes:
        name: Its name in the cloud.
        documents: By name of policy, or of role and scope.
        uses: What it asked.
    """

    name: str
    documents: Mapping[str, Document]
    uses: Sequence[Use]


@dataclass(frozen=True)
class Recording:
    """What one or several rehearsals recorded.

    Attributes:
        cloud: Whose access control was asked.
        principals: Who asked.
        scenarios: Names of the scenarios that ran to their end meanwhile; None where nobody noted them.
    """

    cloud: Cloud
    principals: Sequence[Principal]
    scenarios: frozenset[str] | None = None


class RecordingError(Exception):
    """A file that is no recording; the text says which, why and what to do."""


class Recorder:
    """Counts questions while a cloud answers them; safe to use from several threads.

    It writes when it hears something new, and at the end, so that a run that is killed leaves all but the last counts.
    """

    def __init__(self, cloud: Cloud) -> None:
        """A recorder that writes nothing before `write_to` says where."""
        self._cloud: Cloud = cloud
        self._path: Path | None = None
        self._lock = threading.Lock()
        self._documents: dict[str, dict[str, Document]] = {}
        self._uses: dict[str, dict[tuple[Any, ...], Use]] = {}

    def write_to(self, path: Path) -> None:
        """Keep what is recorded in a file."""
        self._path = path

    def heard(self, principal: str, question: Question, documents: Mapping[str, Document], *, allowed: bool) -> None:
        """Note a question and what answered it."""
        with self._lock:
            known = self._uses.setdefault(principal, {})
            key = question.key
            is_new = key not in known
            add(known, key, Use(question, 1, int(not allowed)))
            self._documents.setdefault(principal, {}).update(documents)
            if is_new:
                self._write()

    def close(self) -> None:
        """Write the last counts."""
        with self._lock:
            self._write()

    @property
    def recording(self) -> Recording:
        """What was heard until now."""
        principals = [
            Principal(name, self._documents[name], list(uses.values())) for name, uses in sorted(self._uses.items())
        ]
        return Recording(self._cloud, principals)

    def _write(self) -> None:
        if self._path and self._uses:
            files.write(self._path, text(self.recording), private=True)


def add(uses: dict[tuple[Any, ...], Use], key: tuple[Any, ...], use: Use) -> None:
    """Count a use with those of its key, of which the first one's question stays."""
    before = uses.get(key)
    uses[key] = Use(before.question, before.count + use.count, before.refused + use.refused) if before else use


def generalised(value: str) -> str:
    """A text with a `*` for each part that was made up while a rehearsal ran."""
    return _MADE_UP.sub("*", value)


def text(recording: Recording) -> str:
    """A recording as JSON, one question a line, in an order that does not depend on the run's."""
    lines = []
    for principal in recording.principals:
        uses = sorted(principal.uses, key=lambda use: use.question.key)
        lines.append(
            f'{{"name": {json.dumps(principal.name)},\n"documents": {{\n'
            + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(principal.documents.items()))
            + '\n},\n"uses": [\n'
            + ",\n".join(map(_line, uses))
            + "\n]}"
        )
    scenarios = "" if recording.scenarios is None else f'"scenarios": {json.dumps(sorted(recording.scenarios))}, '
    head = f'{{"version": {VERSION}, "cloud": {json.dumps(recording.cloud)}, {scenarios}"principals": [\n'
    return head + ",\n".join(lines) + "\n]}\n"


def begins_as_one(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes is a recording."""
    return beginning.startswith(b'{"version": %d, "cloud": ' % VERSION)


def read(paths: Iterable[Path]) -> Recording:
    """What one or several files hold together; of documents of one name the last file's.

    Raises:
        RecordingError: A file is missing or is no recording, or they are of several clouds.
    """
    found = [(path, _parsed(path)) for path in paths]
    clouds = sorted({recording.cloud for _, recording in found})
    if len(clouds) > 1:
        told = ", ".join(f"{path} ({recording.cloud})" for path, recording in found)
        raise RecordingError(
            f"recordings = {told}: rights of one cloud cannot be judged by what another was asked; give those of one"
        )
    documents: dict[str, dict[str, Document]] = {}
    uses: dict[str, dict[tuple[Any, ...], Use]] = {}
    for _, recording in found:
        for principal in recording.principals:
            documents.setdefault(principal.name, {}).update(principal.documents)
            for use in principal.uses:
                add(uses.setdefault(principal.name, {}), use.question.key, use)
    principals = [Principal(name, documents[name], list(uses.get(name, {}).values())) for name in sorted(documents)]
    scenarios = [recording.scenarios for _, recording in found if recording.scenarios is not None]
    known = frozenset[str]().union(*scenarios) if len(scenarios) == len(found) else None
    return Recording(found[0][1].cloud, principals, known)


def _line(use: Use) -> str:
    question = use.question
    return json.dumps(
        {
            "action": question.action,
            "resource": question.resource,
            "context": dict(sorted(question.context.items())),
            "count": use.count,
            **({"refused": use.refused} if use.refused else {}),
        }
    )


def _parsed(path: Path) -> Recording:
    if not path.exists():
        raise RecordingError(
            f"{path} does not exist, so nothing says which rights were used; rehearse the stack first: "
            "karpstack run STACK --labels all"
        )
    try:
        found = json_file.read(path, most=_MOST, depth=_DEPTH, values=_VALUES)
        if found["version"] != VERSION or found["cloud"] not in ("aws", "azure"):
            raise ValueError(f"its version is {found['version']!r} and its cloud {found['cloud']!r}")
        principals = [
            Principal(str(one["name"]), dict(one["documents"]), [_use(use) for use in one["uses"]])
            for one in found["principals"]
        ]
        scenarios = frozenset(map(str, found["scenarios"])) if "scenarios" in found else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.why if isinstance(error, json_file.FileError) else f"{type(error).__name__}: {error}"
        raise RecordingError(
            f"{path} is no recording of rights ({why}), so it says nothing of them; give the rights.json of a "
            "rehearsal, or rehearse again"
        ) from error
    return Recording(found["cloud"], principals, scenarios)


def _use(line: Mapping[str, Any]) -> Use:
    context = {str(name): _values(value) for name, value in line["context"].items()}
    question = Question(str(line["action"]), str(line["resource"]), context)
    return Use(question, _number(line["count"]), _number(line.get("refused", 0)))


def _values(value: Any) -> str | list[str]:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    raise ValueError(f"{value!r} is no value of a condition key")


def _number(value: Any) -> int:
    if isinstance(value, int) and 0 <= value <= _MOST_CALLS:
        return value
    raise ValueError(f"{value!r} is no number of calls")
