"""Makes a daily curve of replicas, as `whatif --curve` takes it, of a trace of kubereplay or SimKube.

Both kubereplay and SimKube record when Deployments were scaled. The factor of an hour is the most replicas that a
workload had in that hour (UTC), divided by those at the end of the trace, which the snapshot of the trace has. Of
several days, the highest counts. Hours after the end of the trace have those at the end; others that it does not cover
keep the factor of the hour before.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from . import kubereplay, simkube
from .conversion import data_of
from .problems import SnapshotError, broken, finding

_HOUR: Final = timedelta(hours=1)
_SCALED: Final = ("Deployment", "StatefulSet")


class _Change(NamedTuple):
    at: datetime
    workload: str
    replicas: int | None  # None: it is deleted


class Curve(NamedTuple):
    """A daily curve.

    Attributes:
        factors: Workload (`namespace/name`) -> hour of the day in UTC -> factor, for those whose replicas changed.
        left_out: Workloads whose replicas changed, and that have none at the end: there is nothing to multiply.
    """

    factors: dict[str, dict[int, float]]
    left_out: list[str]


def curve_of(path: Path) -> Curve:
    """Return the curve of a trace.

    Raises:
        SnapshotError: The file is no trace of kubereplay or SimKube, or no workload in it is scaled.
    """
    data = data_of(path)
    read = _of_kubereplay if kubereplay.is_kubereplay(data) else _of_simkube if simkube.is_simkube(data) else None
    if read is None:
        raise SnapshotError.of(finding("snapshot-curve-no-trace", path))
    try:
        changes = sorted(read(data), key=lambda one: one.at)
        end = kubereplay.moment(data, "captured") if "captured" in data else max(map(_at, data["events"]))
        histories: dict[str, list[_Change]] = {}
        for change in changes:
            histories.setdefault(change.workload, []).append(change)
        found = {name: hours for name, history in sorted(histories.items()) if (hours := _hours(history, end))}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise SnapshotError.of(finding("snapshot-curve-unreadable", path, error=broken(error))) from error
    if not found:
        raise SnapshotError.of(finding("snapshot-curve-nothing-scaled", path))
    at_zero = [name for name, history in histories.items() if history[-1].replicas == 0]
    return Curve(found, sorted(name for name in at_zero if any(one.replicas for one in histories[name])))


def as_csv(curve: Mapping[str, Mapping[int, float]]) -> str:
    """Return a curve as CSV, which `whatif --curve` reads."""
    text = io.StringIO()
    rows = ((workload, hour, f"{factor:g}") for workload, hours in curve.items() for hour, factor in hours.items())
    csv.writer(text, lineterminator="\n").writerows([("workload", "hour", "factor"), *rows])
    return text.getvalue()


def _hours(history: list[_Change], end: datetime) -> dict[int, float]:
    """Factors of the hours in which replicas change; empty where they never do, or the workload is gone at the end."""
    base = history[-1].replicas
    if not base or len({one.replicas for one in history}) == 1:
        return {}
    most: dict[int, int] = {}
    for change, after in pairwise([*history, _Change(max(end, history[-1].at), "", None)]):
        hour = change.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        while hour <= after.at and hour < change.at + timedelta(days=1):
            most[hour.hour] = max(most.get(hour.hour, 0), change.replicas or 0)
            hour += _HOUR
    most.setdefault(hour.hour, base)  # after the end, until an hour that the trace has
    factors = {hour: round(replicas / base, 4) for hour, replicas in sorted(most.items())}
    hours = list(factors.items())
    # The hour before the first is the last of the day before.
    turns = {hour: factor for number, (hour, factor) in enumerate(hours) if factor != hours[number - 1][1]}
    return turns or dict(hours[:1])


def _of_kubereplay(data: Mapping[str, Any]) -> Iterator[_Change]:
    for event in data.get("events") or ():
        if event["kind"] not in _SCALED:
            continue
        at = kubereplay.moment(event, "timestamp")
        match event["type"]:
            case "create":
                yield _Change(at, event["key"], _replicas(event[event["kind"].lower()]))
            case "scale":
                yield _Change(at, event["key"], int(event["replicas"]))
            case "delete":
                yield _Change(at, event["key"], None)


def _of_simkube(data: Mapping[str, Any]) -> Iterator[_Change]:
    for event in data["events"]:
        at = _at(event)
        yield from (_Change(at, _name(one), _replicas(one)) for one in _scaled(event["applied_objs"]))
        yield from (_Change(at, _name(one), None) for one in _scaled(event["deleted_objs"]))


def _at(event: Mapping[str, Any]) -> datetime:
    """When an event of SimKube was."""
    return datetime.fromtimestamp(int(event["ts"]), UTC)


def _scaled(objects: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (one for one in objects if one["kind"] in _SCALED)


def _name(one: Mapping[str, Any]) -> str:
    return f"{one['metadata'].get('namespace') or 'default'}/{one['metadata']['name']}"


def _replicas(one: Mapping[str, Any]) -> int:
    replicas = one["spec"].get("replicas")
    if (number := 1 if replicas is None else int(replicas)) < 0:
        raise ValueError(f"{number} replicas")
    return number
