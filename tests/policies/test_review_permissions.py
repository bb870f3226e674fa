"""Who may do what, from previews made by hand: each form that IAM and Azure allow, and what is not known yet."""

from __future__ import annotations

import json
from typing import Any

import pytest
from reviewing import UNKNOWN, preview, step, urn
from rules import tokens
from rules.clouds import CLOUDS

from karpstack.review.engine import resources
from karpstack.review.model import Entry, Permission
from karpstack.review.permissions import READERS, permissions
from karpstack.review.permissions.aws import ACCESS_ENTRY, ACCESS_POLICY, POD_IDENTITY

ROLE = urn(tokens.IAM_ROLE, "controller")


def found(*steps: dict[str, Any]) -> tuple[tuple[Entry, ...], tuple[Permission, ...]]:
    return permissions(resources(preview(*steps).digest))


def test_each_cloud_has_a_reader() -> None:
    assert READERS.keys() == CLOUDS.keys()


def document(*statements: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def role(**inputs: Any) -> dict[str, Any]:
    return step(tokens.IAM_ROLE, "controller", {"name": "karpenter", **inputs})


def test_a_trust_policy_says_who_and_when() -> None:
    trust = document(
        {
            "Effect": "Allow",
            "Principal": {"Service": ["pods.eks.amazonaws.com", "ec2.amazonaws.com"], "AWS": "*"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:SourceAccount": ["1", "2"], "aws:SourceArn": "x"}},
        },
        {"Effect": "Allow", "NotPrincipal": {"AWS": "arn:a"}, "Action": "sts:AssumeRole"},
        {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"},
    )
    entries, _ = found(role(assumeRolePolicy=trust))
    conditions = ("StringEquals aws:SourceAccount = 1 or 2", "StringEquals aws:SourceArn = x")
    assert [(one.identity, one.who, one.when) for one in entries] == [
        ("role karpenter", "Service pods.eks.amazonaws.com", conditions),
        ("role karpenter", "Service ec2.amazonaws.com", conditions),
        ("role karpenter", "everybody", conditions),
        ("role karpenter", "all but AWS arn:a", ()),
        ("role karpenter", "everybody", ("denied",)),
    ]


def test_documents_are_read_in_every_form() -> None:
    policy = document(
        {"Effect": "Allow", "Action": "sqs:*", "Resource": "arn:queue"},
        {"Effect": "Allow", "NotAction": ["iam:*"], "Resource": "*"},
        {"Effect": "Deny", "Action": ["ec2:*"], "NotResource": ["arn:a", "arn:b"]},
        {"Effect": "Allow", "Action": ["ec2:RunInstances"], "Resource": ["arn:c"], "Condition": {"Bool": {"k": True}}},
    )
    single = json.dumps({"Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:d"}})
    _, granted = found(
        role(inlinePolicies=[{}, {"name": "one", "policy": single}]),
        step(tokens.IAM_ROLE_POLICY, "more", {"role": UNKNOWN, "policy": policy}, comes_from={"role": [ROLE]}),
    )
    assert [(one.effect, one.actions, one.on, one.when, one.broad) for one in granted] == [
        ("Allow", ("s3:GetObject",), ("arn:d",), (), False),
        ("Allow", ("sqs:*",), ("arn:queue",), (), True),
        ("Allow", ("all but iam:*",), ("*",), (), True),
        ("Deny", ("ec2:*",), ("all but arn:a, arn:b",), (), False),
        ("Allow", ("ec2:RunInstances",), ("arn:c",), ("Bool k = true",), False),
    ]
    assert {one.identity for one in granted} == {"role karpenter"}


def test_an_attached_policy_is_found_though_its_arn_is_unknown() -> None:
    attached = urn(tokens.IAM_POLICY, "nodes")
    allowed = document({"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"})
    _, granted = found(
        role(managedPolicyArns=["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"]),
        step(tokens.IAM_POLICY, "nodes", {"policy": allowed}),
        step(tokens.IAM_POLICY, "idle", {"policy": allowed}),
        step(
            tokens.IAM_ROLE_POLICY_ATTACHMENT,
            "nodes",
            {"role": "karpenter", "policyArn": UNKNOWN},
            comes_from={"role": [ROLE], "policyArn": [attached]},
        ),
    )
    assert [(one.identity, one.actions, one.source) for one in granted] == [
        ("role karpenter", ("policy arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",), "controller"),
        ("role karpenter", ("ec2:RunInstances",), "nodes"),
        ("nobody yet: no attachment in this stack", ("ec2:RunInstances",), "idle"),
    ]


def test_what_is_unknown_is_said_and_not_guessed() -> None:
    queue, key = urn(tokens.QUEUE, "queue"), urn("aws:kms/key:Key", "key")
    _, granted = found(
        role(inlinePolicies=UNKNOWN, assumeRolePolicy="{}"),
        step(tokens.IAM_POLICY, "one", {"policy": UNKNOWN}, comes_from={"policy": [queue]}),
        step(tokens.IAM_POLICY, "two", {"policy": UNKNOWN}, comes_from={"policy": [queue, key]}),
        step(tokens.IAM_POLICY, "bad", {"policy": "not JSON"}),
        step(tokens.IAM_POLICY, "worse", {"policy": document("no object")}),
        step(tokens.IAM_POLICY, "secret", {"policy": "[secret]"}),
    )
    assert [one.unknown for one in granted] == [
        "known only once it is created",
        "known once queue exists",
        "known once key and queue exist",
        "is no policy document",
        "is no policy document",
        "known only once it is created",
    ]
    assert not any(one.actions for one in granted)


def test_a_policy_on_a_queue_grants_to_its_principals() -> None:
    queue = urn(tokens.QUEUE, "interruption")
    policy = document(
        {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage"}
    )
    _, granted = found(
        step(tokens.QUEUE, "interruption", {}),
        step(
            tokens.QUEUE_POLICY,
            "interruption",
            {"queueUrl": UNKNOWN, "policy": policy},
            comes_from={"queueUrl": [queue]},
        ),
    )
    ((one),) = granted
    assert (one.identity, one.actions, one.on) == (
        "Service events.amazonaws.com",
        ("sqs:SendMessage",),
        ("interruption",),
    )


def test_who_enters_an_eks_cluster() -> None:
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    scope = {"type": "namespace", "namespaces": ["a", "b"]}
    entries, granted = found(
        role(),
        step(
            POD_IDENTITY,
            "tie",
            {"clusterName": "c", "namespace": "kube-system", "serviceAccount": "karpenter", "roleArn": UNKNOWN},
            comes_from={"roleArn": [ROLE]},
        ),
        step(ACCESS_ENTRY, "nodes", {"clusterName": "c", "principalArn": UNKNOWN, "type": "EC2_LINUX"}),
        step(ACCESS_POLICY, "admin", {"clusterName": "c", "principalArn": "arn:me", "policyArn": policy}),
        step(
            ACCESS_POLICY,
            "some",
            {"clusterName": "c", "principalArn": "arn:me", "policyArn": "arn:view", "accessScope": scope},
        ),
    )
    tie = next(one for one in entries if one.source == "tie")
    assert (tie.identity, tie.who) == ("role karpenter", "service account kube-system/karpenter of the cluster c")
    assert [(one.identity, one.actions[0], one.on[0], one.broad) for one in granted] == [
        ("not known yet", "enter as EC2_LINUX", "the cluster c", False),
        ("arn:me", f"cluster policy {policy}", "the cluster c", True),
        ("arn:me", "cluster policy arn:view", "the cluster c, namespaces a, b", False),
    ]


def test_azure_roles_and_federation() -> None:
    identity = urn(tokens.AZURE_IDENTITY, "controller")
    definition = "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/"
    group = urn(tokens.AZURE_RESOURCE_GROUP, "group")
    entries, granted = found(
        step(tokens.AZURE_IDENTITY, "controller", {"resourceName": "karpenter"}),
        step(
            tokens.AZURE_FEDERATED_CREDENTIAL,
            "tie",
            {
                "resourceName": UNKNOWN,
                "issuer": UNKNOWN,
                "subject": "system:serviceaccount:kube-system:karpenter-sa",
                "audiences": ["api://AzureADTokenExchange"],
            },
            comes_from={"resourceName": [identity], "issuer": [urn(tokens.AKS_CLUSTER, "aks")]},
        ),
        step(
            tokens.AZURE_ROLE_ASSIGNMENT,
            "machines",
            {
                "principalId": UNKNOWN,
                "scope": UNKNOWN,
                "roleDefinitionId": f"{definition}9980E02C-C2BE-4D73-94E8-173B1DC7CF3C",
            },
            comes_from={"principalId": [identity], "scope": [group]},
        ),
        step(
            tokens.AZURE_ROLE_ASSIGNMENT,
            "all",
            {
                "principalId": "1234",
                "principalType": "User",
                "scope": "/subscriptions/s",
                "roleDefinitionId": f"{definition}8e3af657-a8ff-443c-a75c-2fe8c4bcb635",
            },
        ),
        step(
            tokens.AZURE_ROLE_ASSIGNMENT,
            "custom",
            {"principalId": UNKNOWN, "scope": "/x", "roleDefinitionId": f"{definition}0000", "condition": "@Resource"},
        ),
        step(tokens.AKS_CLUSTER, "aks", {"aadProfile": {"managed": True, "adminGroupObjectIDs": ["g-1"]}}),
    )
    (tie,) = entries
    assert (tie.identity, tie.who) == ("identity karpenter", "service account kube-system/karpenter-sa")
    assert tie.when == ("issuer of aks", "audience api://AzureADTokenExchange")
    assert [(one.identity, one.actions[0], one.on[0], one.broad) for one in granted] == [
        ("identity karpenter", "role Virtual Machine Contributor", "group", False),
        ("User 1234", "role Owner", "/subscriptions/s", True),
        ("principal, not known yet", "role 0000", "/x", False),
        ("Entra group g-1", "administer the cluster", "aks", True),
    ]


@pytest.mark.parametrize("document", ["[]", '"text"', "{", '{"Statement": 3}', "3"])
def test_a_document_that_is_none_stops_nothing(document: str) -> None:
    entries, granted = found(role(assumeRolePolicy=document), step(tokens.IAM_POLICY, "p", {"policy": document}))
    assert [one.who for one in entries] == ["its trust policy can't be read"]
    assert [one.unknown for one in granted] == ["is no policy document"]
