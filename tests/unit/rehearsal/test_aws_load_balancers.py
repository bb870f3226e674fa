"""What EKS's cloud controller makes for a Service, and what it leaves in the way of the network."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.load_balancers import ClassicLoadBalancers
from rehearsal.cluster.cloud import LoadBalancerError
from tests.unit.rehearsal.aws_world import CLUSTER, Stack

PUBLIC, INTERNAL = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"


def service(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "shop",
            "name": "web",
            "uid": "01234567-89ab-cdef-0123-456789abcdef",
            "annotations": {f"service.beta.kubernetes.io/{key}": value for key, value in annotations.items()},
        },
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]},
    }


@pytest.fixture
def balancers(stack: Stack) -> ClassicLoadBalancers:
    stack.add_cluster()
    stack.account.client("ec2").create_tags(Resources=[stack.subnets[0]], Tags=[{"Key": PUBLIC, "Value": "1"}])
    stack.account.client("ec2").create_tags(Resources=[stack.subnets[1]], Tags=[{"Key": INTERNAL, "Value": "1"}])
    return ClassicLoadBalancers(CLUSTER, stack.account.client)


def described(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.account.client("elb").describe_load_balancers()["LoadBalancerDescriptions"]
    return found


def refusal(call: Any, **options: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**options)
    return str(caught.value.response["Error"]["Code"])


def test_a_service_gets_one_that_says_whose_it_is(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    hostname = balancers.ensure(service())
    assert balancers.ensure(service()) == hostname
    (made,) = described(stack)
    assert made["DNSName"] == hostname
    assert made["LoadBalancerName"] == "a0123456789abcdef0123456789abcde"
    assert made["Scheme"] == "internet-facing"
    assert made["Subnets"] == [stack.subnets[0]]
    tags = stack.account.client("elb").describe_tags(LoadBalancerNames=[made["LoadBalancerName"]])
    assert {tag["Key"]: tag["Value"] for tag in tags["TagDescriptions"][0]["Tags"]} == {
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "kubernetes.io/service-name": "shop/web",
    }


def test_it_outlives_its_cluster_and_keeps_the_network(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    ec2 = stack.account.client("ec2")
    balancers.ensure(service())
    stack.account.client("eks").delete_cluster(name=CLUSTER)
    (group,) = described(stack)[0]["SecurityGroups"]
    assert refusal(ec2.delete_subnet, SubnetId=stack.subnets[0]) == "DependencyViolation"
    assert refusal(ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    assert refusal(ec2.delete_vpc, VpcId=stack.vpc) == "DependencyViolation"


def test_it_goes_with_all_that_was_made_for_it(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    ec2 = stack.account.client("ec2")
    balancers.ensure(service())
    (group,) = described(stack)[0]["SecurityGroups"]
    balancers.remove(service())
    balancers.remove(service())
    assert described(stack) == []
    stack.account.client("eks").delete_cluster(name=CLUSTER)
    ec2.delete_subnet(SubnetId=stack.subnets[0])
    assert refusal(ec2.describe_security_groups, GroupIds=[group]) == "InvalidGroup.NotFound"


def test_an_internal_one_lies_in_subnets_of_that_role(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    balancers.ensure(service(**{"aws-load-balancer-internal": "true"}))
    (made,) = described(stack)
    assert (made["Scheme"], made["Subnets"]) == ("internal", [stack.subnets[1]])


def test_without_subnets_there_is_none(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    stack.account.client("ec2").delete_tags(Resources=[stack.subnets[0]], Tags=[{"Key": PUBLIC}])
    with pytest.raises(LoadBalancerError, match="could not find any suitable subnets for creating the ELB"):
        balancers.ensure(service())
    assert described(stack) == []


def test_another_type_is_not_taken_for_a_classic_one(balancers: ClassicLoadBalancers) -> None:
    with pytest.raises(LoadBalancerError, match="aws-load-balancer-type=nlb"):
        balancers.ensure(service(**{"aws-load-balancer-type": "nlb"}))
