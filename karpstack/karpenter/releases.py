"""Which Kubernetes versions a managed service offers on a day: reads `facts/versions-<cloud>.json`.

Services call the two parts of a version's life differently: standard and extended support on EKS, community support
and Long-Term Support on AKS. A day from which something no longer holds is the first without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final, Literal

from .fact_files import FOLDER, load, no_facts, own_file

#: planned: not yet offered, or not seen to be. newer: the facts end before it. ended: refused for a new cluster.
Status = Literal["planned", "standard", "extended", "ended", "newer"]

_OFFERED: Final = ("standard", "extended")


@dataclass(frozen=True)
class Release:
    """One minor version of Kubernetes at a service.

    Attributes:
        version: As `1.36`.
        begins: The first day on which it is offered.
        standard: The first day without standard support.
        extended: The first day on which it is refused.
        planned: Whether the service had announced no more than the plan when the facts were written.
    """

    version: str
    begins: date
    standard: date
    extended: date
    planned: bool = False

    def status(self, today: date) -> Status:
        """What it is on a day."""
        if today >= self.extended:
            return "ended"
        if today >= self.standard:
            return "extended"
        return "planned" if self.planned or today < self.begins else "standard"


@cache
def releases(cloud: str) -> dict[str, Release]:
    """The versions that are known, by their numbers, the oldest first. `cloud` is `aws` or `azure`."""
    name = f"versions-{cloud}.json"
    data = load(name)
    try:
        return {
            version: Release(
                version,
                begins=date.fromisoformat(found["from"]),
                standard=date.fromisoformat(found["standard"]),
                extended=date.fromisoformat(found["extended"]),
                planned=found.get("planned", False),
            )
            for version, found in data["versions"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise no_facts(own_file(name) or FOLDER / name, error) from error


def status(cloud: str, version: str, today: date) -> Status:
    """What a minor version such as `1.36` is on a day."""
    known = releases(cloud)
    if version in known:
        return known[version].status(today)
    return "newer" if number(version) > max(map(number, known)) else "ended"


def offered(cloud: str, today: date) -> tuple[str, ...]:
    """The versions that a new cluster may have on a day, the oldest first."""
    return tuple(version for version, found in releases(cloud).items() if found.status(today) in _OFFERED)


def number(version: str) -> tuple[int, ...]:
    """`1.36` as numbers, which compare as versions do."""
    return tuple(map(int, version.split(".")))
