"""What a killed what-if left is found by its labels, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.acting.ownership import TakenError, make, remove
from karpstack.scale_test.labels import SCENARIO_LABEL
from karpstack.whatif import leftovers, placing
from tests.unit.whatif.live import Live
from tests.unit.whatif.test_placing import LABELS

ROOT = Path(__file__).resolve().parents[3]


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def test_what_another_snapshot_left_goes_and_what_is_anothers_stays() -> None:
    story = {**LABELS, SCENARIO_LABEL: "churn"}
    live = Live(
        namespace("shop", **LABELS), namespace("other", **LABELS), namespace("own"), namespace("story", **story)
    )
    left = leftovers.workload(live, [namespace("shop"), namespace("own")])
    done = remove(live, left, ["whatif"], {}, 10, sleep=lambda _: None)
    assert done.removed == ["Namespace shop", "Namespace other"]
    assert {name for _, name in live.objects} == {"own", "story"}


def test_a_name_that_is_taken_is_told_with_what_a_what_if_can_do() -> None:
    with pytest.raises(TakenError, match="ask on a cluster that does not have it") as told:
        dict(make(Live(namespace("shop")), [namespace("shop")], leftovers.OTHERWISE))
    assert "workload.namespace" not in str(told.value)


def test_a_policy_of_that_name_that_is_anothers_stays() -> None:
    live = Live({"kind": "MutatingAdmissionPolicy", "metadata": {"name": "karpstack-whatif", "labels": {}}})
    placing.remove_policy(live)
    assert len(live.objects) == 1


def test_the_playbook_removes_what_is_left_first_and_at_the_end_whatever_the_mode() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks" / "whatif.yml").read_text(encoding="utf-8"))
    (recorded,) = [task for task in play["tasks"] if "block" in task]
    before = play["tasks"][: play["tasks"].index(recorded)]
    for tasks in (before, recorded["always"]):
        removals = [
            task
            for task in tasks
            if task.get("karpstack.scale_test.action", {}).get("name", "").startswith("whatif.remove_")
        ]
        assert len(removals) == 2
        assert not any("as-is" in str(task.get("when")) for task in removals)
    (load,) = [
        task
        for task in recorded["block"]
        if task.get("karpstack.scale_test.action", {}).get("name") == "whatif.make_workload"
    ]
    assert load["karpstack.scale_test.action"]["arguments"]["nodes"] == "{{ nodes }}"
