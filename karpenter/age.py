"""The days from which the facts are: prices, sizes, images, and calendars of versions. Reads the heads of `facts/`."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

from .instance_types import FOLDER

#: Days from which on facts are old.
OLD = 60
#: The head of a file, which says its day; instance types follow.
_HEAD = 2000
_DAY = re.compile(r'"(?:as_of|date)": ?"(\d{4}-\d\d-\d\d)"')


def old_prices(cloud: str, today: date) -> str:
    """Return a sentence on the price table of a cloud if it is older than 60 days; empty if it is not."""
    day = days(cloud).get(f"{cloud}.json")
    if day is None or (age := (today - day).days) <= OLD:
        return ""
    return f"The list prices are of {day} and {age} days old: they may have changed."


@cache
def days(cloud: str) -> dict[str, date]:
    """Return the day of each file of a cloud by the file's name. `cloud` is `aws` or `azure`."""
    found: dict[str, date] = {}
    for path in sorted(FOLDER.glob(f"*{cloud}.json")):
        with path.open(encoding="utf-8") as file:
            if day := _DAY.search(file.read(_HEAD)):
                found[path.name] = date.fromisoformat(day[1])
    return found
