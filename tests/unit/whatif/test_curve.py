"""A daily curve of replicas."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.scenarios.curve import CurveError, load, of
from karpstack.whatif.labels import LABELS
from karpstack.whatif.replica_curve import ReplicaCurve
from tests.unit.command_line import karpstack
from tests.unit.whatif.live import Live

main = karpstack("whatif")

PROJECT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
CURVE = {"shop/*": {"8h": 1, "20h": 0.5}, "*": {"0": 0.25}}


@pytest.mark.parametrize(
    ("workload", "hour", "replicas"),
    [
        ("shop/web", 8, 10),
        ("shop/web", 19, 10),
        ("shop/web", 20, 5),
        ("shop/web", 3, 5),  # past midnight
        ("other/web", 8, 3),  # half of one is one
        ("shop/web", 7, 5),
    ],
)
def test_replicas_follow_the_hour(workload: str, hour: int, replicas: int) -> None:
    assert of(CURVE).replicas(workload, 10, NOON.replace(hour=hour)) == replicas


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_each_system_ends_them(tmp_path: Path, end: str) -> None:
    (tmp_path / "a.csv").write_bytes(end.join(["workload,hour,factor", "*,8,0.5", ""]).encode())
    assert load(tmp_path / "a.csv").replicas("shop/web", 10, NOON.replace(hour=8)) == 5


def test_what_no_pattern_matches_stays() -> None:
    assert of({"shop/*": {"0h": 0.1}}).replicas("other/web", 7, NOON) == 7


def test_turns_are_the_hours_that_are_named() -> None:
    turns = of(CURVE).turns(NOON, NOON + timedelta(hours=36))
    assert [(turn.day, turn.hour) for turn in turns] == [(23, 20), (24, 0), (24, 8), (24, 20)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yml", "", "has no workload"),
        ("a.yml", "{}", "has no workload"),
        ("a.yml", "[1]", "has no workload"),
        ("a.yml", "'*': {}", r"\* has no hours"),
        ("a.yml", "'*': {24h: 1}", "'24h' is no hour of the day"),
        ("a.yml", "'*': {8h: 1, 08h: 2}", "hour 8 stands there twice"),
        ("a.yml", "'*': {8h: many}", "'many' is no factor"),
        ("a.yml", "'*': {8h: -1}", "-1 is no factor"),
        ("a.yml", "'*': {8h: .nan}", "'.nan' is no number"),
        ("a.csv", "", "its first line is ''; write workload,hour,factor"),
        ("a.csv", "workload,hour,factor\n", "has no workload"),
        ("a.csv", 'workload,hour,factor\n"' + "x,8,1\n" * 40_000, "cannot be read .field larger than"),
        ("a.csv", "workload,hour,factor\n" + "x,8,1\n" * 200_000, "has more than 1 MiB"),
        ("a.csv", "workload,hour,factor\n*,8\n", "line 2 has 2 columns"),
        ("a.csv", "workload,hour,factor\n*,8,1\n*,8,2\n", "line 3: hour 8 of \\* stands there twice"),
        ("a.csv", "workload,hour,factor\n*,noon,1\n", "'noon' is no hour"),
        ("missing.yml", None, "cannot be read"),
    ],
)
def test_what_is_no_curve_is_refused(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(CurveError, match=f"{name}: .*{said}"):
        load(tmp_path / name)


def test_a_pipe_is_not_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(CurveError, match="a folder, a pipe or a device"):
        load(tmp_path / "a.csv")


def test_csv_and_yaml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("workload,hour,factor\nshop/*,20,0.5\nshop/*,8,1\n\n*,0,0.25\n")
    assert load(tmp_path / "a.csv") == of(CURVE)


def workload(name: str, replicas: int, kind: str = "Deployment") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "labels": LABELS},
        "spec": {"replicas": replicas},
    }


def test_workloads_are_scaled_by_what_they_had_first() -> None:
    cluster = Live(workload("web", 10), workload("db", 3, "StatefulSet"))
    tide = ReplicaCurve(cluster, of({"shop/web": {"8h": 1, "20h": 0.5}}))
    for hour in (21, 22, 9):
        tide.turn(NOON.replace(hour=hour))
    assert [(name, patch) for _, name, patch in cluster.changed] == [
        ("web", {"spec": {"replicas": 5}}),
        ("web", {"spec": {"replicas": 10}}),
    ]


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(CurveError, match=r"shop/wep matches no workload.*shop/web"):
        ReplicaCurve(Live(workload("web", 1)), of({"shop/wep": {"0h": 1}, "*": {"0h": 1}}))


def test_what_the_documents_show_is_read(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "how-to" / "whatif.md").read_text().partition("<!-- curve -->")[2]
    (tmp_path / "curve.yml").write_text(text.partition("```yaml")[2].partition("```")[0])
    assert load(tmp_path / "curve.yml").replicas("shop/web", 10, NOON.replace(hour=3)) == 3
    office = load(PROJECT / "examples" / "curves" / "office-hours.yml")
    assert [office.replicas("shop/web", 10, NOON.replace(hour=hour)) for hour in (3, 12)] == [5, 10]


def test_a_curve_is_checked_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curve", str(PROJECT / "examples" / "curves" / "office-hours.yml")]) == 0
    assert main(["curve", str(tmp_path / "absent.yml")]) == 2
    assert "absent.yml: cannot be read" in capsys.readouterr().err
