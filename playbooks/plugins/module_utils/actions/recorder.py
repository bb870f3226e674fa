"""The action that records a cluster, or stops the recorder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from kubernetes.config import ConfigException

from karpstack.karpenter.fact_files import FOLDER
from karpstack.karpenter.instance_types import FactsError
from karpstack.scale_test.recording.following import BrokenError
from karpstack.scale_test.recording.process import RecorderError, stop
from karpstack.scale_test.recording.record import RecordedError, Sources
from karpstack.scale_test.recording.record import record as record_until_stopped
from karpstack.scale_test.scenarios.environments import Stack, StackError

from . import Result

ERRORS: Final = (BrokenError, ConfigException, FactsError, RecordedError, RecorderError, StackError)
# The recorder may wait more than a minute for prices of a controller that has just started.
_STOP_SECONDS: Final = 100.0


def record(
    timeline: Path,
    state: Literal["started", "stopped"],
    metrics_url: str,
    stack: str = "",
    stack_outputs: Result | None = None,
    kubeconfig: Path | None = None,
    metrics_token: str = "",
    facts: Path = FOLDER,
    owner: int | None = None,
    scenarios: Sequence[str] = (),
) -> Result:
    """Record a stack until the recorder is stopped, or stop the recorder of a timeline."""
    if state == "stopped":
        return {"changed": stop(timeline, _STOP_SECONDS)}
    sources = Sources(kubeconfig, metrics_url or None, metrics_token, facts)
    return {
        "changed": True,
        "reason": record_until_stopped(timeline, Stack(stack, stack_outputs or {}), sources, owner, scenarios),
    }
