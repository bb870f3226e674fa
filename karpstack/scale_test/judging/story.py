"""Judges a story as a whole: steps that were never reached, what is left behind, and the interruption queue.

Pure functions of a replayed timeline, as in `assertions`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ..recording.timeline import TEMPLATE
from ..scenarios.environments import ENVIRONMENTS
from ..scenarios.scenario import Scenario
from .assertion import Assertion
from .replay import Replay
from .steps import title

# Errors of the interruption queue that a story may meet: one or two come and go, for example when credentials are
# renewed. A queue that is gone or forbidden makes ten within three seconds.
_QUEUE_ERRORS = 2


def not_run(scenario: Scenario, index: int) -> Assertion:
    """The assertion that stands for a step that was never reached."""
    return Assertion(title(scenario, index), "run", "not run", False, "the failure before it")


def not_ended() -> Assertion:
    """The assertion that stands for those about the clean-up, where the recording ends before it does."""
    return Assertion(
        "clean-up",
        "the END of the story in the timeline",
        "the timeline ends before it, so what the story left is not known",
        False,
        "why the run or the recorder ended; run the scenario again",
    )


def clean(replay: Replay, scenario: Scenario) -> Assertion:
    """Whether the story left nothing behind; holds after the clean-up."""
    claims = replay.claims_of(scenario)
    # A NodePool that is there already takes its nodes away when it is time for it, whatever became of the story's pods.
    ours = (claim for claim in claims if claim.node_pool not in scenario.existing_node_pools)
    left = [f"NodeClaim {claim.name}" for claim in ours if claim.gone is None]
    left += [f"Node {claim.node}" for claim in claims if claim.gone and replay.has_node(claim)]
    left += [f"NodePool {name}" for name in scenario.node_pools if replay.exists("NodePool", name)]
    kinds = {environment.node_class_kind for environment in ENVIRONMENTS if environment.kind in scenario.stacks}
    left += [f"{kind} {name}" for kind in kinds for name in scenario.node_classes if replay.exists(kind, name)]
    left += [f"Pod {pod.name}" for pod in replay.pods.values() if pod.scenario == scenario.name]
    return Assertion(
        "clean-up",
        "no NodePool, NodeClaim, Node and pod of the story left",
        ", ".join(left) or "none left",
        not left,
        "kubectl describe nodepools,nodeclaims,nodes; the controller's log",
        about=tuple(named.partition(" ")[2] for named in left),
    )


def resources(replay: Replay, scenario: Scenario) -> Assertion | None:
    """Whether the story left nothing in the cloud; None before anyone looked. Holds after all stories.

    Instances and what belongs to them must be gone with the story. Karpenter keeps a launch template for some
    minutes, so that one which the story brought is an orphan only if it is still there at the end of the run.
    """
    looks = [mark for mark in replay.marks if mark["type"] == "RESOURCES"]
    ours = next((look for look in looks if look["scenario"] == scenario.name), None)
    if ours is None:
        return None
    expected, where = "nothing left that belongs to no NodeClaim", "the controller's log; the cloud's own lists"
    if not ours["source"]:
        return Assertion("clean-up, cloud", expected, f"not checked: {ours['reason']}", True, where)
    earlier = {_named(resource) for look in looks[: looks.index(ours)] for resource in look["resources"]}
    brought = {_named(resource) for resource in ours["resources"] if resource["kind"] == TEMPLATE} - earlier
    after = [look for look in looks if look["moment"] == "after" and look["source"]]
    last = {_named(resource) for look in after for resource in look["orphans"]}
    left = sorted({_named(resource) for resource in ours["orphans"]} | (brought & last))
    seen = ", ".join(left) or f"nothing left, says {ours['source']}"
    if brought and not after:
        seen += f"; not checked: {', '.join(sorted(brought))}, which Karpenter keeps for some minutes"
    return Assertion("clean-up, cloud", expected, seen, not left, where)


def _named(resource: Mapping[str, Any]) -> str:
    return f"{resource['kind']} {resource['id']}"


def interruption_queue(replay: Replay, scenario: Scenario, queue: str) -> Assertion | None:
    """Whether the controller could read its interruption queue during the story; None where there is none.

    After each error in a row the controller waits twice as long as before, up to 1000 s, so that a queue that is gone
    makes many errors at first and none for a whole story later on. But a queue that can be read is being read nearly
    all the time, for a read waits 20 s for messages. So this fails when errors grow, and also when there were errors,
    be they old, and the controller waits instead of reading.
    """
    begun = replay.begun(scenario)
    lines = [line for time, line in replay.queue if begun and time >= begun]
    if not queue:
        return None
    name, expected, where = (
        "interruption queue",
        "read without errors",
        f"the controller's log: Reconciler error, controller: interruption; does the queue {queue} exist, and may the "
        "controller's role read it?",
    )
    if any(step.live for step in scenario.steps):
        seen = "not judged: time jumped, which ends every read with an error"
        return Assertion(name, expected, seen, True, where)
    if len(lines) < 2:
        seen = "not judged: the controller's metrics were seen less than twice during the story"
        return Assertion(name, expected, seen, True, where)
    counts = [line["errors"] for line in lines]
    # A controller that started again counts from 0.
    grown = sum(later - earlier if later >= earlier else later for earlier, later in itertools.pairwise(counts))
    waits = counts[-1] > 0 and sum(line["reading"] for line in lines) * 2 < len(lines)
    seen = f"{grown or 'no'} errors"
    if waits:
        seen += f", {counts[-1]} since the controller started and hardly ever a read under way"
    return Assertion(name, expected, seen, grown <= _QUEUE_ERRORS and not waits, where)
