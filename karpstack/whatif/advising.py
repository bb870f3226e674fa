"""`karpstack advise`: candidates from a snapshot, a what-if for each, and the advice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from karpstack.snapshot.reading import load as load_snapshot
from karpstack.text.codes import Code, reported
from karpstack.text.files import OutputError, is_ours, make_ours, write
from karpstack.text.shown import visible

from . import advice_documents as documents
from .advice import UNCHANGED, Advice, advise
from .answer import Answer
from .candidates import AnswersError, load
from .proposals import PROPOSALS, Candidate, Derived, Pools, derive, manifests, pools_of

#: Name of a what-if, the arguments of its command, and its folder.
_Command = tuple[str, Sequence[str], Path]


@dataclass(frozen=True)
class Asked:
    """What is asked; `karpstack advise --help` says what each option means.

    Attributes:
        workloads: The snapshot.
        output: Folder for the advice.
        options: More arguments of every what-if, files by their whole path.
        stack: Name of the stack; None for the one that makes clusters like the snapshot's.
        arm64: Whether images exist for arm64.
        days: Whether the changed clusters live for some days.
        only: Names of the candidates that are wanted; empty for all.
        repeat: How many times each candidate is rehearsed.
        only_list: Whether nothing is rehearsed.
        form: How the advice is printed.
    """

    workloads: Path
    output: Path
    options: Sequence[str] = ()
    stack: str | None = None
    arm64: bool = False
    days: bool = False
    only: Sequence[str] = field(default=())
    repeat: int = 1
    only_list: bool = False
    form: Literal["text", "json"] = "text"


class Outcome(Protocol):
    """The ends of the what-ifs.

    Attributes:
        codes: Name -> exit code, of each that ended by itself.
        missing: Name -> why it did not end by itself.
        interrupted: Whether the command was interrupted.
    """

    codes: dict[str, int]
    missing: dict[str, str]
    interrupted: bool


@dataclass(frozen=True)
class Tools:
    """What the rehearsal does for the advice.

    Attributes:
        place: Makes the folder of results, and refuses one that others could exchange.
        rehearse: Runs what-ifs, side by side and in this order, as long as there is time.
    """

    place: Callable[[Path], Path]
    rehearse: Callable[[Sequence[_Command]], Outcome]


@reported({OSError: Code.WRONG, ValueError: Code.WRONG})
def run(asked: Asked, tools: Tools) -> int:
    """Write the manifests of all candidates, rehearse them, and write the advice; return the exit code."""
    snapshot = load_snapshot(asked.workloads).snapshot
    given = [name for name, is_given in (("arm64", asked.arm64), ("days", asked.days)) if is_given]
    derived = derive(snapshot, given, asked.only)
    asked = replace(asked, output=tools.place(asked.output))
    _claim(asked.output)
    now = pools_of(snapshot)
    _write_manifests(asked.output, derived.candidates, now)
    if asked.only_list or not derived.candidates:
        _write(asked, derived, advise(asked.workloads.name, derived.candidates, {}, dropped=derived.dropped), now)
        return Code.GOOD
    commands = list(_commands(asked, derived.candidates))
    outcome = tools.rehearse(commands)
    answers, failed = _answers(commands, outcome)
    unchanged = answers.pop(UNCHANGED, [])
    found = advise(
        asked.workloads.name,
        derived.candidates,
        answers,
        unchanged=unchanged,
        dropped=derived.dropped,
        failed=failed,
    )
    _write(asked, derived, found, now)
    if outcome.interrupted:
        return Code.INTERRUPTED
    return Code.UNKNOWN if documents.missing(found) else Code.GOOD


def _claim(folder: Path) -> None:
    """Refuse a folder with files that are not an advice's: it has names that are usual, such as `manifests`."""
    if any(folder.iterdir()) and not is_ours(folder):
        raise OutputError(
            f"--output {visible(folder)}: has files that no advice has written and that could be lost, so nothing is "
            "written; name a new folder, or an empty one"
        )
    make_ours(folder)


def _answers(commands: Sequence[_Command], outcome: Outcome) -> tuple[dict[str, list[Answer]], dict[str, str]]:
    """Return the answers by candidate, and why a candidate lacks one."""
    answers: dict[str, list[Answer]] = {}
    failed: dict[str, str] = {}
    for name, _, folder in commands:
        what, code = name.partition("/")[0], outcome.codes.get(name)
        if code is None:
            failed[what] = outcome.missing[name]
        elif code not in (Code.GOOD, Code.NO):
            failed[what] = _last_error(code, folder / "rehearsal.log")
        else:
            try:
                answers.setdefault(what, []).extend(load([folder / what]))
            except AnswersError as error:
                failed[what] = str(error)
    return answers, failed


def _last_error(code: int, log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    said = next((line for line in reversed(lines) if line.startswith("error: ")), f"exit code {code}")
    return f"{said.removeprefix('error: ').removesuffix('.')} (log: {log})"


def _write_manifests(output: Path, candidates: Sequence[Candidate], now: Pools) -> None:
    folder = output / "manifests"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for one in PROPOSALS:  # an earlier advice may have had other candidates
        (folder / f"{one.name}.yaml").unlink(missing_ok=True)
    for name, text in ((UNCHANGED, manifests(now)), *((one.name, one.manifests) for one in candidates)):
        head = "# The NodePools of a snapshot, which has no labels and annotations of NodePools"
        write(folder / f"{name}.yaml", f"{head}{'' if name == UNCHANGED else f', with the change {name}'}.\n{text}")


def _commands(asked: Asked, candidates: Sequence[Candidate]) -> list[_Command]:
    """The what-ifs: each once, then each again; of days, the unchanged cluster twice at least, for the spread."""
    rounds = max(asked.repeat, 2) if asked.days else asked.repeat
    found: list[_Command] = []
    for turn in range(rounds):
        names = [UNCHANGED] if asked.days else []
        names += [one.name for one in candidates] if turn < asked.repeat else []
        for name in names:
            folder = asked.output / f"{name}-{turn + 1}"
            files = asked.output / "manifests"
            arguments = ["whatif", *([asked.stack] if asked.stack else []), "--output", str(folder)]
            arguments += ["--base", str(files / f"{UNCHANGED}.yaml"), "--change", str(files / f"{name}.yaml")]
            arguments += ["--workloads", str(asked.workloads), *asked.options]
            found.append((f"{name}/{turn + 1}", arguments, folder))
    return found


def _write(asked: Asked, derived: Derived, found: Advice, now: Pools) -> None:
    content = json.dumps(found.model_dump(mode="json", by_alias=True), indent=2)
    write(asked.output / documents.FILE, f"{content}\n")
    write(asked.output / documents.MARKDOWN, documents.markdown(found, derived.candidates, now))
    page = asked.output / documents.PAGE
    write(page, documents.page(found, derived.candidates, now))
    print(content if asked.form == "json" else visible(f"{documents.text(found)}\nThe advice: {page}"))
