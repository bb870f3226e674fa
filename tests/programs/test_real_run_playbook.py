"""The playbook of a real run, with false programs: what it runs on which stack, and what it leaves alone."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.real_run import guard, stages
from karpstack.scale_test.processes import is_gone
from tests.programs.playbook import ROOT, begin, play

PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> {folder}/calls
case "$*" in
*cost*json*) echo '{{"minutes": 60, "scenarios": "eks-cheapest-fit"}}' ;;
*"stack export"*) cat {folder}/export ;;
*preflight*) {preflight} ;;
*"real-run left"*) {left} ;;
*"real-run compare"*) {compare} ;;
up*) {up} ;;
destroy*) {destroy} ;;
esac
"""


def real_run(folder: Path, *more: str, **given: Any) -> tuple[int, str, list[str]]:
    """Run it; the exit code, the output, and what it called."""
    process = begun(folder, *more, **given)
    output, _ = process.communicate()
    return process.returncode, " ".join(output.split()), calls(folder)


def calls(folder: Path) -> list[str]:
    """What it called until now."""
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def begun(
    folder: Path,
    *more: str,
    resources: list[str],
    preflight: str = "true",
    up: str = "true",
    destroy: str = "true",
    left: str = "true",
    compare: str = "true",
    export: str = "",
) -> subprocess.Popen[str]:
    """Begin it, with false programs of which some run a command; `export` replaces one of the resources."""
    (folder / "bin").mkdir()
    for name in ("pulumi", "kubectl", "karpstack", "ansible-playbook"):
        program = folder / "bin" / name
        program.write_text(
            PROGRAM.format(folder=folder, preflight=preflight, up=up, destroy=destroy, left=left, compare=compare)
        )
        program.chmod(0o755)
    stack = {"type": "pulumi:pulumi:Stack"}
    deployment = {"resources": [stack, *({"type": one} for one in resources)]} if resources else {}
    (folder / "export").write_text(export or json.dumps({"version": 3, "deployment": deployment}))
    ours = {"real_run_karpstack": [f"{folder}/bin/karpstack"], "real_run_playbook": [f"{folder}/bin/ansible-playbook"]}
    given = {**ours, "stack": "mine", "run_dir": f"{folder}/./the run", "whatif": []}
    path = f"{folder}/bin:/usr/bin:/bin"
    return begin("real_run.yml", folder, "-e", json.dumps(given), *more, PATH=path, KARPSTACK_REHEARSAL_URL="")


def test_what_is_checked_is_what_is_brought_up_and_destroyed(tmp_path: Path) -> None:
    """Pulumi had the stack's own file, and the checks another one."""
    code, output, called = real_run(tmp_path, "-e", "config_file=other.yaml", resources=[])
    assert code == 0, output
    assert (tmp_path / "the run" / guard.FINISHED).exists()
    assert not (tmp_path / "the run" / guard.LOG).exists()
    of_pulumi = [call for call in called if call.startswith("pulumi")]
    assert of_pulumi == [
        "pulumi stack export --stack mine",
        "pulumi stack export --stack mine",
        "pulumi up --yes --stack mine --config-file other.yaml",
        "pulumi stack output kubeconfig --show-secrets --stack mine",
        "pulumi destroy --yes --stack mine --config-file other.yaml",
        "pulumi stack export --stack mine",
    ]
    assert all("--config-file other.yaml" in call for call in called if " preflight" in call or " left" in call)
    (stories,) = (call for call in called if "scale_test.yml" in call)
    assert json.loads(stories.partition(" -e ")[2]) == {
        "stack": "mine",
        "report_dir": f"{tmp_path}/the run/report",
        "scenarios": {"__ansible_unsafe": "eks-cheapest-fit"},
    }
    assert all("--labels walk-through" in call for call in called if " cost " in call)


@pytest.mark.parametrize(
    ("options", "asked"), [("[]", None), ("--new-image", "--new-image"), ('["--at", "1"]', "--at 1")]
)
def test_options_of_the_what_if_may_be_a_text(options: str, asked: str | None, tmp_path: Path) -> None:
    """With `-e whatif=[]`, a failed destroy was told by nothing but an error of a template."""
    code, output, called = real_run(tmp_path, "-e", json.dumps({"whatif": options}), resources=[])
    assert code == 0, output
    whatifs = [call for call in called if call.startswith("karpstack whatif")]
    assert [call.endswith(f"the run/whatif {asked}") for call in whatifs] == ([True] if asked else [])


@pytest.mark.parametrize("resources", [["aws:eks/cluster:Cluster"], ["pulumi:providers:aws"]])
def test_a_stack_that_has_something_is_not_taken(resources: list[str], tmp_path: Path) -> None:
    """A colleague's run would be destroyed, or one that is needed."""
    code, output, called = real_run(tmp_path, resources=resources, preflight="exit 1")
    assert code != 0, output
    assert ("has resources, and this run would destroy them" in output) == ("cluster" in str(resources).lower())
    assert [call for call in called if call.startswith("pulumi")] == ["pulumi stack export --stack mine"]


@pytest.mark.parametrize(
    ("export", "said"),
    [
        ("Logging in", "The stack mine cannot be read, so nothing was done"),
        ("[]", "The stack mine cannot be read, so nothing was done"),
        (
            json.dumps({"deployment": {"pending_operations": [{"type": "creating"}]}}),
            "The stack mine has an interrupted operation, which may have created resources that Pulumi does not know",
        ),
    ],
)
def test_a_stack_that_may_have_something_is_not_taken(export: str, said: str, tmp_path: Path) -> None:
    """A wrapper wrote to Pulumi's output; an `up` was killed."""
    code, output, called = real_run(tmp_path, resources=[], export=export)
    assert code != 0, output
    assert said in output
    assert [call for call in called if call.startswith("pulumi")] == ["pulumi stack export --stack mine"]


def test_before_up_nothing_is_destroyed(tmp_path: Path) -> None:
    """An ended login made preflight fail, and then the stack was destroyed."""
    code, output, called = real_run(tmp_path, resources=[], preflight="exit 3")
    assert code != 0, output
    assert [call for call in called if "pulumi" in call or " left" in call] == ["pulumi stack export --stack mine"]
    assert "preflight failed" in output


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_broken_off_is_destroyed(how: signal.Signals, tmp_path: Path) -> None:
    """After Ctrl-C, `pulumi up` went on, and nothing destroyed what it made."""
    up = f"trap 'echo \"up was broken off\" >> {tmp_path}/calls; exit 1' INT; while sleep 0.1; do :; done"
    process = begun(tmp_path, resources=[], up=up)
    try:
        _wait_for(lambda: any(call.startswith("pulumi up") for call in calls(tmp_path)), process)
    finally:
        process.send_signal(how)
        process.wait()
    _wait_for((tmp_path / "the run" / guard.FINISHED).exists)
    _, _, _, broken_off, destroy, _, left = [
        call for call in calls(tmp_path) if "preflight" not in call and "cost" not in call
    ]
    assert broken_off == "up was broken off"
    assert destroy == "pulumi destroy --yes --stack mine"
    assert left == "karpstack real-run left mine --config-file Pulumi.mine.yaml"
    assert "something may cost money" in (tmp_path / "the run" / guard.LOG).read_text()


NOTHING = guard.Command(["true"], 60)


def test_before_up_a_run_that_is_broken_off_destroys_nothing(tmp_path: Path) -> None:
    """What a colleague's run with the same tag had made would have been removed."""
    wrong = guard.Command(["touch", f"{tmp_path}/wrong"], 60)
    assert stages.run(tmp_path, "preflight", ["false"], 60, tmp_path) == 1
    assert not guard.watch(_ended(), tmp_path, tmp_path, wrong, wrong, wrong)
    assert not (tmp_path / "wrong").exists()


def test_on_a_full_disk_everything_is_destroyed(tmp_path: Path) -> None:
    for name in (stages.STAGE, stages.BEGUN):
        (tmp_path / name).mkdir()  # as little can be written there
    with pytest.raises(OSError, match="Is a directory"):
        stages.run(tmp_path, stages.UP, ["touch", f"{tmp_path}/made"], 60, tmp_path)
    assert not (tmp_path / "made").exists()
    assert stages.run(tmp_path, stages.DESTROY, ["touch", f"{tmp_path}/destroyed"], 60, tmp_path) == 0
    (tmp_path / stages.BEGUN).rmdir()
    (tmp_path / stages.BEGUN).write_text(stages.UP)
    (tmp_path / guard.LOG).symlink_to("/dev/full")
    again = guard.Command(["touch", f"{tmp_path}/again"], 60)
    assert guard.watch(_ended(), tmp_path, tmp_path, again, NOTHING, NOTHING)
    assert (tmp_path / "again").exists()


def test_of_a_run_that_is_broken_off_in_its_destroy_this_is_not_ended(tmp_path: Path) -> None:
    destroy = ["sh", "-c", f"sleep 2; touch {tmp_path}/destroyed"]
    assert stages.run(tmp_path, "up", ["true"], 60, tmp_path) == 0
    (tmp_path / stages.STAGE).unlink()
    stage = threading.Thread(target=stages.run, args=(tmp_path, stages.DESTROY, destroy, 60, tmp_path))
    stage.start()
    _wait_for((tmp_path / stages.STAGE).exists)
    again = guard.Command(["mv", f"{tmp_path}/destroyed", f"{tmp_path}/seen"], 60)
    assert guard.watch(_ended(), tmp_path, tmp_path, again, NOTHING, NOTHING)
    stage.join()
    assert (tmp_path / "seen").exists()


COUNTING = """import signal, sys, time
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
open(sys.argv[1] + "/ready", "w").close()
while not told:
    time.sleep(0.05)
time.sleep(1)
open(sys.argv[1] + "/told", "w").write(str(len(told)))
"""


@pytest.mark.parametrize(
    "how", ["its time is over", "its playbook is gone", "all is destroyed", "its module was killed"]
)
def test_a_stage_gets_one_sigint(how: str, tmp_path: Path) -> None:
    """At a second one, Pulumi gives up what it creates, which then stays; `timeout` sends two."""
    program = [sys.executable, "-c", COUNTING, str(tmp_path)]
    seconds = 0.5 if how == "its time is over" else 60.0
    run = threading.Thread(target=stages.run, args=(tmp_path, "up", program, seconds, tmp_path))
    run.start()
    _wait_for((tmp_path / "ready").exists)
    if how == "all is destroyed":
        (tmp_path / guard.FINISHED).touch()
    if how in ("its playbook is gone", "all is destroyed"):
        guard.watch(_ended(), tmp_path, tmp_path, NOTHING, NOTHING, NOTHING)
    elif how == "its module was killed":
        assert stages.run(tmp_path, "next", ["true"], 60, tmp_path) == 0
    run.join()
    assert (tmp_path / "told").read_text() == "1"


@pytest.mark.parametrize(
    ("destroy", "left", "called"),
    [
        ("exit 0", "exit 1", ["destroy", "left", "remove", "left"]),
        ("exit 0", "exit 3", ["destroy", "left"]),
        ("exit 1", "exit 3", ["destroy", "left", "remove", "left"]),
        ("exit 1", "exit 0", ["destroy", "left"]),
    ],
)
def test_what_destroy_has_left_is_removed(destroy: str, left: str, called: list[str], tmp_path: Path) -> None:
    def command(name: str, then: str = "true") -> guard.Command:
        return guard.Command(["sh", "-c", f"echo {name} >> {tmp_path}/calls; {then}"], 60)

    assert stages.run(tmp_path, "up", ["true"], 60, tmp_path) == 0
    guard.watch(_ended(), tmp_path, tmp_path, command("destroy", destroy), command("left", left), command("remove"))
    assert calls(tmp_path) == called


def test_a_destroy_that_leaves_what_was_being_created_has_failed(tmp_path: Path) -> None:
    """With an interrupted creation in its state, `pulumi destroy` only warns."""
    pending = json.dumps({"deployment": {"pending_operations": [{"type": "creating"}]}})
    _, output, _ = real_run(tmp_path, resources=[], up=f"echo '{pending}' > {tmp_path}/export; exit 1")
    assert "up, destroy failed" in output
    assert "Pulumi was killed while it created something" in (tmp_path / "the run" / "destroy.log").read_text()


def test_the_stack_is_destroyed_although_the_module_of_up_was_killed(tmp_path: Path) -> None:
    """The stage had no exit code, so it counted as not begun, and everything as gone."""
    kill = "kill -9 $(ps -o ppid= -p $$)"
    _, output, called = real_run(tmp_path, resources=[], up=kill)
    assert "pulumi destroy --yes --stack mine" in called, output
    assert "up failed" in output


def _ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_files_of_somebody_else_are_not_replaced(tmp_path: Path) -> None:
    """With `-e run_dir=.`, `kubeconfig` and others were emptied, also through links."""
    run = tmp_path / "the run"
    run.mkdir(mode=0o755)
    for name in ("kubeconfig", "guard", "finished"):
        (run / name).write_text("mine")
    (run / "up.log").symlink_to(tmp_path / "target")
    code, output, called = real_run(tmp_path, resources=[])
    assert code != 0, output
    assert "has files that no real run has written" in output
    assert [call for call in called if call.startswith("pulumi")] == ["pulumi stack export --stack mine"]
    assert [(run / name).read_text() for name in ("kubeconfig", "guard", "finished")] == ["mine"] * 3
    assert not (tmp_path / "target").exists()
    assert run.stat().st_mode & 0o777 == 0o755


def test_what_an_earlier_run_has_left_does_not_pass_for_this_runs(tmp_path: Path) -> None:
    """The page of a run whose stories had failed was made from an earlier report, and said that nothing differs."""
    for number in ("1", "2"):
        guard.begin(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} <= {guard.GUARD, guard.EARLIER}
        (tmp_path / "report").mkdir()
        for name in ("report/report.json", "certificate.log", guard.FINISHED, stages.BEGUN):
            (tmp_path / name).write_text(number)
    guard.begin(tmp_path)
    assert [(tmp_path / guard.EARLIER / one / "report/report.json").read_text() for one in "12"] == ["1", "2"]
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_the_guard_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("# A real run of karpstack\nmine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / guard.GUARD).symlink_to(tmp_path / "mine")
    with pytest.raises(guard.GuardedError, match="has files that no real run has written"):
        guard.begin(tmp_path / "run")
    assert "mine" in (tmp_path / "mine").read_text()


STARTED = "echo begun >> {folder}/calls; sleep 60"


@pytest.mark.parametrize("how", ["left", "left is broken off"])
def test_what_is_left_is_removed_although_destroy_has_passed(how: str, tmp_path: Path) -> None:
    """Ctrl-C after a destroy that passed, in the certificate or what came after it, left all that was left."""
    waits = f"echo left begins >> {tmp_path}/calls; sleep 2" if "broken" in how else "true"
    process = begun(tmp_path, resources=[], left=f"{waits}; exit 1", compare=STARTED.format(folder=tmp_path))
    begins = "left begins" if "broken" in how else "begun"
    try:
        _wait_for(lambda: begins in calls(tmp_path), process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    _wait_for((tmp_path / "the run" / guard.FINISHED).exists)
    assert "karpstack real-run remove mine --yes --config-file Pulumi.mine.yaml" in calls(tmp_path)
    assert "Its exit code is 1" in (tmp_path / "the run" / guard.LOG).read_text()


@pytest.mark.parametrize(("left", "destroy"), [("exit 1", "true"), ("exit 0", "exit 1")])
def test_what_costs_money_is_told_before_a_what_if(left: str, destroy: str, tmp_path: Path) -> None:
    """A what-if takes up to two hours."""
    code, output, called = real_run(
        tmp_path, "-e", json.dumps({"whatif": ["--new-image"]}), resources=[], left=left, destroy=destroy
    )
    assert code != 0
    assert "something may still cost money" in output
    assert not any(call.startswith("karpstack whatif") for call in called)


def test_nothing_is_destroyed_if_the_checks_were_skipped(tmp_path: Path) -> None:
    """`up` counted as begun, and a whole stack was destroyed."""
    code, output, called = real_run(
        tmp_path, "--start-at-task", "Bring the stack up", resources=["aws:eks/cluster:Cluster"]
    )
    assert code != 0, output
    assert not any("destroy" in call or "up" in call.split() for call in called)


@pytest.mark.parametrize("task", ["Destroy the stack", "Note that nothing is left"])
def test_a_run_that_begins_at_its_end_has_not_passed(task: str, tmp_path: Path) -> None:
    """It had destroyed nothing, said that nothing is left, and replaced the results of the run that was broken off."""
    guard.begin(tmp_path / "the run")
    (tmp_path / "the run" / "run.json").write_text("kept")
    code, output, called = real_run(tmp_path, "--start-at-task", task, resources=["aws:eks/cluster:Cluster"])
    assert code != 0, output
    assert "a real run has no middle to begin at" in output
    assert called == []
    assert (tmp_path / "the run" / "run.json").read_text() == "kept"
    assert not (tmp_path / "the run" / guard.FINISHED).exists()


def test_a_second_run_in_one_playbook_begins_without_stages(tmp_path: Path) -> None:
    """`up` of the second counted as begun by the first, and a colleague's stack was destroyed."""
    theirs = json.dumps({"deployment": {"resources": [{"type": "aws:eks/cluster:Cluster"}]}})
    real_run(tmp_path, resources=[], preflight=f"case $2 in second) echo '{theirs}' > {tmp_path}/export;; esac")
    ours = {
        "real_run_karpstack": [f"{tmp_path}/bin/karpstack"],
        "real_run_playbook": [f"{tmp_path}/bin/ansible-playbook"],
    }
    imported = [
        {
            "ansible.builtin.import_playbook": str(ROOT / "playbooks" / "real_run.yml"),
            "vars": {**ours, "stack": name, "run_dir": f"{tmp_path}/{name}", "whatif": []},
        }
        for name in ("first", "second")
    ]
    (tmp_path / "site.yml").write_text(yaml.safe_dump(imported))
    (tmp_path / "calls").unlink()
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    code, output = play(tmp_path / "site.yml", tmp_path, PATH=path, KARPSTACK_REHEARSAL_URL="")
    assert code != 0
    assert "The stack second has resources, and this run would destroy them" in " ".join(output.split())
    assert "pulumi destroy --yes --stack first" in calls(tmp_path)
    assert "pulumi destroy --yes --stack second" not in calls(tmp_path)


def test_a_folder_that_is_moved_away_after_a_run_is_not_destroyed_again(tmp_path: Path) -> None:
    """`ansible-playbook ... && mv run_dir elsewhere`: the stack was destroyed again, and the next run was refused."""
    owner = subprocess.Popen(["sleep", "60"])
    run, destroys = tmp_path / "the run", guard.Command(["touch", f"{tmp_path}/destroyed"], 60)
    guard.begin(run)
    assert stages.run(run, stages.UP, ["true"], 60, tmp_path) == 0
    (run / guard.FINISHED).touch()
    told: list[bool] = []
    watching = threading.Thread(
        target=lambda: told.append(guard.watch(owner.pid, run, tmp_path, destroys, NOTHING, NOTHING))
    )
    watching.start()
    time.sleep(2.5)
    run.rename(tmp_path / "elsewhere")
    owner.kill()
    owner.wait()
    watching.join()
    assert told == [False]
    assert not (tmp_path / "destroyed").exists()
    assert not run.exists()


def test_a_run_whose_playbook_is_stopped_is_destroyed_in_time(tmp_path: Path) -> None:
    """After Ctrl-Z, `up` ended at its time, and nothing destroyed what it had made."""
    assert stages.run(tmp_path, stages.UP, ["true"], 60, tmp_path) == 0
    destroy = guard.Command(["touch", f"{tmp_path}/destroyed"], 60)
    late = time.time() - stages.GRACE - 1201
    assert guard.watch(os.getpid(), tmp_path, tmp_path, destroy, NOTHING, NOTHING, late)
    assert (tmp_path / "destroyed").exists()
    # The playbook that goes on has no more stages.
    for stage in ("stories", stages.DESTROY):
        assert stages.run(tmp_path, stage, ["touch", f"{tmp_path}/wrong"], 60, tmp_path) == stages.LATE


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    code, output, called = real_run(tmp_path, "-e", json.dumps({"rehearsed": f"{tmp_path}/the run"}), resources=[])
    assert code != 0
    assert "rehearsed and run_dir are the same folder" in output
    assert called == []


def test_a_colleagues_stack_that_came_meanwhile_is_left_alone(tmp_path: Path) -> None:
    theirs = json.dumps({"deployment": {"resources": [{"type": "aws:eks/cluster:Cluster"}]}})
    code, output, called = real_run(tmp_path, resources=[], preflight=f"echo '{theirs}' > {tmp_path}/export")
    assert code != 0
    assert "has resources, and this run would destroy them" in output
    assert not any("destroy" in call or "up" in call.split() for call in called if "real-run" not in call)


def test_a_destroy_after_which_the_state_cannot_be_read_has_failed(tmp_path: Path) -> None:
    _, output, _ = real_run(tmp_path, resources=[], up=f"rm {tmp_path}/export")
    assert "destroy failed" in output


DEAF = """import sys
from pathlib import Path
from karpstack.real_run import stages
stages.GRACE = 0.2
folder = Path(sys.argv[1])
stages.run(folder, stages.UP, ["sh", "-c", "trap '' INT; while sleep 0.1; do :; done"], 0.5, folder)
"""


def test_the_lock_of_a_pulumi_that_was_killed_is_taken_away(tmp_path: Path) -> None:
    """Its lock outlived it, and every destroy was refused."""
    subprocess.run([sys.executable, "-c", DEAF, str(tmp_path)], check=True)
    assert (tmp_path / stages.KILLED).exists()
    _, output, called = real_run(tmp_path, resources=[], up=f"touch '{tmp_path}/the run/{stages.KILLED}'")
    of_pulumi = [call.split()[1] for call in called if call.startswith("pulumi")]
    assert of_pulumi[-3:] == ["cancel", "destroy", "stack"], output


def test_without_room_for_any_file_a_stage_gets_one_sigint_and_all_is_destroyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = [sys.executable, "-c", COUNTING, str(tmp_path)]
    run = threading.Thread(target=stages.run, args=(tmp_path, "up", program, 60.0, tmp_path))
    run.start()
    _wait_for((tmp_path / "ready").exists)

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left")

    monkeypatch.setattr(Path, "touch", full)
    (tmp_path / guard.LOG).mkdir()
    destroy = guard.Command(["mkdir", f"{tmp_path}/destroyed"], 60)
    assert guard.watch(_ended(), tmp_path, tmp_path, destroy, NOTHING, NOTHING)
    run.join()
    assert (tmp_path / "told").read_text() == "1"
    assert (tmp_path / "destroyed").exists()


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(guard.GuardedError, match="others may write there"):
        guard.begin(tmp_path / "open")


def test_a_folder_in_which_another_run_goes_on_is_refused(tmp_path: Path) -> None:
    """The end of the other run was taken for its own, so that nothing would have destroyed it."""
    run = tmp_path / "the run"
    guard.begin(run)
    with (run / guard.GUARD).open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, output, called = real_run(tmp_path, resources=[])
    assert code != 0, output
    assert "another run goes on there" in output
    assert [call for call in called if call.startswith("pulumi")] == ["pulumi stack export --stack mine"]


def test_a_playbook_that_nobody_has_waited_for_is_gone() -> None:
    """A container whose first process waits for none kept the guard waiting for ever."""
    ended = subprocess.Popen(["true"])
    _wait_for(lambda: is_gone(ended.pid))
    ended.wait()


def test_no_stage_begins_once_the_run_is_being_ended(tmp_path: Path) -> None:
    """The guard destroyed, and then `pulumi up` began."""
    (tmp_path / stages.ENDING).touch()
    assert stages.run(tmp_path, "up", ["touch", f"{tmp_path}/begun"], 60, tmp_path) == stages.LATE
    assert not (tmp_path / "begun").exists()
    assert stages.run(tmp_path, stages.DESTROY, ["touch", f"{tmp_path}/destroyed"], 60, tmp_path) == 0
    assert (tmp_path / "destroyed").exists()


def test_the_stack_is_destroyed_although_the_folder_of_the_run_is_gone(tmp_path: Path) -> None:
    _, output, called = real_run(tmp_path, resources=[], up=f"rm -rf '{tmp_path}/the run'")
    assert "pulumi destroy --yes --stack mine" in called, output


def test_a_failed_destroy_is_told_although_nothing_can_be_written(tmp_path: Path) -> None:
    up = f"mkdir '{tmp_path}/the run/run.json'"
    _, output, _ = real_run(tmp_path, resources=[], up=up, destroy="exit 1")
    assert "If destroy or certificate is among them, something may still cost money" in output


def _wait_for(met: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    until = time.monotonic() + 60
    while not met():
        assert process is None or process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < until
        time.sleep(0.1)
