"""Cluster time that jumps ahead."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from karpstack.karpenter.clock import NOTICE, Page
from karpstack.rehearsal.session.speed import Governor


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page.create(tmp_path / "clock")


def test_time_jumps_once_and_goes_on_at_its_speed(page: Page, tmp_path: Path) -> None:
    other = Page(tmp_path / "clock")  # as another process has it
    before = page.monotonic_ns()
    page.skip(3600, 2.0)
    after = other.monotonic_ns()
    assert 3600e9 < after - before < 3601e9
    assert page.speed == 2.0
    time.sleep(2 * NOTICE)
    assert other.monotonic_ns() - after >= 2 * 2 * NOTICE * 1e9


def test_time_never_goes_back(page: Page) -> None:
    seen = []
    for _ in range(20):
        page.skip(1, 8.0)
        page.set_speed(1.0)
        seen += [page.monotonic_ns() for _ in range(10)]
    assert seen == sorted(seen)


def test_a_skip_keeps_the_speed_and_ends_when_the_engines_rest(page: Page) -> None:
    governor = Governor(page, 8.0, list)
    before = page.monotonic_ns()
    governor.skip(600)
    assert page.monotonic_ns() - before >= 600e9
    assert page.speed == 1.0


@pytest.mark.parametrize(("highest", "ceiling"), [(8.0, 64.0), (2.0, 16.0), (64.0, 64.0)])
def test_the_ceiling_is_higher_from_the_first_skip_on(page: Page, highest: float, ceiling: float) -> None:
    governor = Governor(page, highest, list)
    governor.start()
    with page.waiting():
        governor.skip(60)
        near = 0.95 * ceiling  # a step of less than 5 % is not made
        reached, until = 0.0, time.monotonic() + 30
        while reached < near and time.monotonic() < until:  # a busy machine slows it down again
            time.sleep(0.05)
            reached = max(reached, page.speed)
        assert near <= reached <= ceiling
    governor.stop()
