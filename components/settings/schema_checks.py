"""What the API server would refuse in specs of NodePools, NodeOverlays and node classes, before anything is created."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter import crds
from karpstack.karpenter.budgets import BudgetError, budgets
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.offers import LABELS

from ..documents import manifests
from ..problems import Shown, did_you_mean, finding, in_quotes, key_of, shown


def schema_checks(cloud: str, valid: Mapping[str, Any], known: Iterable[Finding]) -> Iterator[Finding]:
    """Problems of the specs, completed as they will be.

    Args:
        cloud: `aws` or `azure`.
        valid: Valid sections by the names of the settings' fields; one that is not valid by itself is not there.
        known: Problems that were found before; they say more, and what they are about is not told again.
    """
    keys = [problem.key for problem in known if not problem.warning]
    for section, name, manifest in _manifests(cloud, valid):
        kind = manifest["kind"]
        refused = list(crds.problems(cloud, kind, manifest["spec"]))
        if kind == "NodePool" and not refused:
            yield from _budgets(section, name, manifest["spec"])
        for found in refused:
            key = key_of(section, name, *found.path)
            at_or_below = re.compile(re.escape(key) + r"([.\[]|$)")
            if not any(map(at_or_below.match, keys)):
                keys.append(key)  # what one value breaks is said once, by the first of its rules
                yield finding(
                    "refused-by-schema",
                    key,
                    _shown(found.value),
                    message=found.message,
                    kind=kind,
                    fix=_fix(found, kind),
                )


def _fix(found: crds.Problem, kind: str) -> str:
    if found.is_unquoted:
        return in_quotes(found.value)
    return _meant(found) + f"write it as {crds.REFERENCES[kind]} says"


def _meant(found: crds.Problem) -> str:
    """What may have been meant: another field, another value, or another of Karpenter's labels."""
    if found.code == "unknown-field":
        return did_you_mean(str(found.path[-1]), found.choices)
    if "is restricted" in found.message:
        return did_you_mean(str(found.value), LABELS)
    return did_you_mean(str(found.value), found.choices)


def _budgets(section: str, name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Budgets that the API server takes and Karpenter cannot evaluate."""
    for index, budget in enumerate((spec.get("disruption") or {}).get("budgets") or []):
        try:
            budgets({"disruption": {"budgets": [budget]}})
        except BudgetError as error:
            yield finding(
                "budget-invalid",
                (section, name, "disruption", "budgets", index),
                budget,
                key=error.key,
                value=error.value,
                wanted=error.wanted,
            )


def _manifests(cloud: str, valid: Mapping[str, Any]) -> Iterator[tuple[str, str, manifests.Manifest]]:
    """The section, the name and the manifest of each object; what only the environment knows is filled in somehow."""
    node_class, completed = _NODE_CLASSES[cloud]
    for name, spec in (valid.get("node_classes") or {}).items():
        yield "nodeClasses", name, completed(name, spec)
    for name, spec in (valid.get("node_pools") or {}).items():
        yield "nodePools", name, manifests.node_pool(name, spec, node_class=node_class)
    for name, spec in (valid.get("node_overlays") or {}).items():
        yield "nodeOverlays", name, manifests.node_overlay(name, spec)


def _ec2_node_class(name: str, spec: Mapping[str, Any]) -> manifests.Manifest:
    # The role is the environment's; where a spec has a profile beside it, a rule of ours has said so.
    own = {key: value for key, value in spec.items() if key not in ("role", "instanceProfile")}
    terms = [{"tags": {"cluster": "name"}}]
    return manifests.ec2_node_class(name, own, role="role", subnets=terms, security_groups=terms, tags={})


def _aks_node_class(name: str, spec: Mapping[str, Any]) -> manifests.Manifest:
    return manifests.aks_node_class(name, spec, tags={})


#: Cloud -> its node classes: how NodePools refer to one, and what completes a spec.
_NODE_CLASSES: Final = {
    "aws": (manifests.EC2_NODE_CLASS, _ec2_node_class),
    "azure": (manifests.AKS_NODE_CLASS, _aks_node_class),
}


def _shown(value: Any) -> Shown:
    """A value for people. Of an object only the keys: user data in it may hold credentials."""
    if value is None:
        return Shown("(not set)")
    if isinstance(value, Mapping):
        return Shown(f"an object with {', '.join(map(str, value)) or 'nothing'}")
    return shown(value)
