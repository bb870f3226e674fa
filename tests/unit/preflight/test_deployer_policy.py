"""The deployer's policy: every resource of the stack is in it, and the page shows it as it is."""

from __future__ import annotations

import json

import pytest

from components import eks
from components.naming import EksNames
from preflight.aws.deployer import Scope, deploying, policy
from tests.unit import example_stack
from tests.unit.mock_engine import deploy

PAGE = example_stack.ROOT / "docs" / "deployer-policy.md"
SCOPE = Scope(partition="aws", region="us-east-1", account="123456789012", names=EksNames("karpstack-eks"))
HEAD = """\
# The deployer's policy

<!-- Written by `make goldens` from preflight/aws/deployer.py; do not edit. -->

What whoever runs `pulumi up`, `pulumi destroy` and the looks before them must be allowed: for the example, in
us-east-1 of the account 123456789012. Names follow `karpstack:name`; the actions are those with which Pulumi's AWS
provider creates, reads, changes and deletes the stack's resources. It is longer than one managed policy may be (6,144
characters): attach its statements as several, or inline to a role. `python -m preflight eks` asks IAM's simulator
whether the caller has it ([what it looks at](preflight.md)).

`FirstCluster` and `FirstNodeGroup` are needed once in an account, `OpenIdConnectProvider` with
`karpenter.identity: irsa` only, what begins with `FlowLogs`, and `PassFlowLogsRole`, with
`network.flowLogRetentionDays` only, `LookBefore` and `WhatMayIDo` for the looks only.

"""


@pytest.mark.parametrize("identity", ["pod-identity", "irsa"])
def test_every_resource_of_the_stack_is_in_it(identity: str) -> None:
    admin = "arn:aws:iam::210987654321:role/platform-admin"
    stack = example_stack.eks(karpenter__identity=identity, cluster__admins=[admin], network__flowLogRetentionDays=30)
    made = {each.type for each in deploy(lambda: eks.Environment("eks", stack)).resources.values()}
    covered = {kind for grant in deploying(SCOPE) for kind in grant.needed_by}
    missing = {kind for kind in made if kind.startswith("aws:")} - covered
    assert not missing, f"name the actions that these need in preflight/aws/deployer.py: {missing}"
    assert "aws:eks/cluster:Cluster" in made


def test_no_statement_allows_everything() -> None:
    for statement in policy(SCOPE)["Statement"]:
        assert statement["Effect"] == "Allow"
        assert all("*" not in action and ":" in action for action in statement["Action"]), statement["Sid"]


def test_nothing_is_changed_for_a_look() -> None:
    looks = next(one for one in policy(SCOPE)["Statement"] if one["Sid"] == "LookBefore")
    verbs = {action.partition(":")[2] for action in looks["Action"]}
    assert all(verb.startswith(("Describe", "Get", "List", "Simulate")) for verb in verbs)


def test_the_page_shows_it(request: pytest.FixtureRequest) -> None:
    written = f"{HEAD}```json\n{json.dumps(policy(SCOPE), indent=2)}\n```\n"
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written)
    assert PAGE.read_text() == written, f"{PAGE} differs; see --update-goldens"
