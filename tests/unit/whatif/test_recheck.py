"""Karpenter is asked to look again by a pod that comes and goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.whatif import recheck
from tests.unit.whatif.live import Live


class _Watched(Live):
    def __init__(self) -> None:
        super().__init__()
        self.came: list[Mapping[str, Any]] = []
        self.went: list[str] = []

    def create(self, wanted: Mapping[str, Any]) -> str | None:
        self.came.append(wanted)
        return super().create(wanted)

    def delete(self, wanted: Mapping[str, Any], uid: str) -> bool:
        self.went.append(uid)
        return super().delete(wanted, uid)


def test_a_pod_that_nobody_schedules_comes_and_goes() -> None:
    live = _Watched()
    recheck.ask(live)
    (pod,) = live.came
    assert pod["spec"]["schedulerName"] == "karpstack-second-look"
    assert "labels" not in pod["metadata"]  # the recorder takes what is labelled
    assert live.went == ["Pod/karpstack-second-look"]
    assert not live.objects


def test_one_that_was_left_is_removed() -> None:
    live = _Watched()
    recheck.ask(live)
    live.create(live.came[0])
    recheck.ask(live)
    assert not live.objects
