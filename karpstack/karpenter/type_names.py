"""What the names of instance types say by themselves, and whether one that is not known may be new or is misspelt.

EC2's are `m5ad.4xlarge`: category, generation, letters for properties, size. Azure's VM sizes are
`Standard_E4-2ads_v5`: family, virtual processors, letters for properties, version of the series. A name is taken for
new when it goes on from those that are known: the next generation, with letters and sizes that exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Final, Literal, NamedTuple

from .instance_types import INSTANCE_TYPE

#: known: it exists. newer: it may, since the facts were written. wrong: it does not.
Verdict = Literal["known", "newer", "wrong"]

AWS_FAMILY: Final = "karpenter.k8s.aws/instance-family"
AWS_SIZE: Final = "karpenter.k8s.aws/instance-size"
AZURE_NAME: Final = "karpenter.azure.com/sku-name"
_AWS_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
_AWS_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
_AZURE_FAMILY: Final = "karpenter.azure.com/sku-family"
_AZURE_VERSION: Final = "karpenter.azure.com/sku-version"
#: The labels whose values follow from a type's name and are no numbers.
NAMED: Final = frozenset({AWS_FAMILY, AWS_SIZE, AZURE_NAME, _AWS_CATEGORY, _AZURE_FAMILY})

#: How far beyond the newest generation a name may be and still be something new.
_AHEAD: Final = 2
_AWS: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]{1,6})([a-z]*)[a-z0-9-]*\.(.+)", re.ASCII)
_AWS_SIZES: Final = re.compile(r"nano|micro|small|medium|large|[0-9]{0,3}xlarge|metal(-[0-9]{1,3}xl)?", re.ASCII)
_AZURE: Final = re.compile(r"Standard_([A-Z]+)([0-9]+)(?:-[0-9]+)?([a-z]*)[A-Za-z0-9_-]*?(?:_v([0-9]{1,6}))?", re.ASCII)


class _Parts(NamedTuple):
    """A name, taken apart.

    Attributes:
        category: The letters that it begins with.
        generation: Its generation, or the version of its series.
        letters: Those of its further properties.
        size: What says how large it is.
    """

    category: str
    generation: int
    letters: frozenset[str]
    size: str


class Names:
    """All names of one cloud."""

    def __init__(self, cloud: str, names: Collection[str]) -> None:
        self._cloud = cloud
        self._names = frozenset(names)

    def verdict(self, name: str) -> Verdict:
        """Whether there is such an instance type."""
        if name in self._names:
            return "known"
        parts = self._parts(name)
        if parts is None or parts.category not in self._newest or not parts.letters <= self._letters:
            return "wrong"
        if not (self.is_size(parts.size) if self._cloud == "aws" else parts[::3] in self._sizes):
            return "wrong"
        newest = self._newest[parts.category]
        # A family may be added beside those of the last generation but one; to an older one nothing is added.
        least = newest if self._cloud == "azure" or _family(name) in self._families else newest - 1
        return "newer" if least <= parts.generation <= newest + _AHEAD else "wrong"

    def family(self, family: str) -> Verdict:
        """Whether EC2 has such a family."""
        return "known" if family in self._families else self.verdict(f"{family}.large")

    @staticmethod
    def is_size(size: str) -> bool:
        """Whether a text can be one of EC2's sizes."""
        return _AWS_SIZES.fullmatch(size) is not None

    def labels(self, name: str) -> dict[str, str]:
        """The labels of a node of this type, as far as they follow from the name."""
        parts = self._parts(name)
        labels = {INSTANCE_TYPE: name}
        if self._cloud == "azure":
            labels[AZURE_NAME] = name
        else:
            labels |= {AWS_FAMILY: _family(name), AWS_SIZE: name.partition(".")[2]}
        if parts:
            kind, age = (_AWS_CATEGORY, _AWS_GENERATION) if self._cloud == "aws" else (_AZURE_FAMILY, _AZURE_VERSION)
            # For Karpenter a family of Azure is one letter; those after it name a branch.
            labels |= {kind: parts.category[: None if self._cloud == "aws" else 1], age: str(parts.generation)}
        return labels

    @cached_property
    def values(self) -> Mapping[str, tuple[str, ...]]:
        """The values that occur of each label that follows from the name and is no number."""
        found: dict[str, set[str]] = {}
        for name in self._names:
            for key, value in self.labels(name).items():
                found.setdefault(key, set()).add(value)
        return {
            key: tuple(sorted(values)) for key, values in found.items() if key not in (_AWS_GENERATION, _AZURE_VERSION)
        }

    @cached_property
    def _families(self) -> frozenset[str]:
        return frozenset(map(_family, self._names))

    @cached_property
    def _known(self) -> tuple[_Parts, ...]:
        return tuple(parts for name in self._names if (parts := self._parts(name)))

    @cached_property
    def _newest(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for parts in self._known:
            found[parts.category] = max(parts.generation, found.get(parts.category, 0))
        return found

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset(letter for parts in self._known for letter in parts.letters)

    @cached_property
    def _sizes(self) -> frozenset[tuple[object, ...]]:
        return frozenset(parts[::3] for parts in self._known)

    def _parts(self, name: str) -> _Parts | None:
        if match := (_AWS if self._cloud == "aws" else _AZURE).fullmatch(name):
            if self._cloud == "aws":
                return _Parts(match[1], int(match[2]), frozenset(match[3]), match[4])
            return _Parts(match[1], int(match[4] or 1), frozenset(match[3]), match[2])
        return None


def _family(name: str) -> str:
    return name.partition(".")[0]
