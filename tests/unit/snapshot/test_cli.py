"""The command line, and what it says of snapshots that will not go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.snapshot.anonymise import VARIABLE
from karpstack.snapshot.output import as_text
from karpstack.snapshot.reading import load
from karpstack.snapshot.unevictable import unevictable
from karpstack.snapshot.unschedulable import unschedulable
from tests.unit.command_line import karpstack
from tests.unit.snapshot import api
from tests.unit.snapshot.made import data, snapshot, workload

main = karpstack("snapshot")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "one.json").write_text(json.dumps(data()))
    return tmp_path / "one.json"


def test_convert_says_what_is_in_it_and_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "all.json").write_text(json.dumps(api.exported(api.cluster())))
    out = tmp_path / "out.json.gz"
    assert main(["convert", str(tmp_path / "all.json"), "--output", str(out)]) == 0
    told = capsys.readouterr().out
    assert "15 pods in 7 workloads (1 without a node), 4 nodes" in told
    assert "left out: images: 15; " in told
    assert load(out).snapshot.pods == 15
    assert main(["show", str(out)]) == 0
    told = capsys.readouterr().out
    for words in ("shop/payroll", "m5.large", "left out", "environment variables"):
        assert words in told
    assert api.CANARY not in told


def test_exports_without_a_workload_are_no_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [one for one in api.cluster() if one["kind"] in ("Node", "NodePool", "ConfigMap")]
    (tmp_path / "nodes.json").write_text(json.dumps(api.exported(kept)))
    out = tmp_path / "out.json"
    assert main(["convert", str(tmp_path / "nodes.json"), "--output", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: the files hold no workload, so there would be nothing to load")
    assert "kubectl get pods,replicasets," in said
    assert "0 pods in 0 workloads (0 without a node), 4 nodes" in said
    assert not out.exists()


def test_anonymise_by_a_key_and_by_none(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"

    def name() -> str:
        assert main(["anonymize", str(file), "--output", str(out)]) == 0
        assert main(["anonymize", str(out), "--output", str(out)]) == 2
        assert main(["anonymize", str(tmp_path / "missing"), "--output", str(out)]) == 2
        return load(out).snapshot.workloads[0].name

    monkeypatch.delenv(VARIABLE, raising=False)
    assert name() != name()
    monkeypatch.setenv(VARIABLE, "long and secret")
    assert name() == name()
    assert "web" not in out.read_text()
    assert "without names" in capsys.readouterr().out


def test_check_says_what_will_not_go(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}, "requests": {"cpu": "1000"}}
    file.write_text(json.dumps(data(version=2, workloads=[workload("never", pod=pod), workload()])))
    assert main(["check", str(file)]) == 2
    assert "error: " in capsys.readouterr().err
    assert main(["check", str(file), "--known-only", "--cloud", "azure"]) == 0
    told = capsys.readouterr().out
    assert "objects that a what-if would create: 2, including workloads: 1" in told
    assert "note: version: 2: read as if it were 1" in told
    assert "note: shop/never: no instance type of aws has 1000 CPUs" in told
    assert "note: shop/never (Deployment, 3 pods) is not loaded" in told


def test_what_cannot_be_written_is_told(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file), "--output", str(tmp_path / "missing" / "out.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_no_cluster_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["take", "--kubeconfig", str(tmp_path / "none"), "--output", str(tmp_path / "out.json")]) == 3
    assert "no cluster to read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"requests": {"memory": "1Pi"}}, "no instance type of aws has 0 CPUs and 1.049e+06 GiB"),
        (
            {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.largest"}},
            "has the labels which they ask for: node.kubernetes.io/instance-type In [m5.largest]",
        ),
        (
            {"nodeSelector": {"beta.kubernetes.io/instance-type": "m5.large"}, "requests": {"cpu": "4"}},
            "no instance type of aws that has the labels which they ask for has 4 CPUs and 0 GiB too",
        ),
        ({"nodeSelector": {"kubernetes.io/arch": "riscv"}}, "kubernetes.io/arch In [riscv]"),
        (
            {"nodeSelector": {"topology.kubernetes.io/zone": "eu-west-1a"}},
            "topology.kubernetes.io/zone In [eu-west-1a]",
        ),
    ],
)
def test_pods_that_nothing_can_ever_schedule_are_named(pod: Any, words: str) -> None:
    (sentence,) = unschedulable(snapshot(workloads=[workload("never", pod=pod), workload()]))
    assert sentence.startswith("shop/never: ")
    assert words in sentence
    assert sentence.endswith("; its pods (3) will wait for ever")


def test_pods_that_nobody_evicts_are_named() -> None:
    labelled = {"labels": {"app": "web"}}
    budgets = [
        {"namespace": "shop", "name": "web", "selector": {"matchLabels": {"app": "web"}}},
        {"namespace": "shop", "name": "all", "selector": {}},
        {"namespace": "bank", "name": "all", "selector": {}},
        {"namespace": "shop", "name": "none"},
    ]
    made = snapshot(workloads=[workload("web", pod=labelled), workload("api")], podDisruptionBudgets=budgets)
    (sentence,) = unevictable(made)
    assert sentence.startswith("shop/web: all and web select its pods (3), and the eviction API takes no pod with more")
    assert f"note: {sentence}" in as_text(made).splitlines()


@pytest.mark.parametrize(
    "pod",
    [
        {"requests": {"cpu": "64", "memory": "200Gi", "acme.example/fpga": "9"}},
        {
            "nodeSelector": {
                "acme.example/team": "a",
                "karpenter.sh/nodepool": "b",
                "karpenter.sh/capacity-type": "spot",
            }
        },
        {"nodeSelector": {"kubernetes.io/arch": "arm64", "topology.kubernetes.io/zone": "us-east-1a"}},
    ],
)
def test_pods_of_which_it_is_not_sure_are_not_named(pod: Any) -> None:
    assert unschedulable(snapshot(workloads=[workload(pod=pod)])) == []


def test_where_the_cloud_is_not_known_nothing_is_said() -> None:
    pod = {"requests": {"cpu": "100000"}}
    assert unschedulable(snapshot(cluster={"cloud": "gce"}, workloads=[workload(pod=pod)])) == []
    assert unschedulable(snapshot(cluster={}, workloads=[workload(pod=pod)])) == []


def test_a_region_of_which_there_are_no_facts() -> None:
    pod = {"nodeSelector": {"topology.kubernetes.io/zone": "eu-north-9a"}}
    assert (
        unschedulable(snapshot(cluster={"cloud": "aws", "region": "eu-north-9"}, workloads=[workload(pod=pod)])) == []
    )


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("check", ["snapshot", "created", "notes"]),
        ("show", ["snapshot", "workloads", "nodes", "leftOut", "notes"]),
    ],
)
def test_the_answer_as_data(command: str, keys: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(file), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == keys
    assert told["snapshot"]["workloads"] == 1
    if command == "show":
        assert told["workloads"][0]["name"] == "web"
    else:
        assert told["created"]["workloads"] == 1
