"""Actions of the scale test: which scenarios to run, and the parts of a story."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubernetes.config import ConfigException

from karpstack.scale_test.acting import faults, ownership
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.acting.resources import Moment, check_resources
from karpstack.scale_test.acting.step import take
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.numbers.thresholds import Thresholds, ThresholdsError
from karpstack.scale_test.recording import snapshot
from karpstack.scale_test.recording.process import RecorderError
from karpstack.scale_test.recording.timeline import TimelineError
from karpstack.scale_test.scenarios.choosing import choose
from karpstack.scale_test.scenarios.environments import StackError, environment_of
from karpstack.scale_test.scenarios.objects import objects as objects_of
from karpstack.scale_test.scenarios.scenario import Scenario, ScenarioError, load, parse
from karpstack.scale_test.scenarios.scenario import names as names_of

from . import FailedError, Result

ERRORS: Final = (
    *(ClusterError, ConfigException, RecorderError, ScenarioError, StackError, ThresholdsError, TimelineError),
    *(faults.FaultError, ownership.TakenError),
)


def scenarios(
    folder: Path, names: list[str], labels: list[str], stack_outputs: Result, rehearsal_url: str, *, check: bool
) -> Result:
    """Read the scenario files and choose those to run on a stack."""
    environment = environment_of(stack_outputs)
    choice = choose(load(folder), stack_outputs, names, labels, rehearsed=bool(rehearsal_url))
    chosen = {one.name: one for one in choice.scenarios}
    return {
        "changed": False,
        "scenarios": [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in chosen.values()],
        "objects": {name: objects_of(one) for name, one in chosen.items()},
        "skipped": [one._asdict() for one in choice.skipped],
        "titles": {name: _titles(one) for name, one in chosen.items()},
        "breaking": [name for name, one in chosen.items() if one.faults],
        "node_class": environment.node_class,
    }


def _titles(scenario: Scenario) -> list[str]:
    count = len(scenario.steps)
    return [
        f"{number} of {count}: {step.title}, at rest within {step.expect.within:g} s"
        for number, step in enumerate(scenario.steps, 1)
    ]


def thresholds(path: Path, folders: list[Path], *, check: bool) -> Result:
    """Read the limits of performance; unknown keys, and names that no scenario has, are refused."""
    return {"changed": False, "thresholds": Thresholds.load(path, names_of(*folders)).data()}


def present(objects: list[Result], *, check: bool) -> Result:
    """Refuse names that others use; return the scenarios that have left objects on the cluster."""
    cluster = Cluster()
    ownership.check_names(cluster, objects)
    return {"changed": False, "leftovers": ownership.leftovers(cluster)}


def make(objects: list[Result]) -> Result:
    """Create the objects of a story without changing existing ones; `made` has each uid by kind and name."""
    made: dict[str, str] = {}
    try:
        made.update(ownership.make(Cluster(), objects))
    except ERRORS as error:
        raise FailedError(str(error), made=made) from error
    return {"changed": True, "made": made}


def remove(objects: list[Result], scenarios: list[str], made: dict[str, str], timeout: int) -> Result:
    """Remove the objects with the labels of scenarios, those in `made` only by uid, and wait until they are gone."""
    done = ownership.remove(Cluster(), objects, scenarios, made, timeout)
    return {"changed": bool(done.removed), "removed": done.removed, "kept": done.kept, "warnings": done.kept}


def step(timeline: Path, scenario: Result, step: int, stack_outputs: Result, rehearsal_url: str) -> Result:
    """Take a step of a story, wait until the cluster is at rest or the step's time is over, and judge the step."""
    target = faults.Target(stack_outputs, rehearsal_url)
    judged = take(Cluster(), target, Live(timeline), parse(scenario, "scenario"), step)
    return {
        "changed": True,
        "assertions": [one.report_fields for one in judged],
        "failures": [one.message for one in judged if not one.passed],
    }


def clear_faults(rehearsal_url: str) -> Result:
    """End the shortage and the throttling of a rehearsal; fails if no call was throttled although it was set."""
    return {"changed": faults.clear(rehearsal_url)}


def evidence(folder: Path, namespace: str, node_class: dict[str, str]) -> Result:
    """Save the objects of a story, one YAML file for each kind; fails at the end if a kind cannot be read."""
    if missing := snapshot.save(folder, snapshot.kinds(namespace, node_class["kind"], node_class["path"]), None):
        raise FailedError(f"not all could be saved: {'; '.join(missing)}", missing=missing)
    return {"changed": True, "missing": []}


def resources(
    timeline: Path, moment: Moment, stack_outputs: Result, rehearsal_url: str, scenario: str = "", timeout: int = 60
) -> Result:
    """Wait until no resource of Karpenter is left in the cloud, and write the remaining ones into the timeline."""
    return {
        "changed": False,
        "orphans": check_resources(timeline, stack_outputs, rehearsal_url, moment, scenario, timeout),
    }
