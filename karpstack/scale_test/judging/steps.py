"""A step under way: which NodeClaims it is about, and whether it has come to its end.

Pure functions of a replayed timeline. What came of the step is judged in `assertions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from ..labels import WORKLOAD_LABEL
from ..recording.timeline import Line
from ..scenarios.expectation import Pending
from ..scenarios.manifests import ExpectedWorkload, expected_workload
from ..scenarios.scenario import Scenario, Step
from .lines import Outcome
from .replay import NodeClaim, Pod, Replay

#: Kinds of FAULT lines of what a story does to its nodes through Kubernetes.
CORDONED, DELETED = "cordon", "delete-node"

# A node class that gets ready at all needs no more than a few reconciliations, from the controller's first word on it.
_NODE_POOL_PATIENCE = timedelta(seconds=30)
# A controller that is starting says nothing, for a minute and more where it waits for its lease.
_NOT_JUDGED = "the controller has not judged it yet: it is starting, or does not run"


@dataclass(frozen=True)
class StepRun:
    """A step of a scenario as it was run.

    Attributes:
        replay: The timeline up to the step's end.
        scenario: What is run.
        index: Which step, from 0.
        requested: When it was asked for, by our clock.
        ended: When it came to its end; now, while it is under way.
        outcome: How it came to its end: at rest, without hope because a NodePool is not ready, or too late.
    """

    replay: Replay
    scenario: Scenario
    index: int
    requested: datetime
    ended: datetime
    outcome: Outcome = "rest"

    @property
    def step(self) -> Step:
        """The step as the scenario describes it."""
        return self.scenario.steps[self.index]

    @property
    def title(self) -> str:
        """What people call it."""
        return title(self.scenario, self.index)

    @property
    def seconds(self) -> float:
        """How long it took, or has taken."""
        return (self.ended - self.requested).total_seconds()

    @property
    def wanted(self) -> dict[str, ExpectedWorkload]:
        """What should be there of each workload at its end."""
        return self.scenario.wanted_after(self.index)

    @property
    def replicas(self) -> int:
        """How many pods there should be at its end, of the workloads that say how many."""
        return self.scenario.replicas_after(self.index)

    @property
    def scales_down(self) -> bool:
        """Whether it takes replicas away: what Karpenter makes of that, it does later."""
        before = self.scenario.wanted_after(self.index - 1)
        return self.step.churn is not None or any(
            (want.pods or 0) < (before[name].pods or 0) for name, want in self.wanted.items() if name in before
        )

    def pods(self) -> list[Pod]:
        """The story's pods that are there."""
        return [pod for pod in self.replay.pods.values() if pod.scenario == self.scenario.name]

    def pods_of(self, workload: str) -> list[Pod]:
        """Those of one workload; also such as have done their work, as a Job's do, and are gone."""
        done = (pod for uid, pod in self.replay.all_pods.items() if pod.succeeded and uid not in self.replay.pods)
        return self._of(workload, (*self.replay.pods.values(), *done))

    def all_pods_of(self, workload: str) -> list[Pod]:
        """Those that one workload ever had."""
        return self._of(workload, self.replay.all_pods.values())

    def _of(self, workload: str, pods: Iterable[Pod]) -> list[Pod]:
        # Timelines of before there were several do not tell of which workload a pod is: it is of the only one.
        ours = {workload, *([""] if len(self.wanted) == 1 else [])}
        return [
            pod for pod in pods if pod.scenario == self.scenario.name and pod.labels.get(WORKLOAD_LABEL, "") in ours
        ]

    def moved(self, workload: str) -> list[Pod]:
        """A workload's pods that had a node, and left it during the step."""
        return [pod for pod in self.all_pods_of(workload) if self.during(pod.leaving) and pod.scheduled is not None]

    def changed(self) -> list[str]:
        """The workloads of which the step itself takes pods away: fewer, or with another template."""
        before = self.scenario.workloads_after(self.index - 1)
        after = self.scenario.workloads_after(self.index)
        return [
            name
            for name, manifest in after.items()
            if name in before
            and (
                manifest["spec"]["template"] != before[name]["spec"]["template"]
                or (expected_workload(manifest).pods or 0) < (expected_workload(before[name]).pods or 0)
            )
        ]

    def waiting(self) -> list[Pod]:
        """Those that have no node."""
        return [pod for pod in self.pods() if pod.node is None]

    def faults(self) -> list[Line]:
        """The playbook's FAULT lines of the story up to the end of this step, oldest first."""
        return [
            line
            for _, line in self.replay.faults
            if line["scenario"] == self.scenario.name and line["step"] <= self.index
        ]

    def claims(self) -> list[NodeClaim]:
        """All NodeClaims of the story so far, oldest first."""
        return self.replay.claims_of(self.scenario)

    def live(self) -> list[NodeClaim]:
        """Those that are there at the end of the step."""
        return [claim for claim in self.claims() if claim.gone is None]

    def before(self) -> list[NodeClaim]:
        """Those that were there when it was asked for."""
        return [claim for claim in self.claims() if claim.present_at(self.requested)]

    def leaving(self) -> list[NodeClaim]:
        """Those that are to be replaced: those that the step interrupts or deletes, or all from before."""
        if not self.step.interrupted and not self.step.delete_node:
            return self.before()
        names = {
            fault["detail"]["nodeClaim"]
            for fault in self.faults()
            if fault["step"] == self.index and fault["kind"] in ("interruption", DELETED)
        }
        return [claim for claim in self.claims() if claim.name in names]

    def new(self) -> list[NodeClaim]:
        """Those that are there at its end and were not before."""
        return [claim for claim in self.live() if not claim.present_at(self.requested)]

    def left(self) -> list[NodeClaim]:
        """Those that are gone, and whose nodes are still there."""
        return [claim for claim in self.claims() if claim.gone and self.replay.has_node(claim)]

    def during(self, time: datetime | None) -> bool:
        """Whether something happened during the step."""
        return time is not None and self.requested <= time <= self.ended


def title(scenario: Scenario, index: int) -> str:
    """What people call a step."""
    return f"step {index + 1} ({scenario.steps[index].title})"


def outcome(run: StepRun) -> Outcome | None:
    """How the step has come to its end, as far as it can be seen at once; None while it is under way."""
    if not unready(run) and _at_rest(run):
        return "rest"
    return "late" if run.seconds > run.step.expect.within else None


def unready(run: StepRun) -> list[str]:
    """Why NodePools that the step needs are not ready; of those that are, nothing."""
    return [why for name in run.scenario.pools if (why := why_not_ready(run.replay, run.scenario, name))]


class Rest:
    """Tells a step's end, of which rest is one as soon as it has lasted for as long as the scenario says.

    That a NodePool is not ready is one as soon as the controller has said why for a while, and gone on saying it.
    """

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._refused: datetime | None = None

    def outcome(self, run: StepRun) -> Outcome | None:
        """How the step has come to its end; None while it is under way. To be asked again and again."""
        refused = any(why != _NOT_JUDGED for why in unready(run))
        self._refused = (self._refused or run.ended) if refused else None
        if self._refused and run.ended - self._refused > _NODE_POOL_PATIENCE:
            return "hopeless"
        ended = outcome(run)
        if ended != "rest":
            self._since = None
            return ended
        self._since = self._since or run.ended
        if (run.ended - self._since).total_seconds() >= run.step.expect.hold:
            return "rest"
        return "late" if run.seconds > run.step.expect.within else None


def _at_rest(run: StepRun) -> bool:
    """All replicas ready, no NodeClaim coming or going and, where the step is about that, nodes gone and pods moved."""
    expect = run.step.expect
    live = run.live()
    if not _pods_at_rest(run):
        return False
    if any("Initialized" not in claim.reached or claim.deleting for claim in (*live, *_new_of_existing_pools(run))):
        return False
    may_be_fewer = run.scales_down or expect.replacement is not None
    if may_be_fewer and expect.nodes is not None and expect.nodes.max is not None and len(live) > expect.nodes.max:
        return False
    if expect.no_nodes and run.left():
        return False
    if any(not run.moved(name) for name in expect.disrupted or () if name not in run.changed()):
        return False
    if not expect.replacement:
        return True
    if any(claim.gone is None for claim in run.leaving()) or not live:
        return False
    # The controller renews its prices once a minute. With no address to ask, there is nothing to wait for.
    waits_for_prices = expect.replacement.cheaper and run.replay.start.get("prices")
    return not waits_for_prices or all(run.replay.price(claim) is not None for claim in (*run.before(), *live))


def _new_of_existing_pools(run: StepRun) -> list[NodeClaim]:
    """The NodeClaims that existing NodePools made during the step.

    Before a NodeClaim names its node, the story's pods may run there already, and it is not known to be the story's.
    """
    pools = run.scenario.existing_node_pools
    claims = run.replay.claims.values()
    return [one for one in claims if one.node_pool in pools and one.gone is None and run.during(one.first_seen)]


def _pods_at_rest(run: StepRun) -> bool:
    """Every replica ready, none that is lost on its way; or waiting, where some should wait, with the reason told."""
    pending = run.step.expect.pending
    states = [state_of(run, name, want) for name, want in run.wanted.items()]
    if not all(state.as_wanted(may_wait=pending is not None) for state in states):
        return False
    return not pending or not run.waiting() or controller_message(run, pending) != ""


class WorkloadState(NamedTuple):
    """A workload's pods at a moment.

    Attributes:
        wanted: How many there should be; as many as there are, of a DaemonSet.
        there: How many there are.
        settled: How many are ready, or have done their work.
        waiting: How many have no node.
        renewed: Whether all have the image that is wanted.
    """

    wanted: int
    there: int
    settled: int
    waiting: int
    renewed: bool

    def as_wanted(self, *, may_wait: bool) -> bool:
        """Whether all are there and settled, or wait where they may."""
        return self.renewed and self.there == self.wanted == self.settled + self.waiting * may_wait


def state_of(run: StepRun, workload: str, want: ExpectedWorkload) -> WorkloadState:
    """A workload's pods at the end of a step."""
    pods = run.pods_of(workload)
    return WorkloadState(
        len(pods) if want.pods is None else want.pods,
        len(pods),
        sum(pod.ready or pod.succeeded for pod in pods),
        sum(pod.node is None for pod in pods),
        all(pod.image in ("", want.image) for pod in pods),
    )


def controller_message(run: StepRun, pending: Pending) -> str:
    """What the controller said in this step of a pod that still waits; empty if not what is expected."""
    uids = {uid for uid, pod in run.replay.pods.items() if pod.scenario == run.scenario.name and pod.node is None}
    return next(
        (
            event.get("message", "")
            for time, event in run.replay.events
            if run.during(time)
            and event.get("reason") == pending.event
            and event["involvedObject"].get("uid") in uids
            and pending.saying in event.get("message", "")
        ),
        "",
    )


def why_not_ready(replay: Replay, scenario: Scenario, node_pool: str) -> str:
    """Why a NodePool that the scenario needs is not ready; empty if it is."""
    if not replay.exists("NodePool", node_pool):
        return "it is not there"
    conditions = replay.conditions("NodePool", node_pool)
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    if node_pool in scenario.node_pools:
        reference = scenario.node_pools[node_pool]["template"]["spec"]["nodeClassRef"]
        kind, name = str(reference.get("kind")), str(reference["name"])
    else:
        kind, name = replay.node_class(node_pool)
    if not replay.exists(kind, name):
        return f"{kind} {name} is not there"
    # The reasons are in the node class; its Ready and the NodePool's conditions only repeat them.
    for owner, reported in ((f"{kind} {name}", replay.conditions(kind, name)), ("NodePool", conditions)):
        wrong = [
            f"{condition['type']} {condition.get('reason', '')}: {condition.get('message', '')}"
            for condition in reported.values()
            if condition["status"] == "False" and condition["type"] != "Ready"
        ]
        if wrong:
            return f"{owner}: {'; '.join(wrong)}"
    return _NOT_JUDGED
