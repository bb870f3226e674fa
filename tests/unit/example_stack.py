"""The shipped stack files as the engine would hand them over, for tests to change one thing in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components import settings
from components.settings.raw import structured

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


@cache
def configuration(stack: str) -> dict[str, Any]:
    """What stands under `config` in a stack file; not to be changed."""
    config: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return config


def example(stack: str = "eks", **changes: Any) -> dict[str, str]:
    """Raw configuration. A change is named like a key, `network__podCidr=...`; None removes the key."""
    return raw(changed(deepcopy(configuration(stack)), changes))


def changed(config: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with changes made in it, which are named as in `example`."""
    for path, value in changes.items():
        first, *rest = path.split("__")
        *parents, last = [first if ":" in first else f"karpstack:{first}", *rest]
        section = config
        for step in parents:
            section = section.setdefault(step, {})
        if value is None:
            section.pop(last)
        else:
            section[last] = value
    return config


def raw(config: dict[str, Any]) -> dict[str, str]:
    """Configuration as the engine hands it over."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def eks(**changes: Any) -> settings.EksSettings:
    """The EKS example, checked."""
    loaded = settings.load(example(**changes))
    assert isinstance(loaded, settings.EksSettings)
    return loaded


def unjudged(**changes: Any) -> settings.EksSettings:
    """The EKS example, of which only the shape is checked: for those who find by themselves what does not exist."""
    values, problems = structured(example(**changes))
    assert not problems
    named = {key.removeprefix("karpstack:"): value for key, value in values.items()}
    return settings.EksSettings.model_validate(named, by_alias=True, by_name=False)


def aks(stack: str, **changes: Any) -> settings.AksSettings:
    """An AKS example, checked."""
    loaded = settings.load(example(stack, **changes))
    assert isinstance(loaded, settings.AksSettings)
    return loaded
