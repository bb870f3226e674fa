"""`karpstack advise`: candidates from a snapshot, a what-if for each, and the advice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from karpstack.snapshot.reading import load as load_snapshot
from karpstack.text.codes import Code, reported
from karpstack.text.files import write
from karpstack.text.shown import visible

from . import advice
from .answer import Answer
from .candidates import load
from .proposals import Candidate, Derived, Pools, derive, manifests, pools_of

#: What the cluster is called without a change: the base of every what-if.
UNCHANGED: Final = "unchanged"
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


@dataclass(frozen=True)
class Tools:
    """What the rehearsal does for the advice.

    Attributes:
        place: Makes the folder of results, and refuses one that others could exchange.
        rehearse: Runs what-ifs, side by side and in this order, as long as there is time; name -> exit code of those
            that ended.
    """

    place: Callable[[Path], Path]
    rehearse: Callable[[Sequence[_Command]], Mapping[str, int]]


@reported({OSError: Code.WRONG, ValueError: Code.WRONG})
def run(asked: Asked, tools: Tools) -> int:
    """Write the manifests of all candidates, rehearse them and write the advice; 3 if a candidate has no answer."""
    snapshot = load_snapshot(asked.workloads).snapshot
    given = [name for name, is_given in (("arm64", asked.arm64), ("days", asked.days)) if is_given]
    derived = derive(snapshot, given, asked.only)
    asked = replace(asked, output=tools.place(asked.output))
    now = pools_of(snapshot)
    _write_manifests(asked.output, derived.candidates, now)
    if asked.only_list or not derived.candidates:
        found = advice.advise(asked.workloads.name, derived.candidates, {}, dropped=derived.dropped)
        return _finish(asked, derived, found, now)
    commands = list(_commands(asked, derived.candidates))
    codes = tools.rehearse(commands)
    answers: dict[str, list[Answer]] = {}
    failed: dict[str, str] = {}
    for name, _, folder in commands:
        what = name.partition("/")[0]
        if name not in codes:
            continue
        if codes[name] in (Code.GOOD, Code.NO):
            answers.setdefault(what, []).extend(load([folder / what]))
        else:
            failed[what] = _last_error(folder / "rehearsal.log")
    unchanged = answers.pop(UNCHANGED, [])
    found = advice.advise(
        asked.workloads.name,
        derived.candidates,
        answers,
        unchanged=unchanged,
        dropped=derived.dropped,
        failed=failed,
    )
    return _finish(asked, derived, found, now)


def _last_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    said = next((line for line in reversed(lines) if line.startswith("error: ")), "")
    return f"{said.removeprefix('error: ')} (log: {log})".strip()


def _write_manifests(output: Path, candidates: Sequence[Candidate], now: Pools) -> None:
    folder = output / "manifests"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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


def _finish(asked: Asked, derived: Derived, found: advice.Advice, now: Pools) -> int:
    content = json.dumps(found.model_dump(mode="json", by_alias=True), indent=2)
    write(asked.output / advice.FILE, f"{content}\n")
    write(asked.output / advice.WHOLE, advice.markdown(found, derived.candidates, now))
    print(content if asked.form == "json" else visible(advice.shown(found)))
    return Code.UNKNOWN if any(one.verdict == "no answer" for one in found.candidates) else Code.GOOD
