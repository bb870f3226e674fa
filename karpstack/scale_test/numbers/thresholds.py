"""Limits of performance: how slow, how dear, how empty a story may be. Data, apart from the scenarios.

A scenario says what must happen; thresholds say how well. They differ between a rehearsal and a cloud, or between
one team and the next, while the scenario stays.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from karpstack.text import shown
from karpstack.text.yaml_file import YamlError, read

from ..judging.assertion import Assertion
from .durations import NAMES

DEFAULT = "default"
#: Limits of what-ifs, which `whatif` judges; a scenario has none of them.
WHATIF = "whatif"
# A story that is shorter than the time between two looks at the controller's metrics may have none.
_NO_SAMPLE = "not judged: nobody told of the controller's metrics during the story"


class ThresholdsError(ValueError):
    """Thresholds that cannot be applied; the text has one line for each thing to mend."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Percentiles(_Model):
    """The most seconds that a phase may take, at percentiles by nearest rank."""

    p50: float | None = Field(None, gt=0)
    p90: float | None = Field(None, gt=0)
    p99: float | None = Field(None, gt=0)
    max: float | None = Field(None, gt=0)


class Packing(_Model):
    """The least that nodes may be filled on average, 0 to 1."""

    cpu: float | None = Field(None, ge=0, le=1)
    memory: float | None = Field(None, ge=0, le=1)


class Limits(_Model):
    """Limits of one story; what is left out is not judged.

    Attributes:
        phases: Phase of the report's `durations` -> the most seconds that it may take.
        simulated_phases: Judge also phases of which a fake gave the length.
        pending_pod_seconds: The most time that pods may wait, summed up over them.
        cost_ratio: The most that the nodes may cost, as a multiple of the lower bound.
        usd: The most that the nodes may cost.
        peak_usd_per_hour: The most that they may cost at any moment.
        nodes: The most nodes that may be there at any moment.
        packing: The least that nodes may be filled on average.
        controller_restarts: The most often that the controller's process may have been started again.
    """

    phases: dict[str, Percentiles] = {}
    simulated_phases: bool = False
    pending_pod_seconds: float | None = Field(None, gt=0)
    cost_ratio: float | None = Field(None, ge=1)
    usd: float | None = Field(None, gt=0)
    peak_usd_per_hour: float | None = Field(None, gt=0)
    nodes: int | None = Field(None, ge=0)
    packing: Packing = Packing()
    controller_restarts: int | None = Field(None, ge=0)

    @field_validator("phases")
    @classmethod
    def _known_phases(cls, phases: dict[str, Percentiles]) -> dict[str, Percentiles]:
        if unknown := [name for name in phases if name not in NAMES]:
            raise ValueError(f"{unknown[0]!r} is no phase, so it would limit nothing; {_instead(unknown[0], NAMES)}")
        return phases


class Thresholds:
    """Limits by scenario. What a scenario does not limit, `default` limits."""

    def __init__(self, limits: Mapping[str, Limits]) -> None:
        self._limits = limits

    @classmethod
    def parse(cls, data: object, source: str, scenarios: Collection[str]) -> Thresholds:
        """Check thresholds.

        Args:
            data: What the YAML file holds.
            source: Its name, for messages.
            scenarios: Names of all scenarios that there are.

        Raises:
            ThresholdsError: All that is wrong is named at once.
        """
        if not isinstance(data, dict):
            raise ThresholdsError(
                f"{source}: {shown.value(data)} limits nothing; write limits under names of scenarios, or "
                "`default`; or `{}` if nothing is to be limited"
            )
        limits: dict[str, Limits] = {}
        problems: list[str] = []
        for name, section in data.items():
            if name == WHATIF:
                continue
            if name != DEFAULT and name not in scenarios:
                problems.append(
                    f"{source}: {shown.key([name])}: no such scenario, so it would limit nothing; "
                    f"{_instead(str(name), (DEFAULT, *scenarios))}"
                )
            if section is not None and not isinstance(section, dict):
                problems.append(f"{source}: {shown.key([name])}: {shown.value(section)} limits nothing; write limits")
                continue
            try:
                limits[str(name)] = Limits.model_validate(section or {})
            except ValidationError as error:
                problems += explained(source, str(name), error, Limits)
        if problems:
            raise ThresholdsError(shown.message(problems))
        return cls(limits)

    @classmethod
    def load(cls, path: Path, scenarios: Collection[str]) -> Thresholds:
        """Read a file.

        Raises:
            ThresholdsError: It cannot be read or is wrong.
        """
        try:
            data = read(path)
        except YamlError as error:
            raise ThresholdsError(f"{path}: {error}: no threshold could be judged; mend it, or name another") from error
        return cls.parse(data, path.name, scenarios)

    def data(self, scenario: str | None = None) -> dict[str, Any]:
        """As data: all of them by name, or those that apply to one scenario."""
        if scenario is None:
            return {name: limits.model_dump(exclude_defaults=True) for name, limits in self._limits.items()}
        merged: dict[str, Any] = {}
        for name in (DEFAULT, scenario):
            for key, value in (
                self._limits[name].model_dump(exclude_defaults=True) if name in self._limits else {}
            ).items():
                merged[key] = merged.get(key, {}) | value if isinstance(value, dict) else value
        return merged

    def limits(self, scenario: str) -> Limits:
        """What applies to one scenario."""
        return Limits.model_validate(self.data(scenario))

    def judge(self, scenario: str, story: Mapping[str, Any]) -> list[Assertion]:
        """Hold a story of the report against its limits.

        Args:
            scenario: Its name.
            story: The story with its numbers, as the report has it.
        """
        return list(_judge(self.limits(scenario), story))


def _judge(limits: Limits, story: Mapping[str, Any]) -> Iterator[Assertion]:
    rows = {row["phase"]: row for row in story["durations"]}
    for phase, percentiles in limits.phases.items():
        row = rows[phase]
        # What nothing went through was not slow; and what a fake chose says nothing of the setup.
        if row["n"] and (limits.simulated_phases or not row["simulated"]):
            for name, most in percentiles.model_dump(exclude_none=True).items():
                yield _most(f"{phase} {name}", row[name], most, " s", f"durations ({phase})")
    waited, cost = story["pending_pod_seconds"], story["cost"]
    yield from _given("pending_pod_seconds", waited, limits.pending_pod_seconds, " s", "series.pods")
    if limits.cost_ratio is not None and cost["ratio"] is None:
        why = cost["no_bound"] or (f"no price of {', '.join(cost['unknown'])}" if cost["unknown"] else None)
        if why:  # otherwise it had no pods, and the bound is nothing
            yield _assertion("cost_ratio", f"at most {limits.cost_ratio:g}", f"not known: {why}", False, "cost")
    yield from _given("cost_ratio", cost["ratio"], limits.cost_ratio, " times the lower bound", "series.cost")
    yield from _given("usd", cost["usd"], limits.usd, " USD", "series.cost")
    yield from _given(
        "peak_usd_per_hour", cost["peak_usd_per_hour"], limits.peak_usd_per_hour, " USD an hour", "series.cost"
    )
    peak = max((row[1] for row in story["series"]["nodes"]), default=0)
    yield from _given("nodes", peak, limits.nodes, " nodes", "series.nodes")
    restarts = story["controller_restarts"]
    if restarts is None and limits.controller_restarts is not None:
        yield _assertion(
            "controller_restarts", f"at most {limits.controller_restarts:g} restarts", _NO_SAMPLE, True, "controller"
        )
    yield from _given("controller_restarts", restarts, limits.controller_restarts, " restarts", "controller")
    for resource, least in limits.packing.model_dump(exclude_none=True).items():
        seen = story["packing"][resource]
        if seen is not None:
            yield _assertion(
                f"packing {resource}", f"at least {least:g}", f"{seen:g}", seen >= least, "nodeclaims, series.pods"
            )


def _given(name: str, seen: float | None, most: float | None, unit: str, where: str) -> Iterator[Assertion]:
    if seen is not None and most is not None:
        yield _most(name, seen, most, unit, where)


def _most(name: str, seen: float, most: float, unit: str, where: str) -> Assertion:
    return _assertion(name, f"at most {most:g}{unit}", f"{seen:g}{unit}", seen <= most, where)


def _assertion(name: str, expected: str, seen: str, passed: bool, where: str) -> Assertion:
    return Assertion(f"threshold {name}", expected, seen, passed, f"report.json: {where}; the thresholds file")


def _instead(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"use of {', '.join(known)}"


def explained(source: str, name: str, error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Pydantic's errors as key, value, consequence and fix, a line each.

    Args:
        source: The file that they are of.
        name: The section of it.
        error: The errors.
        model: What the section should be.
    """
    return [f"{source}: {_explain(name, details, model)}" for details in error.errors()[: shown.LINES]]


def _explain(name: str, details: ErrorDetails, of: type[BaseModel]) -> str:
    key = shown.key((name, *details["loc"]))
    if details["type"] == "extra_forbidden":
        model = _model_at(of, details["loc"][:-1])
        known = tuple(field.alias or name for name, field in model.model_fields.items())
        return (
            f"{key}: {shown.value(details['input'])}: unknown key, so it would limit nothing; "
            f"{_instead(str(details['loc'][-1]), known)}"
        )
    message = details["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}; no threshold is judged until it is mended"


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    for part in location:
        if field := model.model_fields.get(str(part)):
            kinds = (field.annotation, *get_args(field.annotation))
            model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model
