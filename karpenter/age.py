"""The days from which the facts are: prices, sizes, images, and calendars of versions. Reads the heads of `facts/`."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path

from .fact_files import FOLDER, own_file

#: Days from which on facts are old.
OLD = 60
#: The head of a file, which says its day; instance types follow.
_HEAD = 4000
_DAYS = re.compile(r'"as_of": ?(\{[^}]*\})')
_DAY = re.compile(r'"(?:as_of|date)": ?"(\d{4}-\d\d-\d\d)"')


def old_prices(cloud: str, today: date, region: str = "") -> str:
    """Return a sentence on the price table of a cloud if it is older than 60 days; empty if it is not."""
    day = days(cloud, region).get(f"{cloud}.json")
    if day is None or (age := (today - day).days) <= OLD:
        return ""
    return f"The list prices are of {day} and {age} days old: they may have changed."


@cache
def days(cloud: str, region: str = "") -> dict[str, date]:
    """Return the day of each file of a cloud by the file's name, for a region that the project may have refreshed.

    Args:
        cloud: `aws` or `azure`.
        region: Of files about instance types, the region that counts.
    """
    found: dict[str, date] = {}
    for path in sorted(FOLDER.glob(f"*{cloud}.json")):
        own = own_file(path.name)
        known = [day for each in (path, own) if each and (day := _day(each, region))]
        if known:
            found[path.name] = max(known)
    return found


def _day(path: Path, region: str) -> date | None:
    with path.open(encoding="utf-8") as file:
        head = file.read(_HEAD)
    days = _DAYS.search(head)
    found = re.search(rf'"{re.escape(region)}": ?"(\d{{4}}-\d\d-\d\d)"', days[1]) if days else _DAY.search(head)
    return date.fromisoformat(found[1]) if found else None
