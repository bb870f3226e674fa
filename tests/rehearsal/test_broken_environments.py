"""Environments that are wrong in one place: the rehearsal must find it, as the cloud would, and name it.

What two broken places say does not overlap where they are broken at the same time: then one story is enough for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.conftest import RehearsedStack, brought_up

CLUSTER = "karpstack-eks"
DISCOVERY = "karpenter.sh/discovery"
STORY = "eks-cheapest-fit"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    """An environment that is up and healthy; each test breaks and mends it."""
    yield from brought_up(tmp_path_factory, "eks")


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = resource.get("status", {}).get("conditions", [])
    return next((dict(found) for found in conditions if found["type"] == kind), {})


def look_anew(stack: RehearsedStack) -> None:
    """Start the controller again: it looks for subnets once a minute, and at its start."""
    for action in ("restart", "status"):
        done = stack.by_hand("kubectl", "-n", "kube-system", "rollout", action, "deployment/karpenter", timeout=60)
        assert done.returncode == 0, done.stdout


def node_class_says(stack: RehearsedStack, status: str, *kinds: str) -> bool:
    """Wait until conditions of the node class have a status."""
    return bool(
        stack.wait_for(
            "ec2nodeclasses",
            "karpenter.k8s.aws",
            lambda item: (
                item["metadata"]["name"] == "default"
                and all(condition(item, kind).get("status") == status for kind in kinds)
            ),
            timeout=150,
        )
    )


def test_missing_discovery_tags_and_a_missing_node_role_are_found(broken: RehearsedStack, tmp_path: Path) -> None:
    ec2, iam = broken.aws("ec2"), broken.aws("iam")
    tagged = ec2.describe_subnets(Filters=[{"Name": f"tag:{DISCOVERY}", "Values": [CLUSTER]}])["Subnets"]
    assert len(tagged) == 3
    subnets = [subnet["SubnetId"] for subnet in tagged]
    ec2.delete_tags(Resources=subnets, Tags=[{"Key": DISCOVERY}])
    role = f"{CLUSTER}-karpenter-nodes"
    for profile in iam.list_instance_profiles_for_role(RoleName=role)["InstanceProfiles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=profile["InstanceProfileName"])
    for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    iam.delete_role(RoleName=role)
    look_anew(broken)
    assert node_class_says(broken, "False", "SubnetsReady", "InstanceProfileReady"), "the EC2NodeClass never said it"
    said = broken.failing_story(tmp_path, STORY, within=3)
    assert "SubnetsNotFound" in said or "SubnetSelector did not match any Subnets" in said, said
    assert "nstance profile" in said.lower().replace("instanceprofile", "instance profile"), said
    assert role in said, said
    # A refresh shows the drift, and an update puts tags and role back.
    broken.mend("3 updated")
    look_anew(broken)
    assert node_class_says(broken, "True", "SubnetsReady", "InstanceProfileReady", "Ready")


def test_nodes_without_an_access_entry_and_a_queue_that_is_gone_are_found(
    broken: RehearsedStack, tmp_path: Path
) -> None:
    eks, sqs = broken.aws("eks"), broken.aws("sqs")
    (role,) = [arn for arn in eks.list_access_entries(clusterName=CLUSTER)["accessEntries"] if "karpenter-nodes" in arn]
    queue = str(broken.outputs()["interruptionQueue"])
    eks.delete_access_entry(clusterName=CLUSTER, principalArn=role)
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=queue)["QueueUrl"])
    said = broken.failing_story(tmp_path, STORY, within=12)
    assert "access entry" in said, said
    assert "karpenter-nodes" in said
    assert "interruption queue" in said, said
    assert queue in said
    broken.mend("created")
