"""The options of this collection's modules, read from their documentation."""

from __future__ import annotations

from typing import Any

import yaml


def has_check_mode(documentation: str) -> bool:
    """Return whether a module runs in check mode."""
    return bool(yaml.safe_load(documentation)["attributes"]["check_mode"]["support"] != "none")


def argument_spec(documentation: str, **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the `argument_spec` of a module.

    Args:
        documentation: Its DOCUMENTATION.
        more: Option -> what documentation cannot say of it, such as `no_log`.
    """
    options: dict[str, dict[str, Any]] = yaml.safe_load(documentation)["options"]
    spoken = ("description", "version_added")
    return {
        name: {key: value for key, value in option.items() if key not in spoken} | more.get(name, {})
        for name, option in options.items()
    }
