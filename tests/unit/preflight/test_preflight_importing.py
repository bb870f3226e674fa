"""The file for `pulumi import`: which entries get an ID, which go, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.preflight import commands
from karpstack.preflight.aws.identifiers import FOUND, Account
from karpstack.preflight.finding import NotAskedError, UnknowableError
from karpstack.preflight.importing import Filled, fill, read, summary
from karpstack.rehearsal.aws.account import Account as Played
from karpstack.rehearsal.aws.resource import ROWS
from tests.unit.command_line import karpstack
from tests.unit.preflight.preflight_world import looked_at
from tests.unit.rehearsal.aws_world import account

main = karpstack("preflight")

_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_ROLE, _LOGS, _POLICY = "aws:iam/role:Role", "aws:cloudwatch/logGroup:LogGroup", "aws:iam/policy:Policy"
_RELEASE, _PATCH, _POOL = (
    "kubernetes:helm.sh/v3:Release",
    "kubernetes:apps/v1:DaemonSetPatch",
    "kubernetes:x/v1:NodePool",
)


def entry(type_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "name": name, "id": "<PLACEHOLDER>", "version": "7.51.1", **more}


def step(type_: str, logical: str, op: str = "create", **inputs: Any) -> dict[str, Any]:
    where = "urn:pulumi:eks::karpstack::karpstack:eks:Cluster"
    state = {"urn": f"{where}${type_}::{logical}", "type": type_, "inputs": inputs, "parent": f"{where}::eks-cluster"}
    return {"op": op, "newState": state}


def filled(resources: list[dict[str, Any]], steps: list[dict[str, Any]], ids: dict[tuple[str, str], str]) -> Filled:
    return fill({"nameTable": {}, "resources": resources}, {"steps": steps}, lambda _: lambda *key: ids.get(key))


def test_what_is_there_gets_its_id_and_the_rest_is_left_to_up() -> None:
    component = {"type": "karpstack:eks:Cluster", "name": "eks-cluster", "component": True}
    twin = entry(_POLICY, "eks-roleRolePolicy", logicalName="eks-role")
    found = filled([component, entry(_ROLE, "eks-role"), twin], [], {(_ROLE, "eks-role"): "karpstack-eks-cluster"})
    assert found.content["resources"] == [component, entry(_ROLE, "eks-role", id="karpstack-eks-cluster")]
    assert (found.found, found.missing) == (1, (f"{_POLICY} eks-role",))
    assert "nameTable" in found.content
    assert "1 not found, or more than one of them" in summary(Path("import.json"), found)


def test_an_id_that_somebody_wrote_stays() -> None:
    found = filled([entry(_ROLE, "eks-role", id="other")], [], {(_ROLE, "eks-role"): "karpstack-eks-cluster"})
    assert found.content["resources"][0]["id"] == "other"


#: Of what a preview can't tell which it is: rules of a group that it does not know, and what EC2 has once an account.
_BY_HAND = {
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "aws:iam/serviceLinkedRole:ServiceLinkedRole",
}


#: Only programs that are not karpstack's have them.
_OF_OTHERS = {"aws:ec2/securityGroupRule:SecurityGroupRule", "aws:iam/rolePolicy:RolePolicy"}


def test_ids_are_found_of_every_type_of_the_program() -> None:
    assert set(ROWS) - FOUND - _OF_OTHERS == _BY_HAND


def test_what_the_program_would_import_by_itself_is_in_the_file_too() -> None:
    """Pulumi refuses to take over by itself what differs, for example in how long logs are kept."""
    found = filled(
        [entry(_ROLE, "eks-role")],
        [step(_LOGS, "eks-cluster-logs", "import"), step(_LOGS, "eks-other", "same")],
        {(_ROLE, "eks-role"): "r", (_LOGS, "eks-cluster-logs"): "/aws/eks/x/cluster"},
    )
    assert found.content["resources"][1] == {
        "type": _LOGS,
        "name": "eks-cluster-logs",
        "parent": "eks-cluster",
        "version": "7.51.1",
        "id": "/aws/eks/x/cluster",
    }


def provider(**inputs: Any) -> dict[str, Any]:
    return {"type": "pulumi:providers:kubernetes", "name": "eks-kubernetes", "inputs": inputs}


OBJECTS = [
    entry(_RELEASE, "eks-cilium", provider="eks-kubernetes"),
    entry(_PATCH, "eks-roll-out", provider="eks-kubernetes"),
    entry(_POOL, "eks-pool", provider="eks-kubernetes"),
]
STEPS = [
    step(_RELEASE, "eks-cilium", name="cilium", namespace="kube-system"),
    step(_PATCH, "eks-roll-out", metadata={"name": "cilium", "namespace": "kube-system"}),
    step(_POOL, "eks-pool", metadata={"name": "default"}),
]


def test_what_is_in_the_cluster_waits_until_its_provider_knows_the_cluster() -> None:
    found = filled([provider(), *OBJECTS], STEPS, {})
    assert not found.content["resources"]
    assert len(found.later) == 3


def test_then_it_is_known_by_its_name_and_patches_are_made_anew() -> None:
    known = provider(kubeconfig={"ciphertext": "v1:..."})
    found = filled([known, *OBJECTS], STEPS, {})
    assert [one.get("id") for one in found.content["resources"]] == [None, "kube-system/cilium", "default"]
    assert found.made == (f"{_PATCH} eks-roll-out",)
    assert "1 not imported; `pulumi up` patches what is there" in summary(Path("import.json"), found)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"resources": {}}'])
def test_another_file_is_refused_with_the_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "import.json").write_text(text)
    with pytest.raises(UnknowableError, match=r"pulumi preview --json --import-file import\.json > preview\.json"):
        read(tmp_path / "import.json", "resources")


_STATE = {"mode": "managed", "type": "aws_vpc", "name": "main", "provider": "aws", "instances": []}


@pytest.mark.parametrize(
    "wrong",
    [
        _STATE,
        "x",
        *(entry(_ROLE, "eks-role") | {key: 3} for key in ("type", "name", "id", "logicalName", "provider", "version")),
        {"name": "eks-role", "id": ""},
        {"type": _ROLE, "id": ""},
        {"type": _ROLE, "name": "eks-role"},
        {"type": "pulumi:providers:kubernetes", "name": "eks-kubernetes", "inputs": 3},
    ],
)
def test_what_is_no_entry_is_not_written_over(wrong: object, tmp_path: Path, files: list[str]) -> None:
    text = json.dumps({"resources": [entry(_ROLE, "eks-role"), wrong]})
    Path(files[0]).write_text(text)
    assert commands.ids("eks", *map(Path, files), look=nothing_there) == 2
    assert Path(files[0]).read_text() == text


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        {"newState": step(_ROLE, "eks-role")["newState"]},
        {"op": "create", "newState": "x"},
        *(
            {"op": op, "newState": step(_ROLE, "eks-role")["newState"] | {key: 3}}
            for op, key in (("create", "urn"), ("create", "type"), ("create", "inputs"), ("import", "parent"))
        ),
    ],
)
def test_what_is_no_step_is_refused(wrong: object, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[1]).write_text(json.dumps({"steps": [wrong]}))
    assert commands.ids("eks", *map(Path, files), look=nothing_there) == 2
    assert "steps[0] is not as Pulumi writes it, so nothing is filled" in capsys.readouterr().err


def nothing_there(*given: Any, **options: Any) -> Any:
    return lambda planned: lambda type_, name: None


@pytest.mark.parametrize(
    "metadata", [None, "x", {}, {"name": 3}, {"name": _UNKNOWN}, {"name": "default", "namespace": _UNKNOWN}]
)
def test_an_object_without_a_known_name_has_no_id(metadata: object) -> None:
    found = filled([entry(_POOL, "eks-pool")], [step(_POOL, "eks-pool", metadata=metadata)], {})
    assert found.missing == (f"{_POOL} eks-pool",)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, key in (("import", "resources"), ("preview", "steps")):
        (tmp_path / f"{name}.json").write_text(json.dumps({key: []}))
    return [str(tmp_path / f"{name}.json") for name in ("import", "preview")]


def test_ids_on_aks_are_in_the_portal(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ids", "aks-nap", *files]) == 2
    assert "az resource list" in capsys.readouterr().err


def test_a_question_that_is_refused_leaves_the_file_as_it_was(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*given: Any, **options: Any) -> Any:
        raise NotAskedError("iam:GetRole", "not authorized", refused=True)

    file, preview = map(Path, files)
    assert commands.ids("eks", file, preview, look=refused) == 3
    said = capsys.readouterr().err
    assert "iam:GetRole: not authorized" in said
    assert "is as it was" in said


@pytest.fixture
def played(tmp_path: Path) -> Any:
    with account(tmp_path) as opened:
        yield opened


def test_in_an_account_without_the_cluster_only_names_are_found(played: Played) -> None:
    played.client("iam").create_role(RoleName="karpstack-eks-cluster", AssumeRolePolicyDocument="{}")
    known = {(_ROLE, "eks-role"): {"name": "karpstack-eks-cluster"}, (_ROLE, "eks-other"): {"name": "other"}}
    seen = Account(looked_at(played), known)
    assert seen.identify(_ROLE, "eks-role") == "karpstack-eks-cluster"
    assert seen.identify(_ROLE, "eks-other") is None
    for type_ in (
        "aws:ec2/vpc:Vpc",
        "aws:ec2/subnet:Subnet",
        "aws:eks/nodeGroup:NodeGroup",
        "aws:ec2/natGateway:NatGateway",
    ):
        assert seen.identify(type_, "eks-network-private-0") is None
    assert seen.identify("aws:s3/bucket:Bucket", "eks-bucket") is None
