"""The little that the rehearsal reads of a stack's configuration: which cloud, and which region.

Everything else in the file is the program's business. The file in the checkout is never written: Pulumi gets a
copy in the state folder, because `pulumi stack init` adds an encryption salt.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rehearsal import records

_SALT = "encryptionsalt"
#: Cloud -> the key of its region, and an example.
_REGIONS = {"aws": ("aws:region", "us-east-1"), "azure": ("azure-native:location", "westus2")}

# Far more than a stack has to say. Aliases make a file of a few lines say a thousand times as much.
_MAX_BYTES = 1_000_000
_MAX_VALUES = 100_000
_MAX_DEPTH = 50
# libyaml's is ten times as fast. It must not be given what is nested without end: it would crash.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
            StackFileError: There is no such file, it is no stack's configuration, or it is for a cloud without a
                rehearsal.
        """
        if not path.is_file():
            known = sorted(file.name.split(".")[1] for file in path.parent.glob("Pulumi.*.yaml"))
            raise StackFileError(f"there is no stack file {path}; the stacks here are: {', '.join(known) or 'none'}")
        config = _read(path).get("config") or {}
        if not isinstance(config, dict):
            raise StackFileError(
                f"{path}: config = {reprlib.repr(config)} is no mapping, so that no setting could be read; write "
                "`config:` and below it, indented, one `key: value` a line"
            )
        if encrypted := sorted(_encrypted(config)):
            raise StackFileError(
                f"{path} holds secrets that only the environment's own key can open ({', '.join(encrypted)}); a "
                "rehearsal never gets that key. Give it a copy with test values: --config-file FILE"
            )
        cloud = config.get("karpstack:cloud")
        if not isinstance(cloud, str) or cloud not in _REGIONS:
            raise StackFileError(
                f"{path}: karpstack:cloud is {reprlib.repr(cloud)}; the rehearsal plays: {', '.join(_REGIONS)}"
            )
        key, example = _REGIONS[cloud]
        region = config.get(key)
        if not isinstance(region, str):
            raise StackFileError(f"{path}: {key} is missing; add for example `{key}: {example}`")
        if cloud == "aws":
            return cls(path, cloud, region)
        # The rehearsal plays the very subscription that the stack names: ids in its configuration mean something.
        subscription = config.get("azure-native:subscriptionId") or ""
        if not isinstance(subscription, str):
            raise StackFileError(
                f"{path}: azure-native:subscriptionId = {reprlib.repr(subscription)} is no id, so that the rehearsal "
                "would play another subscription; write it in quotes, or leave it out"
            )
        return cls(path, cloud, region.replace(" ", "").lower(), subscription.lower())

    def copy_to(self, target: Path) -> None:
        """Write Pulumi's own copy, keeping the encryption salt that an earlier copy was given."""
        salt = ""
        if target.is_file():
            salt = _read(target).get(_SALT, "")
        content = _read(self.path)
        if salt:
            content[_SALT] = salt
        records.write_text(target, yaml.safe_dump(content, sort_keys=False))


def _read(path: Path) -> dict[str, Any]:
    """A file's mapping, of a size that can be handled."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise StackFileError(
                f"{path} has more than {_MAX_BYTES} bytes, which no stack needs; remove what is not its"
            )
        text = path.read_text(encoding="utf-8")
        if _depth(text) > _MAX_DEPTH:
            raise StackFileError(f"{path} is nested too deeply to be read; a stack's settings have some ten levels")
        content = yaml.load(text, _LOADER)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError) as error:  # the latter for a date that there is not
        raise StackFileError(f"{path} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StackFileError(
            f"{path} = {reprlib.repr(content)} is no mapping, so that no setting could be read; "
            "it begins with `config:`"
        )
    if _size(content, {}) > _MAX_VALUES:
        raise StackFileError(
            f"{path} has more than {_MAX_VALUES} values, which no stack needs, or refers to itself; "
            "write what its aliases (*name) stand for once"
        )
    return content


def _depth(text: str) -> int:
    """How many mappings and lists lie in each other; it is not looked on where there are too many."""
    depth = deepest = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > _MAX_DEPTH:
            break
    return deepest


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values there are, those behind aliases as often as they are referred to; `known` has sizes by id."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = _MAX_VALUES + 1  # for whoever meets it in itself
        known[id(value)] = 1 + sum(
            _size(inner, known) for inner in (value.values() if isinstance(value, dict) else value)
        )
    return known[id(value)]


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
