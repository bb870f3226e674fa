"""What is looked up by its id is found there, and costs no more for all that there was before."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.rehearsal.aws.account import ACCOUNT_ID
from tests.unit.rehearsal.aws_world import REGION, Stack


@pytest.fixture
def backend(stack: Stack) -> Any:
    """moto's EC2."""
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT_ID][REGION]


def run(stack: Stack, name: str) -> str:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}]
    return stack.run(SubnetId=stack.subnets[0], TagSpecifications=tags)


def test_a_resources_tags_are_what_moto_finds_among_all(stack: Stack, backend: Any) -> None:
    for name in ("one", "two"):
        instance = run(stack, name)
        tags = backend.get_instance_by_id(instance).get_tags()
        assert tags == backend.describe_tags(filters={"resource-id": [instance]})
        assert ("Name", name, "instance") in {(tag["key"], tag["value"], tag["resource_type"]) for tag in tags}
    assert backend.get_subnet(stack.subnets[0]).get_tags() == []


def test_neither_tags_nor_instances_are_gone_through(
    stack: Stack, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = run(stack, "one"), run(stack, "two")

    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("went through everything")

    with monkeypatch.context() as patched:
        patched.setattr(backend, "describe_tags", refuse)
        filters = [{"Name": "tag:Name", "Values": ["two"]}]
        (found,) = stack.account.client("ec2").describe_instances(Filters=filters)["Reservations"]
        assert [instance["InstanceId"] for instance in found["Instances"]] == [two]
        patched.setattr(backend, "all_reservations", refuse)
        assert backend.get_instance_by_id(one).id == one
        assert backend.get_instance_by_id("i-0") is None
