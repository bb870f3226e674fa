"""A resource type as data: which inputs it takes, what a change of each does, and what its provider fills in.

The stand-in of each package has a table of types, one row each, and says what it adds to these keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import yaml

_Names = frozenset[str]
#: What the provider itself answers in a block for what is not there.
_EMPTY: Final[tuple[Any, ...]] = (None, "", False, [])


def filled(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a block that have a value; the SDK may send the others as empty."""
    return {key: value for key, value in block.items() if value not in _EMPTY}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One resource type.

    Attributes:
        token: Pulumi's type, for example `aws:ec2/vpc:Vpc`.
        title: What the real provider calls the type in its messages.
        updates: Inputs that change in place.
        replaces: Inputs whose change replaces the resource, or dotted paths into those of `updates`.
        replaces_when_gone: Inputs of `updates` whose removal replaces the resource.
        refused: The other inputs of the SDK. The stand-in gives them no meaning, so it refuses them by name.
        required: Inputs without which there is no resource.
        defaults: What the provider fills in. An input that is neither updated nor replaced can have no other value.
        unset: What the provider answers where the resource has nothing, and takes as input.
        unread: What the provider says after an import, because the cloud does not tell it.
        computed: Inputs, or dotted paths, that the cloud chooses where the program says nothing: no change then.
        secrets: Outputs that are secret whatever the inputs were.
        name: The input that is drawn from the logical name where the program gives none.
        name_limit: How many characters the cloud takes for it.
        name_prefix: What a drawn name begins with.
        deletes_first: Whether every replacement deletes first, because two cannot exist.
        timeout: Seconds that an operation may take when the program sets no customTimeouts.
        ranges: Least and most value by input.
        choices: The possible values by input.
        patterns: By input, what it must match, and what is said otherwise.
        blocks: By input that is a list of blocks, what means something in a block. Others are refused by name.
    """

    token: str
    title: str = ""
    updates: _Names = frozenset()
    replaces: _Names = frozenset()
    replaces_when_gone: _Names = frozenset()
    refused: _Names = frozenset()
    required: _Names = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    unset: Mapping[str, Any] = field(default_factory=dict)
    unread: Mapping[str, Any] = field(default_factory=dict)
    computed: _Names = frozenset()
    secrets: _Names = frozenset()
    name: str = ""
    name_limit: int = 255
    name_prefix: str = ""
    deletes_first: bool = False
    timeout: float = 600.0
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    patterns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    blocks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def accepts(self) -> frozenset[str]:
        """The inputs that mean something."""
        return self.updates | {path for path in self.replaces if "." not in path}

    @property
    def usual(self) -> dict[str, Any]:
        """What the provider answers where the program says nothing."""
        return {**self.unset, **self.defaults}

    def unknown_in_blocks(self, inputs: Mapping[str, Any]) -> list[str]:
        """Return the names in blocks that mean nothing, such as `routes.transitGatewayId`."""
        found = []
        for name, known in self.blocks.items():
            blocks = inputs.get(name)
            for block in blocks if isinstance(blocks, list) else ():
                given = filled(block) if isinstance(block, dict) else ()
                found += [f"{name}.{key}" for key in given if key not in known]
        return list(dict.fromkeys(found))

    @classmethod
    def of(cls, token: str, written: Mapping[str, Any]) -> Self:
        """The row as a table has it, where names are lists."""
        sets = {one.name for one in fields(cls) if one.type == "_Names"}
        given: dict[str, Any] = {key: frozenset(one) if key in sets else one for key, one in written.items()}
        return cls(token=token, **given)

    def limits_broken(self, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Inputs with a value that the cloud does not take, and what it says to that; unknown ones are let through."""
        for name, (least, most) in self.ranges.items():
            if isinstance(value := inputs.get(name), int) and not least <= value <= most:
                yield name, f"expected {name} to be in the range ({least} - {most}), got {value}"
        for name, known in self.choices.items():
            if isinstance(value := inputs.get(name), int | str) and value not in known:
                yield name, f"expected {name} to be one of {list(known)}, got {value}"
        for name, (pattern, text) in self.patterns.items():
            if isinstance(value := inputs.get(name), str) and not re.fullmatch(pattern, value):
                yield name, f"{value!r} {text}"


_Some = TypeVar("_Some", bound=Row)


def load(kind: type[_Some], path: Path) -> dict[str, _Some]:
    """The rows of a table by token; keys that begin with a dot are anchors alone."""
    table = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return {token: kind.of(token, row) for token, row in table.items() if not token.startswith(".")}
