"""The command line and what it reads: exit statuses, JSON, the stack's file and Pulumi's state."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components.settings import ExistingAksSettings, ExistingEksSettings
from karpstack.preflight import commands
from karpstack.preflight.checks import before_up
from karpstack.preflight.destroy import protection
from karpstack.preflight.destroy.subject import Subject
from karpstack.preflight.finding import Checked, Finding, NotAskedError, UnknowableError, not_checked, run
from karpstack.preflight.output import as_data, table
from karpstack.preflight.stack import CLOSED, State, configuration, deployer, not_read, parse, raw, setting, state
from tests.unit.command_line import karpstack
from tests.unit.example_stack import ROOT, example
from tests.unit.example_stack import configuration as example_values
from tests.unit.preflight.fake_cluster import EKS, FakeCluster

main = karpstack("preflight")

Look = Callable[..., list[Checked]]


def finding(severity: Any, what: str = "the log group is there already") -> Finding:
    return Finding("log-group-exists", "", "", "it is refused", "delete it", severity, what)


def look(*findings: Finding) -> Look:
    return lambda *given, **options: [Checked("names", findings), Checked("quotas", ())]


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 0), ("note", 0)])
def test_only_errors_are_in_the_way(severity: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.up("eks", look=look(finding(severity))) == code
    said = capsys.readouterr().out
    assert "the log group is there already" in said
    assert "fix: delete it" in said
    assert said.rstrip().endswith("No findings: quotas")


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ("markdown", "| error | <code>log-group-exists</code> |"),
        ("html", "<td><code>log-group-exists</code></td>"),
        ("sarif", '"ruleId": "log-group-exists"'),
        ("json", '"code": "log-group-exists"'),
    ],
)
def test_findings_in_other_forms(form: commands.Form, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.up("eks", form=form, look=look(finding("error"))) == 1
    assert part in capsys.readouterr().out


def test_json_has_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.up("eks", form="json", look=look(finding("error"))) == 1
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["name"] for check in checks] == ["names", "quotas"]
    assert set(checks[0]["findings"][0]) >= {"code", "severity", "what", "consequence", "fix", "told_by", "where"}


def test_the_look_before_destroy_gets_the_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {}

    def destroyed(stack: str, **given: Any) -> list[Checked]:
        asked.update(given, stack=stack)
        return []

    outputs = tmp_path / "outputs.json"
    outputs.write_text('{"cloud": "aws"}')
    assert commands.destroy("eks", outputs=outputs, look=destroyed) == 0
    assert (asked["stack"], asked["outputs"]) == ("eks", {"cloud": "aws"})
    assert capsys.readouterr().out.startswith("Before pulumi destroy of eks: no blocker")
    for content in ("no JSON", "[]", "[" * 100_000):
        outputs.write_text(content)
        assert main(["destroy", "eks", "--outputs", str(outputs)]) == 2
        assert "--outputs" in capsys.readouterr().err
    os.mkfifo(pipe := tmp_path / "pipe")
    assert main(["destroy", "eks", "--outputs", str(pipe)]) == 2
    assert "a pipe or a device" in capsys.readouterr().err


def test_a_stack_that_is_not_there_cannot_be_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_without_a_login_azure_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", no_pulumi)
    monkeypatch.setenv("PATH", "")
    for name in [name for name in os.environ if name.startswith("ARM_")]:
        monkeypatch.delenv(name)
    assert main(["aks-nap"]) == 3
    assert "Azure CLI not found on path, so nothing can be asked; give Azure credentials" in capsys.readouterr().err


def no_pulumi(*given: Any, **options: Any) -> None:
    raise FileNotFoundError("No such file or directory: 'pulumi'")


def test_a_stack_that_is_not_up_has_nothing_to_destroy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", no_pulumi)
    assert main(["destroy", "eks"]) == 3
    assert "is not up, so there is nothing to destroy" in capsys.readouterr().err


def test_what_others_wrote_steers_no_terminal() -> None:
    said = table("x", [Checked("names", (finding("error", "a role\x1b[2J\u202e" + "y" * 10_000),))])
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert said.count("y") < 1_000


def test_what_is_long_is_whole_in_json() -> None:
    checked = [Checked("names", (finding("error", "y" * 10_000),))]
    assert as_data(checked)["checks"][0]["findings"][0]["what"] == "y" * 10_000


def test_the_stacks_file_is_read_as_the_engine_reads_it() -> None:
    read = configuration(ROOT / "Pulumi.eks.yaml")
    assert read.settings.name == example()["karpstack:name"]
    assert read.settings.region == "us-east-1"


@pytest.mark.parametrize(("folder", "stack"), [("existing", "eks"), ("existing-aks", "aks")])
def test_a_stack_for_a_cluster_that_is_there_is_read(folder: str, stack: str) -> None:
    file = ROOT / "examples" / f"{folder}-cluster" / f"Pulumi.{stack}-existing-cluster.yaml"
    read = configuration(file).settings
    assert isinstance(read, ExistingEksSettings | ExistingAksSettings)
    assert read.cluster.existing == "Shop_1"


def test_secrets_stay_closed(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    values = {**example_values("eks"), "other:key": {"secure": "v1:abc"}, "aws:profile": "deployer"}
    file.write_text(yaml.safe_dump({"config": values}))
    assert raw(file)["other:key"] is CLOSED
    assert deployer(configuration(file).raw) == ("deployer", ())


ROLE = "arn:aws:iam::123456789012:role/deployer"
HUB = "arn:aws:iam::210987654321:role/hub"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (None, ()),
        ([], ()),
        ([{"roleArn": ROLE}], ({"RoleArn": ROLE},)),
        (json.dumps([{"roleArn": ROLE}]), ({"RoleArn": ROLE},)),
        (
            [{"roleArn": HUB, "duration": "1h"}, {"roleArn": ROLE, "externalId": "x", "sessionName": "me"}],
            ({"RoleArn": HUB}, {"RoleArn": ROLE, "ExternalId": "x", "RoleSessionName": "me"}),
        ),
    ],
)
def test_the_roles_that_the_provider_takes(given: Any, taken: Any) -> None:
    assert deployer({"aws:assumeRoles": given}) == ("", taken)


@pytest.mark.parametrize("given", [ROLE, "{}", {"roleArn": ROLE}, [ROLE], [{}], [{"roleArn": ROLE, "policy": "{}"}]])
def test_roles_that_are_not_understood_are_refused(given: Any) -> None:
    with pytest.raises(UnknowableError, match="aws:assumeRoles"):
        deployer({"aws:assumeRoles": given})


def test_a_configuration_that_the_program_refuses(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(yaml.safe_dump({"config": {**example_values("eks"), "karpstack:karpentr": {}}}))
    with pytest.raises(UnknowableError, match="did you mean karpenter"):
        before_up("x", project=tmp_path)


BOMB = "config:\n  a0: &a0 [x, x]\n" + "".join(
    f"  a{level}: &a{level} [*a{level - 1}, *a{level - 1}]\n" for level in range(1, 40)
)


@pytest.mark.parametrize("text", ["", "config: 1", "- a", "a: [", "config: " + "[" * 5_000, BOMB])
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(text)
    with pytest.raises(UnknowableError, match=r"Pulumi\.x\.yaml"):
        configuration(file)


def test_the_state_tells_what_the_stack_has_made() -> None:
    exported = {
        "deployment": {
            "resources": [
                {"urn": "a::s", "type": "pulumi:pulumi:Stack", "outputs": {"clusterName": "karpstack-eks"}},
                {"urn": "a::e", "type": "karpstack:eks:Environment", "id": ""},
                {"urn": "a::vpc", "type": "aws:ec2/vpc:Vpc", "custom": True, "id": "vpc-1", "protect": True},
            ]
        }
    }
    read = parse(exported)
    assert read.has("aws:ec2/vpc:Vpc", "vpc-1")
    assert not read.has("aws:ec2/vpc:Vpc", "vpc-2")
    assert (read.count("aws:ec2/vpc:Vpc"), read.count("aws:eks/cluster:Cluster")) == (1, 0)
    assert read.outputs == {"clusterName": "karpstack-eks"}
    assert read.protected == {"a::vpc": "vpc"}


PENDING = {
    "deployment": {
        "pending_operations": [
            {"resource": {"urn": "a::group", "type": "aws:eks/nodeGroup:NodeGroup"}, "type": "creating"},
            {"resource": {"urn": "a::known", "type": "aws:ec2/vpc:Vpc"}, "type": "deleting"},
            {"type": "creating"},
            "odd",
        ]
    }
}


def test_what_was_being_made_when_pulumi_was_killed_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in no list of resources, and `destroy` was recommended, which leaves it."""
    read = parse(PENDING)
    assert read.interrupted == {"a::group": "group"}
    assert [(one.severity, "group" in one.what) for one in not_read(read)] == [("warning", True)]
    (blocking,) = protection.interrupted(Subject(FakeCluster(), EKS, state=read))
    assert blocking.severity == "error"
    exported = subprocess.CompletedProcess([], 0, json.dumps(PENDING), "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: exported)
    assert main(["destroy", "eks"]) == 3
    assert "Before either, run `pulumi refresh`: Pulumi was killed while it created group" in capsys.readouterr().err


def test_a_stack_that_was_never_up_has_made_nothing() -> None:
    assert parse({"deployment": {}}) == State()
    assert parse({"version": 3, "deployment": {"manifest": {}, "resources": None}}) == State()


RESOURCE = {"urn": "a::vpc", "type": "aws:ec2/vpc:Vpc", "id": "vpc-1"}


@pytest.mark.parametrize(
    "exported",
    [
        [],
        None,
        {"version": 3},
        {"version": 3, "deployment": None},
        {"version": 3, "deployment": []},
        {"version": 1, "checkpoint": {"latest": {"resources": [RESOURCE]}}},  # as version 1 to 3 of a state's file
        {"version": 4, "deployment": {"resources": {"a::vpc": RESOURCE}}},
        {"version": 4, "deployment": {"resources": [RESOURCE, "vpc"]}},
        {"version": 4, "deployment": {"resources": [{**RESOURCE, "type": {"name": "vpc"}}]}},
        {"version": 4, "deployment": {"resources": [{**RESOURCE, "id": ["vpc-1"]}]}},
        {"version": 4, "deployment": {"resources": [{"id": "vpc-1"}]}},
    ],
)
def test_a_state_of_another_shape_is_said_in_one_sentence(exported: Any) -> None:
    read = parse(exported)
    assert "wrote a state of another shape (version" in read.unread
    assert (read.resources, read.outputs) == (frozenset(), {})


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"karpstack:cluster": {"a": 1}}, 1),
        ({"karpstack:cluster": '{"a": 1}'}, 1),
        ({"karpstack:cluster": "{"}, None),
        ({"karpstack:cluster": CLOSED}, None),
        ({}, None),
    ],
)
def test_a_setting_is_read_whoever_wrote_it(values: dict[str, Any], found: int | None) -> None:
    assert setting(values, "cluster", "a") == found


def test_a_machine_without_pulumi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", no_pulumi)
    read = state("eks", tmp_path)
    assert read.resources == frozenset()
    assert "pulumi" in read.unread


def _denied(_: None) -> Iterator[Finding]:
    raise NotAskedError("ec2:DescribeTags", "access denied", refused=True)
    yield


def test_a_check_without_an_answer_is_known_by_its_code() -> None:
    checked = run({"names": lambda _: [], "tags": _denied}, None)
    assert [one.code for one in not_checked(checked)] == ["check-not-permitted"]
