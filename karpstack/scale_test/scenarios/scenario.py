"""Scenario files: their format, and reading them. Which of them suit a stack is the matter of `choosing`.

A scenario is data, and all of it is checked before anything is created: NodePools, node classes and patches of them by
Karpenter's CRDs, so that an example from its documentation can be pasted in. Only what manifests say of Kubernetes' own
is left to the API server, which is told to refuse what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Self, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from karpstack.karpenter.findings import Finding
from karpstack.text import shown
from karpstack.text.validation import readable_message, refused
from karpstack.text.yaml_file import YamlError, read

from ..labels import SCENARIO_LABEL, WORKLOAD_LABEL, WORKLOAD_SELECTOR
from .actions import (
    FAULTS,
    Churn,
    Fault,
    Life,
    Meanwhile,
    NodeClassPatch,
    NodePoolPatch,
    Nodes,
    OutOfCapacity,
    RollOut,
    Scale,
    Throttle,
)
from .contradictions import contradictions
from .environments import KINDS
from .expectation import Expectation, Replacement
from .formats import DAY, DnsLabel, Model, Nothing, Sentence, Word, instead, merge_patch
from .manifests import (
    COUNTED,
    IN_NO_NAMESPACE,
    ExpectedWorkload,
    Manifest,
    expected_workload,
    keep_replicas,
    owned,
    safe_patch,
    title,
    with_image,
    with_pods,
)
from .pods import Deployment, PodForm, WorkloadForm, WorkloadKind
from .problems import ContradictionError, ScenarioError, finding, message, refuse

__all__ = ["Expectation", "Replacement", "Scenario", "ScenarioError", "Step", "instead", "load", "parse"]


# Actions of a step after which Karpenter has something to do, in whose middle something can break.
_WITH_A_MIDDLE = ("scale", "apply", "roll_out", "patch_node_pool", "patch_node_class")
# Keys of a mapping that a message names.
_KEYS = 6


def _known_kinds(values: list[str]) -> list[str]:
    if unknown := [value for value in values if value not in KINDS]:
        raise refuse("environment-unknown", unknown=unknown, known=KINDS)
    return values


class Workload(Model):
    """Where it is deployed: `namespace` is created for the scenario and removed with all that is in it.

    Attributes:
        namespace: Namespace that the story creates, and deletes with everything in it.
        deployment: The workload, if one Deployment is enough.
    """

    namespace: DnsLabel
    deployment: Deployment | None = None


class Step(Model):
    """One action, and what must come of it.

    Attributes:
        scale: `N`: scale the only workload that has replicas to N; `{name: N}`: scale each named workload.
        meanwhile: Inject a fault during `scale`, `apply`, `rollOut`, `patchNodePool` or `patchNodeClass`.
        apply: Manifests in the story's namespace: missing objects are created, existing ones are changed by a merge
            patch.
        roll_out: Set a new image of a workload.
        patch_node_pool: Change a NodePool of the scenario.
        patch_node_class: Change a node class of the scenario.
        cordon: Cordon nodes of the scenario's NodePools.
        delete_node: Delete nodes of the scenario's NodePools.
        interrupt: Send spot interruption notices for nodes of the story.
        rebalance: Send rebalance recommendations for nodes of the story.
        out_of_capacity: The cloud has no capacity for some instance types, capacity types or zones.
        throttle: The cloud refuses calls because there were too many.
        publish_image: `{}`: the cloud publishes a newer node image of each family, which remains the newest. Karpenter
            looks for new images every 24 hours on AWS, every three days on Azure, and when it starts.
        clear_faults: `{}`: end shortage and throttling. They also end with the story.
        kill_controller: `{}`: delete all pods of the controller at once.
        restart_api_server: `{}`: stop and start the API server.
        churn: Change the number of replicas repeatedly.
        live: Let hours or days pass while replicas follow a daily curve.
        observe: Do nothing. The text says what the step waits for, for example a node that expires.
        expect: The expected result.
    """

    scale: Scale | None = None
    meanwhile: Meanwhile | None = None
    apply: list[Manifest] | None = Field(None, min_length=1)
    roll_out: RollOut | None = None
    patch_node_pool: NodePoolPatch | None = None
    patch_node_class: NodeClassPatch | None = None
    cordon: Nodes | None = None
    delete_node: Nodes | None = None
    interrupt: Nodes | None = None
    rebalance: Nodes | None = None
    out_of_capacity: OutOfCapacity | None = None
    throttle: Throttle | None = None
    publish_image: Nothing | None = None
    clear_faults: Nothing | None = None
    kill_controller: Nothing | None = None
    restart_api_server: Nothing | None = None
    churn: Churn | None = None
    live: Life | None = None
    observe: Sentence | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _exactly_one_action(self) -> Self:
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        actions = [name for name in names if name not in ("expect", "meanwhile")]
        given = [names[name] for name in actions if getattr(self, name) is not None]
        if not given:
            raise refuse("action-missing", known=[names[name] for name in actions])
        if len(given) > 1:
            raise refuse("actions-several", given=" and ".join(given))
        if self.meanwhile and given[0] not in (begun := [names[name] for name in _WITH_A_MIDDLE]):
            raise refuse("meanwhile-without-middle", begun=begun, given=given[0])
        if self.churn and self.expect.within <= self.churn.seconds + self.expect.hold:
            raise refuse("within-before-churn-ends")
        if self.live and self.expect.within <= self.live.seconds + self.expect.hold:
            raise refuse("within-before-life-ends")
        if not self.live and self.expect.within > DAY:
            raise refuse("within-a-day", day=f"{DAY:g}")
        return self

    @property
    def action(self) -> str:
        """The key of what it does, as the file has it."""
        (name,) = self.model_dump(by_alias=True, exclude_none=True, exclude={"expect", "meanwhile"})
        return str(name)

    @property
    def faults(self) -> list[Fault]:
        """What it breaks."""
        faults = [fault for name, fault in FAULTS.items() if getattr(self, name) is not None]
        return faults + [FAULTS[name] for name in (self.meanwhile.faults if self.meanwhile else ())]

    @property
    def interrupted(self) -> Nodes | None:
        """Nodes that the cloud takes back, by the step itself or in its middle."""
        return self.interrupt or (self.meanwhile.interrupt if self.meanwhile else None)

    def replicas(self, workloads: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
        """Name of each workload that it scales -> the replicas that it leaves.

        Args:
            workloads: Name -> manifest of those that there are.
        """
        scale = self.churn.last if self.churn else self.scale
        if not isinstance(scale, int):
            return scale or {}
        counted = [name for name, manifest in workloads.items() if COUNTED[manifest["kind"]]]
        return {counted[0]: scale} if len(counted) == 1 else {}

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        return f"{self._action}{_meanwhile(self.meanwhile)}"

    @property
    def _action(self) -> str:
        for name, words in _TITLES.items():
            if (given := getattr(self, name)) is not None:
                return words(given)
        raise NotImplementedError(f"{self.action} has no title")


def _meanwhile(meanwhile: Meanwhile | None) -> str:
    if not meanwhile:
        return ""
    if meanwhile.interrupt:
        return f", interrupt {meanwhile.interrupt} meanwhile"
    return f", {'kill the controller' if meanwhile.kill_controller else 'restart the API server'} meanwhile"


def _replicas(scale: int | dict[str, int]) -> str:
    return f"to {scale}" if isinstance(scale, int) else ", ".join(f"{name} to {pods}" for name, pods in scale.items())


def _shortage(shortage: OutOfCapacity) -> str:
    types = shortage.instance_types
    what = {"launched": "what was launched", "all": "everything"}.get(types) if isinstance(types, str) else None
    where = ", ".join([*shortage.capacity_types, *shortage.zones])
    return f"{what or ', '.join(types)} out of capacity{f' ({where})' * bool(where)}"


#: What a step does, in a few words, by its action.
_TITLES: Final[dict[str, Callable[[Any], str]]] = {
    "scale": lambda scale: f"scale {_replicas(scale)}",
    "apply": lambda manifests: f"apply {', '.join(map(title, manifests))}",
    "roll_out": lambda one: f"roll out {one.image} of {one.workload}",
    "patch_node_pool": lambda patch: f"change NodePool {patch.name}",
    "patch_node_class": lambda patch: f"change node class {patch.name}",
    "cordon": lambda nodes: f"cordon {nodes}",
    "delete_node": lambda nodes: f"delete {nodes}",
    "interrupt": lambda nodes: f"interrupt {nodes}",
    "rebalance": lambda nodes: f"recommend to rebalance {nodes}",
    "out_of_capacity": _shortage,
    "throttle": lambda throttle: f"throttle {throttle.calls} calls",
    "publish_image": lambda _: "publish a newer image",
    "clear_faults": lambda _: "end all faults",
    "kill_controller": lambda _: "kill the controller",
    "restart_api_server": lambda _: "restart the API server",
    "churn": lambda churn: f"churn for {churn.seconds:g} s",
    "live": lambda life: f"live for {timedelta(seconds=life.seconds)}",
    "observe": lambda words: f"observe: {words}",
}


class NodeClassCopy(Model):
    """A node class of the scenario's own: as one of the stack's is, but for a patch.

    Attributes:
        copy_of: Name of the stack's node class.
        spec: JSON merge patch of its `spec`.
    """

    copy_of: DnsLabel
    spec: Annotated[dict[str, Any], AfterValidator(safe_patch)] = Field(default_factory=dict)


class Part(Model):
    """What is different in one kind of environment.

    Attributes:
        node_pools: Name -> JSON merge patch of that NodePool's `spec` (lists are replaced, null removes a key), or the
            complete `spec`.
        node_classes: Name -> node class that replaces the scenario's node class of the same name.
        existing_node_pools: Replaces the scenario's `existingNodePools`.
    """

    node_pools: dict[DnsLabel, dict[str, Any]] = Field(default_factory=dict)
    node_classes: dict[DnsLabel, NodeClassCopy] = Field(default_factory=dict)
    existing_node_pools: list[DnsLabel] | None = None


class Scenario(Model):
    """What to do, and what must come of it; a story is one run of it.

    Attributes:
        name: Name of the scenario: the file name without `.yml`.
        description: What the scenario shows, in one sentence.
        tags: Labels for the selection with `--labels` or `scenario_labels`; any names. The old name `tags`
            still works.
        stacks: Supported kinds of environment: `eks`, `aks-nap` (AKS runs Karpenter), `aks-self-hosted`.
        feature_gates: Feature gates of Karpenter that must be on, by their names in the chart, for example
            `staticCapacity`. The stack output `featureGates` lists the enabled ones.
        node_pools: Name -> `spec` of each NodePool that the story creates, in the form of Karpenter. `nodeClassRef`
            names a node class of the stack or of `nodeClasses`, or with `aks-nap` one of AKS's default node classes.
            Declare Cilium's startup taint; on AKS also the label `kubernetes.azure.com/ebpf-dataplane: cilium`.
        existing_node_pools: Existing NodePools that the story uses: those of the stack, or with `aks-nap` AKS's own
            (`default`). They must exist and be ready. The story neither creates nor deletes them, so let the last step
            scale to 0. The stack output `defaultNodePools` lists those of AKS.
        node_classes: Name -> each node class that the story creates, as a copy of one of the stack's. The stack's own
            node classes never change.
        environments: Kind of environment -> differences there. So one file can be used on both clouds;
            [drift.yml](../../playbooks/scenarios/drift.yml) is an example.
        workload: The namespace, and the Deployment if one is enough.
        workloads: Name -> short form of each of several workloads.
        manifests: Other objects to deploy, as Kubernetes manifests of the kinds listed below. They get the story's
            namespace and labels. Workloads among them are treated like those of `workloads`.
        steps: The steps, in their order.
    """

    name: DnsLabel
    description: Sentence
    # Ansible's tags are another thing, and `labels` are what the story's objects get.
    tags: list[DnsLabel] = Field(default_factory=list, alias="labels")
    stacks: Annotated[list[str], AfterValidator(_known_kinds)] = Field(min_length=1)
    feature_gates: list[Word] = Field(default_factory=list)
    node_pools: dict[DnsLabel, dict[str, Any]] = Field(default_factory=dict)
    existing_node_pools: list[DnsLabel] = Field(default_factory=list)
    node_classes: dict[DnsLabel, NodeClassCopy] = Field(default_factory=dict)
    environments: dict[str, Part] = Field(default_factory=dict)
    workload: Workload
    workloads: dict[DnsLabel, WorkloadForm] = Field(default_factory=dict)
    manifests: list[Manifest] = Field(default_factory=list)
    steps: list[Step] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _labels(cls, given: Any) -> Any:
        """What was written until 0.1; both at once are refused, as any key that is none."""
        if isinstance(given, dict) and "tags" in given and "labels" not in given:
            return {"labels" if key == "tags" else key: value for key, value in given.items()}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if found := contradictions(self):
            raise ContradictionError(found)
        return self

    def pools_in(self, kind: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The NodePools that it makes in an environment, and those that it needs there."""
        part = self.environments.get(kind, Part())
        made = merge_patch(self.node_pools, part.node_pools)
        existing = self.existing_node_pools if part.existing_node_pools is None else part.existing_node_pools
        return made, existing

    def node_classes_in(self, kind: str) -> dict[str, NodeClassCopy]:
        """The node classes that it makes in an environment."""
        part = self.environments.get(kind, Part())
        return {**self.node_classes, **part.node_classes}

    def in_environment(self, kind: str) -> Scenario:
        """The scenario as it is in one kind of environment, with nothing left to choose."""
        made, existing = self.pools_in(kind)
        return self.model_copy(
            update={
                "node_pools": made,
                "existing_node_pools": existing,
                "node_classes": self.node_classes_in(kind),
                "environments": {},
                "stacks": [kind],
            }
        )

    @property
    def pools(self) -> list[str]:
        """Names of all NodePools that it needs, made by itself or not."""
        return [*self.node_pools, *self.existing_node_pools]

    @property
    def zones(self) -> list[str]:
        """The zones that its steps name."""
        named: list[str] = []
        for step in self.steps:
            selections = (step.interrupted, step.rebalance, step.cordon, step.delete_node)
            named += [chosen.zone for chosen in selections if chosen and chosen.zone]
            named += step.out_of_capacity.zones if step.out_of_capacity else []
            places = (step.expect, *step.expect.workloads.values())
            named += [zone for place in places for zone in place.zones]
        return list(dict.fromkeys(named))

    @property
    def faults(self) -> list[Fault]:
        """What it breaks."""
        return list(dict.fromkeys(fault for step in self.steps for fault in step.faults))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all that it makes, by which a scale test knows what is its own."""
        part_of, scale_test = WORKLOAD_SELECTOR.split("=")
        return {part_of: scale_test, SCENARIO_LABEL: self.name}

    @cached_property
    def deployed(self) -> list[dict[str, Any]]:
        """The manifests of all that it makes before the first step, but for its namespace and its NodePools.

        What is in no namespace comes first: pods that name a PriorityClass are refused without it.
        """
        forms: list[tuple[WorkloadKind, str, int, PodForm]] = []
        if deployment := self.workload.deployment:
            forms.append(("Deployment", deployment.name, deployment.replicas, deployment))
        forms += [(form.kind, name, form.replicas or 0, form) for name, form in self.workloads.items()]
        manifests = [
            *self.manifests,
            *(
                form.manifest(kind, name, replicas, {**self.labels, WORKLOAD_LABEL: name})
                for kind, name, replicas, form in forms
            ),
        ]
        manifests.sort(key=lambda manifest: (manifest["kind"] not in IN_NO_NAMESPACE, manifest["kind"] in COUNTED))
        return [owned(manifest, self.workload.namespace, self.labels) for manifest in manifests]

    def workloads_after(self, index: int) -> dict[str, dict[str, Any]]:
        """Name -> manifest of each workload after a step; -1 for before the first."""
        return self._workloads[index + 1]

    @cached_property
    def _workloads(self) -> list[dict[str, dict[str, Any]]]:
        """The same before the first step and after each."""
        now = {manifest["metadata"]["name"]: manifest for manifest in self.deployed if manifest["kind"] in COUNTED}
        history = [now]
        for step in self.steps:
            now = dict(now)
            for name, pods in step.replicas(now).items():
                if name in now and COUNTED[now[name]["kind"]]:
                    now[name] = with_pods(now[name], pods)
            if step.roll_out and step.roll_out.workload in now:
                now[step.roll_out.workload] = with_image(now[step.roll_out.workload], step.roll_out.image)
            for manifest in self.applied(step):
                if manifest["kind"] in COUNTED:
                    name = manifest["metadata"]["name"]
                    now[name] = keep_replicas(manifest, now[name]) if name in now else manifest
            history.append(now)
        return history

    def applied(self, step: Step) -> list[dict[str, Any]]:
        """The manifests that a step applies, as the story makes them."""
        return [owned(manifest, self.workload.namespace, self.labels) for manifest in step.apply or ()]

    def pod_disruption_budgets(self, index: int) -> list[dict[str, Any]]:
        """The manifests of the PodDisruptionBudgets that there are after a step."""
        manifests = [*self.deployed, *(manifest for step in self.steps[: index + 1] for manifest in self.applied(step))]
        found = {title(manifest): manifest for manifest in manifests if manifest["kind"] == "PodDisruptionBudget"}
        return list(found.values())

    def wanted_after(self, index: int) -> dict[str, ExpectedWorkload]:
        """What is wanted of each workload, by its name, after a step; -1 for before the first."""
        return {name: expected_workload(manifest) for name, manifest in self.workloads_after(index).items()}

    def replicas_after(self, index: int) -> int:
        """The pods that are wanted after a step, of all workloads that say how many; -1 for before the first."""
        return sum(want.pods or 0 for want in self.wanted_after(index).values())


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
        findings = [replace(found, file=source) for details in errors for found in _findings(details)]
        raise ScenarioError(message(findings), findings) from error
    except UnicodeEncodeError as error:  # pydantic tells neither where it is nor what else is wrong
        text = shown.value(error.object)
        problem = f"{source}: {text} has half of a character in it, which no file could hold; write it again"
        raise ScenarioError(shown.message([problem])) from error


def names(*folders: Path) -> list[str]:
    """Names of the scenarios that folders have, by their files, sorted."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.yml")})


def load(folder: Path) -> list[Scenario]:
    """Read all scenario files (*.yml) of a folder, in the order of their names.

    Raises:
        ScenarioError: A file is not a scenario, or would not be read, or the folder has none; all that is wrong is
            named at once.
    """
    scenarios: list[Scenario] = []
    problems = list(_passed_over(folder))
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


def _passed_over(folder: Path) -> Iterator[str]:
    """What looks like a scenario and would be neither checked nor run."""
    for path in sorted(folder.glob("*.yaml")):
        file = repr(path.name)[1:-1]
        yield f"{file}: ends in .yaml, so it would be neither checked nor run; call it {file.removesuffix('yaml')}yml"
    for path in sorted([*folder.glob("*/*.yml"), *folder.glob("*/*.yaml")]):
        if not path.parent.name.startswith("."):
            file = repr(str(path.relative_to(folder)))[1:-1]
            yield f"{file}: is in a folder below, so it would be neither checked nor run; move it up, or out of there"


def _findings(details: ErrorDetails) -> Sequence[Finding]:
    """One of pydantic's errors; a contradiction may be several findings."""
    contradiction = details.get("ctx", {}).get("error")
    if isinstance(contradiction, ContradictionError):
        return contradiction.findings
    words: dict[str, object] = {}
    match details["type"]:
        case "extra_forbidden":
            allowed = [field.alias or name for name, field in _model_at(details["loc"][:-1]).model_fields.items()]
            code, words = "key-unknown", {"instead": instead(str(details["loc"][-1]), allowed)}
        case "missing":
            code = "key-missing"
        case "model_type" | "dict_type":
            code, words = "not-a-mapping", {"keys": _keys(details)}
        case "list_type":
            code = "not-a-list"
        case _:
            code, words = refused(details) or ("value-invalid", {"message": readable_message(details)})
    return [finding(code, shown.key(details["loc"]) or "(the whole file)", details["input"], **words)]


def _keys(details: ErrorDetails) -> str:
    """What a mapping would look like that belongs where another value is."""
    if details["type"] == "dict_type":
        return "keys and their values"
    known = _model_at(details["loc"]).model_fields.items()
    needed_first = sorted(known, key=lambda one: not one[1].is_required())
    fields = [field.alias or name for name, field in needed_first]
    return f"{{{', '.join(f'{name}: ...' for name in fields[:_KEYS])}{', ...' if len(fields) > _KEYS else ''}}}"


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
