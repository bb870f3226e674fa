"""Scenario files: their format, reading them, choosing those that suit a stack.

A scenario is data, and all of it is checked before anything is created. Only whether a NodePool's `spec` is
valid is left to the API server and Karpenter's CRDs, so that an example from Karpenter's documentation can be
pasted in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from .environments import KINDS, Environment, environment_of

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class ScenarioError(ValueError):
    """Scenarios that cannot be run; the text has one line for each thing to mend."""


def _dns_label(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise ValueError("Kubernetes would refuse it as a name; use at most 63 of a-z, 0-9 and -, no - at the ends")
    return value


def _known_kinds(values: list[str]) -> list[str]:
    if unknown := [value for value in values if value not in KINDS]:
        raise ValueError(f"no such environment: {', '.join(unknown)}; use of {', '.join(KINDS)}")
    return values


def _has_node_class(spec: dict[str, Any]) -> dict[str, Any]:
    if not node_class_name(spec):
        raise ValueError(
            "template.spec.nodeClassRef.name is missing, so no node could be launched; "
            "name one of the stack's node classes"
        )
    return spec


def node_class_name(spec: Mapping[str, Any]) -> str:
    """Name of the node class that a NodePool's `spec` refers to, empty if it refers to none."""
    found: Any = spec
    for key in ("template", "spec", "nodeClassRef", "name"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


DnsLabel = Annotated[str, AfterValidator(_dns_label)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, coerce_numbers_to_str=True)


class Deployment(_Model):
    """The pods that ask for room: a Deployment of containers that do nothing.

    Attributes:
        name: Name of the Deployment.
        replicas: How many there are before the first step.
        image: Image of the only container.
        requests: Resource requests of a pod, for example `{cpu: 1, memory: 1.5Gi}`; none if empty.
        node_selector: The pods' node selector.
    """

    name: DnsLabel
    replicas: int = Field(0, ge=0)
    image: str = "registry.k8s.io/pause:3.10"
    requests: dict[str, str] = {}
    node_selector: dict[str, str] = {}


class Workload(_Model):
    """What is deployed: `namespace` is created for the scenario and removed with all that is in it."""

    namespace: DnsLabel
    deployment: Deployment


class Replacement(_Model):
    """Every node that was there when the step began must be gone, and each new one must be better.

    Attributes:
        cheaper: The new nodes cost less an hour than the old ones: the saving is positive.
        smaller: The new nodes have fewer CPUs than the old ones.
    """

    cheaper: bool = True
    smaller: bool = False


class Expectation(_Model):
    """What must be true when the cluster has come to rest after a step. What is left out is not checked.

    Attributes:
        within: Seconds from the request until rest.
        nodes: Number of the story's nodes. 0: their NodeClaims and Nodes are gone.
        instance_types: Each node is of one of these.
        capacity_type: Each node is of this.
        node_pool: Each node was launched for this NodePool.
        node_labels: Label -> values of which each node must have one, or `present` for any value.
        taints_gone: Keys of taints that no node carries any more.
        events: Reason -> kinds of the story's objects; at least one object of each kind met such an event of
            Karpenter's during the step.
        replacement: The nodes from before the step were replaced.
        always_a_home: No pod was unschedulable during the step, and no node was disrupted before its
            replacement was initialized.
        ready_gap: Seconds for which, during the step, no replica at all may have been ready.
    """

    within: float = Field(gt=0)
    nodes: int | None = Field(None, ge=0)
    instance_types: list[str] | None = Field(None, min_length=1)
    capacity_type: Literal["on-demand", "spot", "reserved"] | None = None
    node_pool: str | None = None
    node_labels: dict[str, list[str] | Literal["present"]] = {}
    taints_gone: list[str] = []
    events: dict[str, Annotated[list[Literal["Pod", "Node", "NodeClaim"]], Field(min_length=1)]] = {}
    replacement: Replacement | None = None
    always_a_home: bool = False
    ready_gap: float | None = Field(None, ge=0)


class Step(_Model):
    """One change and what must come of it: the Deployment is scaled to `scale` replicas."""

    scale: int = Field(ge=0)
    expect: Expectation


class Scenario(_Model):
    """One story.

    Attributes:
        name: The same as the file's name without `.yml`.
        description: What it shows, in a sentence.
        stacks: Kinds of environment that it suits.
        node_pools: Name -> `spec`, as Karpenter writes it, of each NodePool that the scenario makes.
        existing_node_pools: NodePools that it needs and that are the environment's.
        workload: What is deployed.
        steps: What is done, in this order.
    """

    name: DnsLabel
    description: str
    stacks: Annotated[list[str], AfterValidator(_known_kinds)] = Field(min_length=1)
    node_pools: dict[DnsLabel, Annotated[dict[str, Any], AfterValidator(_has_node_class)]] = {}
    existing_node_pools: list[DnsLabel] = Field([], validate_default=True)
    workload: Workload
    steps: list[Step] = Field(min_length=1)

    @field_validator("existing_node_pools")
    @classmethod
    def _no_pool_twice_and_one_at_least(cls, existing: list[str], info: ValidationInfo) -> list[str]:
        made = info.data.get("node_pools")
        if made is None:
            return existing  # they are wrong themselves
        if not made and not existing:
            raise ValueError("without a NodePool here or under nodePools no node could be launched; name one")
        if both := sorted(made.keys() & set(existing)):
            raise ValueError(f"{', '.join(both)} would be the scenario's own under nodePools; name it in one of both")
        return existing

    @property
    def pools(self) -> list[str]:
        """Names of all NodePools that it needs, made by itself or not."""
        return [*self.node_pools, *self.existing_node_pools]


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
        raise ScenarioError("\n".join(f"{source}: {_explain(details)}" for details in error.errors())) from error


def load(folder: Path) -> list[Scenario]:
    """Read all scenario files (*.yml) of a folder, in the order of their names.

    Raises:
        ScenarioError: A file is not a scenario, or the folder has none; all that is wrong is named at once.
    """
    found: list[Scenario] = []
    problems: list[str] = []
    for path in sorted(folder.glob("*.yml")):
        try:
            scenario = parse(yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
        except yaml.YAMLError as error:
            problems.append(f"{path.name}: not YAML, so it cannot be run; mend it: {error}")
        except ScenarioError as error:
            problems.append(str(error))
        else:
            found.append(scenario)
            if scenario.name != path.stem:
                problems.append(
                    f"{path.name}: name: {scenario.name!r} differs from the file's, so it could not be found "
                    f"by either; write name: {path.stem}"
                )
    if problems:
        raise ScenarioError("\n".join(problems))
    if not found:
        raise ScenarioError(f"{folder}: no scenario (*.yml), so nothing would be tested; name a folder that has some")
    return found


def choose(scenarios: Sequence[Scenario], names: Sequence[str], outputs: Mapping[str, Any]) -> list[Scenario]:
    """The scenarios to run on a stack.

    Args:
        scenarios: All that there are.
        names: Those that are wanted; none for all that suit the stack.
        outputs: The stack's outputs.

    Raises:
        ScenarioError: A name is unknown, a wanted scenario does not suit the stack, or none does.
        StackError: The outputs do not describe an environment.
    """
    environment = environment_of(outputs)
    known = {scenario.name: scenario for scenario in scenarios}
    problems = [
        f"scenarios: {name!r} is not one, so it cannot be run; {_instead(name, known)}"
        for name in names
        if name not in known
    ]
    chosen = (
        [known[name] for name in dict.fromkeys(names) if name in known]
        if names
        else [scenario for scenario in scenarios if environment.kind in scenario.stacks]
    )
    for scenario in chosen:
        problems += _mismatches(scenario, environment, outputs)
    if not chosen and not problems:
        problems.append(
            f"scenarios: none is written for {environment.kind}, so nothing would be tested; "
            f"add {environment.kind} to the `stacks` of one"
        )
    if problems:
        raise ScenarioError("\n".join(problems))
    return chosen


def _mismatches(scenario: Scenario, environment: Environment, outputs: Mapping[str, Any]) -> list[str]:
    if environment.kind not in scenario.stacks:
        return [
            f"{scenario.name}: stacks: {', '.join(scenario.stacks)} does not hold {environment.kind}, so its "
            "expectations mean nothing on this stack; choose another scenario"
        ]
    problems = []
    # Each of the cloud's own has a node class of its name.
    brought = outputs.get("defaultNodePools", ())
    pools, node_classes = ({*outputs[key], *brought} for key in ("nodePools", "nodeClasses"))
    none_brought = (
        "; the stack output defaultNodePools is empty, so AKS brings none of its own here"
        if environment.managed and not brought
        else ""
    )
    for name in scenario.existing_node_pools:
        if name not in pools:
            problems.append(
                f"{scenario.name}: existingNodePools: the stack has no NodePool {name!r}, so no node could be "
                f"launched; {_instead(name, pools)}{none_brought}"
            )
    for name, spec in scenario.node_pools.items():
        if name in pools:
            problems.append(
                f"{scenario.name}: nodePools.{name}: the stack has a NodePool of this name, which the "
                "scenario would overwrite and then remove; give the scenario's another name"
            )
        if (node_class := node_class_name(spec)) not in node_classes:
            problems.append(
                f"{scenario.name}: nodePools.{name}.template.spec.nodeClassRef.name: the stack has no node "
                f"class {node_class!r}, so no node could be launched; "
                f"{_instead(node_class, node_classes)}{none_brought}"
            )
    return problems


def _instead(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"use of {', '.join(names) or '(there are none)'}"


def _explain(details: ErrorDetails) -> str:
    """One of pydantic's errors as key, value, consequence and fix."""
    location = details["loc"]
    if details["type"] == "value_error" and location and (field := Scenario.model_fields.get(str(location[0]))):
        # Where a default fails, pydantic has the attribute's name.
        location = (field.alias or location[0], *location[1:])
    key = ".".join(str(part) for part in location) or "(the whole file)"
    if details["type"] == "extra_forbidden":
        allowed = [field.alias or name for name, field in _model_at(details["loc"][:-1]).model_fields.items()]
        return (
            f"{key}: {details['input']!r}: unknown key, so it would have no effect; "
            f"{_instead(str(details['loc'][-1]), allowed)}"
        )
    if details["type"] == "missing":
        return f"{key}: missing, so the scenario cannot be run; add it"
    message = details["msg"]
    if details["type"] == "value_error":  # ours
        message = message.removeprefix("Value error, ")
    else:
        message = f"{message[0].lower()}{message[1:]}"
    return f"{key}: {details['input']!r}: {message}; the scenario cannot be run until it is mended"


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel]:
    """The model that checks the mapping at a location of a scenario file."""
    model: type[BaseModel] = Scenario
    for part in location:
        for name, field in model.model_fields.items():
            if part == (field.alias or name):
                model = next(
                    (
                        kind
                        for kind in (field.annotation, *get_args(field.annotation))
                        if isinstance(kind, type) and issubclass(kind, BaseModel)
                    ),
                    model,
                )
    return model
