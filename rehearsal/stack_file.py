"""The little that the rehearsal reads of a stack's configuration: which cloud, and which region.

Everything else in the file is the program's business. The file in the checkout is never written: Pulumi gets a
copy in the state folder, because `pulumi stack init` adds an encryption salt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_SALT = "encryptionsalt"
#: Cloud -> the key of its region, and an example.
_REGIONS = {"aws": ("aws:region", "us-east-1"), "azure": ("azure-native:location", "westus2")}


class StackFileError(Exception):
    """The stack cannot be rehearsed as it is configured; the text names the file, the key and the fix."""


@dataclass(frozen=True)
class StackFile:
    """One `Pulumi.<stack>.yaml`.

    Attributes:
        path: The file.
        cloud: `aws` or `azure`.
        region: For example `us-east-1`, or `westus2`.
        subscription: Id of the Azure subscription that the stack is for; empty on AWS.
    """

    path: Path
    cloud: str
    region: str
    subscription: str = ""

    @classmethod
    def load(cls, path: Path) -> StackFile:
        """Read and check a stack's configuration.

        Raises:
            StackFileError: There is no such file, it is not YAML, or it is for a cloud without a rehearsal.
        """
        if not path.is_file():
            known = sorted(file.name.split(".")[1] for file in path.parent.glob("Pulumi.*.yaml"))
            raise StackFileError(f"there is no stack file {path}; the stacks here are: {', '.join(known) or 'none'}")
        try:
            content = yaml.safe_load(path.read_text()) or {}
        except yaml.YAMLError as error:
            raise StackFileError(f"{path} is not valid YAML: {error}") from error
        config = content.get("config") or {}
        if encrypted := sorted(_encrypted(config)):
            raise StackFileError(
                f"{path} holds secrets that only the environment's own key can open ({', '.join(encrypted)}); a "
                "rehearsal never gets that key. Give it a copy with test values: --config-file FILE"
            )
        cloud = config.get("karpstack:cloud")
        if cloud not in _REGIONS:
            raise StackFileError(f"{path}: karpstack:cloud is {cloud!r}; the rehearsal plays: {', '.join(_REGIONS)}")
        key, example = _REGIONS[cloud]
        region = config.get(key)
        if not isinstance(region, str):
            raise StackFileError(f"{path}: {key} is missing; add for example `{key}: {example}`")
        if cloud == "aws":
            return cls(path, cloud, region)
        # The rehearsal plays the very subscription that the stack names: ids in its configuration mean something.
        subscription = config.get("azure-native:subscriptionId") or ""
        return cls(path, cloud, region.replace(" ", "").lower(), str(subscription).lower())

    def copy_to(self, target: Path) -> None:
        """Write Pulumi's own copy, keeping the encryption salt that an earlier copy was given."""
        salt = ""
        if target.is_file():
            salt = (yaml.safe_load(target.read_text()) or {}).get(_SALT, "")
        content: dict[str, Any] = yaml.safe_load(self.path.read_text())
        if salt:
            content[_SALT] = salt
        target.write_text(yaml.safe_dump(content, sort_keys=False))


def _encrypted(value: Any, path: str = "") -> list[str]:
    """Paths of the values that Pulumi has encrypted, which look like `{"secure": ...}`."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return [path]
        return [
            found for key, item in value.items() for found in _encrypted(item, f"{path}.{key}" if path else str(key))
        ]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _encrypted(item, f"{path}[{index}]")]
    return []
