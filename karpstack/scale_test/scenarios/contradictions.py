"""What is wrong between several keys of a scenario: rules, whose words are in `findings.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from karpstack.karpenter import crds
from karpstack.karpenter.findings import Finding
from karpstack.text import shown
from karpstack.text.validation import readable_message

from .environments import environment_of_kind, missing_zone
from .formats import instead, merge_patch
from .manifests import COUNTED, IN_NO_NAMESPACE, expected_workload
from .node_pool import UNASKED, NodePoolSpec, taint_keys
from .problems import finding
from .refusals import has_path, patch_problems, refused

if TYPE_CHECKING:
    from .expectation import Expectation
    from .scenario import Scenario, Step


def contradictions(scenario: Scenario) -> list[Finding]:
    """Return all of them, those of environments first."""
    return [
        *_environments(scenario),
        *_manifests(scenario),
        *(found for index, step in enumerate(scenario.steps) for found in _step(scenario, index, step)),
        *dict.fromkeys(_api_server(scenario)),
    ]


def node_class_name(spec: Mapping[str, Any]) -> str:
    """Name of the node class that a NodePool's `spec` refers to, empty if it refers to none."""
    inner: Any = spec
    for key in ("template", "spec", "nodeClassRef", "name"):
        inner = inner.get(key) if isinstance(inner, Mapping) else None
    return inner if isinstance(inner, str) else ""


def _environments(scenario: Scenario) -> Iterator[Finding]:
    for kind, part in scenario.environments.items():
        if kind not in scenario.stacks:
            other = instead(kind, scenario.stacks)
            given = part.model_dump(by_alias=True)
            yield finding("environment-without-effect", f"environments.{kind}", given, kind=kind, instead=other)
    seen: set[Finding] = set()
    for kind in scenario.stacks:
        pools, existing = scenario.pools_in(kind)
        own = scenario.environments.get(kind)
        where = f"environments.{kind}." * bool(own and own.existing_node_pools is not None) + "existingNodePools"
        if not pools and not existing:
            seen.add(finding("no-node-pool", where, []))
        if both := sorted(pools.keys() & set(existing)):
            seen.add(finding("node-pool-twice", where, existing, both=both))
        for name, spec in pools.items():
            if node_class_name(spec):
                seen.update(_unreadable(name, spec))
            else:
                where = f"environments.{kind}." * bool(scenario.environments)
                seen.add(finding("node-class-missing", f"{where}nodePools.{name}", spec))
    yield from sorted(seen, key=lambda found: found.key)


def _unreadable(pool: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """What the scale test could not read of a NodePool's `spec`."""
    try:
        NodePoolSpec.model_validate(spec)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            key = shown.key(["nodePools", pool, *details["loc"]])
            yield finding("node-pool-unreadable", key, details["input"], message=readable_message(details))


def _api_server(scenario: Scenario) -> Iterator[Finding]:
    """What the API server would refuse of NodePools, node classes and patches of them."""
    for kind in scenario.stacks:
        environment = environment_of_kind(kind)
        cloud, node_class = environment.cloud, environment.node_class_kind
        pools, part = scenario.pools_in(kind)[0], scenario.environments.get(kind)
        for name, spec in pools.items():
            if not node_class_name(spec) or any(_unreadable(name, spec)):
                continue  # which is said already
            own = part.node_pools.get(name) if part else None
            for found in crds.problems(cloud, "NodePool", spec):
                here = own is not None and (name not in scenario.node_pools or has_path(found.path, own))
                yield refused(f"{f'environments.{kind}.' * here}nodePools.{name}", "NodePool", found)
        for name, copy in scenario.node_classes_in(kind).items():
            where = f"{f'environments.{kind}.' * bool(part and name in part.node_classes)}nodeClasses.{name}.spec"
            yield from (refused(where, node_class, found) for found in patch_problems(cloud, node_class, copy.spec))
        for index, step in enumerate(scenario.steps):
            change, patch = step.patch_node_pool, step.patch_node_class
            if change and change.name in pools:
                where, before = f"steps.{index}.patchNodePool.spec", pools[change.name]
                wrong = patch_problems(cloud, "NodePool", change.spec, before)
                yield from (refused(where, "NodePool", found) for found in wrong)
                pools[change.name] = merge_patch(before, change.spec)
            if patch:
                where = f"steps.{index}.patchNodeClass.spec"
                yield from (
                    refused(where, node_class, found) for found in patch_problems(cloud, node_class, patch.spec)
                )


def _manifests(scenario: Scenario) -> Iterator[Finding]:
    if not scenario.workloads_after(-1):
        yield finding("no-workload", "workload", scenario.workload.model_dump(by_alias=True))
    seen: set[tuple[str, str]] = set()
    alone = scenario.workload.deployment
    forms = [
        *([("Deployment", alone.name)] if alone else []),
        *((form.kind, name) for name, form in scenario.workloads.items()),
    ]
    for kind, name in forms:
        if ("workload", name) in seen:
            yield finding("workload-twice", f"workloads.{name}", kind)
        seen.add(("workload", name))
    for index, manifest in enumerate(scenario.manifests):
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        same = "workload" if kind in COUNTED else kind
        if (same, name) in seen:
            yield finding("manifest-twice", f"manifests.{index}.metadata.name", name, same=same)
        seen.add((same, name))
        yield from _namespace(scenario, f"manifests.{index}", manifest)


def _namespace(scenario: Scenario, where: str, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    namespace, here = manifest["metadata"].get("namespace"), scenario.workload.namespace
    if namespace is not None and (namespace != here or manifest["kind"] in IN_NO_NAMESPACE):
        yield finding("namespace-elsewhere", f"{where}.metadata.namespace", namespace, here=here)


def _step(scenario: Scenario, index: int, step: Step) -> Iterator[Finding]:
    where = f"steps.{index}"
    yield from _scaling(scenario, index, step)
    yield from _applying(scenario, index, step)
    yield from _expected_names(scenario, index, step.expect)
    yield from _expected_places(scenario, index, step.expect)
    if step.out_of_capacity:
        yield from _zones(scenario, f"{where}.outOfCapacity.zones", step.out_of_capacity.zones)
    short = False
    for before in scenario.steps[: index + 1]:
        short = (short or before.out_of_capacity is not None) and before.clear_faults is None
    if step.expect.other_instance_type and not short:
        yield finding("nothing-short", f"{where}.expect.otherInstanceType", True)
    patch, change = step.patch_node_pool, step.patch_node_class
    if patch and any(patch.name not in scenario.pools_in(kind)[0] for kind in scenario.stacks):
        other = instead(patch.name, scenario.node_pools)
        yield finding("scenario-node-pool-of-others", f"{where}.patchNodePool.name", patch.name, instead=other)
    if change and any(change.name not in scenario.node_classes_in(kind) for kind in scenario.stacks):
        yield finding("scenario-node-class-of-others", f"{where}.patchNodeClass.name", change.name)


def _scaling(scenario: Scenario, index: int, step: Step) -> Iterator[Finding]:
    """Workloads that a step scales or rolls out, and that are not there."""
    before = scenario.workloads_after(index - 1)
    counted = [name for name, manifest in before.items() if COUNTED[manifest["kind"]]]
    for name in step.scale if isinstance(step.scale, dict) else ():
        if name not in counted:
            yield finding("scaled-unknown", f"steps.{index}.scale.{name}", name, instead=instead(name, counted))
    if (isinstance(step.scale, int) or step.churn) and len(counted) != 1:
        key, how = ("churn", "") if step.churn else ("scale", "write {name: replicas}, ")
        words = {"count": len(counted), "how": how, "instead": instead("", counted)}
        yield finding("scaled-ambiguous", f"steps.{index}.{key}", step.scale, **words)
    if step.live and (unused := step.live.factors.unused(counted)):
        other = instead(unused[0], counted)
        yield finding("curve-unused", f"steps.{index}.live.curve.{unused[0]}", unused[0], instead=other)
    if step.roll_out and step.roll_out.workload not in before:
        other = instead(step.roll_out.workload, before)
        yield finding("rolled-out-unknown", f"steps.{index}.rollOut.workload", step.roll_out.workload, instead=other)
    elif step.roll_out and expected_workload(before[step.roll_out.workload]).image == step.roll_out.image:
        yield finding("image-there-already", f"steps.{index}.rollOut.image", step.roll_out.image)


def _applying(scenario: Scenario, index: int, step: Step) -> Iterator[Finding]:
    before = scenario.workloads_after(index - 1)
    for number, manifest in enumerate(step.apply or ()):
        where, kind, name = f"steps.{index}.apply.{number}", manifest["kind"], manifest["metadata"]["name"]
        if kind in IN_NO_NAMESPACE:
            yield finding("applied-beside-the-namespace", f"{where}.kind", kind)
        yield from _namespace(scenario, where, manifest)
        there = before.get(name)
        if there and kind in COUNTED and there["kind"] != kind:
            yield finding("applied-kind", f"{where}.metadata.name", name, kind=there["kind"])


def _expected_names(scenario: Scenario, index: int, expect: Expectation) -> Iterator[Finding]:
    """Names of workloads, budgets, classes and taints that a step expects something of, and that are not there."""
    where, there = f"steps.{index}.expect", scenario.workloads_after(index)
    specs = [manifest["spec"]["template"]["spec"] for manifest in there.values()]
    classes = sorted({spec["priorityClassName"] for spec in specs if spec.get("priorityClassName")})
    taints = set(_taints(scenario, index))
    # Which taints a NodePool has that is not the scenario's own, only the cluster knows.
    others = any(scenario.pools_in(kind)[1] for kind in scenario.stacks)
    compared, gone = [name for pair in expect.scheduled_before.items() for name in pair], expect.taints_gone
    known: list[tuple[str, str, Iterable[str] | None, Iterable[str]]] = [
        ("workloads", "workload-unknown", expect.workloads, there),
        ("disrupted", "workload-unknown", expect.disrupted, there),
        ("disruptedInOrder", "workload-unknown", expect.disrupted_in_order, there),
        ("scheduledBefore", "priority-class-unknown", compared, classes),
        ("taintsGone", "taint-unknown", [] if others else [key for key in gone if key not in UNASKED], taints),
    ]
    for key, code, names, all_known in known:
        for name in names or ():
            if name not in all_known:
                yield finding(code, f"{where}.{key}", name, instead=instead(name, all_known))
    if expect.pod_disruption_budgets_kept:
        budgets = scenario.pod_disruption_budgets(index)
        if not budgets:
            yield finding("no-pod-budget", f"{where}.podDisruptionBudgetsKept", True)
        for budget in budgets:
            if (budget["spec"].get("selector") or {}).get("matchExpressions"):
                name = budget["metadata"]["name"]
                yield finding("pod-budget-expressions", f"{where}.podDisruptionBudgetsKept", True, name=name)


def _expected_places(scenario: Scenario, index: int, expect: Expectation) -> Iterator[Finding]:
    """Expectations that a misspelt NodePool or zone, or nothing at all, would let pass."""
    where = f"steps.{index}.expect"
    pools = {name for kind in scenario.stacks for part in scenario.pools_in(kind) for name in part}
    places = [("", expect), *((f".workloads.{name}", pods) for name, pods in expect.workloads.items())]
    for inner, place in places:
        for name in place.node_pools:
            if name not in pools:
                yield finding("node-pool-unknown", f"{where}{inner}.nodePools", name, instead=instead(name, pools))
        yield from _zones(scenario, f"{where}{inner}.zones", place.zones)
    for name, pods in expect.workloads.items():
        if not pods.model_fields_set:
            yield finding("nothing-expected", f"{where}.workloads.{name}", {})
    if len(expect.disrupted_in_order) == 1:
        yield finding("order-of-one", f"{where}.disruptedInOrder", expect.disrupted_in_order)


def _zones(scenario: Scenario, where: str, zones: Iterable[str]) -> Iterator[Finding]:
    clouds = {environment_of_kind(kind).cloud for kind in scenario.stacks}
    for zone in zones:
        whys = [missing_zone(cloud, zone) for cloud in sorted(clouds)]
        if all(whys) and whys[0]:
            yield finding("scenario-zone-unknown", where, zone, **whys[0])


def _taints(scenario: Scenario, index: int) -> Iterator[str]:
    """Keys of the taints that its NodePools gave nodes until a step, in any environment."""
    pools = [spec for kind in scenario.stacks for spec in scenario.pools_in(kind)[0].values()]
    patches = [step.patch_node_pool.spec for step in scenario.steps[: index + 1] if step.patch_node_pool]
    for spec in [*pools, *patches]:
        yield from taint_keys(spec)
