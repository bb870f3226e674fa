"""The files of facts: where each is read from, and how it is written.

The project's own files, in `karpstack-facts/` beside Pulumi.yaml, go before the packaged ones where they are newer. In
files about instance types each region counts by itself. facts/README.md describes the formats.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

#: The facts that come with this package.
FOLDER: Final = Path(__file__).resolve().parent / "facts"
#: Names the folder of the project's own facts, if it is another.
VARIABLE: Final = "KARPSTACK_FACTS"
_OWN: Final = "karpstack-facts"
_PROJECT: Final = "Pulumi.yaml"
#: How a file begins.
_BEGINS: Final = re.compile(rb'\{\s*("cloud": *"(aws|azure)",\s*)?"source":')
#: Keys with a line for each item.
_LONG: Final = frozenset({"families", "sold", "types", "versions"})


class FactsError(ValueError):
    """A file of facts that cannot be read."""


def own_folder() -> Path | None:
    """Return the folder of the project's own facts, which may not exist; None outside of a project."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    here = Path.cwd()
    return next((each / _OWN for each in (here, *here.parents) if (each / _PROJECT).is_file()), None)


def own_file(name: str) -> Path | None:
    """Return the project's own file of a name; None where there is none."""
    folder = own_folder()
    return folder / name if folder and folder != FOLDER and (folder / name).is_file() else None


def load(name: str) -> dict[str, Any]:
    """Return the content of the packaged file of a name, with what the project's own file has newer.

    Raises:
        FactsError: A file is missing, or is no such file.
    """
    packaged, own = read(FOLDER / name), own_file(name)
    if own is None:
        return packaged
    newer = read(own)
    try:
        # A packaged file of another version, which may be given as well, tells its day elsewhere.
        days = newer.get("as_of") or made(newer)
        if isinstance(days, str):
            return newer if days > made(packaged) else packaged
        regions = {region for region, day in days.items() if day > made(packaged)}
        return (merged_types if "types" in packaged else merged_offers)(packaged, newer, regions)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise no_facts(own, error) from error


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file.

    Raises:
        FactsError: It is missing, or it is no object in JSON.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found.keys()
    except OSError as error:
        raise FactsError(
            f"{path}: {error.strerror}, so instance types, prices and versions are not known; take karpenter/facts/ of "
            "the repository, or write it with `make facts`"
        ) from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise no_facts(path, error) from error
    return dict(found)


def begins_as_one(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes is a file of facts."""
    return _BEGINS.match(beginning) is not None


def no_facts(path: Path, error: Exception) -> FactsError:
    """Return the error of a file that has another shape."""
    return FactsError(
        f"{path}: {type(error).__name__} {error}: not a file of facts, so instance types, prices and versions are not "
        "known; write it again with `make facts`, or remove it and refresh the facts (docs/how-to/facts.md)"
    )


def made(document: Mapping[str, Any]) -> str:
    """Return the day of a packaged document, `2026-07-20`."""
    day = document.get("as_of") or document["source"]["prices"]["date"]
    return str(day)


def entries(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the instance types of a document, each with its own labels by key and its zones by region."""
    return [
        one
        | {
            "zones": document["zones"][one["zones"]],
            "labels": {
                key: value for key, value in zip(document["labels"], one["labels"], strict=True) if value is not None
            },
        }
        for one in document["types"]
    ]


def types_document(head: Mapping[str, Any], types: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document of instance types, as `entries` has them; what repeats itself is in the head once."""
    types = list(types)
    labels = sorted({key for one in types for key in one["labels"]})
    zones = sorted({json.dumps(one["zones"], sort_keys=True) for one in types})
    return {
        **head,
        "labels": labels,
        "zones": [json.loads(text) for text in zones],
        "types": [
            {
                **one,
                "labels": [one["labels"].get(key) for key in labels],
                "zones": zones.index(json.dumps(one["zones"], sort_keys=True)),
            }
            for one in types
        ],
    }


def merged_types(old: Mapping[str, Any], new: Mapping[str, Any], regions: Iterable[str]) -> dict[str, Any]:
    """Return a document of instance types with some regions taken from another."""
    regions = set(regions)
    together = {one["name"]: one for one in entries(old)}
    for name, one in together.items():
        together[name] = one | {key: _without(one[key], regions) for key in ("zones", "on_demand")}
    for one in entries(new):
        if here := regions & one["on_demand"].keys():
            before = together.get(one["name"], {"zones": {}, "on_demand": {}})
            together[one["name"]] = one | {
                key: before[key] | {region: one[key][region] for region in sorted(here) if region in one[key]}
                for key in ("zones", "on_demand")
            }
    sold = [one for _, one in sorted(together.items()) if one["on_demand"]]
    head = {key: value for key, value in old.items() if key not in ("labels", "zones", "types")}
    return types_document(head | {"regions": sorted({*old["regions"], *regions})}, sold)


def offers_document(
    head: Mapping[str, Any], regions: Mapping[str, list[str]], sold: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return the document of what regions sell; `regions` has their zones, `sold` the regions of each type."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name, where in sorted(sold.items()):
        together.setdefault(tuple(sorted(where)), []).append(name)
    return {
        **head,
        "regions": dict(sorted(regions.items())),
        "sold": [{"regions": list(where), "names": names} for where, names in sorted(together.items()) if where],
    }


def merged_offers(old: Mapping[str, Any], new: Mapping[str, Any], regions: Iterable[str]) -> dict[str, Any]:
    """Return a document of what regions sell with some regions taken from another."""
    regions = set(regions)
    sold: dict[str, set[str]] = {}
    for document, wanted in ((old, old["regions"].keys() - regions), (new, new["regions"].keys() & regions)):
        for one in document["sold"]:
            for name in one["names"]:
                sold.setdefault(name, set()).update(wanted & set(one["regions"]))
    head = {key: value for key, value in old.items() if key not in ("regions", "sold")}
    return offers_document(head, old["regions"] | {one: new["regions"][one] for one in regions}, sold)


def text(document: Mapping[str, Any]) -> str:
    """Return the text of a file: JSON with a line for each key of the head, each instance type, region and version."""
    lines = (f'"{key}": {_value(key, value)}' for key, value in document.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(key: str, value: Any) -> str:
    if isinstance(value, dict) and (key in _LONG or key == "regions"):
        return "{\n" + ",\n".join(f'"{name}": {_compact(one)}' for name, one in value.items()) + "\n}"
    if isinstance(value, list) and key in _LONG:
        return "[\n" + ",\n".join(map(_compact, value)) + "\n]"
    return _compact(value)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _without(values: Mapping[str, Any], regions: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in regions}
