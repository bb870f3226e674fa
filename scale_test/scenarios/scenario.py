"""Scenario files: their format, and reading them. Which of them suit a stack is the matter of `choosing`.

A scenario is data, and all of it is checked before anything is created. Only whether a NodePool's `spec` is
valid is left to the API server and Karpenter's CRDs, so that an example from Karpenter's documentation can be
pasted in.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from ..text import shown
from ..text.yaml_file import YamlError, read
from .actions import FAULTS, Churn, Fault, Meanwhile, NodePoolPatch, Nodes, OutOfCapacity, Throttle
from .environments import KINDS
from .expectation import Expectation, Replacement
from .formats import (
    MOST_PODS,
    DnsLabel,
    Image,
    LabelKey,
    LabelValue,
    Model,
    Nothing,
    Pods,
    Quantity,
    Sentence,
    merge_patch,
)
from .node_pool import NodePoolSpec

__all__ = ["Expectation", "Replacement", "Scenario", "ScenarioError", "Step", "instead", "load", "parse"]


class ScenarioError(ValueError):
    """Scenarios that cannot be run; the text has one line for each thing to mend."""


class _Wrong(NamedTuple):
    """What is wrong between several keys: the one to look at, its value as shown, and the rest of the message."""

    key: str
    value: str
    why: str


class _ContradictionError(ValueError):
    def __init__(self, problems: list[_Wrong]) -> None:
        super().__init__("; ".join(f"{wrong.key}: {wrong.why}" for wrong in problems))
        self.problems = problems


def _known_kinds(values: list[str]) -> list[str]:
    if unknown := [value for value in values if value not in KINDS]:
        raise ValueError(f"no such environment: {', '.join(unknown)}; use of {', '.join(KINDS)}")
    return values


def node_class_name(spec: Mapping[str, Any]) -> str:
    """Name of the node class that a NodePool's `spec` refers to, empty if it refers to none."""
    inner: Any = spec
    for key in ("template", "spec", "nodeClassRef", "name"):
        inner = inner.get(key) if isinstance(inner, Mapping) else None
    return inner if isinstance(inner, str) else ""


def _wrong_spec(pool: str, spec: Mapping[str, Any]) -> Iterator[_Wrong]:
    """What the scale test could not read of a NodePool's `spec`."""
    try:
        NodePoolSpec.model_validate(spec)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            key = shown.key(["nodePools", pool, *details["loc"]])
            yield _Wrong(key, shown.value(details["input"]), details["msg"].removeprefix("Value error, "))


class TopologySpread(Model):
    """How the pods are spread, in Kubernetes' own words; the label selector is the story's pods.

    Attributes:
        topology_key: Label of nodes whose values are the domains, `kubernetes.io/hostname` for nodes.
        max_skew: By how many pods two domains may differ.
        min_domains: While there are fewer domains, none has more than `max_skew` pods.
        when_unsatisfiable: Whether a pod waits when it would break that.
    """

    topology_key: LabelKey
    max_skew: int = Field(1, gt=0, le=MOST_PODS)
    min_domains: int | None = Field(None, gt=0, le=MOST_PODS)
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"


class Deployment(Model):
    """The pods that ask for room: a Deployment of containers that do nothing.

    Attributes:
        name: Name of the Deployment.
        replicas: How many there are before the first step.
        image: Image of the only container.
        requests: Resource requests of a pod, for example `{cpu: 1, memory: 1.5Gi}`; none if empty.
        node_selector: The pods' node selector.
        topology_spread: How they are spread.
    """

    name: DnsLabel
    replicas: Pods = 0
    image: Image = "registry.k8s.io/pause:3.10"
    requests: dict[LabelKey, Quantity] = Field(default_factory=dict)
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    topology_spread: list[TopologySpread] = Field(default_factory=list)


class Workload(Model):
    """What is deployed: `namespace` is created for the scenario and removed with all that is in it."""

    namespace: DnsLabel
    deployment: Deployment


class Step(Model):
    """One action, and what must come of it.

    Attributes:
        scale: The Deployment is scaled to so many replicas.
        meanwhile: A fault in the middle of scaling.
        patch_node_pool: A NodePool of the scenario is changed.
        interrupt: The cloud takes nodes back: the notice of a spot interruption.
        rebalance: The cloud recommends to move off nodes.
        out_of_capacity: The cloud has no more of some instance types.
        throttle: The cloud answers that there were too many calls.
        clear_faults: Shortage and throttling end. They do so with the story anyway.
        kill_controller: The controller's pods are deleted.
        restart_api_server: The API server is restarted.
        churn: Replicas go up and down.
        observe: Nothing is done; the text says what is waited for.
        expect: What must come of it.
    """

    scale: Pods | None = None
    meanwhile: Meanwhile | None = None
    patch_node_pool: NodePoolPatch | None = None
    interrupt: Nodes | None = None
    rebalance: Nodes | None = None
    out_of_capacity: OutOfCapacity | None = None
    throttle: Throttle | None = None
    clear_faults: Nothing | None = None
    kill_controller: Nothing | None = None
    restart_api_server: Nothing | None = None
    churn: Churn | None = None
    observe: Sentence | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _exactly_one_action(self) -> Self:
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        actions = [name for name in names if name not in ("expect", "meanwhile")]
        given = [names[name] for name in actions if getattr(self, name) is not None]
        if not given:
            known = ", ".join(names[name] for name in actions)
            raise ValueError(f"nothing is done, so nothing could come of it; add one of {known}")
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} in one step, of which neither is first; make a step of each")
        if self.meanwhile and self.scale is None:
            raise ValueError(f"meanwhile goes with scale, and {given[0]} has no middle; make a step of its own of it")
        if self.churn and self.expect.within <= self.churn.seconds + self.expect.hold:
            raise ValueError("within ends before the churn does; let it be longer than `for` and hold together")
        return self

    @property
    def faults(self) -> list[Fault]:
        """What it breaks."""
        faults = [fault for name, fault in FAULTS.items() if getattr(self, name) is not None]
        if self.meanwhile:
            faults.append(FAULTS["kill_controller" if self.meanwhile.kill_controller else "restart_api_server"])
        return faults

    @property
    def replicas(self) -> int | None:
        """The replicas that it leaves; None if it leaves them alone."""
        return self.churn.last if self.churn else self.scale

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        if self.scale is not None:
            return f"scale to {self.scale}{_meanwhile(self.meanwhile)}"
        if self.patch_node_pool:
            return f"change NodePool {self.patch_node_pool.name}"
        if self.interrupt:
            return f"interrupt {_nodes(self.interrupt)}"
        if self.rebalance:
            return f"recommend to rebalance {_nodes(self.rebalance)}"
        if self.out_of_capacity:
            types = self.out_of_capacity.instance_types
            return f"{'what was launched' if types == 'launched' else ', '.join(types)} out of capacity"
        if self.throttle:
            return f"throttle {self.throttle.calls} calls"
        if self.churn:
            return f"churn for {self.churn.seconds:g} s"
        if self.kill_controller:
            return "kill the controller"
        if self.restart_api_server:
            return "restart the API server"
        return f"observe: {self.observe}" if self.observe else "end all faults"


def _meanwhile(meanwhile: Meanwhile | None) -> str:
    if not meanwhile:
        return ""
    return f", {'kill the controller' if meanwhile.kill_controller else 'restart the API server'} meanwhile"


def _nodes(selection: Nodes) -> str:
    return "all nodes" if selection.nodes == "all" else f"{selection.nodes} node{'s' * (selection.nodes > 1)}"


class Part(Model):
    """What is different in one kind of environment.

    Attributes:
        node_pools: Name -> a JSON merge patch of that NodePool's `spec`, or all of it.
        existing_node_pools: Instead of the scenario's.
    """

    node_pools: dict[DnsLabel, dict[str, Any]] = Field(default_factory=dict)
    existing_node_pools: list[DnsLabel] | None = None


class Scenario(Model):
    """What to do, and what must come of it; a story is one run of it.

    Attributes:
        name: The same as the file's name without `.yml`.
        description: What it shows, in a sentence.
        tags: By which it can be picked.
        stacks: Kinds of environment that it suits.
        node_pools: Name -> `spec`, as Karpenter writes it, of each NodePool that the scenario makes.
        existing_node_pools: NodePools that it needs and that are the environment's.
        environments: Kind of environment -> what is different there.
        workload: What is deployed.
        steps: What is done, in this order.
    """

    name: DnsLabel
    description: Sentence
    tags: list[DnsLabel] = Field(default_factory=list)
    stacks: Annotated[list[str], AfterValidator(_known_kinds)] = Field(min_length=1)
    node_pools: dict[DnsLabel, dict[str, Any]] = Field(default_factory=dict)
    existing_node_pools: list[DnsLabel] = Field(default_factory=list)
    environments: dict[str, Part] = Field(default_factory=dict)
    workload: Workload
    steps: list[Step] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problems := [*self._wrong_environments(), *self._wrong_steps()]:
            raise _ContradictionError(problems)
        return self

    def _wrong_environments(self) -> Iterator[_Wrong]:
        for kind in self.environments:
            if kind not in self.stacks:
                why = f"{kind} is not under `stacks`, so it would have no effect; {instead(kind, self.stacks)}"
                yield _Wrong(
                    f"environments.{kind}", shown.value(self.environments[kind].model_dump(by_alias=True)), why
                )
        seen: set[_Wrong] = set()
        for kind in self.stacks:
            pools, existing = self._pools_in(kind)
            part = self.environments.get(kind)
            where = f"environments.{kind}." if part and part.existing_node_pools is not None else ""
            if not pools and not existing:
                why = "without a NodePool here or under nodePools no node could be launched; name one"
                seen.add(_Wrong(f"{where}existingNodePools", "[]", why))
            if both := sorted(pools.keys() & set(existing)):
                why = f"{', '.join(both)} would be the scenario's own under nodePools; name it in one of both"
                seen.add(_Wrong(f"{where}existingNodePools", shown.value(existing), why))
            for name, spec in pools.items():
                if node_class_name(spec):
                    seen.update(_wrong_spec(name, spec))
                else:
                    where = f"environments.{kind}." if self.environments else ""
                    why = (
                        "template.spec.nodeClassRef.name is missing, so no node could be launched; "
                        "name one of the stack's node classes"
                    )
                    seen.add(_Wrong(f"{where}nodePools.{name}", shown.value(spec), why))
        yield from sorted(seen, key=lambda wrong: wrong.key)

    def _wrong_steps(self) -> Iterator[_Wrong]:
        short = False
        for index, step in enumerate(self.steps):
            short = (short or step.out_of_capacity is not None) and step.clear_faults is None
            if step.expect.other_instance_type and not short:
                why = "no step before it puts an instance type out of capacity; add outOfCapacity"
                yield _Wrong(f"steps.{index}.expect.otherInstanceType", "True", why)
            patch = step.patch_node_pool
            if patch and any(patch.name not in self._pools_in(kind)[0] for kind in self.stacks):
                why = (
                    "not a NodePool of the scenario in all its environments, and it may not change others'; "
                    f"{instead(patch.name, self.node_pools)}"
                )
                yield _Wrong(f"steps.{index}.patchNodePool.name", shown.value(patch.name), why)

    def _pools_in(self, kind: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The NodePools that it makes in an environment, and those that it needs there."""
        part = self.environments.get(kind, Part())
        made = merge_patch(self.node_pools, part.node_pools)
        existing = self.existing_node_pools if part.existing_node_pools is None else part.existing_node_pools
        return made, existing

    def in_environment(self, kind: str) -> Scenario:
        """The scenario as it is in one kind of environment, with nothing left to choose."""
        made, existing = self._pools_in(kind)
        return self.model_copy(
            update={"node_pools": made, "existing_node_pools": existing, "environments": {}, "stacks": [kind]}
        )

    @property
    def pools(self) -> list[str]:
        """Names of all NodePools that it needs, made by itself or not."""
        return [*self.node_pools, *self.existing_node_pools]

    @property
    def faults(self) -> list[Fault]:
        """What it breaks."""
        return list(dict.fromkeys(fault for step in self.steps for fault in step.faults))

    def replicas_after(self, index: int) -> int:
        """The replicas that are wanted after a step; -1 for before the first."""
        changed = [step.replicas for step in self.steps[: index + 1] if step.replicas is not None]
        return changed[-1] if changed else self.workload.deployment.replicas


def parse(data: object, source: str) -> Scenario:
    """Check one scenario.

    Args:
        data: What the YAML file holds.
        source: Name of the file, for messages.

    Raises:
        ScenarioError: It is not a scenario; all that is wrong is named at once.
    """
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False)[: shown.LINES + 1]
        lines = [f"{source}: {line}" for details in errors for line in _explain(details)]
        raise ScenarioError(shown.message(lines)) from error


def names(*folders: Path) -> list[str]:
    """Names of the scenarios that folders have, by their files, sorted."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.yml")})


def load(folder: Path) -> list[Scenario]:
    """Read all scenario files (*.yml) of a folder, in the order of their names.

    Raises:
        ScenarioError: A file is not a scenario, or the folder has none; all that is wrong is named at once.
    """
    scenarios: list[Scenario] = []
    problems: list[str] = []
    for path in sorted(folder.glob("*.yml")):
        file = repr(path.name)[1:-1]  # on one line, whatever it is called
        try:
            scenario = parse(read(path), file)
        except YamlError as error:
            problems.append(f"{file}: {error}; the scenario cannot be run until then")
        except ScenarioError as error:
            problems.append(str(error))
        else:
            scenarios.append(scenario)
            if scenario.name != path.stem:
                problems.append(
                    f"{file}: name: {scenario.name!r} differs from the file's, so it could not be found "
                    f"by either; write name: {file.removesuffix('.yml')}"
                )
    if problems:
        raise ScenarioError("\n".join(problems[: shown.LINES]))
    if not scenarios:
        raise ScenarioError(f"{folder}: no scenario (*.yml), so nothing would be tested; name a folder that has some")
    return scenarios


def instead(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that is not known: the end of a message."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"use of {', '.join(names) or '(there are none)'}"


def _explain(details: ErrorDetails) -> Iterator[str]:
    """One of pydantic's errors as key, value, consequence and fix; a contradiction may be several."""
    contradiction = details.get("ctx", {}).get("error")
    if isinstance(contradiction, _ContradictionError):
        for wrong in contradiction.problems:
            yield f"{wrong.key}: {wrong.value}: {wrong.why}; the scenario cannot be run until it is mended"
        return
    key = shown.key(details["loc"]) or "(the whole file)"
    value = shown.value(details["input"])
    if details["type"] == "extra_forbidden":
        allowed = [field.alias or name for name, field in _model_at(details["loc"][:-1]).model_fields.items()]
        yield (f"{key}: {value}: unknown key, so it would have no effect; {instead(str(details['loc'][-1]), allowed)}")
        return
    if details["type"] == "missing":
        yield f"{key}: missing, so the scenario cannot be run; add it"
        return
    message = details["msg"]
    if details["type"] == "value_error":  # ours
        message = message.removeprefix("Value error, ")
    else:
        message = f"{message[0].lower()}{message[1:]}"
    yield f"{key}: {value}: {message}; the scenario cannot be run until it is mended"


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel]:
    """The model that checks the mapping at a location of a scenario file."""
    model: type[BaseModel] = Scenario
    for part in location:
        for name, field in model.model_fields.items():
            if part == (field.alias or name):
                model = next(_models(field.annotation), model)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation is about, such as `list[Step]` or `Count | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
