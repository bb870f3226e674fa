"""The command line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.command_line import karpstack
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import lines

main = karpstack("whatif")


def folder(path: Path, found: list[dict[str, Any]]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
    return path


@pytest.fixture
def consolidation(tmp_path: Path) -> Path:
    told = lines("eks.consolidation-policies", 3, change_begins={"candidate": "tighter"})
    return folder(tmp_path / "consolidation", told)


def test_a_report(consolidation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(consolidation)]) == 0
    said = capsys.readouterr().out
    first, second = said.splitlines()[:2]
    assert first == (
        "No limit is exceeded: −$0.169 (−36 %) an hour; 2 pods move; not called safe: no real cluster was compared"  # noqa: RUF001
    )
    assert second.startswith("What if tighter on eks: within its limits. $0.169 (36 %) an hour cheaper")
    assert "Not compared with any real cluster" in said
    data = json.loads((consolidation / "whatif.json").read_text())
    assert (data["schemaVersion"], data["candidate"], data["after"]["nodes"]) == (3, "tighter", 4)
    assert (consolidation / "whatif.md").read_text().startswith("## ")
    assert (consolidation / "whatif.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("names", [["whatif.md", "whatif.json"], ["whatif.md"], ["whatif.html"]])
def test_an_answer_replaces_no_file_of_others(
    names: list[str], consolidation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (consolidation / name).write_text("of others")
    assert main(["report", str(consolidation)]) == 2
    assert f"the answer {consolidation / names[-1]}: is no answer of a what-if" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in consolidation.glob("whatif.*")} == dict.fromkeys(names, "of others")


@pytest.mark.parametrize("named", [{"candidate": "tighter", "base": "main"}, {}])
def test_an_answer_replaces_an_older_one(tmp_path: Path, named: dict[str, str]) -> None:
    asked = folder(tmp_path / "asked", lines("eks.consolidation-policies", 3, change_begins=named))
    assert main(["report", str(asked)]) == main(["report", str(asked)]) == 0


def test_a_broken_limit(consolidation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = tmp_path / "limits.yml"
    limits.write_text("whatif: {maxNodes: 3}")
    assert main(["report", str(consolidation), "--limits", str(limits)]) == 1
    assert "maxNodes: at most 3 nodes; measured: 4 nodes" in capsys.readouterr().out


def test_a_refused_change(tmp_path: Path) -> None:
    made = Made()
    told = made.lines(change_applied={"refused": "the pack"}, change_settled={"missing": True})
    assert main(["report", str(folder(tmp_path, told))]) == 1
    assert json.loads((tmp_path / "whatif.json").read_text())["verdict"] == "refused"


def test_prices_of_ones_own(consolidation: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yml"
    prices.write_text("discounts: {c6g: 0.5}")
    assert main(["report", str(consolidation), "--prices", str(prices)]) == 0
    data = json.loads((consolidation / "whatif.json").read_text())
    assert data["after"]["usdPerHour"] == pytest.approx(0.3048 - 0.5 * 0.204)


def test_a_snapshot_is_the_truth(consolidation: Path, tmp_path: Path) -> None:
    node = {"instanceType": "r6g.large", "zone": "us-east-1a", "capacityType": "on-demand", "pricePerHour": 0.1008}
    snapshot = {
        "kind": "karpstack-snapshot",
        "version": 1,
        "taken": "2026-11-22T10:00:00Z",
        "source": "made",
        "nodeClaims": [{"name": "claim", "node": "b", "nodePool": "default"}],
        "nodes": [{"name": "a", "nodePool": "default", **node}, {"name": "b", **node}, {"name": "system", **node}],
    }
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot))
    assert main(["report", str(consolidation), "--snapshot", str(path)]) == 0
    answer = json.loads((consolidation / "whatif.json").read_text())
    accuracy = answer["accuracy"]
    assert accuracy["compared"] is True
    assert answer["snapshot"] == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert accuracy["figures"][0] == {"what": "nodes", "real": 2.0, "rehearsed": 6.0, "difference": 2.0, "note": ""}
    assert "Not compared, because of no NodePool: 1 real node" in accuracy["sentence"]
    assert accuracy["sentence"].endswith("The snapshot is made up, so that this says nothing of a cluster that exists.")
    path.write_text(json.dumps(snapshot | {"source": "cluster"}))
    assert main(["report", str(consolidation), "--snapshot", str(path)]) == 0
    assert "made up" not in (consolidation / "whatif.md").read_text()


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        ("--snapshot", '{"kind": "List", "items": []}', "karpstack snapshot convert"),
        ("--limits", "whatif: {maxNode: 1}", "did you mean maxNodes?"),
        ("--limits", "what-if: {maxNodes: 1}", "did you mean whatif?"),
        ("--prices", "spot: {m5.larg: 1}", "no such instance type at aws"),
    ],
)
def test_what_cannot_be_used_is_refused(
    consolidation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, content: str, message: str
) -> None:
    path = tmp_path / "given"
    path.write_text(content)
    assert main(["report", str(consolidation), options, str(path)]) == 2
    assert message in capsys.readouterr().err
    assert not (consolidation / "whatif.json").exists()


def test_what_cannot_be_judged_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "timeline.jsonl: is not there" in capsys.readouterr().err
    assert main(["report", str(folder(tmp_path, Made().lines(change_settled={"missing": True})))]) == 3
    assert "the record has no change-settled" in capsys.readouterr().err
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "timeline.jsonl").symlink_to(tmp_path / "timeline.jsonl")
    assert main(["report", str(tmp_path / "linked")]) == 2
    assert "timeline.jsonl: is a link" in capsys.readouterr().err
    (tmp_path / "timeline.jsonl").write_text('{"type": "ODD"}\n')
    assert main(["report", str(tmp_path)]) == 2
    assert "line 1: type: 'ODD': no such line" in capsys.readouterr().err


def test_a_table_and_a_spread(consolidation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = folder(tmp_path / "again", lines("eks.consolidation-policies", 3, change_begins={"candidate": "tighter"}))
    assert main(["table", str(consolidation), str(again)]) == 3
    assert "karpstack whatif report" in capsys.readouterr().err
    for one in (consolidation, again):
        main(["report", str(one)])
    capsys.readouterr()
    assert main(["table", str(consolidation), str(tmp_path / "killed")]) == 3
    told = capsys.readouterr()
    assert "| tighter | within its limits |" in told.out
    assert "| killed | no answer |" in told.out
    assert "killed/whatif.json: is not there" in told.err
    assert main(["table", str(consolidation), str(again)]) == 0
    assert "tighter (asked 2 times)" in capsys.readouterr().out
    assert main(["spread", str(consolidation), str(again)]) == 0
    assert "which is more than the spread" in capsys.readouterr().out


def test_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Answer"
