"""Instances, interfaces, and what refuses to be deleted while it is in use."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.rehearsal.aws_world import Stack


def interfaces(stack: Stack) -> list[str]:
    found = stack.account.client("ec2").describe_network_interfaces()["NetworkInterfaces"]
    return [nic["NetworkInterfaceId"] for nic in found]


def refused(call: Callable[..., Any], code: str, **request: Any) -> None:
    with pytest.raises(ClientError) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == code


def test_interfaces_go_with_their_instance(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    instance = stack.run()
    assert len(interfaces(stack)) == 1
    ec2.terminate_instances(InstanceIds=[instance])
    assert interfaces(stack) == []
    assert stack.instance(instance)["State"]["Name"] == "terminated"
    ec2.terminate_instances(InstanceIds=[instance])


def test_an_interface_of_ones_own_stays(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    own = ec2.create_network_interface(SubnetId=stack.subnets[0])["NetworkInterface"]["NetworkInterfaceId"]
    instance = stack.run(NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": own}])
    ec2.terminate_instances(InstanceIds=[instance])
    assert interfaces(stack) == [own]


def test_a_network_in_use_refuses_to_go(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    instance = stack.run()
    refused(ec2.delete_subnet, "DependencyViolation", SubnetId=stack.subnets[0])
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=stack.group)
    refused(ec2.delete_vpc, "DependencyViolation", VpcId=stack.vpc)
    ec2.terminate_instances(InstanceIds=[instance])
    for subnet in stack.subnets:
        ec2.delete_subnet(SubnetId=subnet)
    refused(ec2.delete_vpc, "DependencyViolation", VpcId=stack.vpc)  # the security group
    ec2.delete_security_group(GroupId=stack.group)
    ec2.delete_vpc(VpcId=stack.vpc)


def test_a_group_named_by_a_rule_refuses_to_go(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    other = ec2.create_security_group(GroupName="other", Description="other", VpcId=stack.vpc)["GroupId"]
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": stack.group}]}]
    ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=rule)
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=stack.group)
    ec2.revoke_security_group_ingress(GroupId=other, IpPermissions=rule)
    own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": stack.group}]}]
    ec2.authorize_security_group_ingress(GroupId=stack.group, IpPermissions=own)
    ec2.delete_security_group(GroupId=stack.group)


def test_user_data_has_a_limit_which_templates_keep(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    longest = base64.b64encode(b"#" * 16_384).decode()
    stack.add_template(UserData=longest)
    for user_data, said in ((base64.b64encode(b"#" * 16_385).decode(), "limited to 16384 bytes"), ("%", "BASE64")):
        with pytest.raises(ClientError, match=rf"InvalidUserData\.Malformed.*{said}"):
            ec2.create_launch_template_version(
                LaunchTemplateName="template", LaunchTemplateData={"UserData": user_data}
            )
        with pytest.raises(ClientError, match=r"InvalidUserData\.Malformed"):
            ec2.create_launch_template(LaunchTemplateName="other", LaunchTemplateData={"UserData": user_data})
    (launched,) = stack.fleet("m5.large")["Instances"]
    answer = ec2.describe_instance_attribute(InstanceId=launched["InstanceIds"][0], Attribute="userData")
    assert answer["UserData"]["Value"] == longest


def test_gateways_and_addresses_go_in_order(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    internet = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=stack.vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=stack.subnets[0], AllocationId=address)["NatGateway"]["NatGatewayId"]
    (interface,) = ec2.describe_network_interfaces()["NetworkInterfaces"]
    described = f"Interface for NAT Gateway {nat}"
    assert (interface["InterfaceType"], interface["Description"]) == ("nat_gateway", described)
    refused(ec2.release_address, "InvalidIPAddress.InUse", AllocationId=address)
    refused(ec2.detach_internet_gateway, "DependencyViolation", InternetGatewayId=internet, VpcId=stack.vpc)
    refused(ec2.delete_subnet, "DependencyViolation", SubnetId=stack.subnets[0])
    ec2.delete_nat_gateway(NatGatewayId=nat)
    assert interfaces(stack) == []
    ec2.release_address(AllocationId=address)
    for subnet in stack.subnets:
        ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_security_group(GroupId=stack.group)
    refused(ec2.delete_vpc, "DependencyViolation", VpcId=stack.vpc)  # the internet gateway
    ec2.detach_internet_gateway(InternetGatewayId=internet, VpcId=stack.vpc)
    ec2.delete_vpc(VpcId=stack.vpc)


def test_describe_instances_as_karpenter_calls_it(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    stack.add_template()
    instance = stack.fleet("m5.large")["Instances"][0]["InstanceIds"][0]
    filters = [
        {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]},
        {"Name": "tag:karpenter.sh/nodepool", "Values": ["default"]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down"]},
    ]
    found = ec2.describe_instances(Filters=filters, MaxResults=1000)["Reservations"]
    assert [instance["InstanceId"] for reservation in found for instance in reservation["Instances"]] == [instance]
    assert len(ec2.describe_instances(InstanceIds=[instance, instance])["Reservations"]) == 1
    ec2.terminate_instances(InstanceIds=[instance])
    assert ec2.describe_instances(InstanceIds=[instance], Filters=filters[2:])["Reservations"] == []
