"""What EKS's cloud controller makes for a Service, and what it leaves in the way of the network."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.load_balancers import ClassicLoadBalancers
from rehearsal.cluster.cloud import LoadBalancerError
from tests.unit.rehearsal.aws_world import CLUSTER, REGION, Stack

PUBLIC, INTERNAL = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"


def service(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "shop",
            "name": "web",
            "uid": "01234567-89ab-cdef-0123-456789abcdef",
            "annotations": {f"service.beta.kubernetes.io/{key}": value for key, value in annotations.items()},
        },
        "spec": {
            "type": "LoadBalancer",
            "sessionAffinity": "None",
            "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
        },
    }


@pytest.fixture
def balancers(stack: Stack) -> ClassicLoadBalancers:
    stack.add_cluster()
    make_public(stack, stack.subnets[0])
    tag(stack, stack.subnets[0], PUBLIC)
    tag(stack, stack.subnets[1], INTERNAL)
    return ClassicLoadBalancers(CLUSTER, stack.account.client)


def make_public(stack: Stack, *subnets: str) -> None:
    """A route table of their own, with a route to a new internet gateway."""
    ec2 = stack.account.client("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=stack.vpc)
    table = ec2.create_route_table(VpcId=stack.vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    for subnet in subnets:
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)


def add_subnet(stack: Stack, number: int, *tags: str) -> str:
    """Another one of the first subnet's zone, with its route table."""
    ec2 = stack.account.client("ec2")
    made: str = ec2.create_subnet(VpcId=stack.vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"{REGION}a")[
        "Subnet"
    ]["SubnetId"]
    filters = [{"Name": "association.subnet-id", "Values": [stack.subnets[0]]}]
    (table,) = ec2.describe_route_tables(Filters=filters)["RouteTables"]
    ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=made)
    for key in tags:
        tag(stack, made, key)
    return made


def tag(stack: Stack, resource: str, key: str) -> None:
    stack.account.client("ec2").create_tags(Resources=[resource], Tags=[{"Key": key, "Value": "1"}])


def untag(stack: Stack, resource: str, key: str) -> None:
    stack.account.client("ec2").delete_tags(Resources=[resource], Tags=[{"Key": key}])


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


def test_an_internal_one_is_what_any_value_but_false_asks_for(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    """It lies in private subnets too."""
    for value in ("", "false", "true", "0.0.0.0/0"):
        balancers.ensure(service(**{"aws-load-balancer-internal": value}))
        (made,) = described(stack)
        wanted = ("internal", stack.subnets) if value not in ("", "false") else ("internet-facing", stack.subnets[:1])
        assert (made["Scheme"], made["Subnets"]) == wanted, value
        balancers.remove(service())


def test_of_several_subnets_of_a_zone_the_tags_decide_and_then_the_id(
    stack: Stack, balancers: ClassicLoadBalancers
) -> None:
    def chosen() -> str:
        balancers.ensure(service())
        (subnet,) = described(stack)[0]["Subnets"]
        balancers.remove(service())
        return str(subnet)

    alike = sorted([stack.subnets[0], *(add_subnet(stack, number, PUBLIC) for number in range(10, 16))])
    assert chosen() == alike[0]
    tag(stack, alike[-1], f"kubernetes.io/cluster/{CLUSTER}")
    assert chosen() == alike[-1]
    untag(stack, alike[-1], PUBLIC)
    assert chosen() == alike[0]
    tag(stack, alike[0], "kubernetes.io/cluster/another")
    assert chosen() == alike[1]


def test_a_private_subnet_is_no_public_one_whatever_its_tag(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    tag(stack, stack.subnets[1], PUBLIC)
    untag(stack, stack.subnets[0], PUBLIC)
    balancers.ensure(service())
    assert described(stack)[0]["Subnets"] == [stack.subnets[0]]


def test_a_subnet_without_a_table_has_the_networks(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    ec2 = stack.account.client("ec2")
    (main,) = ec2.describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [stack.vpc]}, {"Name": "association.main", "Values": ["true"]}]
    )["RouteTables"]
    (gateway,) = ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [stack.vpc]}])[
        "InternetGateways"
    ]
    ec2.create_route(
        RouteTableId=main["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway["InternetGatewayId"]
    )
    balancers.ensure(service())
    assert described(stack)[0]["Subnets"] == stack.subnets


def test_without_subnets_there_is_none(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    tag(stack, stack.subnets[0], "kubernetes.io/cluster/another")
    with pytest.raises(LoadBalancerError, match="could not find any suitable subnets for creating the ELB"):
        balancers.ensure(service())
    assert described(stack) == []


def test_what_a_classic_one_cannot_do_is_refused(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    tcp, udp = ({"port": 53, "protocol": protocol} for protocol in ("TCP", "UDP"))
    refused: dict[str, dict[str, Any]] = {
        "Protocol UDP not supported by LoadBalancer": {"ports": [udp]},
        "mixed protocol is not supported for LoadBalancer": {"ports": [tcp, udp]},
        "unsupported load balancer affinity: ClientIP": {"sessionAffinity": "ClientIP"},
        "LoadBalancerIP cannot be specified for AWS ELB": {"loadBalancerIP": "192.0.2.1"},
    }
    for said, change in refused.items():
        wanted = service()
        wanted["spec"].update(change)
        with pytest.raises(LoadBalancerError, match=said):
            balancers.ensure(wanted)
    assert described(stack) == []


def test_another_type_is_not_taken_for_a_classic_one(balancers: ClassicLoadBalancers) -> None:
    with pytest.raises(LoadBalancerError, match="aws-load-balancer-type=nlb"):
        balancers.ensure(service(**{"aws-load-balancer-type": "nlb"}))


def test_a_try_that_was_refused_midway_is_taken_up(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    elb = stack.account.client("elb")
    name = "a0123456789abcdef0123456789abcde"

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "TooManyLoadBalancers", "Message": "no more"}}, "CreateLoadBalancer")

    with mock.patch.object(elb, "create_load_balancer", refuse):
        for _ in range(2):
            with pytest.raises(LoadBalancerError, match=r"\(TooManyLoadBalancers\).*: no more"):
                balancers.ensure(service())
    balancers.ensure(service())
    assert described(stack)[0]["LoadBalancerName"] == name
    filters = [{"Name": "description", "Values": [f"ELB {name}"]}]
    assert len(stack.account.client("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]) == 1


def test_a_removal_that_was_refused_is_taken_up(stack: Stack, balancers: ClassicLoadBalancers) -> None:
    balancers.ensure(service())
    (group,) = described(stack)[0]["SecurityGroups"]
    instance = stack.run(SubnetId=stack.subnets[0], SecurityGroupIds=[group])
    for _ in range(2):
        with pytest.raises(LoadBalancerError, match="DependencyViolation"):
            balancers.remove(service())
    stack.account.client("ec2").terminate_instances(InstanceIds=[instance])
    balancers.remove(service())
    assert refusal(stack.account.client("ec2").describe_security_groups, GroupIds=[group]) == "InvalidGroup.NotFound"
