"""Each setting reaches the cloud: its other value changes an input of a resource, as stacks/settings.yaml has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from karpstack.components import settings
from tests.unit import found
from tests.unit.example_stack import ROOT
from tests.unit.mock_engine import Deployment
from tests.unit.programs import made, matching
from tests.unit.test_resources import at

GROUPS = yaml.safe_load((ROOT / "tests" / "unit" / "stacks" / "settings.yaml").read_text(encoding="utf-8"))["groups"]
ROWS = [
    pytest.param(group, resource, path, id=f"{group['stack']} {setting}")
    for group in GROUPS
    for setting, (_, resource, path) in group["settings"].items()
]
#: Those that have no value of their own to hand over: the program is chosen by one, another says again that there is a
#: section `karpenter` or none, and the last two consent to something (test_replacement.py, test_old_facts.py).
CHOOSING = {"cloud", "mode", "allowReplacement", "acceptOldFacts"}
#: Resources name the subnets of a VPC that is there, never itself; the other makes one of two stacks (resources.yaml).
ELSEWHERE = {"network.vpcId", "cilium.install"}
MODELS: dict[str, type[BaseModel]] = {
    "eks": settings.EksSettings,
    "aks": settings.AksSettings,
    "eks-existing-cluster": settings.ExistingEksSettings,
    "aks-existing-cluster": settings.ExistingAksSettings,
}


def deployed(group: dict[str, Any], changes: dict[str, Any]) -> Deployment:
    runs = found.changed(found.EKS_WORKLOADS, group["runs"]) if "runs" in group else None
    given = {"told": group["told"]} if "told" in group else {}
    return made(group["stack"], {**group.get("with", {}), **changes}, runs=runs, drawn=False, **given)


@pytest.mark.parametrize(("group", "resource", "path"), ROWS)
def test_another_value_changes_an_input(group: dict[str, Any], resource: str, path: str) -> None:
    before, after = (
        [_at(one, path) for one in matching(deployed(group, changes), resource)]
        for changes in ({}, {setting: value for setting, (value, *_) in group["settings"].items()})
    )
    assert before or after
    assert before != after, f"{path} of {resource} is as before: the setting is accepted, and lost on its way"


def _at(resource: Any, path: str) -> Any:
    registered = {"^hooks": str(resource.request.hooks), "^protect": resource.request.protect}
    return registered[path] if path in registered else at(resource.inputs, path.split("."))


@pytest.mark.parametrize("stack", ["eks", "aks-nap", "aks-self-hosted"])
def test_without_another_value_nothing_changes(stack: str) -> None:
    """Otherwise each row would hold of itself."""
    one, again = (
        {urn: each.inputs for urn, each in made(stack, {}, drawn=False, log_groups=groups).resources.items()}
        for groups in ((), ["others"])
    )
    assert one == again


def keys(model: type[BaseModel]) -> Iterator[str]:
    """The settings below a section, as in a stack's file."""
    for field in model.model_fields.values():
        key = str(field.validation_alias)
        # A list of sections is one setting.
        branches = () if get_origin(field.annotation) is list else (field.annotation, *get_args(field.annotation))
        section = next((one for one in branches if isinstance(one, type) and issubclass(one, BaseModel)), None)
        yield from (f"{key}.{deeper}" for deeper in keys(section)) if section else (key,)


@pytest.mark.parametrize("kind", MODELS)
def test_every_setting_has_another_value(kind: str) -> None:
    wanted = {*keys(MODELS[kind])} - CHOOSING - ELSEWHERE
    if "existing" in kind:  # the others are those of a cluster of the stack's own
        own = {*keys(MODELS[kind.split("-")[0]])}
        wanted = {key for key in wanted if key.split(".")[0] in ("cluster", "network", "cilium") or key not in own}
    stacks = (
        {kind} if kind in ("eks", "eks-existing-cluster", "aks-existing-cluster") else {"aks-nap", "aks-self-hosted"}
    )
    there = {setting for group in GROUPS if group["stack"] in stacks for setting in group["settings"]}
    there = {key.partition(".")[0] if key.startswith(("nodePools.", "nodeClasses.")) else key for key in there}
    assert there - {"name"} == wanted - {"name"}
