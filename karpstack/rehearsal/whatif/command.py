"""`karpstack whatif`: what is asked, and which candidates it rehearses."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from karpstack.karpenter import crds
from karpstack.karpenter.releases import number
from karpstack.rehearsal.cluster.startup_taints import permanent_taints
from karpstack.rehearsal.session import speed
from karpstack.rehearsal.session.reporting import rehearsing
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.session.waits import Waits, longest
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.whatif import candidate, candidates, manifests, sources
from karpstack.rehearsal.whatif.candidate import Life, Question
from karpstack.rehearsal.whatif.manifests import Cluster
from karpstack.rehearsal.whatif.sources import Source, SourceError
from karpstack.text import refusals
from karpstack.text.codes import Code
from karpstack.text.packaged import IMPORT_ROOT, is_program
from karpstack.text.projects import find_stack_files, stack_of

#: Pods are kept from the scheduler by an admission policy that changes them, which is there from this version on.
_AS_IS_SINCE: Final = "1.36"
_SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])", re.ASCII)
_UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_LONGEST_LIFE: Final = timedelta(days=21)
_HIGHEST_FACTOR: Final = 10_000
_LONG_WAIT: Final = timedelta(minutes=2)
#: The snapshot of a cluster if no other is named.
WORKLOADS: Final = Path(__file__).with_name("200-pods.json").resolve()


#: Seconds that a side may take to settle.
PATIENCE: Final = 1800


@dataclass(frozen=True)
class WhatifOptions:
    """What is asked; `karpstack whatif --help` says what each option means.

    Attributes:
        stack: Name of the stack; None for the one that makes clusters like the snapshot's.
        base: A git ref, a stack file or manifests, as it is now; None for what the snapshot has.
        project: Folder with the stack files, in the repository whose refs are meant.
        changes: Git refs, stack files or manifests, as it may become: a candidate each.
        new_image: Whether the change is a newer image of nodes instead.
        workloads: Snapshot of the cluster; None for a made-up one.
        nodes: `as-is` or `fresh`.
        output: Folder for the answers.
        wait_factor: What each NodePool's `consolidateAfter` is divided by.
        at: The moment at which budgets with a schedule are taken.
        patience: Seconds that a side may take to settle.
        lived: How long the changed cluster lives afterwards.
        curve: A daily curve of replicas.
        image_every: How often the cloud publishes a newer image meanwhile.
        speed: How much faster than real time the clock may run.
        limits: File of limits.
        prices: File of prices.
        at_once: How many candidates run at the same time.
        keep: Whether the stack stays up.
    """

    stack: str | None
    base: str | None = None
    project: Path | None = None
    changes: Sequence[str] = ()
    new_image: bool = False
    workloads: Path | None = None
    nodes: str | None = None
    output: Path | None = None
    wait_factor: float = 1.0
    at: datetime | None = None
    patience: int = PATIENCE
    lived: timedelta | None = None
    curve: Path | None = None
    image_every: timedelta | None = None
    speed: float | None = None
    limits: Path | None = None
    prices: Path | None = None
    at_once: int | None = None
    keep: bool = False


@dataclass(frozen=True)
class Tools:
    """What starts programs for a what-if.

    Attributes:
        refusal: Returns why another command refuses its arguments.
        refusal_of_settings: Returns why the program refuses a stack file.
        rehearse: Rehearses one candidate.
        rehearse_all: Rehearses several, each by a command of its own.
    """

    refusal: Callable[..., str] = refusals.refusal
    refusal_of_settings: Callable[[Path], str] = refusals.settings_refusal
    rehearse: Callable[..., int] = candidate.rehearse
    rehearse_all: Callable[[Sequence[tuple[str, Sequence[str], Path]], int], candidates.Outcome] = (
        candidates.rehearse_all
    )


@rehearsing(failed=Code.UNKNOWN)
def run(options: WhatifOptions, tools: Tools = Tools()) -> int:
    """Rehearse the candidates; 0 where all are within the limits, 1 where one is not, 3 where one has no answer."""
    speed.apply(options.speed)
    if options.new_image and options.changes:
        raise ValueError("--new-image and --change are two changes, of which one answer would tell; give one of them")
    _check_sides(options)
    project = (options.project or find_stack_files()).resolve()
    if options.stack:
        _check_name(options.stack, project)
    life = _life(options, tools)
    if options.keep and len(options.changes) > 1:
        raise ValueError("--keep with several candidates would leave several stacks up; give it with one")
    workloads = (options.workloads or WORKLOADS).resolve()
    _accept(tools, "snapshot", "check", str(workloads))  # before a stack is made for it
    stack = options.stack or stack_of(workloads)
    results = ownership.place_results(options.output or project / "build" / "whatif" / stack, "--output")
    options = replace(options, stack=stack)
    with _folder_of_sides(results, keep=options.keep) as into:
        return _ask(options, tools, manifests.Cluster(workloads, stack, project, into), results, life)


@contextmanager
def _folder_of_sides(results: Path, *, keep: bool) -> Iterator[Path]:
    """Make a folder for the sides; removed at the end. After an error it stays, without what commands printed."""
    # A new folder each time: what lay in an old one may be somebody else's, and candidates run beside each other.
    into = Path(tempfile.mkdtemp(prefix=".sources-", dir=results))
    try:
        yield into
    except Exception:
        keep = True
        raise
    finally:
        for path in [*into.rglob(manifests.PRINTED)] if keep else [into]:
            shutil.rmtree(path)
        with suppress(OSError):  # it has sides that stay, or is gone
            into.rmdir()


def _ask(options: WhatifOptions, tools: Tools, cluster: Cluster, results: Path, life: Life | None) -> int:
    """Rehearse the candidates and return the exit code."""
    base, sides = _sides(options, cluster)
    for side in (base, *sides):
        side.stack_file.check_versions()
        _check_same(base, side)
    if options.prices:
        _accept(tools, "prices", "check", str(options.prices.resolve()), "--cloud", base.stack_file.cloud)
    for side in dict.fromkeys((base, *sides)):
        _check_settings(side, tools)
    if len(sides) > 1:
        return _several(options, base, sides, results, cluster.project, tools)
    judge = [
        part
        for key in ("limits", "prices")
        if getattr(options, key)
        for part in (f"--{key}", str(getattr(options, key).resolve()))
    ]
    for note in dict.fromkeys((*base.notes, *sides[0].notes)):
        print_message(f"note: {note}.")
    wait = longest(*(side.stack_file.configuration() for side in (base, sides[0])))
    if options.wait_factor == 1 and wait > _LONG_WAIT:
        print_message(
            f"note: each side waits {wait} of the cluster's time, the longest consolidateAfter of its NodePools; "
            "--wait-factor 6 divides every consolidateAfter by six."
        )
    question = Question(
        cluster.stack,
        base,
        cluster.snapshot,
        _nodes(options.nodes, base),
        Waits(options.wait_factor, options.at),
        options.patience,
        tuple(judge),
        life,
        options.prices.resolve() if options.prices else None,
    )
    folder = ownership.place_results(results / sides[0].name, "--output")
    return tools.rehearse(question, sides[0], folder, keep=options.keep)


def _check_sides(options: WhatifOptions) -> None:
    """Refuse sides that do not say what is compared."""
    if options.base is None and not options.changes and not options.new_image:
        raise ValueError("neither --base nor --change is given, so there is nothing to compare; give one of them")
    given = [one for one in (options.base, *options.changes) if one]
    if (options.base is None or any(map(manifests.are_manifests, given))) and options.workloads is None:
        raise ValueError(
            "without --workloads there is no cluster whose NodePools could be changed by manifests; give a snapshot of "
            "it: karpstack snapshot take --output snapshot.json.gz"
        )


def _sides(options: WhatifOptions, cluster: Cluster) -> tuple[Source, list[Source]]:
    """Return the base and the changes."""
    changes = options.changes or [""]

    def written(one: str) -> Source:
        return sources.source(one, cluster.stack, cluster.into, cluster.project)

    before = replace(cluster, into=cluster.into / "base")  # which may have the name of a change
    if options.base is None:
        base = before.base()
    else:
        base = before.before(options.base) if manifests.are_manifests(options.base) else written(options.base)
    if options.new_image:
        return base, [replace(base, name="new-image", new_image=True)]
    if options.base is not None and not base.manifests and any(map(manifests.are_manifests, changes)):
        raise ValueError(
            f"--base {options.base} is a stack file and --change is manifests, which are applied to what the snapshot "
            "has; leave out --base, or give manifests there too"
        )
    sides = [cluster.side(one, base.manifests) if manifests.are_manifests(one) else written(one) for one in changes]
    for side in sides:
        _check_seen(base, side)
    waits = Waits(options.wait_factor, options.at)
    return base, _distinct([_with_hidden(base, side, waits) for side in sides])


def _check_seen(base: Source, side: Source) -> None:
    """Refuse a change of which a snapshot shows nothing, and which may be more: `Changes nothing` may be wrong."""
    if side.unseen and _completed(side) == _completed(base):
        fix = (
            "ask about the rest of the change without it"
            if base.manifests
            else "give the manifests before the change too: --base FOLDER or --base REF:FOLDER"
        )
        raise SourceError(
            f"{side.given}: the manifests differ from the base only in fields that are not rehearsed, so "
            f'"Changes nothing" could be wrong: {side.unseen[0]}; {fix}'
        )


def _with_hidden(base: Source, side: Source, waits: Waits) -> Source:
    """A side that says what of its change is not rehearsed.

    Waits are shortened, time stands still, or nobody lifts a startup taint.
    """
    why = {
        "budgets": "at the time of --at, the budgets before and after the change are the same",
        "consolidateAfter": "divided by --wait-factor, it is the same before and after the change",
    }
    said = tuple(
        f"NodePool {name}: the change of {key} is not rehearsed: {why[key]}"
        for name, key in waits.hidden(_completed(base), _completed(side))
    )
    known = set(permanent_taints(base.stack_file.node_pools()))  # which are told when the base comes up
    said += tuple(one for one in permanent_taints(side.stack_file.node_pools()) if one not in known)
    return replace(side, notes=(*side.notes, *said), unseen=(*side.unseen, *said))


def _check_name(stack: str, project: Path) -> None:
    """Refuse a name that is no stack's but nearly one's: with files, any other would do as well."""
    known = [path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in project.glob("Pulumi.*.yaml")]
    if stack not in known and (near := difflib.get_close_matches(stack, known, 1)):
        raise ValueError(
            f"stack = {stack}: {project} has no Pulumi.{stack}.yaml, so the answer would be filed under a name that is "
            f"no stack's; did you mean {near[0]}?"
        )


def _life(options: WhatifOptions, tools: Tools) -> Life | None:
    """Return how long the changed cluster lives, and with what; None where it does not.

    Raises:
        ValueError: Options that need `--for` are given without it, time cannot run faster, or the file is no curve.
    """
    if not options.lived:
        if given := [
            name for name, value in (("--curve", options.curve), ("--image-every", options.image_every)) if value
        ]:
            raise ValueError(
                f"{' and '.join(given)} without --for would have no effect, for no day goes by; add, for example, "
                "--for 7d"
            )
        return None
    if options.at:
        raise ValueError(
            "--at keeps budgets as they are at one moment, and --for lets them open and close, so one of them would "
            "have no effect; leave out --at"
        )
    if options.curve:
        _accept(tools, "whatif", "curve", str(options.curve.resolve()))
    if (options.speed or speed.ceiling(os.environ)) == 1 or not speed.supported():
        raise ValueError(
            "--for with a clock that keeps real time would take as long as the cluster lives; leave out --speed 1 and "
            f"{speed.VARIABLE}=1 (Linux on amd64 or arm64 is needed)"
        )
    images = options.image_every or (timedelta(days=7) if options.new_image else timedelta())
    return Life(options.lived, options.curve.resolve() if options.curve else None, images)


def _nodes(given: str | None, base: Source) -> str:
    """Whose nodes the base has: what was given, or the snapshot's, where that is possible."""
    version = base.stack_file.kubernetes
    possible = not version or number(version) >= number(_AS_IS_SINCE)
    if given == "as-is" and not possible:
        raise ValueError(
            f"--nodes as-is with Kubernetes {version}: pods are kept on their nodes by an admission "
            f"policy that {_AS_IS_SINCE} has first, so the snapshot's nodes would stay empty; give --nodes fresh"
        )
    return given or ("as-is" if possible else "fresh")


def _several(
    options: WhatifOptions, base: Source, sides: Sequence[Source], results: Path, project: Path, tools: Tools
) -> int:
    at_once = options.at_once or candidates.side_by_side(len(sides))
    print_message(f"{len(sides)} candidates, {at_once} at once.")
    commands = [(side.name, _alone(options, base, side, results, project), results / side.name) for side in sides]
    outcome = tools.rehearse_all(commands, at_once)
    folders = [str(results / side.name) for side in sides]
    subprocess.run([sys.executable, "-m", "karpstack", "whatif", "table", *folders], cwd=IMPORT_ROOT, check=False)
    if outcome.interrupted:
        return Code.INTERRUPTED
    # One that a signal has ended, as the kernel does for lack of memory, has no answer.
    return max(Code.UNKNOWN if code < 0 else code for code in outcome.codes.values())


def _alone(options: WhatifOptions, base: Source, side: Source, results: Path, project: Path) -> list[str]:
    """The arguments with which one candidate is rehearsed by itself."""
    given = ["whatif", str(options.stack), "--output", str(results), "--project", str(project)]
    given += ["--base", base.given] if base.given else []
    given += ["--change", side.given] if side.given else []
    given += ["--workloads", str((options.workloads or WORKLOADS).resolve()), "--patience", str(options.patience)]
    given += ["--nodes", _nodes(options.nodes, base), "--wait-factor", str(options.wait_factor)]
    given += ["--at", options.at.isoformat()] if options.at else []
    for key, span in (("for", options.lived), ("image-every", options.image_every)):
        given += [f"--{key}", f"{round(span.total_seconds() / 60)}m"] if span else []
    given += ["--curve", str(options.curve.resolve())] if options.curve else []
    for key in ("limits", "prices"):
        given += [f"--{key}", str(getattr(options, key).resolve())] if getattr(options, key) else []
    return given


def _accept(tools: Tools, package: str, command: str, file: str, *more: str) -> None:
    """Refuse a file that a command of another package refuses, in its words."""
    if refused := tools.refusal(package, command, file, *more):
        raise ValueError(refused)


def _check_settings(side: Source, tools: Tools) -> None:
    """Refuse settings that the program would refuse, before anything is started for them.

    A git ref has a program of its own, which refuses them when it runs.
    """
    if not is_program(side.program):
        return
    if refused := tools.refusal_of_settings(side.stack_file.path):
        raise SourceError(
            f"{side.name}: the program refuses {side.stack_file.path}, so there would be nothing to compare; mend what "
            f"it says, nothing was started:\n{refused}"
        )


def _completed(side: Source) -> dict[str, Any]:
    """The configuration of a side, its NodePools with the defaults of the API server."""
    cloud, pools = side.stack_file.cloud, side.stack_file.node_pools()
    completed = {name: crds.completed(cloud, "NodePool", spec) for name, spec in pools.items()}
    return {**side.stack_file.configuration(), "karpstack:nodePools": completed}


def _check_same(base: Source, change: Source) -> None:
    """Refuse what would be another account or another region: nothing of the base would be there."""
    for key in ("cloud", "region", "subscription", "account"):
        before, after = getattr(base.stack_file, key), getattr(change.stack_file, key)
        if before != after:
            raise SourceError(
                f"{key} is {before!r} in {base.name} and {after!r} in {change.name}: that is another cluster, and no "
                "change of this one; compare two configurations of one cluster"
            )


def _distinct(sides: Sequence[Source]) -> list[Source]:
    names = [side.name for side in sides]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceError(
            f"two candidates would both be called {', '.join(twice)}, so that one's answer would be written over the "
            "other's; give files of other names"
        )
    return list(sides)


def parse_factor(text: str) -> float:
    """Return by how much waits are shortened.

    Raises:
        ValueError: The text is no such number.
    """
    with suppress(ValueError):
        if 1 <= (factor := float(text)) <= _HIGHEST_FACTOR:
            return factor
    raise ValueError(f"{text} is no factor between 1 and {_HIGHEST_FACTOR}, by which waits are shortened")


def parse_count(text: str) -> int:
    """Return a whole number from 1.

    Raises:
        ValueError: The text is none.
    """
    try:
        number = int(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no whole number") from error
    if number < 1:
        raise ValueError(f"{text} is less than 1")
    return number


def parse_span(text: str) -> timedelta:
    """Return a span of time such as `7d`.

    Raises:
        ValueError: The text is none, or none that can be rehearsed.
    """
    match = _SPAN.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no time such as 7d, 36h or 90m; units are d, h and m")
    span = int(match[1]) * _UNITS[match[2]]
    if not timedelta(minutes=1) <= span <= _LONGEST_LIFE:
        raise ValueError(
            f"{text} is not between 1m and {_LONGEST_LIFE.days}d; certificates and tokens of a rehearsal last no longer"
        )
    return span


def parse_moment(text: str) -> datetime:
    """Return a moment such as `2026-11-23T03:00+01:00`; in UTC where no zone is named.

    Raises:
        ValueError: The text is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time such as 2026-11-23T03:00+01:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
