"""IAM policy evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.components.documents import iam
from karpstack.rehearsal.aws.iam import policies

POD = "pods.eks.amazonaws.com"
BOTH = ("sts:AssumeRole", "sts:TagSession")


def trust(**changes: Any) -> dict[str, Any]:
    return {"Statement": [{"Effect": "Allow", "Principal": {"Service": POD}, "Action": list(BOTH), **changes}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Action": "sts:AssumeRole"}, "does not allow sts:TagSession"),
        ({"Principal": {"Service": "ec2.amazonaws.com"}}, "does not allow sts:AssumeRole"),
        ({"Principal": {"AWS": POD}}, "does not allow sts:AssumeRole"),
        ({"Effect": "Deny"}, "denies sts:AssumeRole"),
        ({"Condition": {"StringEquals": {"aws:SourceAccount": "1"}}}, "here it is '2'"),
        ({"Condition": {"StringLike": {"missing": "*"}}}, "here it is absent"),
    ],
)
def test_trust_says_what_is_wrong(change: dict[str, Any], said: str) -> None:
    assert said in policies.trust_refusal(trust(**change), "Service", POD, BOTH, {"aws:SourceAccount": "2"})


@pytest.mark.parametrize(
    ("operator", "pattern", "value", "holds"),
    [
        ("StringEquals", "a", "a", True),
        ("StringEquals", "a*", "ab", False),
        ("StringLike", "a*", "ab", True),
        ("StringLike", "team-[ab]", "team-a", False),
        ("StringLike", "team-[ab]*", "team-[ab]-x", True),
        ("ArnEquals", "arn:aws:eks:*:1:cluster/x", "arn:aws:eks:us-east-1:1:cluster/x", True),
        ("ArnLike", "arn:aws:eks:*:2:*", "arn:aws:eks:us-east-1:1:cluster/x", False),
        ("StringNotEquals", "a", "a", False),
        ("StringNotEquals", "a", "b", True),
        ("StringEqualsIfExists", "a", None, True),
        ("StringEquals", "a", None, False),
        ("Bool", "true", "true", True),
        ("Null", "true", None, True),
        ("Null", "false", None, False),
        ("ForAnyValue:StringEquals", ["x", "a"], "a", True),
        ("ForAnyValue:StringEquals", ["x", "a"], ["b", "a"], True),
        ("ForAnyValue:StringEquals", ["x", "a"], ["b", "c"], False),
        ("ForAnyValue:StringEquals", "a", None, False),
        ("ForAllValues:StringEquals", ["x", "a"], ["a", "x"], True),
        ("ForAllValues:StringEquals", ["x", "a"], ["a", "b"], False),
        ("ForAllValues:StringEquals", "a", None, True),
        ("StringEquals", "a", ["b", "a"], True),
    ],
)
def test_conditions(operator: str, pattern: Any, value: str | list[str] | None, holds: bool) -> None:
    statement = {"Condition": {operator: {"Key": pattern}}}
    assert (policies.failed_condition(statement, {} if value is None else {"key": value}) == "") is holds


def test_an_unknown_operator_is_not_taken_as_met() -> None:
    with pytest.raises(NotImplementedError, match="IpAddress"):
        policies.failed_condition({"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}, {})


def test_identity_policies_name_actions() -> None:
    document = {"Statement": {"Effect": "Allow", "Action": ["ec2:Describe*", "sqs:ReceiveMessage"], "Resource": "*"}}
    assert policies.allows_action([document], "ec2:DescribeInstances")
    assert policies.allows_action([document], "SQS:receivemessage")
    assert not policies.allows_action([document], "ec2:CreateFleet")
    deny = {"Statement": [{"Effect": "Deny", "Action": "ec2:*", "Resource": "*"}]}
    assert not policies.allows_action([document, deny], "ec2:DescribeInstances")


def test_a_queue_lets_in_whom_its_policy_names() -> None:
    queue = "arn:aws:sqs:us-east-1:1:q"
    allow: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com"]},
        "Action": "sqs:SendMessage",
    }
    allow |= {"Resource": queue}
    insecure: dict[str, Any] = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": queue}
    insecure |= {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    elsewhere = {**allow, "Resource": "arn:aws:sqs:us-east-1:1:other"}
    of_another = {**allow, "Condition": {"ArnEquals": {"aws:SourceArn": "arn:other"}}}
    context = {"aws:SourceArn": "arn:rule"}
    for statements, may in (
        ([allow, insecure], True),
        ([insecure], False),
        ([elsewhere], False),
        ([allow, {**insecure, "Condition": {}}], False),
        ([of_another], False),
    ):
        document = {"Statement": statements}
        assert policies.allows_service(document, "events.amazonaws.com", "sqs:SendMessage", queue, context) is may


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ({"Effect": "Allow", "Action": "sqs:*", "Resource": "arn:aws:sqs:*:*:a-*"}, "allowed"),
        ({"Effect": "Allow", "Action": "sqs:*", "Resource": "arn:aws:sqs:*:*:b"}, "implicitDeny"),
        ({"Effect": "Allow", "Action": "sqs:*", "Resource": "arn:aws:sqs:*:*:[a]-queue"}, "implicitDeny"),
        ({"Effect": "Allow", "Action": "sqs:[A-Z]*", "Resource": "*"}, "implicitDeny"),
        ({"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}, "implicitDeny"),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:sqs:*"}, "implicitDeny"),
        ({"Effect": "Deny", "Action": "sqs:CreateQueue", "Resource": "*"}, "explicitDeny"),
        (
            {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"k": "w"}}},
            "implicitDeny",
        ),
        ({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"k": "v"}}}, "allowed"),
    ],
)
def test_the_simulator_looks_at_resources_and_conditions(statement: dict[str, Any], said: str) -> None:
    document = {"Statement": [statement]}
    arn = "arn:aws:sqs:us-east-1:1:a-queue"
    assert policies.decision([document], "sqs:CreateQueue", arn, {"k": "v"}) == said


def test_the_stacks_own_documents_let_nobody_else_in() -> None:
    """Upstream's, which name the service alone, would let EventBridge of any account and each pod identity in."""
    queue, rule = "arn:aws:sqs:us-east-1:1:q", "arn:aws:events:us-east-1:{}:rule/spot"
    document = iam.interruption_queue_policy(queue, [rule.format(1)])
    for account, may in ((1, True), (2, False)):
        source = {"aws:SourceArn": rule.format(account)}
        assert policies.allows_service(document, "events.amazonaws.com", "sqs:SendMessage", queue, source) is may

    cluster = "arn:aws:eks:us-east-1:1:cluster/{}"
    controllers = iam.pod_identity_trust(
        account_id="1", cluster_arn=cluster.format("a"), namespace="kube-system", service_account="karpenter"
    )
    for name, namespace, may in (("a", "kube-system", True), ("a", "default", False), ("b", "kube-system", False)):
        context = {
            "aws:SourceAccount": "1",
            "aws:RequestTag/eks-cluster-arn": cluster.format(name),
            "aws:RequestTag/kubernetes-namespace": namespace,
            "aws:RequestTag/kubernetes-service-account": "karpenter",
        }
        assert (policies.trust_refusal(controllers, "Service", POD, BOTH, context) == "") is may
