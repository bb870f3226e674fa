"""Traces of kubereplay and SimKube as daily curves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.scenarios.curve import load
from karpstack.snapshot.problems import SnapshotError
from karpstack.snapshot.trace_curve import curve_of
from tests.unit.command_line import karpstack

main = karpstack("snapshot")

TRACE = Path(__file__).parent / "data" / "simkube-trace.json"
WEB = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}}

MIDNIGHT = 1795132800  # 2026-11-20T00:00:00Z


def kubereplay(*events: tuple[str, str, int | None]) -> dict[str, Any]:
    """A file of kubereplay: hour and minute, what, and replicas."""
    found = [
        {
            "type": kind,
            "kind": "Deployment",
            "key": "shop/web",
            "timestamp": f"2026-11-20T{at}:00Z",
            **({"deployment": WEB} if kind == "create" else {}),
            **({"replicas": replicas} if replicas is not None else {}),
        }
        for at, kind, replicas in events
    ]
    return {"captured": "2026-11-20T23:00:00Z", "events": found}


def simkube(*events: tuple[int, int]) -> dict[str, Any]:
    """A trace as SimKube's own, with other moments and replicas: hours since midnight."""
    trace: dict[str, Any] = json.loads(TRACE.read_text())
    (event,) = trace["events"]
    (nginx,) = event["applied_objs"]
    trace["events"] = [
        {
            "ts": MIDNIGHT + hour * 3600,
            "applied_objs": [{**nginx, "spec": {**nginx["spec"], "replicas": replicas}}],
            "deleted_objs": [],
        }
        for hour, replicas in events
    ]
    return trace


def ending_later(trace: dict[str, Any], hour: int) -> dict[str, Any]:
    """With an event of something else after midnight: until then, what was scaled last stayed as it was."""
    last = trace["events"][-1]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "nightly", "namespace": "shop"}}
    trace["events"].insert(0, {**last, "ts": MIDNIGHT + hour * 3600, "applied_objs": [job]})
    return trace


@pytest.mark.parametrize(
    ("trace", "curve"),
    [
        (kubereplay(("01:00", "create", None), ("08:30", "scale", 8), ("18:10", "scale", 4)), {1: 0.5, 8: 2, 19: 1}),
        (kubereplay(("01:00", "create", None), ("08:30", "scale", 8), ("08:40", "scale", 2)), {8: 4, 9: 1}),
        (simkube((0, 3), (9, 12), (17, 6)), {0: 0.5, 9: 2, 18: 1}),
        (ending_later(simkube((0, 4), (30, 8), (54, 4)), 60), {0: 2}),
        (ending_later(simkube((0, 3), (9, 12), (17, 6)), 30), {7: 0.5, 9: 2, 18: 1}),
    ],
)
def test_an_hour_has_the_most_replicas_of_it(tmp_path: Path, trace: dict[str, Any], curve: dict[int, float]) -> None:
    path, output = tmp_path / "trace.json", tmp_path / "curve.csv"
    path.write_text(json.dumps(trace))
    assert list(curve_of(path).factors.values()) == [curve]
    assert main(["curve", str(path), "--output", str(output)]) == 0
    assert [dict(hours) for hours in load(output).factors.values()] == [curve]


def test_a_workload_that_has_none_at_the_end_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A namespace for development at night: without a word, its days would be missing in the what-if."""
    trace = simkube((0, 3), (9, 12), (17, 6))
    sleeping = simkube((1, 10), (20, 0))["events"]
    for event in sleeping:
        event["applied_objs"] = [
            {**one, "metadata": {**one["metadata"], "name": "sleeps"}} for one in event["applied_objs"]
        ]
    trace["events"] += sleeping
    (path := tmp_path / "trace.json").write_text(json.dumps(trace))
    assert main(["curve", str(path), "--output", str(tmp_path / "curve.csv")]) == 0
    assert "/sleeps, which had replicas and has 0 when the trace ends" in capsys.readouterr().out
    assert "sleeps" not in (tmp_path / "curve.csv").read_text()


@pytest.mark.parametrize(
    ("trace", "code"),
    [
        ({"kind": "List"}, "no-trace"),
        (json.loads(TRACE.read_text()), "nothing-scaled"),
        (kubereplay(("01:00", "create", None), ("02:00", "scale", 9), ("03:00", "delete", None)), "nothing-scaled"),
        (kubereplay(("1 o'clock", "create", None)), "unreadable"),
        (simkube((0, 3), (9, -12)), "unreadable"),
    ],
)
def test_what_gives_no_curve_is_refused(tmp_path: Path, trace: dict[str, Any], code: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    with pytest.raises(SnapshotError) as refused:
        curve_of(path)
    assert [one.code for one in refused.value.findings] == [f"snapshot-curve-{code}"]
    assert main(["curve", str(path), "--output", str(tmp_path / "curve.csv")]) == 2
    assert not (tmp_path / "curve.csv").exists()


@pytest.mark.parametrize("captured", ["2026-11-20T23:00:00", "9999-12-31T23:59:59Z"])
def test_a_moment_that_cannot_be_compared_is_an_error_of_the_file(
    captured: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = kubereplay(("01:00", "create", None), ("08:30", "scale", 8))
    trace["events"][1]["timestamp"] = captured if captured.endswith("Z") else trace["events"][1]["timestamp"]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**trace, "captured": captured}))
    assert main(["curve", str(path), "--output", str(tmp_path / "curve.csv")]) == 2
    assert "trace.json" in capsys.readouterr().err
