"""The timeline as a file, waiting for a recorder, and reading prices from metrics."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from playbooks.plugins.module_utils.scale_test.gate import wait_for_end
from playbooks.plugins.module_utils.scale_test.metrics import QueueReading, parse_prices, parse_queue
from playbooks.plugins.module_utils.scale_test.prices import Offering
from playbooks.plugins.module_utils.scale_test.recording import RecorderError, stop, wait_until_recorded
from playbooks.plugins.module_utils.scale_test.scenario import Scenario
from playbooks.plugins.module_utils.scale_test.timeline import Reader, Writer, api_time, excerpt, is_recorded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "timeline.jsonl"


def test_what_is_written_is_read_once(path: Path) -> None:
    reader = Reader(path)
    assert list(reader.new_lines()) == []
    with Writer(path) as first, Writer(path) as second:
        first.write("STORY", scenario="a")
        second.write("END", scenario="a")
    assert [line["type"] for line in reader.new_lines()] == ["STORY", "END"]
    assert list(reader.new_lines()) == []


def test_half_a_line_is_left_for_later(path: Path) -> None:
    path.write_text('{"type":"A"}\n{"type":')
    reader = Reader(path)
    assert len(list(reader.new_lines())) == 1
    with path.open("a") as file:
        file.write('"B"}\n')
    assert [line["type"] for line in reader.new_lines()] == ["B"]


def test_only_one_recorder_writes_to_a_timeline(path: Path) -> None:
    assert not is_recorded(path)
    with Writer(path, recording=True):
        assert is_recorded(path)
        with pytest.raises(BlockingIOError):
            Writer(path, recording=True)
    assert not is_recorded(path)


def test_waiting_ends_when_all_lists_are_read(path: Path) -> None:
    with Writer(path, recording=True) as recorder:
        recorder.write("START", pid=os.getpid())
        with pytest.raises(RecorderError, match=r"not all lists read after 0 s.*KUBECONFIG"):
            wait_until_recorded(path, timeout=0)
        recorder.write("SYNCED")
        wait_until_recorded(path, timeout=0)


def test_a_recorder_that_failed_says_why(path: Path) -> None:
    with Writer(path, recording=True) as recorder:
        recorder.write("STOP", reason="ApiException: (403) Forbidden")
    with pytest.raises(RecorderError, match=r"\(403\) Forbidden"):
        wait_until_recorded(path, timeout=60)


def test_a_step_without_a_recorder_cannot_be_judged(path: Path, scenarios: dict[str, Scenario]) -> None:
    with pytest.raises(RecorderError, match=r"it was killed.*step 1 cannot be judged"):
        wait_for_end(path, scenarios["eks-cheapest-fit"], 0, datetime.now(UTC))


def test_there_is_nothing_to_stop_where_nobody_records(path: Path) -> None:
    assert not stop(path, timeout=0)


def test_an_excerpt_keeps_what_stories_need() -> None:
    claim = {
        "metadata": {
            "name": "n",
            "uid": "u",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "managedFields": [1],
        },
        "spec": {"requirements": ["many"]},
        "status": {
            "nodeName": "node",
            "capacity": {"cpu": "2"},
            "conditions": [
                {
                    "type": "Launched",
                    "status": "True",
                    "lastTransitionTime": "2026-11-21T10:00:02Z",
                    "observedGeneration": 1,
                }
            ],
        },
    }
    kept = excerpt("NodeClaim", claim)
    assert kept == {
        "metadata": {"name": "n", "uid": "u", "creationTimestamp": "2026-11-21T10:00:00Z"},
        "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-11-21T10:00:02Z"}],
        "nodeName": "node",
        "capacity": {"cpu": "2"},
    }
    assert api_time(kept) == "2026-11-21T10:00:02Z"


def test_prices_are_those_of_the_controllers_metric() -> None:
    labels = '{capacity_type="spot",instance_type="c6g.large",zone="us-east-1a"}'
    name = "karpenter_cloudprovider_instance_type_offering"
    price = f"# TYPE {name}_price_estimate gauge\n{name}_price_estimate{labels} 0.029\n"
    text = f"{price}{name}_available{labels} 1\n"
    assert parse_prices(text) == {Offering("c6g.large", "spot", "us-east-1a"): 0.029}


def test_the_queue_is_that_of_the_interruption_controller_alone() -> None:
    runtime = "controller_runtime"
    text = "".join(
        f"# TYPE {runtime}_{name} {kind}\n"
        f'{runtime}_{name}{{controller="interruption"}} {ours}\n'
        f'{runtime}_{name}{{controller="interruption.instancestatus"}} {others}\n'
        for name, kind, ours, others in (
            ("active_workers", "gauge", 1, 0),
            ("reconcile_errors_total", "counter", 3, 7),
            ("terminal_reconcile_errors_total", "counter", 9, 9),
        )
    )
    assert parse_queue(text) == QueueReading(errors=3, reading=True)
    assert parse_queue(text.replace("} 1\n", "} 0\n")) == QueueReading(errors=3, reading=False)


def test_a_controller_that_does_not_lead_says_nothing_of_the_queue() -> None:
    assert parse_queue("") is None
    assert parse_queue('controller_runtime_active_workers{controller="provisioner"} 1\n') is None
