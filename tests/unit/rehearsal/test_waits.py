"""Shortened waits of a what-if: what is changed in Pulumi's copy of a stack file, and what is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.waits import Waits, longest

KEY = "karpstack:nodePools"
SUNDAY_NIGHT = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
MONDAY_NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
AT_WEEKENDS = {"nodes": "30%", "schedule": "0 0 * * sat", "duration": "48h", "reasons": ["Drifted"]}


def pool(**disruption: Any) -> dict[str, Any]:
    return {KEY: {"default": {"weight": 3, "disruption": disruption}}}


def used(waits: Waits, **disruption: Any) -> dict[str, Any]:
    found: dict[str, Any] = waits.applied(pool(**disruption))[KEY]["default"]["disruption"]
    return found


@pytest.mark.parametrize(
    ("asked", "shortened"), [("30m", "180s"), ("1h30m", "540s"), ("5s", "1s"), ("0s", "0s"), ("Never", "Never")]
)
def test_consolidate_after_is_divided_and_never_rounded_to_nothing(asked: str, shortened: str) -> None:
    assert used(Waits(factor=10), consolidateAfter=asked) == {"consolidateAfter": shortened}


def test_the_longest_wait_of_all_sides_is_that_of_a_node_pool_that_can_be_read() -> None:
    sides = [pool(consolidateAfter=asked) for asked in ("30s", "1h30m", "Never", "soon")]
    assert longest(*sides, {KEY: "no"}, {}) == timedelta(minutes=90)
    assert longest({}) == timedelta()


def test_a_budget_is_as_at_the_moment_that_is_asked_for() -> None:
    budgets = [AT_WEEKENDS, {"nodes": "10%"}]
    assert used(Waits(at=SUNDAY_NIGHT), budgets=budgets)["budgets"] == [
        {"nodes": "30%", "reasons": ["Drifted"]},
        {"nodes": "10%"},
    ]
    assert used(Waits(at=MONDAY_NOON), budgets=budgets)["budgets"] == [{"nodes": "10%"}]


def test_where_no_budget_is_active_all_nodes_may_go_and_not_karpenters_default() -> None:
    assert used(Waits(at=MONDAY_NOON), budgets=[AT_WEEKENDS])["budgets"] == [{"nodes": "100%"}]


def test_what_the_program_refuses_it_gets_to_see() -> None:
    for config in ({KEY: "no JSON"}, {KEY: [1]}, {KEY: {"default": None}}, {}, pool(budgets=[{"schedule": "x"}])):
        assert Waits(10, MONDAY_NOON).applied(config) == config


def test_what_pulumi_wrote_as_json_is_read_too() -> None:
    config = {KEY: '{"default": {"disruption": {"consolidateAfter": "60s"}}}'}
    assert Waits(2).applied(config)[KEY]["default"]["disruption"]["consolidateAfter"] == "30s"


def test_the_timeline_is_told_what_was_asked_and_what_is_used() -> None:
    config = pool(consolidateAfter="60s", budgets=[{"nodes": "10%"}])
    assert Waits(2, MONDAY_NOON).changed_settings(config) == {"default": {"consolidateAfter": ["60s", "30s"]}}
    assert Waits().changed_settings(config) == {}


def test_of_a_node_pool_that_both_sides_have_the_later_one_says() -> None:
    before = {
        KEY: {"default": {"disruption": {"consolidateAfter": "30m"}}, "old": {"disruption": {"consolidateAfter": "1m"}}}
    }
    after = {KEY: {"default": {"disruption": {"consolidateAfter": "Never"}}}}
    assert Waits(2).changed_settings(before, after) == {"old": {"consolidateAfter": ["1m", "30s"]}}


def test_a_change_that_both_sides_lose_is_told() -> None:
    """A longer window, or another one, is the same budget at a moment that is in both or in neither."""
    longer = [{**AT_WEEKENDS, "duration": "72h"}]
    sides = pool(budgets=[AT_WEEKENDS]), pool(budgets=longer)
    assert Waits(at=MONDAY_NOON).hidden(*sides) == []  # the one window is open, the other is not
    assert Waits(at=SUNDAY_NIGHT).hidden(*sides) == [("default", "budgets")]
    assert Waits().hidden(*sides) == []
    assert Waits(at=SUNDAY_NIGHT).hidden(sides[0], sides[0]) == []
    assert Waits(at=SUNDAY_NIGHT).hidden(sides[0], {KEY: {"new": {}}}) == []
    waited = pool(consolidateAfter="30s"), pool(consolidateAfter="50s")
    assert Waits(60).hidden(*waited) == [("default", "consolidateAfter")]
    assert Waits(10).hidden(*waited) == []
    assert Waits(60).hidden(waited[0], pool(consolidateAfter="0h0m30s")) == []  # the same in other words


def test_only_the_copy_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.mine.yaml"
    file.write_text(
        yaml.safe_dump({"config": {"aws:region": "us-east-1", "karpstack:cloud": "aws"} | pool(consolidateAfter="60s")})
    )
    before = file.read_text()
    copy = tmp_path / "copy.yaml"
    copy.write_text("encryptionsalt: v1:kept\n")
    stack_file = StackFile.load(file)
    StackFile(**{**stack_file.__dict__, "waits": Waits(3)}).copy_to(copy)
    written = yaml.safe_load(copy.read_text())
    assert written["config"][KEY]["default"]["disruption"]["consolidateAfter"] == "20s"
    assert written["encryptionsalt"] == "v1:kept"
    assert file.read_text() == before
