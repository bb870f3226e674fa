"""rules/data.py: each rule one good input, one mutation per clause, unknown values."""

import json
from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.data import AKS_LOGS, CLUSTER_LOGS, QUEUE_ENCRYPTED, QUEUE_POLICY_CLOSED, TAGS_REQUIRED
from rules.data import CLUSTER_SECRETS_ENCRYPTED as SECRETS

TAGS = {"owner": "platform", "environment": "production", "cost-centre": "1"}
EVENTS: dict[str, Any] = {
    "Sid": "Events",
    "Effect": "Allow",
    "Principal": {"Service": "events.amazonaws.com"},
    "Action": "sqs:SendMessage",
    "Condition": {"ArnEquals": {"aws:SourceArn": ["arn:aws:events:us-east-1:123456789012:rule/spot"]}},
}
TLS = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}


def queue(**properties: Any) -> Resource:
    return Resource(tokens.QUEUE, {"name": "q", **properties})


def queue_policy(*statements: dict[str, Any]) -> Resource:
    return Resource(tokens.QUEUE_POLICY, {"policy": json.dumps({"Statement": list(statements)})})


def cluster() -> Resource:
    return Resource(
        tokens.CLUSTER,
        {"encryptionConfig": {"resources": ["secrets"]}, "enabledClusterLogTypes": ["api", "audit"]},
    )


AKS = Resource(tokens.AKS_CLUSTER, {"name": "example"}, "aks")
AKS_ID = "/subscriptions/1/resourceGroups/a/providers/Microsoft.ContainerService/managedClusters/example"


def diagnostics(**properties: Any) -> Resource:
    return Resource(
        tokens.AZURE_DIAGNOSTICS,
        {"resourceUri": AKS_ID, "logs": [{"enabled": True}], **properties},
        "diagnostics",
    )


TAGGED = sorted(TAGS_REQUIRED.checks)


def tagged(token: str, tags: Any) -> Resource:
    custom = token in (tokens.EC2_NODE_CLASS, tokens.AKS_NODE_CLASS)
    return Resource(token, {"spec": {"tags": tags}} if custom else {"tags": tags})


CASES = [
    Case(name="by SQS", rule=QUEUE_ENCRYPTED, given=queue(sqsManagedSseEnabled=True)),
    Case(name="by SQS unless told otherwise", rule=QUEUE_ENCRYPTED, given=queue()),
    Case(
        name="by a key",
        rule=QUEUE_ENCRYPTED,
        given=queue(sqsManagedSseEnabled=False, kmsMasterKeyId="alias/a"),
    ),
    Case(
        name="not at all",
        rule=QUEUE_ENCRYPTED,
        given=queue(sqsManagedSseEnabled=False),
        violations=("sqsManagedSseEnabled is false",),
    ),
    Case(
        name="unknown",
        rule=QUEUE_ENCRYPTED,
        given=queue(sqsManagedSseEnabled=UNKNOWN),
        unknown="sqsManagedSseEnabled",
    ),
    Case(name="a service, over TLS", rule=QUEUE_POLICY_CLOSED, given=queue_policy(EVENTS, TLS)),
    *[
        Case(
            name=f"everybody as {principal}",
            rule=QUEUE_POLICY_CLOSED,
            given=queue_policy({**EVENTS, "Principal": principal, "Condition": {}}, TLS),
            violations=("statement Events allows everybody",),
        )
        for principal in ("*", {"AWS": "*"}, {"AWS": ["*"]})
    ],
    *[
        Case(
            name=f"a service of whatever account, {name}",
            rule=QUEUE_POLICY_CLOSED,
            given=queue_policy(EVENTS | {"Condition": condition}, TLS),
            violations=("statement Events lets events.amazonaws.com in, whoever's",),
        )
        for name, condition in (
            ("as upstream's template has it", {}),
            ("with another condition", {"Bool": {"aws:SecureTransport": "true"}}),
            ("of any account", {"ArnLike": {"aws:SourceArn": "arn:aws:events:us-east-1:*:rule/*"}}),
            ("of one and any", {"ArnLike": {"aws:SourceArn": ["arn:aws:events:us-east-1:123456789012:rule/a", "*"]}}),
            ("of all but one", {"StringNotEquals": {"aws:SourceAccount": "123456789012"}}),
        )
    ],
    Case(
        name="a service of one account",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy(EVENTS | {"Condition": {"StringEquals": {"AWS:SourceAccount": "123456789012"}}}, TLS),
    ),
    Case(
        name="without TLS",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy(EVENTS),
        violations=("denies access without TLS",),
    ),
    Case(
        name="over TLS, in the other form",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy(EVENTS, TLS | {"Condition": {"BoolIfExists": {"aws:SecureTransport": False}}}),
    ),
    Case(
        name="a denial of something else",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy(EVENTS, TLS | {"Condition": {"Bool": {"aws:SecureTransport": "true"}}}),
        violations=("denies access without TLS",),
    ),
    Case(
        name="the policy is unknown",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy().change("policy", to=UNKNOWN),
        unknown="policy",
    ),
    Case(
        name="one statement is unknown and may be the denial, another allows everybody",
        rule=QUEUE_POLICY_CLOSED,
        given=queue_policy().change(
            "policy", to={"Statement": [UNKNOWN, {**EVENTS, "Principal": "*", "Condition": {}}]}
        ),
        violations=("allows everybody",),
        unknown="policy.Statement.0",
    ),
    Case(name="with a key", rule=SECRETS, given=cluster()),
    Case(name="AKS", rule=SECRETS, given=AKS),
    Case(
        name="without",
        rule=SECRETS,
        given=cluster().without("encryptionConfig"),
        violations=("encryptionConfig does not",),
    ),
    Case(
        name="AKS, where a key is wanted",
        rule=SECRETS,
        given=AKS,
        settings={"customerKeyOnAzure": True},
        violations=("securityProfile.azureKeyVaultKms.enabled",),
    ),
    Case(
        name="AKS, where a key is wanted and used",
        rule=SECRETS,
        given=AKS.change("securityProfile", to={"azureKeyVaultKms": {"enabled": True}}),
        settings={"customerKeyOnAzure": True},
    ),
    Case(
        name="unknown",
        rule=SECRETS,
        given=cluster().change("encryptionConfig", to=UNKNOWN),
        unknown="encryptionConfig",
    ),
    Case(name="kept", rule=CLUSTER_LOGS, given=cluster()),
    Case(
        name="none",
        rule=CLUSTER_LOGS,
        given=cluster().without("enabledClusterLogTypes"),
        violations=("lacks audit",),
    ),
    Case(
        name="more are wanted",
        rule=CLUSTER_LOGS,
        given=cluster(),
        settings={"types": ["audit", "scheduler"]},
        violations=("lacks scheduler",),
    ),
    Case(
        name="one is unknown",
        rule=CLUSTER_LOGS,
        given=cluster().change("enabledClusterLogTypes", to=[UNKNOWN]),
        unknown="enabledClusterLogTypes.0",
    ),
    Case(name="kept", rule=AKS_LOGS, given=[AKS, diagnostics()]),
    Case(
        name="kept, and neither is known yet",
        rule=AKS_LOGS,
        given=[
            AKS.without("name"),
            Resource(
                tokens.AZURE_DIAGNOSTICS,
                {"logs": [{"enabled": True}], "resourceUri": UNKNOWN},
                "diagnostics",
                {"resourceUri": ("aks",)},
            ),
        ],
    ),
    Case(name="none", rule=AKS_LOGS, given=[AKS], violations=("keeps a log of aks",)),
    Case(
        name="of something else",
        rule=AKS_LOGS,
        given=[AKS, diagnostics(resourceUri=f"{AKS_ID}-other")],
        violations=("keeps a log of aks",),
    ),
    Case(
        name="switched off",
        rule=AKS_LOGS,
        given=[AKS, diagnostics(logs=[{"enabled": False}])],
        violations=("keeps a log of aks",),
    ),
    Case(
        name="unknown", rule=AKS_LOGS, given=[AKS, diagnostics(resourceUri=UNKNOWN)], unknown="diagnostics.resourceUri"
    ),
    *[Case(name=f"all on {token}", rule=TAGS_REQUIRED, given=tagged(token, TAGS)) for token in TAGGED],
    *[
        Case(
            name=f"one is missing on {token}",
            rule=TAGS_REQUIRED,
            given=tagged(token, {"owner": "platform", "environment": "test"}),
            violations=("has no tag cost-centre.",),
        )
        for token in TAGGED
    ],
    Case(
        name="none",
        rule=TAGS_REQUIRED,
        given=Resource(tokens.VPC, {}),
        violations=("has no tags owner, environment, cost-centre.",),
    ),
    Case(
        name="an empty one, beside one that is unknown",
        rule=TAGS_REQUIRED,
        given=tagged(tokens.VPC, TAGS | {"owner": UNKNOWN, "environment": " "}),
        violations=("has an empty tag environment.",),
        unknown="tags.owner",
    ),
    Case(
        name="others are wanted",
        rule=TAGS_REQUIRED,
        given=tagged(tokens.VPC, TAGS),
        settings={"keys": ["team"]},
        violations=("has no tag team.",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
