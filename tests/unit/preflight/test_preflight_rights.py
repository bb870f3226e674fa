"""Whether the caller may deploy, as the simulated account's policy simulator judges; and what cannot be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from karpstack.preflight.aws import rights
from karpstack.preflight.aws.checks import CHECKS
from karpstack.preflight.aws.deployer import Scope, deploying, policy
from karpstack.preflight.aws.subject import Subject
from karpstack.preflight.finding import blockers, run
from karpstack.rehearsal.aws.account import Account
from tests.unit.preflight.preflight_world import found, looked_at, one
from tests.unit.rehearsal.aws_world import client

PATH = "/aws-reserved/"


def scope(seen: Subject) -> Scope:
    return Scope(partition="aws", region="us-east-1", account="123456789012", names=seen.names)


def as_role(aws: Account, *statements: dict[str, Any]) -> Callable[[str], Any]:
    """Clients of a session of the role `deployer`, which has a path and these statements."""
    iam = aws.client("iam")
    document = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
    }
    role = iam.create_role(RoleName="deployer", Path=PATH, AssumeRolePolicyDocument=json.dumps(document))["Role"]
    iam.put_role_policy(
        RoleName="deployer",
        PolicyName="deployer",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}),
    )
    issued = aws.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="me")["Credentials"]
    keys = issued["AccessKeyId"], issued["SecretAccessKey"], issued["SessionToken"]
    return lambda service: client(service, *keys)


def test_the_deployers_policy_is_enough(aws: Account) -> None:
    seen = looked_at(aws, cluster__publicAccessCidrs=["1.1.1.0/24"])
    role = as_role(aws, *policy(scope(seen))["Statement"])
    seen = looked_at(aws, client=role, cluster__publicAccessCidrs=["1.1.1.0/24"])
    assert seen.caller.role == "deployer"
    checked = run(CHECKS, seen)
    assert blockers(checked) == []
    said = [finding.what for each in checked for finding in each.findings if finding.severity == "warning"]
    assert said == []


def test_a_right_that_is_missing_is_named_with_its_statement(aws: Account) -> None:
    statements = policy(scope(looked_at(aws)))["Statement"]
    (roles,) = (statement for statement in statements if statement["Sid"] == "Roles")
    roles["Action"].remove("iam:CreateRole")
    finding = one(rights.rights, looked_at(aws, client=as_role(aws, *statements)))
    assert finding.severity == "error"
    assert finding.what.startswith(
        f"arn:aws:iam::123456789012:role{PATH}deployer has no permission for iam:CreateRole on arn:aws:iam"
    )
    assert "Roles" in finding.fix


def test_a_right_on_other_resources_is_none(aws: Account) -> None:
    statements = policy(scope(looked_at(aws, name="another")))["Statement"]
    said = found(rights.rights, looked_at(aws, client=as_role(aws, *statements)))
    assert any("sqs:CreateQueue" in what for _, what in said)
    assert not any("ec2:CreateVpc" in what for _, what in said)


def test_a_policy_that_denies(aws: Account) -> None:
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "kms:*", "Resource": "*"}
    said = found(rights.rights, looked_at(aws, client=as_role(aws, everything, deny)))
    assert said
    assert all("kms:" in what and what.endswith("a policy denies it") for _, what in said)


def test_a_condition_that_is_not_known_is_a_warning(aws: Account) -> None:
    tagged = {
        "Effect": "Allow",
        "Action": "*",
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:RequestTag/team": "platform"}},
    }
    looks = {"Effect": "Allow", "Action": ["iam:Simulate*", "iam:Get*", "iam:List*"], "Resource": "*"}
    said = found(rights.rights, looked_at(aws, client=as_role(aws, tagged, looks)))
    assert {severity for severity, _ in said} == {"warning"}
    assert all("aws:requesttag/team" in what for _, what in said)


def test_every_check_runs_although_some_cannot_be_asked(aws: Account) -> None:
    reads = {"Effect": "Allow", "Action": ["ec2:Describe*", "eks:*", "iam:*"], "Resource": "*"}
    aws.client("logs").create_log_group(logGroupName="/aws/eks/karpstack-eks/cluster")
    checked = {each.name: each.findings for each in run(CHECKS, looked_at(aws, client=as_role(aws, reads)))}
    assert list(checked) == list(CHECKS)
    (finding,) = checked["quota of VPCs"]
    assert (finding.severity, finding.fix) == (
        "warning",
        "grant servicequotas:GetServiceQuota to the deployer, and run preflight again",
    )
    assert finding.what.startswith("could not be checked: ")
    assert checked["log group's name"][0].fix == "grant logs:DescribeLogGroups to the deployer, and run preflight again"
    assert checked["zones"] == ()


@pytest.mark.parametrize(
    ("sid", "changes"),
    [
        ("OpenIdConnectProvider", {}),
        ("FlowLogs", {}),
        ("FlowLogsGroup", {}),
        ("FlowLogsRole", {}),
        ("PassFlowLogsRole", {}),
        ("FlowLogsPolicy", {}),
        ("InterruptionQueue", {"karpenter__interruptionQueue": False, "nodePools": {}}),
        ("EventRules", {"karpenter__interruptionQueue": False, "nodePools": {}}),
    ],
)
def test_what_the_stack_does_without_is_not_asked_for(aws: Account, sid: str, changes: dict[str, Any]) -> None:
    statements = [one for one in policy(scope(looked_at(aws)))["Statement"] if one["Sid"] != sid]
    reads = {"Effect": "Allow", "Action": "iam:ListRoles", "Resource": "*"}
    assert not found(rights.rights, looked_at(aws, client=as_role(aws, reads, *statements), **changes))


def test_a_role_that_the_account_has_need_not_be_made(aws: Account) -> None:
    statements = [one for one in policy(scope(looked_at(aws)))["Statement"] if not one["Sid"].startswith("First")]
    seen = looked_at(aws, client=as_role(aws, *statements))
    missing = {service for _, what in found(rights.rights, seen) for service in what.split(" on ")[1].split("/")[2:3]}
    assert missing == {"eks.amazonaws.com", "eks-nodegroup.amazonaws.com"}
    for service in missing:
        aws.client("iam").create_service_linked_role(AWSServiceName=service)
    assert not found(rights.rights, Subject(**{**vars(seen), "aws": type(seen.aws)("us-east-1", seen.aws._client)}))


def test_each_statement_has_a_name_of_its_own(aws: Account) -> None:
    sids = [grant.sid for grant in deploying(scope(looked_at(aws)))]
    assert len(sids) == len(set(sids))
