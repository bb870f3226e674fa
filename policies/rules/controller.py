"""Karpenter's controller: how it is installed and wired. Does not judge its permissions (identity.py)."""

import re
from dataclasses import dataclass
from typing import Any

from pulumi_policy import PolicyResource

from karpstack.karpenter.instance_types import CAPACITY_TYPE
from karpstack.karpenter.requirements import allows

from . import graph
from .clouds import CLOUDS, Cloud
from .requirements import cloud_of, requirements
from .rule import STRICTER_IN_PRODUCTION, Judgement, Properties, ResourceRule, StackRule, section
from .tokens import EC2_NODE_CLASS, HELM_RELEASE, NODE_OVERLAY, NODE_POOL

_CHART = "karpenter"
_CRD_CHART = "karpenter-crd"


def _spot_interruption_queue(resources: list[PolicyResource], judgement: Judgement) -> None:
    pools = []
    for resource in graph.of(resources, NODE_POOL):
        with judgement.part():
            spec = graph.output(resource, "spec")
            # Azure announces evictions on the machine, and there is no queue.
            if cloud_of(spec) == "aws" and _allows_spot(spec):
                pools.append(resource.name)
    if not pools:
        return
    for release in graph.releases(resources, _CHART, judgement):
        with judgement.part():
            if not graph.has_queue(release):
                judgement.violation(
                    f"values.settings.interruptionQueue of {release.name} is not set, and spot instances are allowed "
                    f"by {', '.join(pools)}.",
                    release.urn,
                )


def _allows_spot(spec: Properties) -> bool:
    """Whether Karpenter may launch spot instances; a pool that names no capacity type allows each."""
    return allows(requirements(spec), CAPACITY_TYPE, "spot")


def _pinned(release: Properties, judgement: Judgement) -> None:
    chart = release.get("chart") or ""
    if not any(graph.is_chart(chart, name) for name in (_CHART, _CRD_CHART, "cilium")):
        return
    file, _, digest = chart.partition("?")[0].rstrip("/").rpartition("/")[2].partition("@")
    is_archive = file.endswith(".tgz")
    is_local = chart.startswith((".", "/")) or (is_archive and "://" not in chart)
    if digest.startswith("sha256:") or is_local or re.search(r"-v?\d.*\.tgz$", file):
        return  # the digest or the archive's name says it, and so does what lies in the folder
    if is_archive:
        judgement.violation(f"the chart {chart} has no version in its name: whatever is there is installed.")
        return
    version = release.get("version") or file.partition(":")[2]
    if not version:
        judgement.violation(f"version of the chart {chart} is not set: the newest is installed.")
    elif not re.fullmatch(r"=?\s*v?\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?", version):
        judgement.violation(f"version of the chart {chart} is {version}, which is not one version.")


def _definitions(resources: list[PolicyResource], judgement: Judgement) -> None:
    controllers = list(graph.releases(resources, _CHART, judgement))
    definitions = list(graph.releases(resources, _CRD_CHART, judgement))
    for controller in controllers:
        with judgement.part():
            version = graph.output(controller, "version")
            if not definitions and judgement.complete:
                judgement.violation(
                    f"{controller.name} has no release of {_CRD_CHART} beside it: Helm does not upgrade the CRDs of "
                    "the chart itself.",
                    controller.urn,
                )
            for other in definitions:
                with judgement.part():
                    found = graph.output(other, "version")
                    if _bare(found) != _bare(version):
                        judgement.violation(
                            f"{other.name} has the version {found}, and {controller.name} the version {version}.",
                            other.urn,
                        )


def _bare(version: str | None) -> str:
    """A version without what Helm ignores."""
    return re.sub(r"^=?\s*v?", "", version or "")


def _availability(release: Properties, judgement: Judgement) -> None:
    if not graph.is_chart(release.get("chart") or "", _CHART):
        return
    values = graph.chart_values(release)
    with judgement.part():
        replicas = values.get("replicas")
        least = int(judgement.settings["replicas"])
        if replicas is not None and int(replicas) < least:  # the chart's own default is 2
            judgement.violation(f"values.replicas is {int(replicas)}, fewer than {least}.")
    with judgement.part():
        resources = section(values, "controller", "resources")
        for kind, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
            if section(resources, kind).get(name) is None:
                judgement.violation(f"values.controller.resources.{kind}.{name} is not set.")


def _off_its_nodes(release: Properties, judgement: Judgement) -> None:
    if not graph.is_chart(release.get("chart") or "", _CHART):
        return
    values = graph.chart_values(release)
    # Helm merges objects, so the chart's own terms stay where no value, and no null, replaces them.
    found: Any = values
    for key in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"):
        if found is None:
            break
        if key not in set(found):
            return
        found = found[key]
    terms = found or []
    # One term is enough for the scheduler, so each of them has to say it.
    if not terms or not all(_keeps_off(terms[index]) for index in range(len(terms))):
        judgement.violation(
            "values.affinity replaces the chart's, and does not require that the label karpenter.sh/nodepool is absent."
        )


def _keeps_off(term: Properties) -> bool:
    expressions = term.get("matchExpressions") or []
    return any(
        expressions[index].get("key") == "karpenter.sh/nodepool"
        and expressions[index].get("operator") == "DoesNotExist"
        for index in range(len(expressions))
    )


def _feature_gates(resources: list[PolicyResource], judgement: Judgement) -> None:
    needed = _needed_gates(resources, judgement)
    pools = list(graph.of(resources, NODE_POOL))
    for release in graph.releases(resources, _CHART, judgement):
        with judgement.part():
            gates = section(graph.values(release), "settings", "featureGates")
            for gate, users in needed.items():
                with judgement.part():
                    if gate in set(gates):
                        without = [] if gates[gate] else users
                    else:
                        without = [user for user in users if gate not in user.gates]
                    if without:
                        judgement.violation(
                            f"values.settings.featureGates.{gate} of {release.name} is off, and needed by "
                            f"{', '.join(f'{user.name} ({user.what})' for user in without)}.",
                            release.urn,
                        )
            with judgement.part():
                on = gates.get("spotToSpotConsolidation")
                if on and pools and not _any_spot(pools, judgement) and judgement.complete:
                    judgement.violation(
                        f"values.settings.featureGates.spotToSpotConsolidation of {release.name} is on, and no "
                        "NodePool allows spot.",
                        release.urn,
                    )


def _any_spot(pools: list[PolicyResource], judgement: Judgement) -> bool:
    found = False
    for pool in pools:
        with judgement.part():
            found = _allows_spot(graph.output(pool, "spec")) or found
    return found


@dataclass(frozen=True)
class _User:
    """A resource that needs a feature gate, because of `what` it says; its cloud has some of them on already."""

    name: str
    what: str
    gates: frozenset[str]


def _needed_gates(resources: list[PolicyResource], judgement: Judgement) -> dict[str, list[_User]]:
    needed: dict[str, list[_User]] = {}

    def need(gate: str, resource: PolicyResource, what: str, cloud: Cloud | None) -> None:
        gates = CLOUDS[cloud].gates if cloud else frozenset[str]()
        needed.setdefault(gate, []).append(_User(resource.name, what, gates))

    for resource in graph.of(resources, NODE_POOL, EC2_NODE_CLASS, NODE_OVERLAY):
        with judgement.part():
            spec = graph.output(resource, "spec")
            if resource.resource_type == NODE_OVERLAY:
                need("nodeOverlay", resource, "NodeOverlay", None)
            elif resource.resource_type == EC2_NODE_CLASS:
                if spec.get("capacityReservationSelectorTerms"):
                    need("reservedCapacity", resource, "capacityReservationSelectorTerms", "aws")
            else:
                if spec.get("replicas") is not None:
                    need("staticCapacity", resource, "replicas", cloud_of(spec))
                named = [
                    requirement
                    for requirement in requirements(spec)
                    if requirement.key == CAPACITY_TYPE and requirement.operator == "In"
                ]
                if any("reserved" in requirement.values for requirement in named):
                    need("reservedCapacity", resource, "capacity type reserved", cloud_of(spec))
    return needed


SPOT_INTERRUPTION_QUEUE = StackRule(name="spot-interruption-queue", check=_spot_interruption_queue)

CHARTS_PINNED = ResourceRule(name="charts-pinned", checks={HELM_RELEASE: _pinned})

KARPENTER_CRD_VERSION = StackRule(name="karpenter-crd-version", check=_definitions)

KARPENTER_AVAILABILITY = ResourceRule(
    name="karpenter-availability",
    settings={"replicas": {"type": "integer", "minimum": 1, "default": 2}},
    enforcement=STRICTER_IN_PRODUCTION,
    checks={HELM_RELEASE: _availability},
)

KARPENTER_OFF_ITS_NODES = ResourceRule(name="karpenter-off-its-nodes", checks={HELM_RELEASE: _off_its_nodes})

KARPENTER_FEATURE_GATES = StackRule(name="karpenter-feature-gates", check=_feature_gates)
