"""Which scenarios to run on a stack: by name, by label, or all that suit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from .contradictions import node_class_name
from .environments import Environment, environment_of, fault_refusal
from .scenario import Scenario, ScenarioError, instead


class Skipped(NamedTuple):
    """A scenario that is written for the kind of environment and cannot be run on this one."""

    name: str
    reason: str


class Choice(NamedTuple):
    """What to run, each as it is in the environment; and what not, and why."""

    scenarios: list[Scenario]
    skipped: list[Skipped]


def choose(
    scenarios: Sequence[Scenario],
    outputs: Mapping[str, Any],
    names: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    rehearsed: bool = False,
) -> Choice:
    """The scenarios to run on a stack: in the order of `names`, else in that of all that there are, but for those that
    take capacity, which come last so that no other one finds Karpenter without it.

    Args:
        scenarios: All that there are.
        outputs: The stack's outputs.
        names: Those that are wanted.
        labels: Or: those with one of these labels that suit the stack. With neither, all that
            suit it.
        rehearsed: Whether the cloud is a rehearsal's, which can be told to fail.

    Raises:
        ScenarioError: A name or a label is unknown, a wanted scenario does not suit the stack, or none does.
        StackError: The outputs do not describe an environment.
    """
    environment = environment_of(outputs)
    known = {scenario.name: scenario for scenario in scenarios}
    problems = _unknown(scenarios, names, labels)
    skipped: list[Skipped] = []
    if names:
        candidates = [known[name] for name in dict.fromkeys(names) if name in known]
    else:
        candidates = [
            scenario
            for scenario in scenarios
            if environment.kind in scenario.stacks and (not labels or set(labels) & set(scenario.tags))
        ]
    chosen = []
    for scenario in candidates:
        if environment.kind not in scenario.stacks:
            problems.append(
                f"{scenario.name}: stacks: {', '.join(scenario.stacks)} does not hold {environment.kind}, so its "
                "expectations mean nothing on this stack; choose another scenario"
            )
            continue
        here = scenario.in_environment(environment.kind)
        whys = (fault_refusal(fault, environment, outputs, rehearsed=rehearsed) for fault in scenario.faults)
        impossible = [*(why for why in whys if why), *_elsewhere(scenario, outputs), *_gates(scenario, outputs)]
        if not names and not labels:
            impossible += _days(scenario)
        mismatches = _mismatches(here, environment, outputs)
        if not impossible and not mismatches:
            chosen.append(here)
        elif names:
            problems += [f"{scenario.name}: {reason}; choose another scenario" for reason in impossible] or mismatches
        else:
            own = [mismatch.removeprefix(f"{scenario.name}: ") for mismatch in mismatches]
            skipped.append(Skipped(scenario.name, "; ".join(impossible or own)))
    if not chosen and not problems:
        problems.append(_none(environment, labels, skipped))
    if problems:
        raise ScenarioError("\n".join(problems))
    return Choice(chosen if names else sorted(chosen, key=_leaves_short), skipped)


def _leaves_short(scenario: Scenario) -> int:
    """How much Karpenter takes for unavailable after it, for minutes or more: nothing, an offering or two, many."""
    if any(step.out_of_capacity for step in scenario.steps):
        return 2
    # On AWS: markUnavailableOfferings of pkg/controllers/interruption, 1.15.
    return int(any(step.interrupted for step in scenario.steps))


def check_names(scenarios: Sequence[Scenario], names: Sequence[str] = (), labels: Sequence[str] = ()) -> None:
    """See that names and labels are those of scenarios, before there is a stack; `choose` does it too.

    Raises:
        ScenarioError: One is not; all that are not are named at once.
    """
    if problems := _unknown(scenarios, names, labels):
        raise ScenarioError("\n".join(problems))


def _unknown(scenarios: Sequence[Scenario], names: Sequence[str], labels: Sequence[str]) -> list[str]:
    if names and labels:
        return [
            f"scenario_labels: {', '.join(labels)}: would have no effect beside scenarios, which names what is wanted; "
            "give one of both"
        ]
    known_names = {scenario.name for scenario in scenarios}
    known_labels = {label for scenario in scenarios for label in scenario.tags}
    return [
        *(
            f"scenarios: {name!r} is not one, so it cannot be run; {instead(name, known_names)}"
            for name in names
            if name not in known_names
        ),
        *(
            f"scenario_labels: {label!r}: no scenario has it, so it would pick none; {instead(label, known_labels)}"
            for label in labels
            if label not in known_labels
        ),
    ]


def _none(environment: Environment, labels: Sequence[str], skipped: Sequence[Skipped]) -> str:
    if skipped:
        return "scenarios: none can be run here, so nothing would be tested: " + "; ".join(
            f"{name}: {reason}" for name, reason in skipped
        )
    labelled = f" and has a label of {', '.join(labels)}" if labels else ""
    return (
        f"scenarios: none is written for {environment.kind}{labelled}, so nothing would be tested; "
        f"add {environment.kind} to the `stacks` of one"
    )


def _days(scenario: Scenario) -> list[str]:
    """Why it is run only where it is named, by itself or by a label."""
    seconds = sum(step.live.seconds for step in scenario.steps if step.live)
    return [f"takes {timedelta(seconds=seconds)} of the cluster's time; name it to run it"] if seconds else []


def _elsewhere(scenario: Scenario, outputs: Mapping[str, Any]) -> list[str]:
    """The reason why a scenario that names zones cannot be run in this region; both clouds' zones begin with theirs."""
    region = str(outputs.get("region", ""))
    others = [zone for zone in scenario.zones if not zone.startswith(region)]
    return [f"{', '.join(others)}: not in the stack's region, {region}"] if others else []


def _gates(scenario: Scenario, outputs: Mapping[str, Any]) -> Iterator[str]:
    """Why it cannot be run where a feature gate is off that it needs."""
    on = outputs.get("featureGates", ())
    for gate in scenario.feature_gates:
        if gate not in on:
            yield (
                f"{gate}: this feature gate is not in the stack output featureGates; where the stack brings Karpenter, "
                f"set karpstack:karpenter.featureGates.{gate} to true"
            )


def _mismatches(scenario: Scenario, environment: Environment, outputs: Mapping[str, Any]) -> list[str]:
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
                f"launched; {instead(name, pools)}{none_brought}"
            )
    for name, spec in scenario.node_pools.items():
        if name in pools:
            problems.append(
                f"{scenario.name}: nodePools.{name}: the stack has a NodePool of this name, which the "
                "scenario would overwrite and then remove; give the scenario's another name"
            )
        if (node_class := node_class_name(spec)) not in (*node_classes, *scenario.node_classes):
            problems.append(
                f"{scenario.name}: nodePools.{name}.template.spec.nodeClassRef.name: the stack has no node "
                f"class {node_class!r}, so no node could be launched; "
                f"{instead(node_class, node_classes)}{none_brought}"
            )
    for name, copy in scenario.node_classes.items():
        if name in node_classes:
            problems.append(
                f"{scenario.name}: nodeClasses.{name}: the stack has a node class of this name, which the scenario may "
                "not change; give the scenario's another name"
            )
        if copy.copy_of not in node_classes:
            problems.append(
                f"{scenario.name}: nodeClasses.{name}.copyOf: the stack has no node class {copy.copy_of!r}, so there "
                f"is nothing to copy; {instead(copy.copy_of, node_classes)}{none_brought}"
            )
    return problems
