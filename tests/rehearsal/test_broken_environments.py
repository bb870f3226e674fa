"""Environments that are wrong in one place: the rehearsal must find it, as the cloud would, and name it."""

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
    """An environment that is up and healthy; each test breaks it in one place and mends it."""
    yield from brought_up(tmp_path_factory, "eks")


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = resource.get("status", {}).get("conditions", [])
    return next((dict(found) for found in conditions if found["type"] == kind), {})


def look_anew(stack: RehearsedStack) -> None:
    """Start the controller again: it looks for subnets once a minute, and at its start."""
    for action in ("restart", "status"):
        stack.done("kubectl", "-n", "kube-system", "rollout", action, "deployment/karpenter", timeout=60)


def subnets_ready(stack: RehearsedStack, status: str) -> bool:
    return bool(
        stack.wait_for(
            "ec2nodeclasses",
            "karpenter.k8s.aws",
            lambda item: (
                item["metadata"]["name"] == "default" and condition(item, "SubnetsReady").get("status") == status
            ),
            timeout=150,
        )
    )


def remove_discovery_tags(stack: RehearsedStack) -> None:
    ec2 = stack.aws("ec2")
    tagged = ec2.describe_subnets(Filters=[{"Name": f"tag:{DISCOVERY}", "Values": [CLUSTER]}])["Subnets"]
    assert len(tagged) == 3
    ec2.delete_tags(Resources=[subnet["SubnetId"] for subnet in tagged], Tags=[{"Key": DISCOVERY}])


def delete_node_role(stack: RehearsedStack) -> None:
    iam = stack.aws("iam")
    name = f"{CLUSTER}-karpenter-nodes"
    for profile in iam.list_instance_profiles_for_role(RoleName=name)["InstanceProfiles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=name)
        iam.delete_instance_profile(InstanceProfileName=profile["InstanceProfileName"])
    for policy in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
    iam.delete_role(RoleName=name)


def delete_access_entry(stack: RehearsedStack) -> None:
    eks = stack.aws("eks")
    (role,) = [arn for arn in eks.list_access_entries(clusterName=CLUSTER)["accessEntries"] if "karpenter-nodes" in arn]
    eks.delete_access_entry(clusterName=CLUSTER, principalArn=role)


def delete_queue(stack: RehearsedStack) -> str:
    sqs = stack.aws("sqs")
    queue = str(stack.outputs()["interruptionQueue"])
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=queue)["QueueUrl"])
    return queue


def test_discovery_tags_and_a_node_role_that_were_removed_are_found(broken: RehearsedStack, tmp_path: Path) -> None:
    """Each keeps the node class from being ready, and it says so of each."""
    remove_discovery_tags(broken)
    delete_node_role(broken)
    look_anew(broken)
    assert subnets_ready(broken, "False"), "the EC2NodeClass never said that it found no subnets"
    said = broken.failing_story(tmp_path, STORY, within=45)
    assert "SubnetsNotFound" in said or "SubnetSelector did not match any Subnets" in said, said
    assert "nstance profile" in said.lower().replace("instanceprofile", "instance profile"), said
    broken.mend("3 updated", " created")
    look_anew(broken)
    assert subnets_ready(broken, "True")


def test_a_missing_access_entry_and_a_queue_that_is_gone_are_found(broken: RehearsedStack, tmp_path: Path) -> None:
    """Nodes are launched and never join, and interruptions would not be heard of."""
    delete_access_entry(broken)
    queue = delete_queue(broken)
    said = broken.failing_story(tmp_path, STORY, within=60)
    assert "access entry" in said, said
    assert "karpenter-nodes" in said
    assert "interruption queue" in said, said
    assert queue in said
