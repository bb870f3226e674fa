"""The answer of a what-if: everything that its timeline says, put together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from karpstack.karpenter.fact_files import FOLDER
from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.quantities import duration
from karpstack.scale_test.scenarios.environments import environment_of_outputs
from karpstack.snapshot.objects import PINNED_JOBS

from .accuracy import RealNode, compare
from .answer import (
    Answer,
    BlastRadius,
    Cause,
    Clock,
    Inventory,
    Limit,
    Moment,
    RemainingNode,
    Settings,
    Shortened,
    Verdict,
)
from .blast_radius import blast_radius
from .end_state import open_end
from .expiration import with_expirations
from .holds import has_no_planned_room
from .life import life
from .limits import Limits
from .nodes import inventory, series
from .phases import ORDER, DaysTimeline, NotJudgedError, WhatifTimeline, is_leaving, is_present
from .prices import Priced, PriceFile, other_region_note, prices_of, sentences
from .remaining import remaining
from .unscheduled_pods import workload_of
from .week import simulated_offset, week
from .wording import by_chance, plural, sentence


def facts_of(told: WhatifTimeline) -> Facts:
    """What is known of the instance types of the stack's cloud.

    Raises:
        NotJudgedError: The stack's cloud is not known.
    """
    environment = environment_of_outputs(told.stack.outputs)
    if environment is None:
        raise NotJudgedError(
            f"its stack {told.stack.name} is of no cloud that is known, so it is not known what the nodes cost; record "
            "it again with this version"
        )
    return Facts.load(environment.cloud, FOLDER)


def answer(
    told: WhatifTimeline,
    *,
    facts: Facts,
    limits: Limits,
    given: PriceFile | None = None,
    real: Sequence[RealNode] | None = None,
    made_up: bool = False,
    snapshot: str | None = None,
    lived: DaysTimeline | None = None,
) -> Answer:
    """Judge a what-if.

    Args:
        told: Its timeline.
        facts: What is known of instance types.
        limits: What is allowed.
        given: Prices of one's own.
        real: The nodes of the real cluster that the workload is from; None where they are not known.
        made_up: Whether the snapshot is made up, so that there is no such cluster.
        snapshot: By what the snapshot is told from others; None without one.
        lived: The days that the changed cluster lived; None without any.
    """
    market = _market(told, facts, given)
    before = inventory(told, market, told.before)
    accuracy, moments = compare(told, market, real, made_up=made_up), _moments(told)
    after: Inventory | None = None
    radius: BlastRadius | None = None
    judged: list[Limit] = []
    stayed = []
    if not told.refused:
        after = inventory(told, market, told.end)
        stayed = remaining(told, market)
        after = after.model_copy(update={"open_end": open_end(told, market, after, stayed)})
        radius = blast_radius(told, market, stayed)
        judged = list(limits.judge(before, after, radius, stayed, accuracy, moments))
        # Only now: until here, moments are compared with those of the record.
        after, radius, stayed = _asked(after, radius, stayed, simulated_offset(told))
        created = {one.name: one.created for one in real or () if one.name and one.created}
        stayed = with_expirations(told, stayed, created, simulated_offset(told))
    ended = [claim for claim in told.claims if any(is_present(claim, time) for time in told.ends)]
    bought = {claim.offering for claim in ended if claim.offering}
    sold = prices_of(market, bought)
    said = sentence(before, after, radius, told.refused, stayed, sold, told.being_deleted, told.simulated, _jobs(told))
    return Answer(
        stack=told.stack.name,
        base=told.settings.get("base"),
        candidate=told.candidate,
        verdict=_verdict(told, judged),
        sentence=" ".join(filter(None, (said, told.replay.assumed_images))),
        refused=told.refused,
        simulated=told.simulated,
        region=str(told.stack.outputs.get("region", "")),
        moments=moments,
        settings=_settings(told),
        prices=sentences(market, bought),
        prices_region=sold,
        prices_note=other_region_note(market, bought),
        price_file=given.shown() if given else None,
        snapshot=snapshot,
        before=before,
        after=after,
        blast_radius=radius,
        remaining=stayed,
        week=week(told, radius.replaced if radius else [], stayed),
        simulated_period=life(lived, _market(lived, facts, given)) if lived else None,
        accuracy=accuracy,
        limits=judged,
        series=series(told, market, told.at("base-settled"), told.end),
        unseen=told.settings.get("unseen", []),
        unknown=[*_of_the_end(told, radius), *_unknown(lived or told, before, after)],
    )


def _jobs(told: WhatifTimeline) -> bool:
    """Whether pods of Jobs hold nodes in the cluster, and not here."""
    return any(text.startswith(PINNED_JOBS) for text in told.phases.get("loaded", {}).get("leftOut") or ())


def _verdict(told: WhatifTimeline, judged: Sequence[Limit]) -> Verdict:
    if told.refused:
        return "refused"
    return "within limits" if all(one.within_limit for one in judged) else "limits exceeded"


def _asked(
    after: Inventory, radius: BlastRadius, stayed: Sequence[RemainingNode], later: timedelta
) -> tuple[Inventory, BlastRadius, list[RemainingNode]]:
    """Moments that are computed, as they are for the moment that is asked about, and not for the rehearsal's."""
    held = [
        one.model_copy(update={"deleted_at": _moved(one.deleted_at, later), "until": _moved(one.until, later)})
        for one in radius.blocked_evictions
    ]
    nodes = [one.model_copy(update={"causes": [_cause_moved(cause, later) for cause in one.causes]}) for one in stayed]
    if ends := after.open_end:
        empty = [one.model_copy(update={"removable_from": _moved(one.removable_from, later)}) for one in ends.empty]
        causes = [_cause_moved(cause, later) for cause in ends.causes]
        ends = ends.model_copy(update={"empty": empty, "causes": causes})
    return after.model_copy(update={"open_end": ends}), radius.model_copy(update={"blocked_evictions": held}), nodes


def _cause_moved(cause: Cause, later: timedelta) -> Cause:
    return cause.model_copy(update={"until": _moved(cause.until, later)})


def _moved(moment: str | None, later: timedelta) -> str | None:
    return (datetime.fromisoformat(moment) + later).isoformat() if moment and later else moment


def _market(told: WhatifTimeline, facts: Facts, given: PriceFile | None) -> Priced:
    region = str(told.stack.outputs.get("region", ""))
    sold_at = told.settings.get("soldAt")
    overlays = bool(told.settings.get("nodeOverlays"))
    replay, file = told.replay, given or PriceFile()
    return Priced(facts, region, replay.cheapest, told.simulated, replay, file, sold_at, overlays)


def _moments(told: WhatifTimeline) -> list[Moment]:
    return [
        Moment(
            phase=name,
            at=told.phases[name]["received"],
            quiet=told.phases[name].get("quiet"),
            needed=told.phases[name].get("needed"),
            gave_up=told.phases[name].get("gaveUp"),
            left=[str(one) for one in told.phases[name].get("left") or ()],
        )
        for name in ORDER
        if name in told.phases
    ]


def _settings(told: WhatifTimeline) -> Settings:
    pools = told.settings.get("pools") or {}
    return Settings(
        wait_factor=told.settings.get("waitFactor") or 1,
        at=told.settings.get("at"),
        clock=Clock(**told.replay.clock) if told.replay.clock else None,
        shortened=[
            Shortened(pool=pool, setting=setting, asked=_text(values[0]), used=_text(values[1]))
            for pool, settings in sorted(pools.items())
            for setting, values in sorted(settings.items())
            if not _same(values[0], values[1])
        ],
    )


def _same(asked: object, used: object) -> bool:
    """Whether two values of a setting are the same, also as durations: `2m` and `120s`."""
    if asked == used:
        return True
    try:
        return duration(str(asked)) == duration(str(used))
    except ValueError:
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_the_end(told: WhatifTimeline, radius: BlastRadius | None) -> Iterable[str]:
    """That dollars lack nodes which Karpenter makes only when held pods go, and that another run may end otherwise."""
    if told.refused:
        return
    never = {(one.namespace, one.workload) for one in radius.not_schedulable_again} if radius else set()
    pods = sum(
        has_no_planned_room(told.replay, pod, told.end)
        for claim in told.claims
        if is_present(claim, told.end) and is_leaving(claim, told.end)
        for pod in told.on(claim, told.end)
        if not pod.of_daemon_set and pod.present_at(told.end) and workload_of(pod) not in never
    )
    if pods:
        yield (
            f"{plural(pods, 'pod')} on nodes that are to go may need further nodes later: Karpenter plans no room for "
            "pods that something keeps, so these nodes are not in the dollars"
        )
    if by_chance(radius):
        yield (
            "the new nodes are not one for each that went, or some of them went again: that depends on the order in "
            "which pods move, and on zones and types that are equal for Karpenter, so another run may end with other "
            "nodes and dollars: ask again, and compare the runs with `karpstack whatif spread`"
        )


def _unknown(told: WhatifTimeline, before: Inventory, after: Inventory | None) -> Iterable[str]:
    yield from map(str, told.settings.get("notes") or ())  # of manifests
    for name, one in (("before", before), ("after", after)):
        if one and one.unpriced:
            yield f"{name}, the price of {', '.join(one.unpriced)} is not known, so dollars are not known in all"
        if one and one.no_lower_bound:
            yield f"{name}, there is no lower bound: {one.no_lower_bound}"
    for text in told.phases.get("loaded", {}).get("leftOut") or ():
        # It begins with a name, which is of small letters, or is a sentence.
        yield f"of the workload: {text[:1].lower()}{text[1:]}"
    yield from (told.phases.get("loaded", {}).get("nodes") or {}).get("leftOut") or ()
    for (kind, reason), times in Counter((gap["kind"], gap["reason"]) for gap in told.gaps).items():
        gaps = "a gap" if times == 1 else f"{times} gaps"
        yield (
            f"the record has {gaps} ({kind}: {reason}): what was there after it is known, and with it "
            "nodes and dollars; what came and went within it may be missing, such as a pod's way from node to node"
        )
    if told.error:
        yield f"the playbook failed in the meantime: {told.error}"
    if told.simulated:
        yield (
            "boot times are a fake's, so seconds say what follows what, and not how long a cloud takes; what Karpenter "
            "and the scheduler decided is real"
        )
    yield "nodes that are of no NodePool, and pods that are not of the workload, are not in the figures"
