"""rules/identity.py: each rule one good input, one mutation per clause, unknown values."""

import json
from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.identity import IAM_NO_WILDCARD_ACTION as WILDCARD
from rules.identity import IAM_NO_WILDCARD_RESOURCE as RESOURCE
from rules.identity import IAM_PASS_ROLE_SCOPED as PASS_ROLE

ROLE_ARN = "arn:aws:iam::123456789012:role/example-node"
READ: dict[str, Any] = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": ["sqs:GetQueueUrl", "sqs:ReceiveMessage"],
    "Resource": "arn:aws:sqs:us-east-1:123456789012:example",
}
PASS: dict[str, Any] = {
    "Sid": "Pass",
    "Effect": "Allow",
    "Action": "iam:PassRole",
    "Resource": ROLE_ARN,
    "Condition": {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}},
}


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def policy(*statements: dict[str, Any], token: str = tokens.IAM_POLICY) -> Resource:
    return Resource(token, {"name": "example", "policy": document(*(statements or (READ, PASS)))})


def role(*statements: dict[str, Any]) -> Resource:
    inline = [{"name": "inline", "policy": document(*(statements or (READ, PASS)))}]
    return Resource(
        tokens.IAM_ROLE,
        {"inlinePolicies": inline, "managedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]},
    )


def attachment(token: str = tokens.IAM_ROLE_POLICY_ATTACHMENT) -> Resource:
    return Resource(token, {"role": "example", "policyArn": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"})


ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
DOCUMENTS = (tokens.IAM_POLICY, tokens.IAM_GROUP_POLICY, tokens.IAM_ROLE_POLICY, tokens.IAM_USER_POLICY)
ATTACHMENTS = (
    tokens.IAM_POLICY_ATTACHMENT,
    tokens.IAM_GROUP_POLICY_ATTACHMENT,
    tokens.IAM_ROLE_POLICY_ATTACHMENT,
    tokens.IAM_USER_POLICY_ATTACHMENT,
)

WILDCARD_CASES = [
    Case(name="named actions", rule=WILDCARD, given=policy()),
    Case(name="named actions in a role", rule=WILDCARD, given=role()),
    Case(
        name="a role that has no inline policies",
        rule=WILDCARD,
        given=role().change("inlinePolicies", to=[{}]),
    ),
    Case(name="a narrow managed policy", rule=WILDCARD, given=attachment()),
    Case(
        name="a denied wildcard",
        rule=WILDCARD,
        given=policy({"Effect": "Deny", "Action": "*", "Resource": "*"}),
    ),
    *[
        Case(
            name=f"all actions in {token}",
            rule=WILDCARD,
            given=policy(READ | {"Action": "*"}, token=token),
            violations=("policy, statement Read allows *",),
        )
        for token in DOCUMENTS
    ],
    Case(
        name="a service's actions, in an object",
        rule=WILDCARD,
        given=policy().change("policy", to={"Statement": READ | {"Action": ["sqs:ReceiveMessage", "ec2:*"]}}),
        violations=("policy, statement Read allows ec2:*",),
    ),
    Case(
        name="a question mark, in a statement without a name",
        rule=WILDCARD,
        given=policy(PASS, {"Effect": "Allow", "Action": "ec2:RunInstance?", "Resource": "*"}),
        violations=("policy, statement 1 allows ec2:RunInstance?",),
    ),
    Case(
        name="all but some",
        rule=WILDCARD,
        given=policy({"Effect": "Allow", "NotAction": "iam:CreateUser", "Resource": "*"}),
        violations=("allows all actions but those in NotAction",),
    ),
    Case(
        name="inline in a role",
        rule=WILDCARD,
        given=role(READ | {"Action": "sqs:*"}),
        violations=("inlinePolicies[0].policy, statement Read allows sqs:*",),
    ),
    Case(
        name="a role's managed policy",
        rule=WILDCARD,
        given=role().change("managedPolicyArns", 0, to=ADMINISTRATOR),
        violations=(f"managedPolicyArns[0] is {ADMINISTRATOR}",),
    ),
    *[
        Case(
            name=f"administrator in {token}",
            rule=WILDCARD,
            given=attachment(token).change("policyArn", to=ADMINISTRATOR),
            violations=(f"policyArn is {ADMINISTRATOR}",),
        )
        for token in ATTACHMENTS
    ],
    Case(
        name="a whole service, in China",
        rule=WILDCARD,
        given=attachment().change("policyArn", to="arn:aws-cn:iam::aws:policy/AmazonEC2FullAccess"),
        violations=("AmazonEC2FullAccess, which allows whole services",),
    ),
    Case(
        name="no JSON",
        rule=WILDCARD,
        given=policy().change("policy", to="Allow all"),
        violations=("policy is not a policy document",),
    ),
    Case(
        name="no statements",
        rule=WILDCARD,
        given=policy().change("policy", to="{}"),
        violations=("policy is not a policy document",),
    ),
    Case(
        name="a pattern that is allowed, with its reason",
        rule=WILDCARD,
        given=policy(READ | {"Action": ["ec2:Describe*", "ec2:*"]}),
        settings={"allowedActions": [{"action": "ec2:describe*", "reason": "read-only inventory"}]},
        violations=("allows ec2:*",),
    ),
    Case(
        name="the document is unknown",
        rule=WILDCARD,
        given=policy().change("policy", to=UNKNOWN),
        unknown="policy",
    ),
    Case(
        name="the attached policy is yet to be made, and judged itself",
        rule=WILDCARD,
        given=attachment().change("policyArn", to=UNKNOWN),
    ),
    Case(
        name="a role's document is unknown, its managed policy is not",
        rule=WILDCARD,
        given=role()
        .change("inlinePolicies", 0, "policy", to=UNKNOWN)
        .change("managedPolicyArns", to=[UNKNOWN, ADMINISTRATOR]),
        violations=("managedPolicyArns[1]",),
        unknown="inlinePolicies.0.policy",
    ),
    Case(
        name="a role's inline policies are unknown, its managed policy is not",
        rule=WILDCARD,
        given=role().change("inlinePolicies", to=UNKNOWN).change("managedPolicyArns", 0, to=ADMINISTRATOR),
        violations=("managedPolicyArns[0]",),
        unknown="inlinePolicies",
    ),
    Case(
        name="one inline policy is unknown, another has a wildcard",
        rule=WILDCARD,
        given=role().change(
            "inlinePolicies", to=[{"policy": UNKNOWN}, {"policy": document(READ | {"Action": "sqs:*"})}]
        ),
        violations=("inlinePolicies[1].policy, statement Read allows sqs:*",),
        unknown="inlinePolicies.0.policy",
    ),
    Case(
        name="one statement is unknown, another has a wildcard",
        rule=WILDCARD,
        given=policy().change("policy", to={"Statement": [UNKNOWN, READ | {"Action": "ec2:*"}]}),
        violations=("statement Read allows ec2:*",),
        unknown="policy.Statement.0",
    ),
    Case(
        name="one action is unknown, another a wildcard",
        rule=WILDCARD,
        given=policy().change("policy", to={"Statement": [READ | {"Action": [UNKNOWN, "ec2:*"]}]}),
        violations=("statement Read allows ec2:*",),
        unknown="policy.Statement.0.Action.0",
    ),
]

PASS_ROLE_CASES = [
    Case(name="one role to one service", rule=PASS_ROLE, given=policy()),
    Case(name="one role to one service, inline", rule=PASS_ROLE, given=role()),
    Case(
        name="the condition's other forms",
        rule=PASS_ROLE,
        given=policy(PASS | {"Condition": {"StringLike": {"IAM:passedToService": "ec2.amazonaws.com"}}}),
    ),
    Case(
        name="not passed at all",
        rule=PASS_ROLE,
        given=policy({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}),
    ),
    *[
        Case(
            name=f"any role in {token}",
            rule=PASS_ROLE,
            given=policy(PASS | {"Resource": "*"}, token=token),
            violations=("policy, statement Pass passes *",),
        )
        for token in DOCUMENTS
    ],
    Case(
        name="any role, inline",
        rule=PASS_ROLE,
        given=role(PASS | {"Resource": "*"}),
        violations=("inlinePolicies[0].policy, statement Pass passes *",),
    ),
    Case(
        name="a pattern of roles beside a role",
        rule=PASS_ROLE,
        given=policy(PASS | {"Resource": [ROLE_ARN, "arn:aws:iam::123456789012:role/*"]}),
        violations=("passes arn:aws:iam::123456789012:role/*, which",),
    ),
    Case(
        name="roles of any account",
        rule=PASS_ROLE,
        given=policy(PASS | {"Resource": "arn:aws:iam::*:role/example-node"}),
        violations=("passes arn:aws:iam::*:role/example-node, which",),
    ),
    Case(
        name="all roles but one",
        rule=PASS_ROLE,
        given=policy({k: v for k, v in PASS.items() if k != "Resource"} | {"NotResource": ROLE_ARN}),
        violations=("passes all roles but those in NotResource",),
    ),
    Case(
        name="to any service",
        rule=PASS_ROLE,
        given=policy({k: v for k, v in PASS.items() if k != "Condition"}),
        violations=("has no condition on iam:PassedToService",),
    ),
    Case(
        name="to any service but one",
        rule=PASS_ROLE,
        given=policy(PASS | {"Condition": {"StringNotEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}}),
        violations=("has no condition on iam:PassedToService",),
    ),
    Case(
        name="to a pattern of services",
        rule=PASS_ROLE,
        given=policy(PASS | {"Condition": {"StringLike": {"iam:PassedToService": "*.amazonaws.com"}}}),
        violations=("passes to *.amazonaws.com",),
    ),
    *[
        Case(
            name=f"as {action}",
            rule=PASS_ROLE,
            given=policy({"Effect": "Allow", "Action": action, "Resource": ROLE_ARN}),
            violations=("has no condition on iam:PassedToService",),
        )
        for action in ("*", "iam:*", "IAM:passrole", "iam:Pass*")
    ],
    Case(
        name="as all actions but others",
        rule=PASS_ROLE,
        given=policy({"Effect": "Allow", "NotAction": ["ec2:RunInstances"], "Resource": ROLE_ARN}),
        violations=("has no condition on iam:PassedToService",),
    ),
    Case(
        name="the document is unknown",
        rule=PASS_ROLE,
        given=policy().change("policy", to=UNKNOWN),
        unknown="policy",
    ),
    Case(
        name="the role is unknown, the service is any",
        rule=PASS_ROLE,
        given=policy().change(
            "policy", to={"Statement": [{"Effect": "Allow", "Action": "iam:PassRole", "Resource": UNKNOWN}]}
        ),
        violations=("has no condition on iam:PassedToService",),
        unknown="policy.Statement.0.Resource",
    ),
    Case(
        name="one role and one service are unknown, others are any",
        rule=PASS_ROLE,
        given=policy().change(
            "policy",
            to={
                "Statement": PASS
                | {
                    "Resource": [UNKNOWN, "*"],
                    "Condition": {"StringEquals": {"iam:PassedToService": [UNKNOWN, "*"]}},
                }
            },
        ),
        violations=("statement Pass passes *, which", "statement Pass passes to *, which"),
        unknown="policy.Statement.Resource.0",
    ),
]

ANYTHING = {"Sid": "All", "Effect": "Allow", "Action": ["ec2:RunInstances", "ec2:DescribeImages"], "Resource": "*"}

RESOURCE_CASES = [
    Case(name="named resources", rule=RESOURCE, given=policy()),
    Case(name="what can't be limited", rule=RESOURCE, given=policy(ANYTHING | {"Action": "ec2:DescribeImages"})),
    *[
        Case(
            name=f"everything in {token}",
            rule=RESOURCE,
            given=policy(ANYTHING, token=token),
            violations=("policy, statement All allows ec2:RunInstances on every resource",),
        )
        for token in DOCUMENTS
    ],
    Case(
        name="everything, inline",
        rule=RESOURCE,
        given=role(ANYTHING),
        violations=("inlinePolicies[0].policy, statement All allows ec2:RunInstances",),
    ),
    Case(
        name="everything beside something",
        rule=RESOURCE,
        given=policy(READ | {"Resource": [READ["Resource"], "*"], "Action": "sqs:DeleteQueue"}),
        violations=("allows sqs:DeleteQueue on every resource",),
    ),
    Case(
        name="all but some",
        rule=RESOURCE,
        given=policy({"Effect": "Allow", "Action": "sqs:DeleteQueue", "NotResource": "arn:aws:sqs:::a"}),
        violations=("allows sqs:DeleteQueue on every resource",),
    ),
    Case(
        name="allowed, with its reason",
        rule=RESOURCE,
        given=policy(ANYTHING),
        settings={"allowedActions": [{"action": "ec2:run*", "reason": "a sandbox"}]},
        violations=("allows ec2:DescribeImages",),
    ),
    Case(
        name="one resource is unknown, another is all",
        rule=RESOURCE,
        given=policy().change("policy", to={"Statement": [ANYTHING | {"Resource": [UNKNOWN, "*"]}]}),
        violations=("allows ec2:RunInstances on every resource",),
        unknown="policy.Statement.0.Resource.0",
    ),
]

CASES = WILDCARD_CASES + RESOURCE_CASES + PASS_ROLE_CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
