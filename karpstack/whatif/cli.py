"""The command line: `karpstack whatif report|table|spread|curve|schema`."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from karpstack.karpenter.instance_types import FactsError
from karpstack.karpenter.quantities import quantity
from karpstack.scale_test.market.quantities import RESOURCES
from karpstack.scale_test.numbers.thresholds import ThresholdsError
from karpstack.scale_test.recording.timeline import Reader, TimelineError
from karpstack.scale_test.reports.folder import TIMELINE
from karpstack.scale_test.scenarios.curve import CurveError
from karpstack.scale_test.scenarios.curve import load as load_curve
from karpstack.scale_test.scenarios.scenario import names
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.reading import SnapshotError
from karpstack.snapshot.reading import load as load_snapshot
from karpstack.text.files import write as write_file
from karpstack.text.shown import visible

from .answer import Answer
from .candidates import FILE, AnswersError
from .limits import Limits
from .phases import NotJudgedError
from .prices import PricesError
from .truth import Load, RealNode

_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
_LIMITS = _PLAYBOOKS / "thresholds.yml"


_DIGITS = 12  # of a snapshot's SHA-256: enough to tell the snapshots of one team apart
BROKEN, WRONG = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0; 1 if a limit is broken or the change was refused; 2 if something cannot be judged, or what was given cannot
        be used.
    """
    given = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except BrokenPipeError:
        raise  # nobody reads the rest: see `output.run`
    except (
        AnswersError,
        CurveError,
        FactsError,
        NotJudgedError,
        OSError,
        PricesError,
        SnapshotError,
        ThresholdsError,
        TimelineError,
    ) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="karpstack whatif", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=command)
        return added

    reporting = add("report", _report, "judge a what-if by its timeline; writes whatif.json, whatif.md and whatif.html")
    reporting.add_argument("folder", type=Path, help=f"a folder with {TIMELINE} in it")
    reporting.add_argument("--snapshot", type=Path, help="the snapshot that the workload is from, for the truth")
    reporting.add_argument("--limits", type=Path, default=_LIMITS, help="thresholds, with a section `whatif`")
    reporting.add_argument("--prices", type=Path, help="prices and discounts of your own")

    for name, command, text in (
        ("table", _table, "print a table of several candidates, as Markdown"),
        ("spread", _spread, "print how far several answers to the same question are apart, as Markdown"),
    ):
        together = add(name, command, text)
        together.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help=f"a folder with {FILE} in it")

    checking = add("curve", _curve, "check a daily curve of replicas, as `--curve` takes it")
    checking.add_argument(
        "file", type=Path, help="a curve in YAML or CSV, for example examples/curves/office-hours.yml"
    )

    add("schema", _schema, f"print the JSON schema of {FILE}")
    return parser


def _report(given: argparse.Namespace) -> int:
    from . import markdown, page, wording

    made = _made(given)
    write_file(given.folder / FILE, json.dumps(made.model_dump(mode="json", by_alias=True), indent=2) + "\n")
    write_file(given.folder / "whatif.md", markdown.render(made))
    write_file(given.folder / "whatif.html", page.render(made))
    print(visible(f"{wording.title(made)}: {wording.verdict(made)}. {made.sentence}"))
    if made.after and made.prices_elsewhere:
        print(visible(made.prices_elsewhere))
    if made.life:
        print(visible(wording.life(made.life)))
    print(visible(made.truth.sentence))
    for limit in made.limits:
        if not limit.kept:
            print(visible(f"{limit.name}: {limit.limit}; seen {limit.seen}"))
    print(f"The answer: {given.folder / 'whatif.html'}")
    return 0 if made.verdict == "within limits" else BROKEN


def _made(given: argparse.Namespace) -> Answer:
    from .judge import answer, facts_of
    from .phases import read, read_life
    from .prices import load

    timeline = given.folder / TIMELINE
    if not timeline.is_file():
        raise NotJudgedError(f"{timeline}: is not there, so there is nothing to judge; name the folder of a what-if")
    limits = Limits.load(given.limits, names(_PLAYBOOKS / "scenarios"))
    try:
        told = read(Reader(timeline).new_lines())
        facts = facts_of(told)
        lived = read_life(told, Reader(timeline).new_lines())
    except NotJudgedError as error:
        raise NotJudgedError(f"{timeline}: {error}") from error
    prices = load(given.prices, facts) if given.prices else None
    if given.snapshot is None:
        return answer(told, facts=facts, limits=limits, given=prices, lived=lived)
    snapshot = load_snapshot(given.snapshot).snapshot
    return answer(
        told,
        facts=facts,
        limits=limits,
        given=prices,
        real=_nodes(snapshot),
        made_up=snapshot.source == "made",
        snapshot=hashlib.sha256(given.snapshot.read_bytes()).hexdigest()[:_DIGITS],
        lived=lived,
    )


def _nodes(snapshot: Snapshot) -> list[RealNode]:
    claims = {claim.node: claim for claim in snapshot.node_claims if claim.node}
    loads: dict[str, Load] = {}
    for workload in snapshot.workloads:
        cpu, memory = (quantity(workload.pod.requests.get(resource, 0)) for resource in RESOURCES)
        daemon = workload.controller.kind == "DaemonSet"
        for node, pods in workload.nodes.items():
            load = loads.get(node, Load())
            loads[node] = load.with_pods(pods, cpu * pods, memory * pods, of_daemon_set=daemon)
    return [
        RealNode(
            instance_type=node.instance_type or "not known",
            zone=node.zone,
            capacity_type=node.capacity_type,
            pool=node.node_pool or (claims[node.name].node_pool if node.name in claims else None),
            usd_per_hour=node.price_per_hour,
            load=loads.get(node.name, Load()),
            name=node.name,
            created=claims[node.name].created if node.name in claims else None,
        )
        for node in snapshot.nodes
    ]


def _table(given: argparse.Namespace) -> int:
    from .candidates import candidates, load

    answers, missing = list[Answer](), list[str]()
    for folder in given.folders:
        try:
            answers += load([folder])
        except AnswersError as error:
            print(f"error: {visible(error)}", file=sys.stderr)
            missing.append(folder.resolve().name)
    print(candidates(answers, missing), end="")
    return WRONG if missing else 0


def _spread(given: argparse.Namespace) -> int:
    from .candidates import load, spread

    print(spread(load(given.folders)), end="")
    return 0


def _curve(given: argparse.Namespace) -> int:
    print(f"{visible(given.file)}: a curve for {', '.join(map(visible, load_curve(given.file).factors))}")
    return 0


def _schema(_: argparse.Namespace) -> int:
    print(json.dumps(Answer.model_json_schema(), indent=2))
    return 0
