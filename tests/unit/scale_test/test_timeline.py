"""The timeline as a file, waiting for a recorder, and reading prices from metrics."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.judging.gate import wait_for_end
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.market.prices import Offering
from karpstack.scale_test.recording.metrics import (
    AVAILABLE,
    LOOKS,
    ProcessReading,
    QueueReading,
    by_zone,
    cheapest,
    parse_prices,
    parse_process,
    parse_queue,
    parse_unavailable,
)
from karpstack.scale_test.recording.process import RecorderError, stop, wait_until_recorded
from karpstack.scale_test.recording.timeline import (
    LONGEST,
    Reader,
    TimelineError,
    Writer,
    api_time,
    excerpt,
    is_recorded,
    once,
)
from karpstack.scale_test.scenarios.scenario import Scenario


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


@pytest.mark.parametrize("target", ["", "other.jsonl", "/dev/zero"])
def test_what_is_no_file_is_refused_and_nobody_waits_for_it(path: Path, target: str) -> None:
    path.with_name("other.jsonl").write_text('{"type":"A"}\n')
    if target:
        path.symlink_to(target)
    else:
        os.mkfifo(path)
    for ask in (lambda: list(Reader(path).new_lines()), lambda: is_recorded(path)):
        with pytest.raises(TimelineError, match="is a link, or behind one, or no file"):
            ask()


def test_a_link_in_the_place_of_a_timeline_is_not_written_through(path: Path) -> None:
    path.with_name("mine").write_text("mine")
    path.symlink_to(path.with_name("mine"))
    with pytest.raises(OSError, match="symbolic links"):
        Writer(path)
    assert path.with_name("mine").read_text() == "mine"


def test_a_line_that_no_reader_takes_is_not_written(path: Path) -> None:
    with Writer(path) as writer:
        with pytest.raises(ValueError, match="more than 16 MiB"):
            writer.write("ADDED", object={"labels": "x" * LONGEST})
        writer.write("END")
    assert [line["type"] for line in Reader(path).new_lines()] == ["END"]


@pytest.mark.parametrize("pid", [-1, 0, 1, "1", None])
def test_no_process_is_ended_that_a_broken_timeline_names(
    pid: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process would be ended"))
    with Writer(path, recording=True) as writer:
        writer.write("START", pid=pid)
        with pytest.raises(RecorderError, match="has not said its process id"):
            stop(path, 1)


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
        wait_for_end(Live(path), scenarios["eks-cheapest-fit"], 0, datetime.now(UTC))


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
        "spec": {"requirements": ["many"], "expireAfter": "720h"},
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
        "expireAfter": "720h",
        "nodeName": "node",
        "capacity": {"cpu": "2"},
    }
    assert api_time(kept) == "2026-11-21T10:00:02Z"


def test_what_decides_where_a_pod_may_be_is_kept_once() -> None:
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists"}
    every_pods = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("not-ready", "unreachable")]
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = {
        "metadata": {"name": "p"},
        "spec": {"tolerations": [gpu, *every_pods], "affinity": {"nodeAffinity": node_affinity}},
    }
    assert once("Pod", pod) == {"tolerations": [gpu], "nodeSelectorTerms": [term]}
    assert once("Pod", {"metadata": {"name": "p"}, "spec": {}}) == {"tolerations": [], "nodeSelectorTerms": []}
    assert once("Node", pod) == {}


def test_what_a_nodeclaim_may_be_launched_as_is_kept_once() -> None:
    wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"], "minValues": 1}]
    claim = {
        "metadata": {"name": "n", "annotations": {"karpenter.sh/nodeclaim-min-values-relaxed": "true"}},
        "spec": {"requirements": wanted, "resources": {"requests": {"cpu": "1100m", "memory": "1Gi", "pods": "13"}}},
    }
    asked = {"cpu": 1.1, "memory": 2.0**30, "pods": 13}
    assert once("NodeClaim", claim) == {"requirements": wanted, "requests": asked, "minValuesRelaxed": True}
    bare = {"metadata": {"name": "n"}}
    assert once("NodeClaim", bare) == {"requirements": [], "requests": {}, "minValuesRelaxed": False}


def test_a_node_class_keeps_the_zones_of_its_subnets() -> None:
    subnets = [{"id": "c", "zone": "us-east-1c"}, {"id": "a", "zone": "us-east-1a"}, {"id": "b", "zone": "us-east-1a"}]
    found = {"metadata": {"name": "default"}, "status": {"subnets": subnets}}
    assert excerpt("EC2NodeClass", found)["zones"] == ["us-east-1a", "us-east-1c"]
    assert "zones" not in excerpt("AKSNodeClass", {"metadata": {"name": "default"}, "status": {}})
    terms = [{"alias": "al2023@v20261121"}, {"id": "ami-1"}]
    assert excerpt("EC2NodeClass", found | {"spec": {"amiSelectorTerms": terms}})["images"] == ["al2023@v20261121"]


def test_an_excerpt_of_a_pod_keeps_what_it_asks_for() -> None:
    def container(cpu: str, **more: object) -> dict[str, object]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "nodeName": "node",
        "nodeSelector": {"intent": "apps"},
        "overhead": {"memory": "1Mi"},
        "initContainers": [container("100m", restartPolicy="Always"), container("2")],
        "containers": [container("1500m"), {"name": "d", "resources": {"limits": {"memory": "1Gi"}}}],
    }
    kept = excerpt("Pod", {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": {"phase": "Pending"}})
    # The init container beside the sidecar asks for more than both containers beside it.
    assert kept["requests"] == {"cpu": 2.1, "memory": 2**30 + 2**20}
    assert kept["nodeSelector"] == {"intent": "apps"}
    # What the pod as a whole asks for goes before that.
    for whole, cpu in (({"requests": {"cpu": "3"}}, 3), ({"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}, 3)):
        found = {"metadata": {"name": "p", "uid": "u"}, "spec": {**spec, "resources": whole}}
        assert excerpt("Pod", found)["requests"] == {"cpu": cpu, "memory": 2**30 + 2**20}
    # Of any resource, which may have a limit alone.
    gpus = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"ephemeral-storage": "1Ki"}}}
    found = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [gpus, gpus]}}
    assert excerpt("Pod", found)["requests"] == {"ephemeral-storage": 2048, "nvidia.com/gpu": 4}


def test_an_excerpt_keeps_how_many_pods_a_node_class_allows() -> None:
    metadata = {"name": "default", "uid": "u"}
    assert excerpt("EC2NodeClass", {"metadata": metadata, "spec": {"kubelet": {"maxPods": 110}}})["maxPods"] == 110
    assert excerpt("AKSNodeClass", {"metadata": metadata, "spec": {"maxPods": 250}})["maxPods"] == 250
    by_type = {"metadata": metadata, "spec": {"kubelet": {"maxPods": "max_pods + 2"}}}
    assert "maxPods" not in excerpt("EC2NodeClass", by_type)
    assert "maxPods" not in excerpt("AKSNodeClass", {"metadata": metadata, "spec": {}})


@pytest.mark.parametrize(
    ("kind", "spec", "disk"),
    [
        ("AKSNodeClass", {"osDiskSizeGB": 128}, 128 * 10**9),
        ("AKSNodeClass", {}, None),
        ("EC2NodeClass", {}, 17 * 2**30),
        ("EC2NodeClass", {"kubelet": {"evictionHard": {"nodefs.available": "5%"}}}, 20 * 2**30),
        ("EC2NodeClass", {"blockDeviceMappings": [{"ebs": {"volumeSize": "8Gi"}}, {"ebs": {}}]}, 17 * 2**30),
        ("EC2NodeClass", {"blockDeviceMappings": [{"ebs": {"volumeSize": "80Gi"}}]}, 71 * 2**30),
        ("EC2NodeClass", {"instanceStorePolicy": "RAID0"}, None),
    ],
)
def test_an_excerpt_keeps_the_largest_disk_of_a_node_class(kind: str, spec: dict[str, Any], disk: float | None) -> None:
    images = {"amiSelectorTerms": [{"alias": "al2023@latest"}]} if kind == "EC2NodeClass" else {}
    assert excerpt(kind, {"metadata": {"name": "default", "uid": "u"}, "spec": images | spec}).get("disk") == disk


def test_prices_are_those_of_the_controllers_metric() -> None:
    labels = '{capacity_type="spot",instance_type="c6g.large",zone="us-east-1a"}'
    name = "karpenter_cloudprovider_instance_type_offering"
    price = f"# TYPE {name}_price_estimate gauge\n{name}_price_estimate{labels} 0.029\n"
    unknown = f"{name}_price_estimate{labels.replace('1a', '1b')} 0\n"
    text = f"{price}{unknown}{name}_available{labels} 1\n"
    assert parse_prices(text) == {Offering("c6g.large", "spot", "us-east-1a"): 0.029}


def test_the_cheapest_of_the_zones_is_kept() -> None:
    prices = {
        Offering("m5.large", "spot", "us-east-1a"): 0.04,
        Offering("m5.large", "spot", "us-east-1b"): 0.03,
        Offering("m5.large", "on-demand", "us-east-1b"): 0.096,
        Offering("m5.large", "reserved", "us-east-1b"): 0.001,
    }
    assert cheapest(prices) == {"on-demand": {"m5.large": 0.096}, "spot": {"m5.large": 0.03}}


def test_a_controllers_process_tells_memory_time_and_failed_calls() -> None:
    looks = [("count", "single"), ("sum", "single"), ("count", "multi"), ("count", "")]
    calls = {"200": 90, "404": 7, "409": 5, "500": 2, "429": 1, "<error>": 3}
    text = "".join(
        [
            "process_resident_memory_bytes 1.7e+08\nprocess_cpu_seconds_total 1.94\n",
            *(f'client_go_request_total{{code="{code}",method="GET"}} {count}\n' for code, count in calls.items()),
            *(
                f'karpenter_cloudprovider_errors_total{{error="{error}",method="Get",provider="aws"}} 4\n'
                for error in ("NodeClaimNotFoundError", "InsufficientCapacityError", "")
            ),
            *(f'{LOOKS}_{what}{{consolidation_type="{kind}",reason=""}} 8\n' for what, kind in looks),
        ]
    )
    assert parse_process(text) is None
    found = parse_process(f"{text}process_start_time_seconds 1.7e+09\n")
    assert found == ProcessReading(170_000_000, 1.94, 2 + 1 + 3 + 4 + 4, 1.7e9, 8)


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


def test_what_is_unavailable_is_read_from_the_metrics() -> None:
    line = AVAILABLE + '{{capacity_type="{}",instance_type="{}",zone="{}"}} {}\n'
    text = "# TYPE x gauge\n" + "".join(
        line.format(*values)
        for values in (
            ("on-demand", "m5.large", "a", 1),
            ("on-demand", "m5.large", "b", 0),
            ("spot", "c5.large", "b", 0),
            ("spot", "m5.large", "b", 0),
            # Wherever nothing is reserved.
            ("reserved", "m5.large", "a", 0),
        )
    )
    unavailable = parse_unavailable(text)
    assert unavailable is not None
    assert by_zone(unavailable) == {"on-demand": {"b": ["m5.large"]}, "spot": {"b": ["c5.large", "m5.large"]}}
    assert parse_unavailable(line.format("spot", "m5.large", "a", 1)) == frozenset()
    assert parse_unavailable("karpenter_pods_state 1\n") is None
