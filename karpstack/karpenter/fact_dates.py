"""The dates of the facts: prices, sizes, images and calendars of versions. Reads the heads of `facts/`."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from .fact_files import FOLDER, own_file

#: Days after which facts are old, and after which a real cloud is no longer judged by them.
OLD, REFUSED = 60, 180
#: The head of a file, which says its day; instance types follow.
_HEAD = 4000
_DAYS = re.compile(r'"as_of": ?(\{[^}]*\})')
_DAY = re.compile(r'"(?:as_of|date)": ?"(\d{4}-\d\d-\d\d)"')


def today() -> date:
    """Return the day by which calendars and the age of facts are judged."""
    return date.today()


def played(cloud: str, day: date) -> date:
    """Return the day that a simulated cloud plays: this one, but none after its calendar of versions counts."""
    known = days(cloud).get(f"versions-{cloud}.json")
    return min(day, known + timedelta(days=REFUSED)) if known else day


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
