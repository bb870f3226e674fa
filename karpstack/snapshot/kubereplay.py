"""Reads the files of kubereplay, which `kubereplay capture` makes of an EKS cluster's audit logs.

https://github.com/aws/karpenter-provider-aws/tree/main/tools/kubereplay. A file tells which Deployments and Jobs were
made, scaled and deleted; what is read is what is left at its end. Pods and nodes are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from .left_out import Ledger
from .problems import SnapshotError, broken, finding

_VERSIONS: Final = {"Deployment": "apps/v1", "Job": "batch/v1"}


def is_kubereplay(data: Any) -> bool:
    """Whether JSON is such a file."""
    return isinstance(data, Mapping) and "captured" in data and isinstance(data.get("events"), list | None)


def objects(data: Mapping[str, Any], path: Path, ledger: Ledger) -> tuple[list[dict[str, Any]], datetime]:
    """The Deployments and Jobs at the end of a file, and when that was.

    Args:
        data: What the JSON holds.
        path: The file, which is named in errors.
        ledger: Gets what is left out.

    Raises:
        SnapshotError: An event is not as kubereplay writes it.
    """
    there: dict[tuple[str, str], dict[str, Any]] = {}
    events = data.get("events") or []
    try:
        captured = moment(data, "captured")
        ordered = sorted(events, key=lambda event: moment(event, "timestamp"))
        for event in ordered:
            _apply(event, there, ledger)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SnapshotError.of(finding("snapshot-not-kubereplay", path, error=broken(error))) from error
    jobs = sum(kind == "Job" for kind, _ in there)
    ledger.add("ends of Jobs", "kubereplay does not record them: each Job counts as if it still ran", jobs)
    return list(there.values()), captured


def moment(of: Mapping[str, Any], key: str) -> datetime:
    """Return a moment of a file.

    Raises:
        ValueError: It is none, or names no time zone, so it cannot be compared with others.
    """
    found = datetime.fromisoformat(of[key])
    if found.tzinfo is None:
        raise ValueError(f"{key}: {of[key]} names no time zone")
    return found


def _apply(event: Mapping[str, Any], there: dict[tuple[str, str], dict[str, Any]], ledger: Ledger) -> None:
    kind, key = event["kind"], event["key"]
    match event["type"]:
        case "create" if kind in _VERSIONS:
            made = event[kind.lower()]
            there[kind, key] = {**made, "apiVersion": _VERSIONS[kind], "kind": kind}
        case "scale" if (kind, key) in there:
            before = there[kind, key]
            there[kind, key] = {**before, "spec": {**before["spec"], "replicas": int(event["replicas"])}}
        case "delete" if (kind, key) in there:
            del there[kind, key]
        case "scale" | "delete":
            ledger.add("events of what was never made", "what it was is not in the file")
        case _:
            ledger.add("events of another kind", "the format does not have them")
