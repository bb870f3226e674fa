"""Pulumi.eks.yaml as the engine would hand it over, for tests to change one thing in."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).resolve().parents[2] / "Pulumi.eks.yaml"
_CONFIG: dict[str, Any] = yaml.safe_load(_FILE.read_text())["config"]


def example(**changes: Any) -> dict[str, str]:
    """Raw configuration. A change is named like a key, `network__podCidr=...`; None removes the key."""
    config = deepcopy(_CONFIG)
    for path, value in changes.items():
        first, *rest = path.split("__")
        *parents, last = [f"karpstack:{first}", *rest]
        section = config
        for step in parents:
            section = section.setdefault(step, {})
        if value is None:
            section.pop(last)
        else:
            section[last] = value
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
