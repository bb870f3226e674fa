"""Where in `Pulumi.<stack>.yaml` a resource is configured, so that a finding can be shown beside that line.

Only what the file says: the entry of a NodePool or of a node class by its name, else the section from which
resources of a type are made. Where neither is there it is the file as a whole, which is line 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from rules import tokens

from .engine import Resource
from .model import Place

#: Sections by the resources that are made from them. The names are those of this repository's configuration.
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "nodePools": (tokens.NODE_POOL,),
    "nodeOverlays": (tokens.NODE_OVERLAY,),
    "nodeClasses": (tokens.EC2_NODE_CLASS, tokens.AKS_NODE_CLASS),
    "cluster": (tokens.CLUSTER, tokens.AKS_CLUSTER),
    "systemNodes": (tokens.NODE_GROUP, tokens.LAUNCH_TEMPLATE),
    "network": (
        *(tokens.VPC, tokens.SUBNET, tokens.SECURITY_GROUP, tokens.SECURITY_GROUP_RULE),
        *(tokens.SECURITY_GROUP_INGRESS_RULE, tokens.AZURE_NETWORK, tokens.AZURE_SECURITY_GROUP),
    ),
}
_NAMED: Final = ("nodePools", "nodeOverlays", "nodeClasses")
#: Bytes; the example environments have five thousand.
LONGEST: Final = 256 * 1024
_DEEPEST: Final = 50
# libyaml's is ten times as fast, and may crash on what is nested without end.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OF_TOKEN: Final = {token: section for section, of in _SECTIONS.items() for token in of}
#: Rules about a thing that has a section of its own, wherever the thing is found.
_OF_RULE: Final = {"tags-required": "tags"}


class Places:
    """The lines of one stack's configuration."""

    def __init__(self, path: Path, project: str, uri: str) -> None:
        """Read a file, which documents call `uri`; one that is missing, no YAML or far too long has the line 1 only."""
        self._project, self.uri = project, uri
        self._lines = _lines(path)

    def of(self, resource: Resource | None, rule: str = "") -> Place:
        """Where a resource, or what a rule wants of it, is configured."""
        if rule in _OF_RULE:
            # Where the section is not there yet, all of them are mended by writing it, and by nothing of their own.
            return self._find(f"{self._project}:{_OF_RULE[rule]}") or Place()
        section = _OF_TOKEN.get(resource.token) if resource else None
        if resource is None or section is None:
            return Place()
        key = f"{self._project}:{section}"
        metadata = resource.inputs.get("metadata")
        if section in _NAMED and isinstance(metadata, Mapping):
            named = self._find(key, str(metadata.get("name")))
            if named:
                return named
        return self._find(key) or Place()

    def _find(self, *path: str) -> Place | None:
        line = self._lines.get(path)
        return Place(line=line, key=".".join(path)) if line else None


def _lines(path: Path) -> dict[tuple[str, ...], int]:
    """Lines of the keys below `config`, two levels deep."""
    try:
        if not path.is_file() or path.stat().st_size > LONGEST:
            return {}
        text = path.read_text(encoding="utf-8")
        if _deep(text):
            return {}
        # Composed and not loaded: an alias stays one node, however much it stands for.
        root = yaml.compose(text, _LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    lines: dict[tuple[str, ...], int] = {}
    for top, config in _entries(root):
        if top.value != "config":
            continue
        for key, value in _entries(config):
            lines[key.value,] = key.start_mark.line + 1
            for name, _ in _entries(value):
                lines[key.value, name.value] = name.start_mark.line + 1
    return lines


def _deep(text: str) -> bool:
    """Whether more mappings and lists lie in each other than anybody would write."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return True
    return False


def _entries(node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        return []
    return [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
