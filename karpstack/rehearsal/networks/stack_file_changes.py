"""Change the settings of a stack file and keep its comments."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.tokens import CommentToken

#: Columns by which the stack files that ship are indented, and beyond which nothing is folded.
_INDENT: Final = {"mapping": 2, "sequence": 4, "offset": 2}
_WIDTH: Final = 4096


@dataclass(frozen=True)
class ChangedStackFile:
    """The new content of a stack file.

    Attributes:
        text: Its new text.
        added: What was not set, in words: `karpstack:network.vpcId = "vpc-1"`.
        differs: What was set to something else, or has to go, in words.
    """

    text: str
    added: tuple[str, ...]
    differs: tuple[str, ...]


def change_stack_file(
    path: Path, wanted: Mapping[str, Mapping[str, Any]], without: Mapping[str, Sequence[str]]
) -> ChangedStackFile:
    """A stack file in which sections say what is wanted.

    Args:
        path: The file; it is not written.
        wanted: Values by section (`karpstack:network`) and key.
        without: Keys that a section may not have beside them.

    Raises:
        ValueError: A section is none.
    """
    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, _WIDTH
    yaml.indent(**_INDENT)
    try:
        text = path.read_bytes().decode()
        content = yaml.load(text.replace("\r\n", "\n"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be written with its comments ({error}); leave --write out") from error
    config, added, differs = content["config"], [], []
    for name, values in wanted.items():
        section = config.setdefault(name, CommentedMap())
        if not isinstance(section, CommentedMap):
            raise ValueError(
                f"{path}: {name} is one value, into which nothing can be merged; write it as keys and values, or leave "
                "--write out"
            )
        # In front: what follows the last key may be about the next section.
        for key, value in reversed([*values.items()]):
            if key not in section:
                added.append(f"{name}.{key} = {_shown(value)}")
                section.insert(0, key, value)
            elif section[key] != value:
                differs.append(f"{name}.{key} = {_shown(value)} instead of {_shown(section[key])}")
                section[key] = value
        for key in without.get(name, ()):
            if key in section:
                differs.append(f"{name}.{key} = {_shown(section[key])} goes")
                _remove(section, key)
    output = io.StringIO(newline="\r\n" if "\r\n" in text else "\n")
    yaml.dump(content, output)
    return ChangedStackFile(output.getvalue(), tuple(added), tuple(differs))


def _remove(section: CommentedMap, key: str) -> None:
    """Remove a key with the comment on its line; the lines below stay, which belong to what follows.

    ruamel.yaml keeps both with the key before them, or with the last entry of its list.
    """
    value, before = section[key], [*section][[*section].index(key) - 1]
    kept = section.ca.items.get(key, [None] * 4)[2]
    if kept is None and isinstance(value, CommentedSeq) and value:
        kept = value.ca.items.get(len(value) - 1, [None])[0]
    below = kept.value.partition("\n")[2] if kept else ""
    del section[key]
    if below.strip():
        tokens = section.ca.items.setdefault(before, [None] * 4)
        own = tokens[2].value if tokens[2] else "\n"
        tokens[2] = CommentToken(own + below, CommentMark(0))


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)
