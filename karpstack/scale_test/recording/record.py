"""Records a stack until it is told to stop, for the playbooks and for `karpstack story record`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from karpstack.karpenter import clock
from karpstack.karpenter.instance_types import Facts
from karpstack.text.shown import masked

from ..market.prices import Table
from ..scenarios.environments import Stack, StackError, environment_of
from .recorder import Recorder, resources
from .timeline import Writer


class RecordedError(RuntimeError):
    """Another recorder writes to the timeline."""


@dataclass(frozen=True)
class Sources:
    """What is listened to.

    Attributes:
        kubeconfig: The kubeconfig to connect with; None for the usual one.
        metrics_url: Address of the controller's metrics; None to do without what they tell.
        metrics_token: Bearer token for them, if they ask for one.
        facts: Folder with what is known of instance types, for prices that the controller does not publish; None to
            do without.
    """

    kubeconfig: Path | None = None
    metrics_url: str | None = None
    metrics_token: str = ""
    facts: Path | None = None


def record(
    timeline: Path, stack: Stack, sources: Sources, owner: int | None = None, scenarios: Sequence[str] = ()
) -> str:
    """Record until SIGTERM, or until the process `owner` is gone; why it ended.

    The timeline has the error too, so that those who wait for the recorder see it.

    Args:
        timeline: The file.
        stack: What is recorded.
        sources: What is listened to.
        owner: Process id of the playbook; None to record until SIGTERM.
        scenarios: Names of those that are to run; empty if they are not known.

    Raises:
        RecordedError: Another recorder writes to the timeline.
        StackError: The outputs are not those of an environment that can be scale-tested.
        FactsError: The facts cannot be used.
        ConfigException: The kubeconfig or its login cannot be used.
        BrokenError: The API server does not answer, or does not let us in.
    """
    environment, outputs = environment_of(stack.outputs), stack.outputs
    if sources.facts and not isinstance(outputs.get("region"), str):
        raise StackError(
            "stack outputs: region is missing or no text, so it is not known what the nodes cost; add it to the file"
        )
    table = Table(Facts.load(outputs["cloud"], sources.facts), outputs["region"]) if sources.facts else None
    try:
        writer = Writer(timeline, recording=True)
    except BlockingIOError as error:
        raise RecordedError(
            f"{timeline} is being recorded already, so two runs would be mixed; wait for the other run, "
            "or give this one another folder"
        ) from error
    reason, measurement = "it crashed", clock.Measurement()
    with writer:
        try:
            recorder = Recorder(
                writer,
                resources(environment.node_class["kind"], environment.node_class["path"]),
                sources.kubeconfig,
                sources.metrics_url,
                table,
                metrics_token=sources.metrics_token,
                stack=stack,
                scenarios=scenarios,
            )
            signal.signal(signal.SIGTERM, lambda *_: recorder.stop())
            reason = recorder.run(owner)
        except Exception as error:
            reason = masked(f"{type(error).__name__}: {error}")
            raise
        finally:
            measured = measurement.result()
            writer.write("STOP", reason=reason, **({"clock": measured} if measured else {}))
    return reason
