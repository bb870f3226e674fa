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
        "message": f"<{{%fg 13%}}>{rule.description}\n{rule.report_text('boundless')}<{{%reset%}}>\n",
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
        ("mandatory", [{"severity": "error", "message": "no"}], 3),
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
    monkeypatch.syspath_prepend(str(PACK))  # as `karpstack review --live` has it
    program = tmp_path / "pulumi"
    program.write_text(PULUMI.replace("{python}", sys.executable))
    program.chmod(0o755)
    other = f"{URN}-too"
    summary = json.dumps({"summaryEvent": {"isPreview": True, "PolicyPacks": {"karpstack": "0.1.0"}}})
    events = [*([violation(level), violation(level).replace(URN, other)] if level else []), summary]
    refused = 255 if level == "mandatory" else 0
    said = {
        "digest": {"steps": [STEP, {**STEP, "urn": other}], "diagnostics": diagnostics},
        "events": events,
        "code": refused,
    }
    (tmp_path / "said.json").write_text(json.dumps(said))
    monkeypatch.setenv("SAID", str(tmp_path / "said.json"))
    monkeypatch.setenv("PULUMI_ENABLE_STREAMING_JSON_PREVIEW", "1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    output = tmp_path / "out"
    review = import_module("karpstack.review.command").review
    assert review("eks", policy_pack_config="baseline", output=output) == code
    assert sorted(one.name for one in output.iterdir()) == ["review.html", "review.md", "review.sarif"]
    told = capsys.readouterr()
    assert ("mandatory: node-pool-limits: pool, pool-too: boundless" in told.out) is (level == "mandatory")
    assert ("no" in told.err) is (code == 3)
    assert review("eks", policy_pack_config="baseline", output=output, form="json") == code
    answer = json.loads(capsys.readouterr().out)
    assert (answer["folder"], len(answer["findings"])) == (str(output), 2 if level else 0)
    given = (tmp_path / "said.json.arguments").read_text()
    assert "--policy-pack-config" not in given
    # The folder itself, or what leads to it where no Python environment is beside it.
    assert f"/{PACK.name} " in given.partition("--policy-pack ")[2]


@pytest.mark.parametrize("events", [[], [json.dumps({"summaryEvent": {"isPreview": True, "PolicyPacks": {}}})]])
def test_a_preview_that_no_pack_has_judged_has_not_passed(
    events: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrapper around `pulumi` had dropped --policy-pack, and the review passed."""
    monkeypatch.syspath_prepend(str(PACK))
    program = tmp_path / "pulumi"
    program.write_text(PULUMI.replace("{python}", sys.executable))
    program.chmod(0o755)
    (tmp_path / "said.json").write_text(json.dumps({"digest": {"steps": [STEP]}, "events": events, "code": 0}))
    monkeypatch.setenv("SAID", str(tmp_path / "said.json"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    review = import_module("karpstack.review.command").review
    assert review("eks", policy_pack_config="baseline", output=tmp_path / "out") == 3
    assert "the pack did not judge it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


STATE = """#!{python}
import json, sys
assert sys.argv[1:] == ["stack", "export", "--non-interactive", "--stack", "test"], sys.argv
print(open("{state}").read())
"""


def update(**summary: Any) -> str:
    """The event log of an update in which the pool has no limit."""
    of = {"isPreview": False, "result": "succeeded", "PolicyPacks": {"karpstack|local|policies": "0.1.0"}, **summary}
    made = {"resOutputsEvent": {"metadata": {"op": "create", "urn": URN}}}
    return "\n".join([violation("advisory"), json.dumps(made), json.dumps({"summaryEvent": of}), '{"cancelEvent": {}}'])


@pytest.mark.parametrize(
    ("state", "log", "code", "said"),
    [
        (
            "right",
            "right",
            0,
            "Resources: 1 unchanged; beside them 1 component or provider, which Pulumi counts too. 0 mandatory and",
        ),
        ("right", "missing", 3, "so it is not known what the pack said; `PULUMI_DEBUG_COMMANDS=true"),
        ("right", "{", 3, "line 1 of the engine's event log is no event of Pulumi's"),
        ("right", "", 3, "is of no update that came to its end"),
        ("right", "a preview", 3, "is of no update that came to its end"),
        ("right", "failed", 3, "is of an update that failed"),
        ("right", "unjudged", 3, "the pack did not judge that update"),
        ("right", "of another stack", 3, "is of other, and the review of test"),
        ('{"deployment": {"resources": [{"urn": 1}]}}', "right", 3, "is no state of a stack: deployment.resources.0"),
        ("", "right", 3, "is no state of a stack"),
    ],
)
def test_what_an_update_has_made_is_reviewed_without_a_preview(
    state: str, log: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.syspath_prepend(str(PACK))
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}
    provider = {
        "type": "pulumi:providers:kubernetes",
        "urn": "urn:pulumi:test::karpstack::pulumi:providers:kubernetes::k",
    }
    pool = {"urn": URN, **STEP["newState"], "outputs": {"kubeconfig": secret}}  # type: ignore[dict-item]
    replaced = {**pool, "urn": f"{URN}-old", "delete": True}
    right = json.dumps({"version": 3, "deployment": {"resources": [provider, pool, replaced]}})
    (tmp_path / "state.json").write_text(right if state == "right" else state)
    program = tmp_path / "pulumi"
    program.write_text(STATE.replace("{python}", sys.executable).replace("{state}", str(tmp_path / "state.json")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    events = tmp_path / "events.jsonl"
    logs = {
        "right": update(),
        "a preview": update(isPreview=True),
        "failed": update(result="failed"),
        "unjudged": update(PolicyPacks={}),
        "of another stack": update().replace("urn:pulumi:test", "urn:pulumi:other"),
    }
    if log != "missing":
        events.write_text(logs.get(log, log))
    output = tmp_path / "out"
    review = import_module("karpstack.review.command").review
    assert review("test", policy_pack_config="baseline", output=output, update=events) == code
    told = capsys.readouterr()
    assert said in told.out + told.err
    assert output.exists() == (code == 0)
    assert "v1:abc" not in "".join(one.read_text() for one in output.glob("*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_review_that_is_stopped_says_so_in_a_sentence(number: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "pulumi"
    begun = tmp_path / "begun"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 60\n")
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "karpstack", "review", "eks", "--live", "--output", str(tmp_path / "out")],
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
