"""rules/trust.py: each rule one good input, one mutation per clause, unknown values."""

import json
from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.trust import IAM_TRUST_BOUND as TRUST

ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/ABC"
SERVICE: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"Service": "ec2.amazonaws.com"},
    "Action": "sts:AssumeRole",
}
PODS: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"Service": "pods.eks.amazonaws.com"},
    "Action": ["sts:AssumeRole", "sts:TagSession"],
    "Condition": {
        "StringEquals": {
            "aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-east-1:123456789012:cluster/a",
            "aws:RequestTag/kubernetes-namespace": "kube-system",
            "aws:RequestTag/kubernetes-service-account": "karpenter",
        }
    },
}
WEB: dict[str, Any] = {
    "Sid": "Web",
    "Effect": "Allow",
    "Principal": {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"},
    "Action": "sts:AssumeRoleWithWebIdentity",
    "Condition": {
        "StringEquals": {
            f"{ISSUER}:aud": "sts.amazonaws.com",
            f"{ISSUER}:sub": "system:serviceaccount:kube-system:karpenter",
        }
    },
}


def role(*statements: dict[str, Any]) -> Resource:
    return Resource(tokens.IAM_ROLE, {"assumeRolePolicy": json.dumps({"Statement": list(statements)})})


def pods(left_out: str) -> Resource:
    exact = {key: value for key, value in PODS["Condition"]["StringEquals"].items() if key != left_out}
    return role(PODS | {"Condition": {"StringEquals": exact}})


def web(**changes: Any) -> Resource:
    exact = {key: value for key, value in (WEB["Condition"]["StringEquals"] | changes).items() if value is not None}
    return role(WEB | {"Condition": {"StringEquals": exact}})


def elsewhere(subject: str) -> Resource:
    host = "token.actions.githubusercontent.com"
    exact = {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": subject}
    return role(WEB | {"Condition": {"StringEquals": exact}})


AUD, SUB = f"{ISSUER}:aud", f"{ISSUER}:sub"

CASES = [
    Case(name="a service", rule=TRUST, given=role(SERVICE)),
    Case(name="one service account", rule=TRUST, given=role(WEB)),
    Case(name="one service account by Pod Identity", rule=TRUST, given=role(PODS)),
    *[
        Case(
            name=f"Pod Identity without {key}",
            rule=TRUST,
            given=role(
                PODS
                | {
                    "Condition": {
                        "StringEquals": {k: v for k, v in PODS["Condition"]["StringEquals"].items() if k != key}
                    }
                }
            ),
            violations=(f"trusts pods.eks.amazonaws.com without StringEquals on {key}",),
        )
        for key in PODS["Condition"]["StringEquals"]
    ],
    Case(
        name="Pod Identity of a cluster by the source's ARN",
        rule=TRUST,
        given=role(
            PODS
            | {
                "Condition": {
                    "ArnEquals": {"aws:SourceArn": "arn:aws:eks:us-east-1:123456789012:cluster/a"},
                    "StringEquals": {
                        "aws:RequestTag/kubernetes-namespace": "kube-system",
                        "aws:RequestTag/kubernetes-service-account": "karpenter",
                    },
                }
            }
        ),
    ),
    Case(
        name="Pod Identity as it was",
        rule=TRUST,
        given=role({key: value for key, value in PODS.items() if key != "Condition"}),
        violations=("kubernetes-namespace", "kubernetes-service-account", "eks-cluster-arn or aws:SourceArn"),
    ),
    Case(
        name="a named role",
        rule=TRUST,
        given=role(SERVICE | {"Principal": {"AWS": "arn:aws:iam::123456789012:role/ci"}}),
    ),
    Case(name="a denial", rule=TRUST, given=role(SERVICE | {"Effect": "Deny", "Principal": "*"})),
    Case(name="nothing said", rule=TRUST, given=role().without("assumeRolePolicy")),
    Case(name="everybody", rule=TRUST, given=role(SERVICE | {"Principal": "*"}), violations=("trusts *",)),
    Case(
        name="every account",
        rule=TRUST,
        given=role(SERVICE | {"Principal": {"AWS": "*"}}),
        violations=("trusts AWS *",),
    ),
    *[
        Case(
            name=f"a whole account as {name}",
            rule=TRUST,
            given=role(SERVICE | {"Principal": {"AWS": [name]}}),
            violations=(f"trusts AWS {name}",),
        )
        for name in ("123456789012", "arn:aws:iam::123456789012:root")
    ],
    Case(
        name="all but some",
        rule=TRUST,
        given=role({"Effect": "Allow", "NotPrincipal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}),
        violations=("trusts all but those in NotPrincipal",),
    ),
    Case(name="any subject", rule=TRUST, given=web(**{SUB: None}), violations=("no StringEquals on the token's sub",)),
    Case(name="any audience", rule=TRUST, given=web(**{AUD: None}), violations=("no StringEquals on the token's aud",)),
    Case(
        name="a pattern of subjects",
        rule=TRUST,
        given=web(**{SUB: "system:serviceaccount:kube-system:*"}),
        violations=("takes the sub system:serviceaccount:kube-system:*",),
    ),
    Case(
        name="two subjects",
        rule=TRUST,
        given=web(**{SUB: ["system:serviceaccount:a:b", "system:serviceaccount:a:c"]}),
        violations=("takes the sub system:serviceaccount:a:b, system:serviceaccount:a:c",),
    ),
    Case(name="another audience", rule=TRUST, given=web(**{AUD: "example"}), violations=("takes the aud example",)),
    Case(
        name="compared by pattern",
        rule=TRUST,
        given=role(WEB | {"Condition": {"StringLike": WEB["Condition"]["StringEquals"]}}),
        violations=("the token's sub", "the token's aud"),
    ),
    Case(name="no JSON", rule=TRUST, given=Resource(tokens.IAM_ROLE, {"assumeRolePolicy": "x"}), violations=("can't",)),
    Case(
        name="the document is unknown",
        rule=TRUST,
        given=role().change("assumeRolePolicy", to=UNKNOWN),
        unknown="assumeRolePolicy",
    ),
    Case(
        name="the provider is unknown, the subject is any",
        rule=TRUST,
        given=role().change(
            "assumeRolePolicy",
            to={
                "Statement": [
                    WEB
                    | {"Principal": {"Federated": [UNKNOWN]}, "Condition": {"StringEquals": {AUD: "sts.amazonaws.com"}}}
                ]
            },
        ),
        violations=("no StringEquals on the token's sub",),
        unknown="assumeRolePolicy.Statement.0.Principal.Federated.0",
    ),
    Case(
        name="a pipeline's token",
        rule=TRUST,
        given=elsewhere("repo:example/app:ref:refs/heads/main"),
    ),
    Case(
        name="any pipeline's token",
        rule=TRUST,
        given=elsewhere("repo:example/*"),
        violations=("takes the sub repo:example/*, not one value without wildcards",),
    ),
    Case(
        name="people, by SAML",
        rule=TRUST,
        given=role(
            SERVICE
            | {
                "Principal": {"Federated": "arn:aws:iam::123456789012:saml-provider/a"},
                "Action": "sts:AssumeRoleWithSAML",
            }
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
