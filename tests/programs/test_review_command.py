"""The review's command, with a Pulumi that says what it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PACK = Path(__file__).resolve().parents[2] / "policies"
TYPE = "kubernetes:karpenter.sh/v1:NodePool"
URN = f"urn:pulumi:test::karpstack::{TYPE}::pool"
POOL = {
    "metadata": {"name": "pool"},
    "spec": {"limits": {"cpu": 10}, "template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws"}}}},
}
STEP = {"op": "create", "urn": URN, "newState": {"type": TYPE, "custom": True, "inputs": POOL}}
PULUMI = """#!{python}
import json, os, sys
log = sys.argv[sys.argv.index("--event-log") + 1]
assert "PULUMI_ENABLE_STREAMING_JSON_PREVIEW" not in os.environ
assert os.environ["PULUMI_DEBUG_COMMANDS"] == "true", "without it there is no --event-log"
assert sys.argv[1:3] == ["preview", "--non-interactive"]
said = json.load(open(os.environ["SAID"]))
open(log, "w").write("\\n".join(said["events"]))
print(json.dumps(said["digest"]))
print(" ".join(sys.argv), file=open(os.environ["SAID"] + ".arguments", "w"))
sys.exit(said["code"])
"""


def violation(level: str) -> str:
    """A line of the engine's event log: the pool has no limit."""
    (rule,) = [rule for rule in import_module("reference").rules() if rule.name == "node-pool-limits"]
    said = {
        "policyName": rule.name,
        "message": f"<{{%fg 13%}}>{rule.description}\n{rule.told('boundless')}<{{%reset%}}>\n",
        "resourceUrn": URN,
        "enforcementLevel": level,
    }
    return json.dumps({"policyEvent": {"policyPackName": "karpstack", "policyPackVersion": "0.1.0", **said}})


@pytest.mark.parametrize(
    ("level", "diagnostics", "code"),
    [
        (None, [], 0),
        ("advisory", [], 0),
        ("mandatory", [], 1),
        ("mandatory", [{"severity": "error", "message": "error: preview failed\n"}], 1),
        ("mandatory", [{"severity": "error", "message": "no"}], 2),
    ],
)
def test_the_exit_code_tells_findings_from_failures(
    level: str | None,
    diagnostics: list[Any],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(PACK))  # as `python -m review` has it
    program = tmp_path / "pulumi"
    program.write_text(PULUMI.replace("{python}", sys.executable))
    program.chmod(0o755)
    events = [violation(level)] if level else []
    refused = 255 if level == "mandatory" else 0
    said = {
        "digest": {"steps": [STEP], "diagnostics": diagnostics},
        "events": events,
        "code": refused,
    }
    (tmp_path / "said.json").write_text(json.dumps(said))
    monkeypatch.setenv("SAID", str(tmp_path / "said.json"))
    monkeypatch.setenv("PULUMI_ENABLE_STREAMING_JSON_PREVIEW", "1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    output = tmp_path / "out"
    arguments = ["--stack", "eks", "--policy-pack-config", "baseline", "--output", str(output)]
    assert import_module("review.command").main(arguments) == code
    assert sorted(one.name for one in output.iterdir()) == ["review.html", "review.md", "review.sarif"]
    told = capsys.readouterr()
    assert ("mandatory: node-pool-limits: pool: boundless" in told.out) is (level == "mandatory")
    assert ("no" in told.err) is (code == 2)
    given = (tmp_path / "said.json.arguments").read_text()
    assert "--policy-pack-config" not in given
    assert f"--policy-pack {PACK}" in given


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_review_that_is_stopped_says_so_in_a_sentence(number: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "pulumi"
    begun = tmp_path / "begun"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 60\n")
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "review", "--stack", "eks", "--output", str(tmp_path / "out")],
        cwd=PACK.parent,
        env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert (process.returncode, said) == (130, "Stopped. Nothing was created or changed.\n")
    assert not (tmp_path / "out").exists()
