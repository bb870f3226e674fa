"""What `karpstack whatif report|table|spread|curve|schema` do: each function returns the exit code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from karpstack.karpenter.fact_files import FOLDER
from karpstack.karpenter.instance_types import Facts, FactsError
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
from karpstack.text import answer_files
from karpstack.text.codes import Code, reported, say_error
from karpstack.text.files import OutputError
from karpstack.text.files import write as write_file
from karpstack.text.packaged import SCENARIOS, THRESHOLDS
from karpstack.text.shown import visible

from .accuracy import Load, RealNode
from .answer import Answer
from .candidates import FILE, AnswersError
from .limits import Limits
from .phases import NotJudgedError
from .prices import PricesError

_DIGITS = 12  # of a snapshot's SHA-256: enough to tell the snapshots of one team apart
_CODES: Final[Mapping[type[BaseException], Code]] = {
    NotJudgedError: Code.UNKNOWN,
    **dict.fromkeys(
        (
            AnswersError,
            CurveError,
            FactsError,
            OSError,
            OutputError,
            PricesError,
            SnapshotError,
            ThresholdsError,
            TimelineError,
        ),
        Code.WRONG,
    ),
}


@reported(_CODES)
def report(
    folder: Path,
    *,
    snapshot: Path | None = None,
    limits: Path | None = None,
    prices: Path | None = None,
    form: Literal["text", "json"] = "text",
) -> int:
    """Judge a what-if by its timeline, and write whatif.json, whatif.md and whatif.html."""
    from . import markdown, page, wording
    from .conclusion import conclusion

    made = _made(folder, snapshot, limits or THRESHOLDS, prices)
    content = json.dumps(made.model_dump(mode="json", by_alias=True), indent=2)
    answer_files.check(folder)
    write_file(folder / FILE, f"{content}\n")
    write_file(folder / "whatif.md", markdown.render(made))
    write_file(folder / "whatif.html", page.render(made))
    verdict = Code.GOOD if made.verdict == "within limits" else Code.NO
    if form == "json":
        print(content)
        return verdict
    print(visible(conclusion(made)))
    print(visible(f"{wording.title(made)}: {wording.verdict(made)}. {made.sentence}"))
    if made.after and made.prices_note:
        print(visible(made.prices_note))
    if made.simulated_period:
        print(visible(wording.life(made.simulated_period, made.before)))
    print(visible(made.accuracy.sentence))
    for limit in made.limits:
        if not limit.within_limit:
            print(visible(f"{limit.name}: {limit.limit}; measured: {limit.measured}"))
    print(visible(f"The answer: {folder / 'whatif.html'}"))
    return verdict


def _made(folder: Path, snapshot_file: Path | None, limits_file: Path, prices_file: Path | None) -> Answer:
    from .judge import answer, facts_of
    from .phases import read, read_life
    from .prices import load

    timeline = folder / TIMELINE
    if not os.path.lexists(timeline):
        raise TimelineError(f"{timeline}: is not there, so there is nothing to judge; name the folder of a what-if")
    limits = Limits.load(limits_file, names(SCENARIOS))
    try:
        told = read(Reader(timeline).new_lines())
        facts = facts_of(told)
        lived = read_life(told, Reader(timeline).new_lines())
    except NotJudgedError as error:
        raise NotJudgedError(f"{timeline}: {error}") from error
    prices = load(prices_file, facts) if prices_file else None
    if snapshot_file is None:
        return answer(told, facts=facts, limits=limits, given=prices, lived=lived)
    snapshot = load_snapshot(snapshot_file).snapshot
    return answer(
        told,
        facts=facts,
        limits=limits,
        given=prices,
        real=_nodes(snapshot),
        made_up=snapshot.source == "made",
        snapshot=hashlib.sha256(snapshot_file.read_bytes()).hexdigest()[:_DIGITS],
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


@reported(_CODES)
def table(folders: Sequence[Path]) -> int:
    """Print a table of several candidates, as Markdown."""
    from .candidates import candidates, load

    answers, missing = list[Answer](), list[str]()
    for folder in folders:
        try:
            answers += load([folder])
        except AnswersError as error:
            say_error(error)
            missing.append(folder.resolve().name)
    print(candidates(answers, missing), end="")
    return Code.UNKNOWN if missing else Code.GOOD


@reported(_CODES)
def spread(folders: Sequence[Path]) -> int:
    """Print how far several answers to the same question are apart, as Markdown."""
    from .candidates import load
    from .candidates import spread as spread_of

    print(spread_of(load(folders)), end="")
    return Code.GOOD


@reported(_CODES)
def curve(file: Path) -> int:
    """Check a daily curve of replicas."""
    print(f"{visible(file)}: a curve for {', '.join(map(visible, load_curve(file).factors))}")
    return Code.GOOD


@reported(_CODES)
def check_prices(file: Path, cloud: str | None = None) -> int:
    """Check a file of prices; names of instance types by the facts of a cloud, where one is named."""
    from .prices import load

    given = load(file, None)
    if known := cloud or given.cloud:
        given = load(file, Facts.load(known, FOLDER))
    of = f" of {given.region}" if given.region else ""
    print(f"{visible(file)}: prices{visible(of)}: {len(given.on_demand)} on demand, {len(given.spot)} on spot")
    return Code.GOOD


def schema() -> int:
    """Print the JSON schema of an answer."""
    print(json.dumps(Answer.model_json_schema(), indent=2))
    return Code.GOOD
