"""`karpstack preflight rights`: what whoever deploys a stack has to be given, for that stack's own names."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import aks
from karpstack.components.documents.roles import Role, definition_id
from karpstack.components.naming import EksNames
from karpstack.preflight.aws import documents
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.deployer import Scope, policy
from karpstack.preflight.azure import assignments
from karpstack.preflight.finding import UnknowableError
from tests.unit import example_stack
from tests.unit.command_line import karpstack
from tests.unit.mock_engine import SUBSCRIPTION, deploy

main = karpstack("preflight")

ACCOUNT = "210987654321"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
ELSEWHERE = "/subscriptions/87654321-4321-4321-4321-210987654321/resourceGroups/hub/providers"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/hub/subnets/nodes"
)
WORKSPACE = f"{ELSEWHERE}/Microsoft.OperationalInsights/workspaces/logs"


NO_WAY_OUT: dict[str, Any] = {
    "network__natGateways": "none",
    "network__endpoints": True,
    "images": {"mirrors": dict.fromkeys(("quay.io", "public.ecr.aws"), "registry.example.com")},
}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["rights", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_documents_have_every_statement_once_and_iam_takes_each() -> None:
    settings = example_stack.eks(
        name="a-name-of-the-greatest-length-there-is",
        karpenter__identity="irsa",
        network__flowLogRetentionDays=30,
        **NO_WAY_OUT,
        cluster__privateAccessCidrs=["10.99.0.0/16"],
    )
    found = documents.documents(settings, "aws-us-gov", ACCOUNT)
    scope = Scope(partition="aws-us-gov", region=settings.region, account=ACCOUNT, names=EksNames(settings.name))
    assert [one for each in found for one in each["Statement"]] == policy(scope)["Statement"]
    assert len(found) > 1
    for each in found:
        assert documents.size(each) <= documents.LARGEST
        assert documents.size(each) == len("".join(json.dumps(each, indent=2).split()))


@pytest.mark.parametrize(
    ("changes", "sids"),
    [
        ({"karpenter__identity": "irsa"}, {"OpenIdConnectProvider"}),
        ({"network__flowLogRetentionDays": 30}, {"FlowLogs", "FlowLogsRole", "PassFlowLogsRole"}),
        ({"karpenter__interruptionQueue": True}, {"InterruptionQueue", "EventRules"}),
        ({"cluster__privateAccessCidrs": ["10.99.0.0/16"]}, {"PrivateAccess"}),
        ({"network__endpoints": ["s3"]}, {"Endpoints", "EndpointNames"}),
        (NO_WAY_OUT, {"Endpoints", "EndpointNames", "InstanceProfile"}),
    ],
)
def test_what_the_stack_does_not_have_is_not_in_them(changes: dict[str, Any], sids: set[str]) -> None:
    none = {"karpenter__interruptionQueue": False, "nodePools": {}}
    without = _sids(documents.documents(example_stack.eks(**none), "aws", ACCOUNT))
    assert not sids & without
    assert sids <= _sids(documents.documents(example_stack.eks(**{**none, **changes}), "aws", ACCOUNT))


def test_a_network_that_is_there_needs_not_be_made() -> None:
    own = _sids(documents.documents(example_stack.eks(), "aws", ACCOUNT))
    existing = _sids(documents.documents(example_stack.loaded("eks-existing-vpc", {}), "aws", ACCOUNT))
    assert own - existing == {"Network"}
    # Whether something leads out of it is not known before it is asked.
    assert existing - own == {"PrivateAccess", "InstanceProfile"}


def test_somebody_elses_cluster_loses_no_tags_and_its_entry_takes_the_nodes_role() -> None:
    found = documents.documents(example_stack.loaded("eks-existing-cluster", {}), "aws", ACCOUNT)
    statements = [one for each in found for one in each["Statement"]]
    on_cluster = {
        action
        for one in statements
        if any(":cluster/" in str(resource) for resource in [one["Resource"]])
        for action in one["Action"]
    }
    assert on_cluster == {
        "eks:CreateAccessEntry",
        "eks:CreatePodIdentityAssociation",
        "eks:DescribeCluster",
        "eks:ListNodegroups",
        "eks:TagResource",
    }
    (passed,) = (one for one in statements if one["Sid"] == "PassNodeRole")
    assert "ec2.amazonaws.com" in json.dumps(passed)
    assert "-karpenter-nodes" in json.dumps(passed["Resource"])


def test_names_are_the_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    settings = example_stack.eks(**{"aws:region": "cn-north-1", "karpenter__identity": "irsa", "nodePools": {}})
    text = json.dumps(documents.documents(settings, "aws-cn", ACCOUNT), default=lambda one: one.__dict__)
    assert "oidc-provider/oidc.eks.cn-north-1.amazonaws.com.cn/id/*" in text
    assert "ec2.amazonaws.com.cn" in text
    assert "arn:aws:" not in text


def _sids(found: list[documents.Document]) -> set[str]:
    return {one["Sid"] for each in found for one in each["Statement"]}


def test_the_policies_have_the_stacks_own_names(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "eks", "--account", ACCOUNT)
    text = json.dumps(found)
    assert f"arn:aws:iam::{ACCOUNT}:role/karpstack-eks-cluster" in text
    assert "123456789012" not in text
    assert main(["rights", "eks", "--account", ACCOUNT]) == 0
    said = capsys.readouterr().out
    assert f"{len(found['policies'])} policies for whoever deploys eks, to be attached together:" in said
    assert "of 6144 characters" in said


def test_the_account_is_the_one_that_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(
        yaml.safe_dump({"config": {**example_stack.configuration("eks"), "aws:allowedAccountIds": [ACCOUNT]}})
    )
    assert f"arn:aws:iam::{ACCOUNT}:" in json.dumps(printed(capsys, "x", "--project", str(tmp_path)))


def test_an_account_that_nobody_knows_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(*_: object) -> Aws:
        raise UnknowableError("no credentials")

    monkeypatch.setattr(Aws, "connect", nobody)
    assert main(["rights", "eks"]) == 3
    assert "no credentials; or say which account it is, with --account" in capsys.readouterr().err
    assert main(["rights", "eks", "--account", "1234"]) == 2
    assert "give its 12 digits" in capsys.readouterr().err


@pytest.mark.parametrize("stack", ["aks-nap", "aks-self-hosted"])
@pytest.mark.parametrize("deployer", ["User", "existing"])
def test_the_condition_lets_the_deployer_give_the_roles_that_the_stack_gives(stack: str, deployer: str) -> None:
    settings = example_stack.aks(stack, cluster__deployerRole=deployer)
    made = deploy(lambda: aks.Environment("aks", settings)).of(ASSIGNMENT)
    given = {
        role for one in made for role in Role if one.inputs["roleDefinitionId"] == definition_id(SUBSCRIPTION, role)
    }
    assert given
    own, *others = assignments.assignments(settings)
    assert {role for role in Role if role.value in own.condition} == given
    assert own.condition.count("GuidEquals {") == 2
    assert own.scope == f"/subscriptions/{SUBSCRIPTION}"
    assert [one.role for one in others] == (
        ["Azure Kubernetes Service RBAC Cluster Admin"] if deployer == "existing" else []
    )


def test_the_condition_is_written_as_azure_reads_it() -> None:
    (own,) = assignments.assignments(example_stack.aks("aks-nap"))
    roles = "4d97b98b-1d4f-4787-a291-c67834d212e7, b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
    attribute = "[Microsoft.Authorization/roleAssignments:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals"
    assert own.condition == (
        "((!(ActionMatches{'Microsoft.Authorization/roleAssignments/write'})) OR "
        f"(@Request{attribute} {{{roles}}})) AND "
        "((!(ActionMatches{'Microsoft.Authorization/roleAssignments/delete'})) OR "
        f"(@Resource{attribute} {{{roles}}}))"
    )
    assert shlex.split(own.command)[-2:] == ["--condition", own.condition]
    assert '"(' not in own.command, "an interactive bash reads ! within double quotes"


def test_the_role_is_of_what_the_stack_has_and_holds_where_it_lies(capsys: pytest.CaptureFixture[str]) -> None:
    own = printed(capsys, "aks-nap")
    assert not any("federatedIdentityCredentials" in action for action in own["role"]["Actions"])
    assert "Microsoft.Network/virtualNetworks/write" in own["role"]["Actions"]
    assert own["role"]["AssignableScopes"] == [one["scope"] for one in own["assignments"]]
    settings = example_stack.aks(
        "aks-nap", network__subnetCidr=None, network__subnetId=SUBNET, cluster__logWorkspaceId=WORKSPACE
    )
    role = assignments.definition(settings)
    assert "Microsoft.Network/virtualNetworks/write" not in role["Actions"]
    assert "Microsoft.Network/virtualNetworks/subnets/join/action" in role["Actions"]
    assert "Microsoft.OperationalInsights/workspaces/sharedKeys/action" in role["Actions"]
    assert [one.scope for one in assignments.assignments(settings)] == [
        f"/subscriptions/{SUBSCRIPTION}",
        WORKSPACE,
    ]
    assert role["AssignableScopes"] == [f"/subscriptions/{SUBSCRIPTION}", ELSEWHERE.partition("/resourceGroups")[0]]
    assert main(["rights", "aks-nap"]) == 0
    assert "az role assignment create --assignee-object-id DEPLOYER" in capsys.readouterr().out
