"""Whether a stack file is the one that Pulumi reads, and all that it reads, by the Pulumi.yaml beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .projects import other_folder
from .shown import visible
from .yaml_file import YamlError, read

#: Namespaces of the settings that karpstack's program and its providers read.
_READ: Final = ("karpstack:", "aws:", "azure-native:")


def unread_settings(stack_file: Path, content: Mapping[str, Any]) -> str:
    """Return why Pulumi has other settings for a stack than its file; empty if it does not.

    Args:
        stack_file: The stack file. Without a Pulumi.yaml beside it, it belongs to no project.
        content: The stack file's. Pulumi prefers what it has below `config` to the same key of Pulumi.yaml.
    """
    if content.get("environment"):
        return (
            f"{stack_file}: environment names a Pulumi ESC environment, whose settings karpstack does not read, so it "
            "would judge other settings than yours, and might ask another account; give a copy without `environment`, "
            "with its settings below `config`: --config-file FILE. For its login, run the command in `pulumi env run`"
        )
    config = content.get("config") or {}
    path = stack_file.with_name("Pulumi.yaml")
    try:
        project = read(path)
        if refused := other_folder(path.read_bytes()):
            return f"{path}: {refused}"
    except (OSError, YamlError):
        return ""  # there is none, or Pulumi says what is wrong with it
    given = project.get("config") if isinstance(project, Mapping) else None
    if not isinstance(given, Mapping):
        return ""
    keys = {key if ":" in key else f"{project.get('name')}:{key}": value for key, value in given.items()}
    found = sorted(key for key, value in keys.items() if key.startswith(_READ) and key not in config and _is_set(value))
    if not found:
        return ""
    return (
        f"{path}: config has {visible(', '.join(found))}, which Pulumi gives to each stack, and karpstack reads only "
        f"stack files, so it would judge other settings than yours; move it below `config` of {stack_file.name}"
    )


def _is_set(value: Any) -> bool:
    """Whether a key of Pulumi.yaml has a value, and is not only declared."""
    if isinstance(value, Mapping):
        return value.get("value") is not None or value.get("default") is not None
    return value is not None
