"""The cases of tests/truths can be written for a cluster, and an answer that differs from a case is called wrong."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import pytest

from karpstack.snapshot.reading import checked
from karpstack.whatif.answer import Why
from tests.truths import judging, writing
from tests.truths.cases import FOLDER, STACKS, Case, batches, load

#: What real runs of cases left: `gzip -9n` of a case's timeline in build/truths.
RECORDED = FOLDER.parent / "recorded"
CASES = [case for cases in load().values() for case in cases]
NODE_CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "spec": {"tags": {"owner": "platform"}, "kubelet": {"maxPods": 110}},
    "status": {"subnets": [{"id": "subnet-1", "zone": "us-east-1a"}, {"id": "subnet-2", "zone": "us-east-1b"}]},
}
CASE = Case.model_validate(
    {
        "name": "case",
        "stack": "eks",
        "sources": ["a source"],
        "why": "a reason",
        "pools": {"a": {"types": ["m5.large"]}},
        "nodes": {"n1": "a m5.large", "n2": "a m5.large"},
        "change": {},
        "answer": {
            "gone": {"n1": "Drifted NodePoolDrifted"},
            "stays": {"n2": "price"},
            "drifted": [],
            "came": ["a m5.large * on-demand"],
            "moved": 2,
            "preempted": 0,
            "withoutNode": {"web": 1},
            "withoutNodePool": ["web"],
            "heldBy": {"n1": ["web"]},
            "order": ["n1"],
            "atMost": 1,
            "allowed": {"a": {"Drifted": 1}},
            "dollars": [0.192, 0.096],
        },
    }
)
ANSWER: dict[str, Any] = {
    "before": {"nodes": 2, "usdPerHour": 0.192},
    "after": {"usdPerHour": 0.09600001},
    "moments": [{"phase": "change-settled", "gaveUp": None}],
    "blastRadius": {
        "replaced": [
            {
                "nodeClaim": "case-n1",
                "reason": "Drifted",
                "details": "NodePoolDrifted",
                "gone": 12.5,
                "delays": [{"podDisruptionBudgets": ["case/web"], "selecting": []}],
            }
        ],
        "created": [
            {
                "pool": "case-a",
                "instanceType": "m5.large",
                "zone": "us-east-1b",
                "capacityType": "on-demand",
                "gone": None,
            }
        ],
        "disruptedAtOnce": 1,
        "podsMoved": 2,
        "podsPreempted": 0,
        "workloadsWithoutNode": [{"workload": "web", "atTheEnd": 1}],
        "notSchedulableAgain": [{"workload": "web"}],
    },
    "remaining": [{"nodeClaim": "case-n2", "why": "price", "details": "can't replace", "drifted": False}],
    "week": {"pools": [{"pool": "case-a", "reasons": [{"reason": "Drifted", "now": 1}]}]},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The answer with another value at a place, such as `blastRadius/replaced/0/gone`."""
    answer = deepcopy(ANSWER)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("/"))
    place: Any = answer
    for parent in parents:
        place = place[parent]
    place[last] = value
    return answer


def test_an_answer_as_expected_is_right() -> None:
    assert judging.differences(CASE, ANSWER) == []
    assert judging.undecided(CASE, ANSWER) == []


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("blastRadius/replaced/0/gone", None, "leaving: n1, expected none"),
        ("blastRadius/replaced/0/reason", "Empty", "gone n1: Empty NodePoolDrifted, expected Drifted"),
        ("blastRadius/replaced/0/details", "NodeClassDrift", "gone n1: Drifted NodeClassDrift, expected"),
        ("blastRadius/replaced", [], "gone: none, expected n1"),
        ("blastRadius/replaced/0/delays", [], "n1 is held by none, expected web"),
        ("blastRadius/created", [], "came: none, expected a m5.large"),
        (
            "blastRadius/created",
            ANSWER["blastRadius"]["created"] * 2,
            "came: a m5.large us-east-1b on-demand, a m5.large",
        ),
        ("blastRadius/created/0/capacityType", "spot", "came: a m5.large us-east-1b spot, expected"),
        ("blastRadius/disruptedAtOnce", 2, "2 nodes on their way out at once, expected at most 1"),
        ("blastRadius/podsMoved", 3, "pods moved: 3, expected 2"),
        ("blastRadius/podsPreempted", 1, "pods preempted: 1, expected 0"),
        ("blastRadius/workloadsWithoutNode", [], "without a node at the end: none, expected web 1"),
        ("blastRadius/notSchedulableAgain", [], "without a NodePool: none, expected web"),
        ("remaining/0/why", "pods", "n2 stays for 'pods' (can't replace), expected 'price'"),
        ("remaining/0/drifted", True, "drifted and stays: n2, expected none"),
        ("week/pools/0/reasons/0/now", 0, "NodePool a allows 0 for Drifted, expected 1"),
        ("after/usdPerHour", 0.0961, "0.192 to 0.0961 dollars an hour, expected 0.192 to 0.096"),
    ],
)
def test_an_answer_that_differs_is_wrong(path: str, value: object, text: str) -> None:
    assert any(found.startswith(text) for found in judging.differences(CASE, changed(path, value)))


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("remaining", [], "not there when the change began: n2"),
        ("before/nodes", 3, "3 nodes when the change began, and not 2"),
        ("moments/0/gaveUp", "it had not settled after 900 s", "change-settled: it had not settled after 900 s"),
        ("remaining/0/why", "unknown", "no cause is said for n2"),
    ],
)
def test_an_answer_may_decide_nothing(path: str, value: object, text: str) -> None:
    assert judging.undecided(CASE, changed(path, value)) == [text]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case_can_be_made(case: Case) -> None:
    assert all(source.partition(":")[0] in ("https", "core", "aws", "azure") for source in case.sources)
    assert {words.split()[0] for words in case.nodes.values()} <= case.pools.keys()
    assert {node for one in case.workloads.values() for node in one.at} <= case.nodes.keys()
    assert {*case.answer.gone, *case.answer.leaving, *case.answer.stays} <= case.nodes.keys()
    assert list(writing.steps(case, NODE_CLASS)), "a change that changes nothing"
    region = STACKS[case.stack].rstrip("abc") if case.stack == "eks" else STACKS[case.stack].rpartition("-")[0]
    assert checked(writing.snapshot([case], region)).passed_over == ()


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl.gz")), ids=lambda path: path.name.split(".")[0])
def test_a_recorded_answer_is_right(path: Path, tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.name == path.name.split(".")[0]]
    with gzip.open(path, "rt") as recorded:
        (tmp_path / "timeline.jsonl").write_text(recorded.read())
    (tmp_path / "snapshot.json").write_text(json.dumps(writing.snapshot([case], "us-east-1")))
    assert (found := judging.verdict(case, tmp_path)).word == "right", found.texts


def test_cases_that_consolidate_several_nodes_share_no_cluster() -> None:
    for stack in STACKS:
        shared = list(batches([case for case in CASES if case.stack == stack]))
        assert sorted(case.name for batch in shared for case in batch) == sorted(
            case.name for case in CASES if case.stack == stack
        )
        assert all(len(batch) == 1 for batch in shared if any(case.alone for case in batch))


def test_a_timeline_is_divided_by_cases() -> None:
    def line(kind: str, name: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "object": {"metadata": {"name": name, **more.pop("metadata", {})}, **more}}

    of_pool = {"metadata": {"labels": {"karpenter.sh/nodepool": "case-a"}}}
    ours = [
        {"type": "START"},
        line("NodePool", "case-a"),
        line("NodeClaim", "case-n1", **of_pool),
        line("Node", "ip-10-0-0-1", **of_pool),
        line("Pod", "web-1", metadata={"namespace": "case"}),
        line("Event", "e1", involvedObject={"kind": "NodeClaim", "name": "case-n1"}),
        line("Event", "e2", involvedObject={"kind": "Pod", "namespace": "case", "name": "web-1"}),
        line("NodeClaim", "case-n1"),
    ]
    others = [
        line("NodePool", "case-2-a"),
        line("NodeClaim", "x", metadata={"labels": {"karpenter.sh/nodepool": "case-2-a"}}),
        line("Node", "ip-10-0-0-2", metadata={"labels": {"karpenter.sh/nodepool": "case-2-a"}}),
        line("Pod", "web-1", metadata={"namespace": "case-2"}),
        line("Event", "e3", involvedObject={"kind": "Node", "name": "ip-10-0-0-2"}),
    ]
    assert list(judging.lines_of(CASE, [*ours[:4], *others, *ours[4:]])) == ours


def test_a_merge_patch_removes_and_replaces() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert writing.difference(before, {"a": {"b": 1, "c": [2]}, "e": 3}) == {"a": {"c": [2]}, "d": None, "e": 3}
    assert writing.difference(before, before) == {}


def test_cases_expect_causes_that_the_answer_knows() -> None:
    expected = {cause for case in CASES for causes in case.answer.stays.values() for cause in causes}
    assert expected <= set(get_args(Why))
