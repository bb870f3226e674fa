"""`up`, `run`, `review`, `preflight` and `down` on a stack: what they start, ask of it, and stop."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from karpstack.rehearsal import commands, recorded_rights
from karpstack.rehearsal.host.processes import mark
from karpstack.rehearsal.rights import completeness
from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.deployment import CommandError
from karpstack.rehearsal.session.removal import NotCheckedError
from karpstack.rehearsal.state import ownership
from karpstack.text import files
from karpstack.text.codes import Code, reported
from karpstack.text.packaged import PROGRAM
from tests.programs.rehearsal.stacks import Stack
from tests.unit.command_line import karpstack
from tests.unit.rehearsal.test_rights_completeness import RECORDING

main = karpstack()


NOT_UP = "eks is not up. Checking the simulated account, which has only"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    stack = Stack(tmp_path / "state")
    yield stack
    daemon.stop(stack.folder)


@pytest.fixture
def up(stack: Stack) -> Stack:
    stack.start()
    return stack


def played(stack: Stack) -> list[dict[str, str]]:
    """The variables of each playbook that `run` has played."""
    return [call.args[1] for call in stack.commands.play.mock_calls]


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ({}, {"scenario_labels": "walk-through"}),
        ({"labels": "fault,scale"}, {"scenario_labels": "fault,scale"}),
        ({"labels": "all"}, {}),
        ({"scenarios": "drift,budget"}, {"scenarios": "drift,budget"}),
        ({"scenario_dir": "mine"}, {"scenario_dir": "mine"}),
        ({"scenario_dir": "mine", "labels": "a"}, {"scenario_dir": "mine", "scenario_labels": "a"}),
    ],
)
def test_run_asks_for_what_is_wanted(
    up: Stack, tmp_path: Path, options: dict[str, Any], variables: dict[str, str]
) -> None:
    report = tmp_path / "report"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "one.yml").touch()
    if "scenario_dir" in options:
        options = options | {"scenario_dir": Path(os.path.relpath(tmp_path / "mine"))}
        variables = variables | {"scenario_dir": str(tmp_path / "mine")}
    assert commands.run(up.target(), report=report, **options) == 0
    assert played(up) == [{**variables, "report_dir": str(report)}]


@pytest.mark.parametrize("before", [False, True], ids=["down", "up"])
@pytest.mark.parametrize("command", ["review", "preflight"])
@pytest.mark.parametrize(("ends", "code"), [(0, 0), (1, 1), (2, 2), (KeyboardInterrupt, 130)])
def test_what_a_look_started_it_stops_and_what_ran_before_it_leaves(
    command: str,
    before: bool,
    ends: int | type[BaseException],
    code: int,
    stack: Stack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    look = stack.commands.review if command == "review" else stack.commands.preflight
    look.side_effect = [ends]
    ownership.claim(stack.folder)
    (stack.folder.root / "earlier").touch()
    pack = PROGRAM / "policies" / "production.json"
    if before:
        stack.start()
    if command == "review":
        asked = partial(commands.review, output=tmp_path / "out", policy_pack_config=os.path.relpath(pack))
    else:
        asked = partial(commands.preflight)
    assert reported({KeyboardInterrupt: Code.INTERRUPTED}, lambda _: None)(asked)(stack.target()) == code
    assert stack.is_up() == before
    assert stack.asked == ["prepare", "review" if command == "review" else "preflight"]
    stack_file, *given = look.mock_calls[0].args
    assert (stack_file.path.name, *given) == (
        ("Pulumi.eks.yaml", tmp_path / "out", str(pack)) if command == "review" else ("Pulumi.eks.yaml", "text")
    )
    assert (stack.folder.root / "earlier").exists() == before, "the account of an earlier rehearsal is gone"
    assert stack.starting.ready.called == (command == "preflight" and not before)
    assert (NOT_UP in capsys.readouterr().err) == (command == "preflight" and not before)


def test_no_report_is_named_that_was_not_written(up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(up.target(), report=tmp_path / "report") == 0
    assert "No report was written" in capsys.readouterr().err


@pytest.mark.parametrize("before", ["", "of an earlier run"])
def test_a_report_is_named_whatever_the_machines_clock_says(
    before: str, up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clock went back by an hour while the stories ran."""
    page = tmp_path / "report" / "report.html"

    def play(*_: object) -> int:
        files.write(page, "new")
        an_hour_ago = time.time() - 3600
        os.utime(page, (an_hour_ago, an_hour_ago))
        return 0

    up.commands.play.side_effect = play
    page.parent.mkdir()
    if before:
        page.write_text(before)
    assert commands.run(up.target(), report=page.parent) == 0
    assert "Report: " in capsys.readouterr().err


def test_what_runs_after_its_state_was_deleted_is_found_and_ended(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = subprocess.Popen(["sleep", "600"], env=os.environ | mark(stack.folder))
    assert commands.status(stack.target()) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "eks: its state is lost, but " in said
    assert str(lost.pid) in said
    assert "down eks" in said
    assert commands.down(stack.target()) == 0
    assert "nothing is running; stopped what was left: sleep" in capsys.readouterr().out
    assert not psutil.pid_exists(lost.pid)


def test_an_interrupted_run_says_that_what_was_up_before_stays(
    up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up.commands.play.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        commands.run(up.target(), report=tmp_path / "report")
    said = " ".join(capsys.readouterr().err.split())
    assert "eks was up before and stays up." in said
    assert "Report:" not in said


@pytest.mark.parametrize(("code", "words"), [(0, ""), (1, "did not pass")])
def test_an_update_writes_the_review_anew(
    code: int, words: str, up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up.commands.review.return_value = code
    target = up.target()
    assert commands.up(target, review_folder=tmp_path / "out") == 0
    assert up.asked == ["prepare", "up", "review"]
    assert up.commands.review.mock_calls[0].args[1] == tmp_path / "out"
    assert up.commands.review.mock_calls[0].kwargs == {"updated": True}
    assert words in capsys.readouterr().err
    assert commands.up(target, write_review=False) == 0
    assert up.asked[3:] == ["prepare", "up"]


@pytest.mark.parametrize("command", ["up", "run", "review", "preflight", "whatif", "network"])
def test_a_stack_file_that_is_missing_has_one_exit_code(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In all commands, and another one than a story that failed or a rule that is broken."""
    given = ["--config-file", str(tmp_path / "no")]
    if command == "whatif":
        given = ["--base", "", "--project", str(tmp_path), "--output", str(tmp_path / "out")]
    assert main([command, "mine", *given]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_machine_that_has_run_out_is_named_and_no_traceback(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    up.commands.up.side_effect = OSError(errno.ENOSPC, "No space left on device", "daemon.json")
    assert commands.up(up.target(), write_review=False) == 3
    assert "make room, or put what the command writes elsewhere" in " ".join(capsys.readouterr().err.split())


WAY = ["error: load balancers: the Service shop/web"]
FAILED = CommandError("`pulumi destroy` failed (exit code 255)")


def test_down_tells_what_is_in_the_way_and_tries(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    up.commands.hindrances.return_value = WAY
    assert commands.down(up.target()) == 0
    assert up.asked == ["hindrances", "destroy"]
    assert not up.is_up()
    said = capsys.readouterr()
    assert "In the way of `pulumi destroy`, which is tried all the same:\n  error: load balancers: the" in said.err
    assert said.out == "eks: down\n"
    assert commands.down(up.target()) == 0
    assert capsys.readouterr().out == "eks: nothing is running\n"


def test_what_cannot_be_destroyed_stays_up_until_it_can(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    up.commands.hindrances.return_value = WAY
    up.commands.destroy.side_effect = [FAILED, None]
    assert commands.down(up.target()) == 1
    assert up.asked == ["hindrances", "destroy", "hindrances"]
    assert up.is_up()
    said = capsys.readouterr().err
    assert "What is in the way now:\n  error: load balancers: the Service shop/web" in said
    assert "eks and its engines stay up" in said
    state = f"--state {up.folder.root.parent}"
    assert f"go on: karpstack down eks {state}; or give it up as it is: karpstack down --force eks {state}" in said
    assert commands.down(up.target()) == 0
    assert up.asked[3:] == ["hindrances", "destroy"]
    assert not up.is_up()


def test_a_protection_that_cannot_be_lifted_leaves_the_stack_up(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    state = up.folder.pulumi / "state" / ".pulumi" / "stacks" / "karpstack" / "eks.json"
    state.parent.mkdir(parents=True)
    cluster = {"urn": "urn:pulumi:eks::karpstack::aws:eks/cluster:Cluster::control-plane", "protect": True}
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": [cluster]}}}))
    protection = {"config": {"karpstack:cluster": {"deletionProtection": True}}}
    up.folder.stack_configuration.write_text(yaml.safe_dump(protection))
    up.commands.lift_protection.side_effect = FAILED
    assert commands.down(up.target()) == 1
    assert up.asked == ["lift_protection"]
    assert up.is_up()
    said = " ".join(capsys.readouterr().err.split())
    assert "eks and its engines stay up" in said
    assert "down --force" in said


def test_a_look_that_fails_hinders_no_down(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    up.commands.hindrances.side_effect = NotCheckedError("nobody answers")
    assert commands.down(up.target()) == 0
    assert not up.is_up()
    assert "What is in the way of `pulumi destroy` is not known: nobody answers" in capsys.readouterr().err


def test_who_breaks_off_the_look_after_a_failure_gives_nothing_up(
    up: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    up.commands.hindrances.side_effect = [[], KeyboardInterrupt]
    up.commands.destroy.side_effect = FAILED
    assert commands.down(up.target()) == 1
    assert up.is_up()
    assert "eks and its engines stay up" in capsys.readouterr().err


def test_an_interrupted_down_stops_the_engines_and_says_so(up: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    up.commands.destroy.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        commands.down(up.target())
    assert not up.is_up()
    assert "eks is given up: its engines stop" in capsys.readouterr().err


@pytest.mark.parametrize(("ends", "code"), [(None, 0), (FAILED, 1)])
def test_a_run_leaves_nothing_up_whatever_becomes_of_its_removal(
    ends: BaseException | None, code: int, stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.commands.destroy.side_effect = ends
    stack.commands.hindrances.return_value = WAY
    assert commands.run(stack.target(), report=tmp_path / "report") == code
    assert stack.asked == ["prepare", "up", "play", "destroy", *(["hindrances"] if ends else [])]
    assert not stack.is_up()
    assert ("What is in the way now:" in capsys.readouterr().err) == bool(ends)


def test_what_is_described_is_not_changed_under_a_running_rehearsal(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    described = stack.target().stack_file().network
    described.write_text('{"Vpcs": [{"VpcId": "vpc-0123456789abcdef0", "CidrBlock": "10.0.0.0/16"}]}')
    stack.start(stack.target().stack_file().described)
    assert commands.up(stack.target(), write_review=False) == 0
    assert stack.asked == ["prepare", "up"]
    described.write_text('{"Vpcs": [{"VpcId": "vpc-0123456789abcdef0", "CidrBlock": "10.1.0.0/16"}]}')
    assert commands.up(stack.target(), write_review=False) == 1
    said = capsys.readouterr().err
    assert re.search(r"Pulumi\.eks\.network\.json or .* has changed since .* karpstack down eks", said)
    assert stack.asked == ["prepare", "up"]


def test_a_run_notes_its_scenarios_and_the_next_adds_its_own(
    up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up.folder.rights.write_text(recorded_rights.text(RECORDING))
    told = [["drift"], ["churn"]]

    def play(_: Path, variables: dict[str, str]) -> int:
        stories = [{"name": name, "passed": True} for name in told.pop(0)]
        (Path(variables["report_dir"]) / "report.json").write_text(json.dumps({"stories": stories}))
        return 0

    up.commands.play.side_effect = play
    for _ in range(2):
        assert commands.run(up.target(), report=tmp_path / "report") == 0
    assert completeness.noted(up.folder.recorded_scenarios) == {"churn", "drift"}
    assert commands.rights(up.target(), form="json") == 1
    problems = " ".join(json.loads(capsys.readouterr().out)["problems"])
    lacks = problems.partition("it lacks of the whole soak: ")[2].split(", ")
    assert "budget" in lacks
    assert not {"churn", "drift"} & set(lacks)
    assert "what down asks" in problems
