"""`down`: what is in the way is told before and after, what drains is told meanwhile, and what cannot go stays up."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karpstack.rehearsal.session import removal
from karpstack.rehearsal.session.removal import NotCheckedError, Progress, draining, find_blockers
from tests.unit.command_line import karpstack

main = karpstack()


def answers(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "", code: int = 0) -> list[list[str]]:
    """Let every program say this; the commands that are given."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(stdout=stdout, stderr=stderr, returncode=code)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(removal, "with_parent", lambda number: [f"killed with us by {number.name}"])
    return commands


def finding(severity: str, what: str, fix: str = "") -> dict[str, str]:
    return {"severity": severity, "what": what, "consequence": "it stays", "fix": fix, "told_by": "x"}


def test_what_the_look_before_destroy_finds_is_told_errors_first(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        {"name": "volumes", "findings": [finding("warning", "a disk", "delete it"), finding("note", "an aside")]},
        {"name": "load balancers", "findings": [finding("error", "a Service")]},
    ]
    commands = answers(monkeypatch, json.dumps({"checks": checks}), code=1)
    assert find_blockers("eks", Path("/s/Pulumi.eks.yaml"), Path("/p"), {}) == [
        "error: load balancers: a Service: it stays",
        "warning: volumes: a disk: it stays; fix: delete it",
    ]
    assert [commands[0][0], *commands[0][2:]] == [
        "killed with us by SIGKILL",
        *("-m", "karpstack", "preflight", "destroy", "eks", "--config-file", "/s/Pulumi.eks.yaml", "--format", "json"),
    ]


@pytest.mark.parametrize("stdout", ["", "[]", "{}", '{"checks": [{}]}'])
def test_a_look_that_was_none_says_why(monkeypatch: pytest.MonkeyPatch, stdout: str) -> None:
    answers(monkeypatch, stdout, "error: no cluster answers\n", 2)
    with pytest.raises(NotCheckedError, match="no cluster answers"):
        find_blockers("eks", Path("x"), Path("y"), {})


def claim(name: str, *conditions: tuple[str, str, str], deleted: bool = True) -> dict[str, Any]:
    told = [{"type": kind, "status": status, "message": message} for kind, status, message in conditions]
    metadata = {"name": name, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})}
    return {"kind": "NodeClaim", "metadata": metadata, "status": {"conditions": told, "nodeName": f"{name}-node"}}


def pod(name: str, node: str, owner: str = "ReplicaSet", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    metadata |= {"name": name, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": [{"kind": owner}]}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def budget(name: str, allowed: int, namespace: str = "shop") -> dict[str, Any]:
    spec, status = {"selector": {"matchLabels": {"app": "web"}}}, {"disruptionsAllowed": allowed}
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": status,
    }


def test_nodes_that_drain_are_named_with_what_they_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [
        claim("a", ("Drained", "Unknown", "Draining")),
        claim("b", ("Drained", "True", ""), ("VolumesDetached", "Unknown", "AwaitingVolumeDetachment")),
        claim("c"),
        claim("stays", ("Drained", "Unknown", "Draining"), deleted=False),
    ]
    answers(monkeypatch, json.dumps({"items": claims}))
    assert draining(["kubectl"], {}) == ["a (Draining)", "b (AwaitingVolumeDetachment)", "c"]
    answers(monkeypatch, "", "connection refused", 1)
    assert draining(["kubectl"], {}) == []


def test_what_holds_a_node_is_told_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    until = {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T01:00:00Z"}
    held, going, empty = (claim(name, ("Drained", "Unknown", "Draining")) for name in "abc")
    held["metadata"]["annotations"] = until
    undisturbed = pod("batch", "a-node", annotations={"karpenter.sh/do-not-disrupt": "true"})
    items = [
        *(held, going, empty, pod("web-1", "a-node"), undisturbed, pod("agent", "a-node", "DaemonSet")),
        *(pod("done", "a-node", phase="Succeeded"), pod("static", "c-node", "Node")),
        *(budget("web", 0), budget("other", 1), budget("elsewhere", 0, "bank")),
    ]
    answers(monkeypatch, json.dumps({"items": items}))
    assert draining(["kubectl"], {}) == [
        "a (Draining): its node has shop/web-1, shop/batch; the PodDisruptionBudget shop/web lets none go now: scale "
        "its workload to 0, or kubectl delete poddisruptionbudget --namespace shop web; shop/batch has "
        "karpenter.sh/do-not-disrupt: scale its workload to 0, or kubectl annotate pod --namespace shop batch "
        "karpenter.sh/do-not-disrupt-; Karpenter deletes them in spite of that at 2026-01-01T01:00:00Z",
        "b (Draining)",
        "c (Draining)",
    ]
    answers(monkeypatch, json.dumps({"items": [going, pod("web-2", "b-node"), budget("web", 1)]}))
    assert draining(["kubectl"], {}) == ["b (Draining): its node has shop/web-2"]


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    left = ["a (Draining)", "b", "c", "d", "e", "f"]
    asked: list[float] = []

    def ask() -> list[str]:
        asked.append(clock[0])
        return left

    progress = Progress(ask)
    for clock[0] in (1.0, 16.0, 17.0, 33.0):
        progress.print_progress()
        left = left[:1] if clock[0] == 17.0 else left
    assert asked == [16.0, 33.0]
    said = (
        "After {} s NodeClaims are left. Karpenter takes the finalizer of each away when its node is drained and its "
        "instance is gone:"
    )
    told = ["a (Draining)", "b", "c", "d", "e", "and 1 more"]
    assert " ".join(capsys.readouterr().err.split()) == " ".join(
        [said.format(16), *told, said.format(33), "a (Draining)"]
    )
    left = []
    clock[0] = 60.0
    progress.print_progress()
    assert not capsys.readouterr().err
