"""Reads YAML that somebody else may have written: plain data, and no more of it than a person would write.

Read are mappings with text as keys, lists, text, numbers, yes and no, and null: what JSON has. A date stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from .files import open_file
from .shown import cut, visible

BYTES = 1024 * 1024  # of the file, and of the file with each alias written out
DEPTH = 40
_MARKS = 8  # bytes around a value: quotes, blanks, what keeps it from the next

_DIGITS = 40  # of a number
_TAG = "tag:yaml.org,2002:"
#: What kubectl takes for the end of a document, or for no end of a line, where YAML does not.
_SPLIT_OTHERWISE: Final = re.compile(
    rb"^---(?!(?:[ \t]+#[^\n]*|[ \t]*)\r?$)|\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]", re.MULTILINE
)
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
#: Text that kubectl takes for a number, yes or no (sigs.k8s.io/yaml, goyaml.v2/resolve.go).
_NO_TEXT_OF_KUBECTL: Final = re.compile(
    r"[yYnN]|[-+]?0[bBoOxX][0-9a-fA-F_]+|[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
)
# libyaml's is ten times as fast; the same classes of PyYAML make the values.
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """A file that is not read; the text says why, and what to do."""


class _Loader(_BASE):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (f"{_TAG}timestamp", f"{_TAG}value")]
        for first, resolvers in _BASE.yaml_implicit_resolvers.items()
    }

    def construct_number(self, node: Any) -> float:
        made = self.construct_yaml_int if node.tag == f"{_TAG}int" else self.construct_yaml_float
        try:
            number: float = made(node) if len(node.value) <= _DIGITS else math.inf
        except ValueError:  # 0x_ is one by YAML's pattern
            number = math.nan
        if not math.isfinite(number):
            raise _at(node, f"{_text(node)} is no number to reckon with; write another, or put it in quotes")
        return number


for kind in ("int", "float"):
    _Loader.add_constructor(f"{_TAG}{kind}", _Loader.construct_number)


def read(path: Path) -> Any:
    """What a YAML file holds; None if it is empty.

    Raises:
        YamlError: It cannot be read, is not YAML, or is more than anybody would write.
    """
    return parse(content(path))


def content(path: Path) -> bytes:
    """The bytes of a file that a person has written.

    Raises:
        YamlError: It cannot be read, or is more than anybody would write.
    """
    try:
        with open_file(path) as file:
            found = file.read(BYTES + 1)
    except OSError as error:
        raise YamlError(f"cannot be read ({error.strerror})") from error
    if len(found) > BYTES:
        raise YamlError(f"has more than {BYTES >> 20} MiB, so it is not read; make it smaller")
    return found


def parse(content: bytes) -> Any:
    """What YAML holds; None if it holds nothing.

    Raises:
        YamlError: It is not YAML, or more than anybody would write.
    """
    return next(iter(_documents(content, BYTES, single=True)), None)


def parse_all(content: bytes, most: int = BYTES) -> list[Any]:
    """What each document of YAML holds, as `helm template` and `kubectl kustomize` print them; empty ones are left out.

    Args:
        most: Bytes, with each alias written out.

    Raises:
        YamlError: One is not YAML, more than anybody would write, or something that kubectl reads otherwise.
    """
    if content.startswith(_UTF_16):
        raise YamlError("is UTF-16, which kubectl does not read; write it as UTF-8")
    if found := _SPLIT_OTHERWISE.search(content):
        line = content.count(b"\n", 0, found.start()) + 1
        why = "kubectl ends a document or a line elsewhere; end lines with a line feed, and leave --- alone on its line"
        raise YamlError(f"line {line}: {why}")
    return [one for one in _documents(content, most, single=False) if one is not None]


def _documents(content: bytes, most: int, *, single: bool) -> list[Any]:
    try:
        _measure(yaml.parse(content, Loader=_Loader), most)
        loader = _Loader(content)
        found: list[Any] = []
        try:
            while loader.check_node():
                node = loader.get_node()
                if single and found:
                    where = node.start_mark.line + 1
                    raise YamlError(f"not YAML; mend it: line {where}: but found another document")
                _check(node, is_kubectls=not single)
                found.append(loader.construct_document(node))
        finally:
            loader.dispose()
        return found
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        why = tab_at(content, error) or f"{where}{error.problem}"
        raise YamlError(f"not YAML; mend it: {cut(visible(why), 200)}") from error
    except yaml.YAMLError as error:
        why = " ".join(str(error).split())
        raise YamlError(f"not YAML; mend it: {cut(visible(why), 200)}") from error


def tab_at(content: bytes, error: yaml.MarkedYAMLError) -> str:
    """What is wrong where a tab indents YAML, which the parser calls a character that cannot start a token."""
    lines = content.decode(errors="replace").splitlines()
    number = error.problem_mark.line if error.problem_mark else len(lines)
    line = lines[number] if number < len(lines) else ""
    indented = "\t" in line[: len(line) - len(line.lstrip())]
    return f"line {number + 1} is indented with a tab, which YAML does not take; use spaces" if indented else ""


def _measure(events: Iterator[Any], most: int) -> None:
    """Refuse what is too deep or too much, before anything is made of it."""
    size = 0  # with each alias written out
    sizes: dict[str, int | None] = {}  # of what each anchor stands for; None while it is open
    opened: list[tuple[str | None, int]] = []
    for event in events:
        anchor = getattr(event, "anchor", None)
        if tag := getattr(event, "tag", None):
            raise _at(event, f"the tag {cut(visible(tag), 60)} makes something else than data; leave it out")
        if isinstance(event, yaml.AliasEvent):
            known = sizes.get(str(anchor), 0)
            if known is None:
                raise _at(event, f"*{cut(visible(anchor), 60)} would hold itself without end; write it out")
            size += known
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((anchor, size))
            if anchor:
                sizes[anchor] = None
            size += _MARKS
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor:
                sizes[anchor] = size - before
        elif isinstance(event, yaml.ScalarEvent):
            size += len(event.value) + _MARKS
            if anchor:
                sizes[anchor] = len(event.value) + _MARKS
        if len(opened) > DEPTH:
            raise _at(event, f"more than {DEPTH} levels deep, so it is not read; make it flatter")
        if size > most:
            raise _at(event, f"more than {most >> 20} MiB, aliases (*) written out, so it is not read; make it smaller")


def _check(root: Any, *, is_kubectls: bool) -> None:
    """Refuse keys that are not text, keys told twice, of which the last would count, and what kubectl has otherwise."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        if is_kubectls:
            _as_kubectl(node)
        inner: list[Any] = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for name, _ in node.value:
                if is_kubectls:
                    _as_kubectl(name, is_key=True)
                if name.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                    raise _at(name, f"the key {_text(name)} is not text, so nothing would find it; put it in quotes")
                if name.value in keys:
                    raise _at(name, f"the key {_text(name)} is there twice, of which one would be lost; remove one")
                keys.add(name.value)
            inner = [child for _, child in node.value]
        waiting += [child for child in inner if id(child) not in seen]
        seen.update(map(id, inner))


def _as_kubectl(node: Any, *, is_key: bool = False) -> None:
    """Make text of what is text for kubectl, and refuse what it reads otherwise."""
    if node.tag == f"{_TAG}merge":
        raise _at(node, "kubectl merges << in another order than YAML says; write it out")
    if not isinstance(node, yaml.ScalarNode) or node.style:
        return
    if node.tag in (f"{_TAG}int", f"{_TAG}float"):
        if ":" in node.value or (is_key and _INTEGER.fullmatch(node.value)):
            node.tag = f"{_TAG}str"
    elif node.tag == f"{_TAG}str" and _NO_TEXT_OF_KUBECTL.fullmatch(node.value) and not _is_beyond_numbers(node.value):
        raise _at(node, f"kubectl reads {_text(node)} as another value than YAML says; put it in quotes")


def _is_beyond_numbers(text: str) -> bool:
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _text(node: Any) -> str:
    return cut(repr(node.value), 60) if isinstance(node, yaml.ScalarNode) else "that is a list or a mapping"


def _at(node: Any, why: str) -> YamlError:
    return YamlError(f"line {node.start_mark.line + 1}: {why}")
