"""What goes before `pulumi destroy`: what a scale test and another Pulumi left that were killed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import psutil
import pytest
import yaml

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import deployment
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.deployment import CommandError, Deployment, protected
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import PROGRAM

INFO = DaemonInfo(1, 1.0, "aws", "us-east-1")


class Cluster:
    """Commands that would be run, and what the cluster has of a scale test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: str, code: int = 0) -> None:
        self.commands: list[list[str]] = []
        self._code = code
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=left))

    def call(self, command: Sequence[str], *_: object) -> int:
        words = [Path(command[0]).name, *(word for word in command[1:] if "kubeconfig" not in word)]
        self.commands.append(words)
        return self._code if words[0] == "kubectl" else 0


def destroy(folder: Path, cluster: Cluster) -> None:
    Deployment(StackFolder("eks", folder), EngineSet(folder), INFO, run=cluster.call).destroy()


def test_without_leftovers_only_pulumi_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cluster, folder = Cluster(monkeypatch, ""), StackFolder("eks", tmp_path).create()
    told = (folder.update_events, folder.judge)
    for file in told:
        file.write_text("of the last update")
    destroy(tmp_path, cluster)
    assert [command[:2] for command in cluster.commands] == [["pulumi", "destroy"]]
    assert not any(file.exists() for file in told), "of what is gone"


def test_leftovers_go_first_as_in_the_storys_own_clean_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, "namespace/story\nnodepool.karpenter.sh/a\nnodepool.karpenter.sh/b\n")
    destroy(tmp_path, cluster)
    namespaces, pools, classes, pulumi = cluster.commands
    label = ["--selector", "app.kubernetes.io/part-of=karpstack-scale-test"]
    # By the label alone: a name may be somebody else's by now.
    assert namespaces == ["kubectl", "delete", "namespaces", *label, "--wait=false", "--timeout=5m"]
    assert pools == ["kubectl", "delete", "nodepools.karpenter.sh", *label, "--cascade=foreground", "--timeout=5m"]
    assert classes[:4] == ["kubectl", "delete", "ec2nodeclasses.karpenter.k8s.aws", "--selector"]
    assert pulumi[:2] == ["pulumi", "destroy"]
    assert "Removing what an interrupted scale test left: namespace/story, " in capsys.readouterr().err


def test_leftovers_that_stay_are_an_error_before_pulumi_waits_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = Cluster(monkeypatch, "nodepool.karpenter.sh/a\n", code=1)
    with pytest.raises(CommandError, match=r"nodepool\.karpenter\.sh/a could not be removed in 5m, .* by hand"):
        destroy(tmp_path, cluster)
    assert [command[0] for command in cluster.commands] == ["kubectl"]


def test_a_lock_of_pulumis_goes_with_the_pulumi_that_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = Cluster(monkeypatch, "")
    locks = StackFolder("eks", tmp_path).pulumi / "state" / ".pulumi" / "locks" / "organization" / "karpstack" / "eks"
    locks.mkdir(parents=True)
    contents = {
        "dead": '{"pid": 4194305}',
        "cut": '{"pid":',
        "alive": json.dumps({"pid": os.getpid(), "username": "x"}),
    }
    for name, content in contents.items():
        (locks / f"{name}.json").write_text(content)
    (locks / "given-away.json").write_text(contents["alive"])
    os.utime(locks / "given-away.json", (1, 1))  # long before this process began
    destroy(tmp_path, cluster)
    assert [path.name for path in locks.iterdir()] == ["alive.json"]


def test_a_pulumi_that_runs_keeps_its_lock_when_the_clock_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock goes forward by an hour: the process seems to be younger than its lock."""
    cluster = Cluster(monkeypatch, "")
    locks = StackFolder("eks", tmp_path).pulumi / "state" / ".pulumi" / "locks" / "organization" / "karpstack" / "eks"
    locks.mkdir(parents=True)
    (locks / "by-hand.json").write_text(json.dumps({"pid": os.getpid()}))
    os.utime(locks / "by-hand.json", (1, 1))
    monkeypatch.setattr(psutil.Process, "name", lambda _: "pulumi")
    destroy(tmp_path, cluster)
    assert [path.name for path in locks.iterdir()] == ["by-hand.json"]


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%2fb", "a b", "é"])
def test_commands_keep_what_is_theirs_in_the_state_folder_whatever_that_is_called(name: str, tmp_path: Path) -> None:
    folder = StackFolder("eks", tmp_path / name / "eks")
    found = deployment.environment(folder, EngineSet(tmp_path), INFO)
    url = urlsplit(found["PULUMI_BACKEND_URL"])
    assert (unquote(url.path), url.query, url.fragment) == (str(folder.pulumi / "state"), "", "")
    assert Path(found["KUBECACHEDIR"]).is_relative_to(folder.root)
    assert found["KUBERC"] == "off"  # no preferences of the user's
    assert found["PULUMI_OPTION_GENERATE_CODE"] == "false"  # an import ends without code that nobody can write


@pytest.mark.parametrize(
    ("state", "names"),
    [
        (
            {"resources": [{"urn": "urn:pulumi:eks::p::t::eks-cluster", "protect": True}, {"urn": "a::b"}]},
            ["eks-cluster"],
        ),
        ({"resources": None}, []),
        (None, []),
        ([], []),
    ],
)
def test_what_is_protected_is_known_before_pulumi_begins(tmp_path: Path, state: Any, names: list[str]) -> None:
    folder = StackFolder("eks", tmp_path)
    file = folder.pulumi / "state" / ".pulumi" / "stacks" / "karpstack" / "eks.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"checkpoint": {"latest": state}}))
    assert protected(folder) == names


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"config": {"karpstack:cluster": {"deletionProtection": True}}}, True),
        # The update that lifts the protection was interrupted.
        ({"config": {"karpstack:cluster": {"deletionProtection": False}}}, True),
        ({"config": {"karpstack:cluster": {"version": "1.36"}}}, False),
        ({"config": {"other:cluster": "a"}}, False),
        ({"encryptionsalt": "a"}, False),
    ],
)
def test_a_setting_that_is_false_already_can_be_lifted_again(
    tmp_path: Path, configuration: dict[str, Any], expected: bool
) -> None:
    folder = StackFolder("eks", tmp_path)
    folder.stack_configuration.parent.mkdir(parents=True)
    folder.stack_configuration.write_text(yaml.safe_dump(configuration))
    assert deployment.has_protection_setting(folder) is expected


@pytest.mark.parametrize(("stack", "words"), [("eks", "policies/eks.json"), ("prod", "baseline of the policy pack")])
def test_an_update_is_judged_by_the_stacks_own_configuration_and_says_so(
    stack: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, folder = Cluster(monkeypatch, ""), StackFolder(stack, tmp_path).create()
    deployed = Deployment(folder, EngineSet(tmp_path), INFO, run=cluster.call)
    deployed.up()
    (command,) = cluster.commands
    assert command[command.index("--event-log") + 1] == str(StackFolder(stack, tmp_path).update_events)
    named = ["--policy-pack-config", str(PROGRAM / "policies" / "eks.json")] if stack == "eks" else []
    assert command[command.index("--policy-pack") + 2 :][: len(named) or 1] == (named or ["--event-log"])
    assert f"Judged by {'the ' if stack == 'prod' else ''}{words}" in capsys.readouterr().err
    assert words in folder.judge.read_text()
    deployed.up(judged=False)
    assert not folder.judge.exists()


def test_a_change_is_the_program_of_its_own_folder_with_the_salt_of_the_stack(tmp_path: Path) -> None:
    folder = StackFolder("eks", tmp_path / "state")
    folder.pulumi.mkdir(parents=True)
    folder.stack_configuration.write_text("encryptionsalt: v1:kept\nconfig: {}\n")
    program = tmp_path / "program"
    program.mkdir()
    stack_file = StackFile.load(PROGRAM / "Pulumi.eks.yaml")
    command = Deployment(folder, EngineSet(tmp_path), INFO, program).change(stack_file, tmp_path / "events")
    copy = Path(command[command.index("--config-file") + 1])
    written = yaml.safe_load(copy.read_text())
    assert (copy.name, written["encryptionsalt"]) == ("Pulumi.eks.yaml", "v1:kept")
    assert written["config"]["karpstack:cloud"] == "aws"
    assert folder.stack_configuration.read_text() == "encryptionsalt: v1:kept\nconfig: {}\n"
    assert "--policy-pack" not in command  # the review judges


@pytest.mark.parametrize(("said", "told"), [("error: nodes-privat is no rule of this pack\n", True), ("", False)])
def test_a_refused_update_tells_what_is_wrong_with_the_packs_configuration(
    said: str, told: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(returncode=2 if said else 0, stderr=said, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CommandError, match=r"up .* failed \(exit code 255\)") as caught:
        Deployment(StackFolder("eks", tmp_path), EngineSet(tmp_path), INFO, run=lambda *_: 255).up()
    assert str(caught.value).endswith(": nodes-privat is no rule of this pack") is told
    assert asked[-1][1:] == [
        *("-m", "karpstack", "review", "eks", "--live", "--only-configuration"),
        *("--policy-pack-config", str(PROGRAM / "policies" / "eks.json")),
    ]


@pytest.mark.parametrize(
    ("line", "news"),
    [
        (" +  aws:ec2:Vpc eks-network-vpc creating (0s) ", False),
        (" +  aws:ec2:Vpc eks-network-vpc created (0.02s) ", False),
        (" +  kubernetes:karpenter.sh/v1:NodePool eks-nodes-pool-default created (0.02s)", False),
        ("    pulumi:pulumi:Stack karpstack-eks running ", False),
        (" +- aws:sqs:Queue eks-queue replaced", False),
        ("@ updating.....", False),
        (" +  karpstack:eks:Network eks-network creating (0s) ", True),
        (" +  karpstack:eks:Network eks-network created ", False),
        (" -  karpstack:eks:Network eks-network deleting (0s) ", True),
        ("    karpstack:eks:Network eks-network running", False),
        (" +  aws:ec2:Vpc eks-network-vpc **creating failed** error: no", True),
        ("    + 93 created", True),
        ("Updating (eks):", True),
        ("  kubernetes:karpenter.sh/v1:NodePool (eks-nodes-pool-default):", True),
        ("    error: update failed", True),
        ("", True),
    ],
)
def test_without_a_terminal_progress_is_a_line_for_each_component(line: str, news: bool) -> None:
    assert deployment.is_progress_line(line) is news


def test_tools_of_clouds_find_no_login_of_the_users(tmp_path: Path) -> None:
    folder = StackFolder("eks", tmp_path / "eks")
    found = deployment.environment(folder, EngineSet(tmp_path), INFO)
    for name in ("AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG"):
        assert Path(found[name]).is_relative_to(folder.root)
    assert found["AWS_EC2_METADATA_DISABLED"] == "true"
