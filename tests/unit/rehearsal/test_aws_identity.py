"""Credentials for pods: every check, broken once."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.account import Account
from rehearsal.aws.iam.pod_credentials import CredentialError, PodIdentity, TokenReviewer
from tests.unit.rehearsal.aws_world import CLUSTER, REGION, Stack, client, trust

SUBJECT = "system:serviceaccount:kube-system:karpenter"


class Reviewer:
    """A cluster that knows its tokens by their audience."""

    def __init__(self) -> None:
        self.tokens: dict[tuple[str, str], str] = {}

    def review_token(self, token: str, audience: str) -> str | None:
        return self.tokens.get((token, audience))


@pytest.fixture
def stack(aws: Account) -> Stack:
    made = Stack(aws)
    made.add_cluster()
    return made


@pytest.fixture
def reviewer() -> Reviewer:
    return Reviewer()


@pytest.fixture
def identity(stack: Stack, reviewer: Reviewer) -> PodIdentity:
    reviewer.tokens["good", "pods.eks.amazonaws.com"] = SUBJECT

    def find(cluster: str) -> TokenReviewer | None:
        return reviewer if cluster == CLUSTER else None

    return PodIdentity(stack.account.eks, stack.account.roles, REGION, find)


def associate(stack: Stack, role: str | None = None) -> str:
    made = stack.account.client("eks").create_pod_identity_association(
        clusterName=CLUSTER, namespace="kube-system", serviceAccount="karpenter", roleArn=role or stack.pod_role
    )
    name: str = made["association"]["associationId"]
    return name


def test_pod_identity_hands_out_the_role(identity: PodIdentity, stack: Stack) -> None:
    associate(stack)
    issued = identity.credentials(CLUSTER, "good")
    assert issued["Expiration"].endswith("Z")
    caller = client("sts", issued["AccessKeyId"], issued["SecretAccessKey"], issued["Token"]).get_caller_identity()
    assert caller["Arn"].startswith("arn:aws:sts::123456789012:assumed-role/controller/eks-test-karpenter")


def refusal(identity: PodIdentity, token: str, cluster: str = CLUSTER) -> tuple[int, str]:
    with pytest.raises(CredentialError) as caught:
        identity.credentials(cluster, token)
    return caught.value.status, str(caught.value)


def test_pod_identity_asks_the_cluster(identity: PodIdentity, stack: Stack, reviewer: Reviewer) -> None:
    associate(stack)
    assert refusal(identity, "bad")[0] == 400
    assert refusal(identity, "good", "other")[0] == 400
    reviewer.tokens["wrong", "sts.amazonaws.com"] = SUBJECT
    assert "InvalidTokenException" in refusal(identity, "wrong")[1]


def test_pod_identity_needs_the_association(identity: PodIdentity, stack: Stack, reviewer: Reviewer) -> None:
    status, text = refusal(identity, "good")
    assert status == 404
    assert "kube-system/karpenter" in text
    associate(stack)
    reviewer.tokens["other", "pods.eks.amazonaws.com"] = "system:serviceaccount:default:karpenter"
    assert refusal(identity, "other")[0] == 404


def test_pod_identity_needs_the_trust(identity: PodIdentity, stack: Stack) -> None:
    associate(stack)
    iam = stack.account.client("iam")
    half = trust("pods.eks.amazonaws.com", "sts:AssumeRole")
    iam.update_assume_role_policy(RoleName="controller", PolicyDocument=half)
    status, text = refusal(identity, "good")
    assert status == 403
    assert "EKS does not have permissions to assume the associated role" in text
    assert "sts:TagSession" in text
    elsewhere = {"StringEquals": {"aws:RequestTag/kubernetes-namespace": "elsewhere"}}
    iam.update_assume_role_policy(
        RoleName="controller",
        PolicyDocument=trust("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession", condition=elsewhere),
    )
    assert "elsewhere" in refusal(identity, "good")[1]
    iam.delete_role(RoleName="controller")
    assert "does not exist" in refusal(identity, "good")[1]


def jwt(issuer: str, audience: Any = "sts.amazonaws.com") -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"iss": issuer, "aud": audience}).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


class WebIdentity:
    """A stack in which IRSA works; each test breaks one thing."""

    def __init__(self, stack: Stack, reviewer: Reviewer) -> None:
        self.issuer = stack.account.eks.issuer(CLUSTER)
        self.token = jwt(self.issuer, ["sts.amazonaws.com"])
        reviewer.tokens[self.token, "sts.amazonaws.com"] = SUBJECT
        self.iam = stack.account.client("iam")
        self.provider = self.iam.create_open_id_connect_provider(
            Url=self.issuer, ClientIDList=["sts.amazonaws.com"], ThumbprintList=["a" * 40]
        )["OpenIDConnectProviderArn"]
        self.role = stack.role("web", self.trust(SUBJECT))

    def trust(self, subject: str, audience: str = "sts.amazonaws.com") -> str:
        name = self.issuer.removeprefix("https://")
        return json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Federated": self.provider},
                        "Action": "sts:AssumeRoleWithWebIdentity",
                        "Condition": {"StringEquals": {f"{name}:sub": subject, f"{name}:aud": audience}},
                    }
                ],
            }
        )


@pytest.fixture
def web(stack: Stack, reviewer: Reviewer) -> WebIdentity:
    return WebIdentity(stack, reviewer)


def test_web_identity_accepts_what_the_stack_made(identity: PodIdentity, web: WebIdentity) -> None:
    assert identity.web_identity_refusal(web.token, web.role) is None


def test_web_identity_refuses_a_foreign_service_account(identity: PodIdentity, web: WebIdentity) -> None:
    web.iam.update_assume_role_policy(RoleName="web", PolicyDocument=web.trust("system:serviceaccount:a:b"))
    refused = identity.web_identity_refusal(web.token, web.role)
    assert refused is not None
    assert refused[0] == "AccessDenied"
    assert "system:serviceaccount:a:b" in refused[1]


def test_web_identity_refuses_a_trust_for_another_audience(identity: PodIdentity, web: WebIdentity) -> None:
    web.iam.update_assume_role_policy(RoleName="web", PolicyDocument=web.trust(SUBJECT, "other"))
    refused = identity.web_identity_refusal(web.token, web.role)
    assert refused is not None
    assert refused[0] == "AccessDenied"


def test_web_identity_needs_provider_audience_token_and_role(
    identity: PodIdentity, web: WebIdentity, reviewer: Reviewer
) -> None:
    def code(token: str, role: str = web.role) -> tuple[str, str]:
        refused = identity.web_identity_refusal(token, role)
        assert refused is not None
        return refused

    assert code("nonsense")[0] == "InvalidIdentityToken"
    assert "Incorrect token audience" in code(jwt(web.issuer, "other"))[1]
    assert "verification key" in code(jwt(web.issuer))[1]  # not one of the cluster's tokens
    assert "does not exist" in code(web.token, "arn:aws:iam::123456789012:role/absent")[1]
    web.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=web.provider)
    assert "No OpenIDConnect provider found" in code(web.token)[1]


def test_sts_asks(stack: Stack, web: WebIdentity, reviewer: Reviewer) -> None:
    sts = stack.account.client("sts")
    with pytest.raises(ClientError, match="InvalidIdentityToken"):
        sts.assume_role_with_web_identity(RoleArn=web.role, RoleSessionName="session", WebIdentityToken="nonsense")
    stack.account.cloud(CLUSTER).bind(reviewer)  # type: ignore[arg-type]
    issued = sts.assume_role_with_web_identity(RoleArn=web.role, RoleSessionName="session", WebIdentityToken=web.token)
    assert issued["AssumedRoleUser"]["Arn"].endswith("assumed-role/web/session")
