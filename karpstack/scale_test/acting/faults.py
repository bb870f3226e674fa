"""Breaks something on purpose, in the way that the scenario's step says and the environment allows.

What only a cloud can do is asked of the rehearsal's control endpoint. On a real AWS account, notices of
interruption are sent into the stack's own queue, as EventBridge would send them. The controller is killed
through Kubernetes, anywhere.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from kubernetes import client

from karpstack.karpenter import clock

from ..connecting import TIMEOUTS, connect
from ..judging.live import Live
from ..judging.replay import NodeClaim, Replay
from ..judging.steps import StepRun
from ..recording.process import RecorderError
from ..recording.timeline import Writer, now, parse_time
from ..scenarios.actions import Nodes, OutOfCapacity
from ..scenarios.scenario import Scenario
from .aws import ClientOf, client_of
from .rehearsal_control import RehearsalControl, RehearsalError

_DETAIL_TYPES = {
    "interruption": "EC2 Spot Instance Interruption Warning",
    "rebalance": "EC2 Instance Rebalance Recommendation",
}
_CONTROLLER = "app.kubernetes.io/name=karpenter"


class FaultError(RuntimeError):
    """A fault could not be injected, so that the story would say nothing."""


@dataclass(frozen=True)
class Target:
    """Where to break something.

    Attributes:
        outputs: The stack's outputs.
        rehearsal_url: Address of the rehearsal's control endpoint; empty for a real cloud.
        core: Kubernetes' API (default: that of the usual kubeconfig).
    """

    outputs: Mapping[str, Any]
    rehearsal_url: str
    core: client.CoreV1Api | None = None

    @property
    def control(self) -> RehearsalControl:
        """The rehearsal's control endpoint.

        Raises:
            FaultError: There is none.
        """
        if not self.rehearsal_url:
            raise FaultError(
                "KARPSTACK_REHEARSAL_URL is not set, so there is no cloud that can be told to fail; "
                "run this story in a rehearsal"
            )
        return RehearsalControl(self.rehearsal_url)


def inflict(target: Target, live: Live, scenario: Scenario, index: int, requested: datetime) -> list[dict[str, Any]]:
    """Inject the faults of a step, each marked in the timeline; what was done.

    Raises:
        FaultError: It was not possible.
        RecorderError: The recorder has ended before the middle of the step.
    """
    step = scenario.steps[index]
    if step.meanwhile:
        _wait_for_moment(live, scenario, index, requested)
    live.read()
    done = []
    with Writer(live.path) as writer:
        try:
            for kind, detail in _faults(target, StepRun(live.replay, scenario, index, requested, parse_time(now()))):
                writer.write("FAULT", scenario=scenario.name, step=index, kind=kind, detail=detail)
                done.append({"kind": kind, "detail": detail})
        except RehearsalError as error:
            raise FaultError(f"{step.title}: {error}") from error
    return done


def clear(rehearsal_url: str) -> bool:
    """End the shortage and the throttling of a rehearsal; whether there was any.

    Raises:
        FaultError: The rehearsal refused, or no call met the throttling, so that the story has shown nothing.
    """
    control = RehearsalControl(rehearsal_url)
    try:
        ended = control.clear()
    except RehearsalError as error:
        raise FaultError(f"the faults cannot be ended: {error}") from error
    # A shortage may be met by no call: Karpenter remembers an earlier one for minutes.
    if missed := [fault for fault in ended if fault["kind"] == "throttle" and not fault["hits"]]:
        raise FaultError(
            f"throttling of {missed[0]['calls']} calls was set and none was made, so that nothing was throttled and "
            "the story has shown nothing; let a later step launch nodes"
        )
    return bool(ended)


def _faults(target: Target, run: StepRun) -> Iterator[tuple[str, dict[str, Any]]]:
    """Does it, and gives kind and detail of each; those of notices and of capacity need to know the nodes."""
    step = run.step
    meanwhile = step.meanwhile
    if step.interrupted:
        yield from _notices(target, run, "interruption", step.interrupted)
    elif step.rebalance:
        yield from _notices(target, run, "rebalance", step.rebalance)
    elif step.out_of_capacity:
        yield "out-of-capacity", _shortage(target, run, step.out_of_capacity)
    elif step.throttle:
        target.control.throttle(step.throttle.calls)
        yield "throttle", {"calls": step.throttle.calls}
    elif step.publish_image:
        yield "publish-image", {"published": target.control.publish_image()}
    elif step.clear_faults:
        clear(target.control.url)
    elif step.kill_controller or (meanwhile and meanwhile.kill_controller):
        yield "kill-controller", {"pods": kill_controller(str(target.outputs["karpenterNamespace"]), target.core)}
    elif step.restart_api_server or (meanwhile and meanwhile.restart_api_server):
        control = target.control
        # Marked before, so that the timeline shows it where it begins; it takes seconds.
        yield "restart-api-server", {}
        control.restart("kube-apiserver")
    else:
        raise FaultError(f"{step.title}: nobody here knows how to bring it about, so that the story would say nothing")


def _wait_for_moment(live: Live, scenario: Scenario, index: int, requested: datetime) -> None:
    """Return in the middle of a step, as soon as what the scenario waits for is there.

    Raises:
        FaultError: The step ought to have come to its end.
        RecorderError: The recorder has ended meanwhile.
    """
    meanwhile = scenario.steps[index].meanwhile
    if meanwhile is None:
        return
    for recorded in live.poll():
        run = StepRun(live.replay, scenario, index, requested, parse_time(now()))
        if meanwhile.after is not None:
            there = run.seconds >= meanwhile.after
        elif meanwhile.once == "pending":
            there = bool(run.waiting())
        else:
            there = any("Launched" in claim.reached and "Registered" not in claim.reached for claim in run.live())
        if there:
            return
        if not recorded:
            raise RecorderError("the recorder has ended, so the middle of the step cannot be found; run it again")
        if run.seconds > run.step.expect.within:
            raise FaultError(
                f"{run.step.title}: no pod was pending and no node was launched within "
                f"{run.step.expect.within:g} s, so that the step had no middle; let it bring nodes, or say `after`"
            )


def _notices(target: Target, run: StepRun, kind: str, chosen: Nodes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Send a notice about each of the chosen nodes."""
    own = cache(client_of)  # one login for all of them
    for claim in choose(run, chosen):
        instance = _instance(run.replay, claim)
        if target.rehearsal_url:
            target.control.interruption(kind, instance)
        else:
            region, queue = (str(target.outputs[key]) for key in ("region", "interruptionQueue"))
            send_notice(region, queue, kind, instance, own)
        yield kind, {"nodeClaim": claim.name, "instance": instance}


def choose(run: StepRun, chosen: Nodes) -> list[NodeClaim]:
    """The NodeClaims of some of the story's nodes, those that are initialized and stay.

    Raises:
        FaultError: There are fewer.
    """
    claims = [
        claim
        for claim in run.live()
        if "Initialized" in claim.reached and not claim.deleting and chosen.suits(claim.labels)
    ]
    wanted = len(claims) if chosen.nodes == "all" else chosen.nodes
    if not claims or len(claims) < wanted:
        raise FaultError(
            f"{run.step.title}: the story has {len(claims)} such nodes that are initialized, so that nothing of the "
            "kind could be done; let an earlier step bring them"
        )
    return claims[:wanted]


def _instance(replay: Replay, claim: NodeClaim) -> str:
    """Id of an instance: the last part of the provider ID, aws:///us-east-1a/i-0123."""
    provider_id = str(replay.nodes.get(claim.node or "", {}).get("providerID", ""))
    if not provider_id:
        raise FaultError(f"NodeClaim {claim.name} has no provider ID, so its instance is not known; run it again")
    return provider_id.rpartition("/")[2]


def _shortage(target: Target, run: StepRun, wanted: OutOfCapacity) -> dict[str, Any]:
    types = wanted.instance_types
    if types == "launched":
        types = sorted({claim.offering.instance_type for claim in run.claims() if claim.offering})
    if not types:
        raise FaultError(
            f"{run.step.title}: the story has launched nothing yet, so that nothing can run short; "
            "let an earlier step launch a node, or name instanceTypes"
        )
    detail: dict[str, Any] = {}
    if types != "all":
        detail["instanceTypes"] = types
    if wanted.capacity_types:
        detail["capacityTypes"] = wanted.capacity_types
    if wanted.zones:
        detail["zones"] = wanted.zones
    target.control.out_of_capacity(detail)
    return detail


def notice(kind: str, account: str, region: str, instance: str) -> dict[str, Any]:
    """A notice about an instance, in EventBridge's shape; `kind` is interruption or rebalance."""
    detail = {"instance-id": instance}
    if kind == "interruption":
        detail["instance-action"] = "terminate"
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": _DETAIL_TYPES[kind],
        "source": "aws.ec2",
        "account": account,
        "time": clock.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": [f"arn:aws:ec2:{region}:{account}:instance/{instance}"],
        "detail": detail,
    }


def send_notice(region: str, queue: str, kind: str, instance: str, client_of: ClientOf = client_of) -> None:
    """Send a notice about an instance into a queue of SQS.

    Raises:
        FaultError: AWS refused.
    """
    from karpstack.text.aws_login import FAILURES

    try:
        sqs = client_of("sqs", region)
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        account = url.split("/")[-2]
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(notice(kind, account, region, instance)))
    except FAILURES as error:
        raise FaultError(
            f"the queue {queue} did not take a notice about {instance}: {error!r:.500}; the login of the scale test "
            "needs sqs:GetQueueUrl and sqs:SendMessage on it"
        ) from error


def kill_controller(namespace: str, core: client.CoreV1Api | None = None) -> list[str]:
    """Delete the controller's pods without grace, all at once; their names.

    Args:
        namespace: Where they run.
        core: Kubernetes' API (default: that of the usual kubeconfig).

    Raises:
        FaultError: There are none, or Kubernetes refused.
    """
    core = core or client.CoreV1Api(connect())
    try:
        pods = core.list_namespaced_pod(namespace, label_selector=_CONTROLLER, _request_timeout=TIMEOUTS).items
        names = [str(pod.metadata.name) for pod in pods if pod.metadata]
        if names:
            core.delete_collection_namespaced_pod(
                namespace, label_selector=_CONTROLLER, grace_period_seconds=0, _request_timeout=TIMEOUTS
            )
    except client.ApiException as error:
        raise FaultError(
            f"the controller's pods in {namespace} cannot be deleted: {error.reason}; whoever runs the scale test "
            "needs list and deletecollection of pods there"
        ) from error
    if not names:
        raise FaultError(f"no pod with {_CONTROLLER} in {namespace}, so there is no controller to kill")
    return names
