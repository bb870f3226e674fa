"""CreateFleet: the choice among pools, what an instance gets, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.account import Account
from rehearsal.aws.ec2.fleet import Fleets, Pool, Shortage, is_scarce
from rehearsal.aws.ec2.prices import PriceTable
from rehearsal.aws.iam.roles import Roles
from tests.unit.rehearsal.aws_world import PRICES, REGION, Stack, client, document, trust

FOUR = ("m5.xlarge", "c5.large", "m5.large", "r5.large")


@pytest.fixture
def stack(aws: Account) -> Stack:
    made = Stack(aws)
    made.add_template()
    return made


def pool(instance_type: str, zone: str, capacity: str = "spot", priority: float = 0) -> Pool:
    return Pool(instance_type, zone, "subnet", "ami", capacity, priority, {}, {}, {})


def launched(answer: dict[str, Any]) -> list[str]:
    return [name for group in answer["Instances"] for name in group["InstanceIds"]]


def codes(answer: dict[str, Any]) -> set[str]:
    return {error["ErrorCode"] for error in answer["Errors"]}


def test_on_demand_takes_the_cheapest_whatever_comes_first(stack: Stack) -> None:
    answer = stack.fleet(*FOUR)
    assert [group["InstanceType"] for group in answer["Instances"]] == ["c5.large"]
    assert answer["Instances"][0]["Lifecycle"] == "on-demand"
    assert answer["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"] == "c5.large"
    assert answer["Errors"] == []


def test_the_instance_is_what_was_asked_for(stack: Stack) -> None:
    instance = stack.instance(launched(stack.fleet("m5.large", zones="b"))[0])
    assert instance["State"]["Name"] == "running"
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1b"
    assert instance["SubnetId"] == stack.subnets[1]
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [stack.group]
    assert instance["IamInstanceProfile"]["Arn"].endswith(":instance-profile/nodes")
    assert instance["ImageId"] == stack.image()
    assert "SpotInstanceRequestId" not in instance
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert tags["karpenter.sh/nodepool"] == "default"
    assert tags["aws:ec2:fleet-id"].startswith("fleet-")
    volumes = stack.account.client("ec2").describe_volumes()["Volumes"]
    assert [(volume["Size"], volume["VolumeType"]) for volume in volumes] == [(20, "gp3")]
    assert {"Key": "karpenter.sh/nodepool", "Value": "default"} in volumes[0]["Tags"]
    interface = stack.account.client("ec2").describe_network_interfaces()["NetworkInterfaces"][0]
    assert {"Key": "kind", "Value": "interface"} in interface["TagSet"]


def test_spot_instances_are_marked_as_such(stack: Stack) -> None:
    instance = stack.instance(launched(stack.fleet("m5.large", capacity="spot"))[0])
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    assert instance["InstanceLifecycle"] == "spot"


def test_spot_prefers_capacity_then_price() -> None:
    fleets = Fleets(PriceTable({REGION: PRICES}), Roles("1"))
    pools = [pool(instance_type, f"us-east-1{zone}") for instance_type in FOUR for zone in "abcdef"]
    request = {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
    ordered = fleets.order(pools, "spot", request)
    scarce = [is_scarce(item.instance_type, item.zone) for item in ordered]
    assert 0 < sum(scarce) < len(scarce)
    assert scarce == sorted(scarce)
    plenty = [fleets.price(item) for item in ordered[: scarce.count(False)]]
    assert plenty == sorted(plenty)
    assert fleets.order(list(reversed(pools)), "spot", request) == ordered
    cheapest = fleets.order(pools, "spot", {"SpotOptions": {"AllocationStrategy": "lowest-price"}})
    assert [fleets.price(item) for item in cheapest] == sorted(fleets.price(item) for item in pools)


def test_priorities_win_where_the_strategy_says_so() -> None:
    fleets = Fleets(PriceTable({REGION: PRICES}), Roles("1"))
    pools = [pool("c5.large", "us-east-1a", "on-demand", 2), pool("m5.xlarge", "us-east-1a", "on-demand", 1)]
    ordered = fleets.order(pools, "on-demand", {"OnDemandOptions": {"AllocationStrategy": "prioritized"}})
    assert [item.instance_type for item in ordered] == ["m5.xlarge", "c5.large"]


def test_a_type_without_a_price_comes_last(stack: Stack) -> None:
    answer = stack.fleet("m6a.large", "m5.large")  # m6a.large is not in the tests' table
    assert answer["Instances"][0]["InstanceType"] == "m5.large"


def test_several_instances_in_one_call(stack: Stack) -> None:
    assert len(set(launched(stack.fleet("m5.large", count=3)))) == 3


@pytest.mark.parametrize("may", [True, False])
def test_an_accounts_first_spot_instance_takes_the_right_to_make_the_role_for_it(stack: Stack, may: bool) -> None:
    iam, account = stack.account.client("iam"), stack.account
    iam.delete_service_linked_role(RoleName="AWSServiceRoleForEC2Spot")
    role = account.roles.by_arn(stack.role("launcher", trust("ec2.amazonaws.com")))
    launching = ["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"]
    allowed = [*launching, *(["iam:CreateServiceLinkedRole"] if may else [])]
    iam.put_role_policy(RoleName="launcher", PolicyName="launch", PolicyDocument=document(Action=allowed, Resource="*"))
    keys = account.roles.assume(role, "test", REGION)
    stack.ec2 = client("ec2", keys.access_key_id, keys.secret_access_key, keys.session_token)
    answer = stack.fleet("m5.large", capacity="spot", zones="a")
    if may:
        assert len(launched(answer)) == 1
        assert account.roles.by_name("AWSServiceRoleForEC2Spot")
    else:
        assert codes(answer) == {"AuthFailure.ServiceLinkedRoleCreationNotPermitted"}
        assert "service-linked role for EC2 Spot" in answer["Errors"][0]["ErrorMessage"]
        assert launched(answer) == []
        assert launched(stack.fleet("m5.large"))


def test_a_shortage_moves_on_to_the_next(stack: Stack) -> None:
    stack.account.fleet.inject(Shortage("c5.large"))
    answer = stack.fleet(*FOUR)
    assert answer["Instances"][0]["InstanceType"] == "m5.large"
    assert codes(answer) == {"InsufficientInstanceCapacity"}
    assert {error["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"] for error in answer["Errors"]} == {
        "us-east-1a",
        "us-east-1b",
    }


def test_a_shortage_can_be_narrow(stack: Stack) -> None:
    fleet = stack.account.fleet
    fleet.inject(Shortage("m5.large", zone="us-east-1a", capacity_type="on-demand"))
    assert stack.instance(launched(stack.fleet("m5.large"))[0])["Placement"]["AvailabilityZone"] == "us-east-1b"
    assert launched(stack.fleet("m5.large", capacity="spot", zones="a"))
    assert codes(stack.fleet("m5.large", zones="a")) == {"InsufficientInstanceCapacity"}


def test_throttling_is_an_error_of_the_call(stack: Stack) -> None:
    stack.account.fleet.throttle(1)
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        stack.fleet("m5.large")
    assert launched(stack.fleet("m5.large"))


def test_the_log_tells_what_was_tried(stack: Stack) -> None:
    stack.fleet("m5.large", "c5.large", zones="a")
    call = stack.account.fleet.calls[-1]
    assert call.candidates == ("c5.large/us-east-1a", "m5.large/us-east-1a")
    assert call.instance_types == ("c5.large",)
    stack.account.fleet.reset()
    assert stack.account.fleet.calls == []


def test_a_missing_launch_template_fails_the_call(stack: Stack) -> None:
    stack.account.client("ec2").delete_launch_template(LaunchTemplateName="template")
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        stack.fleet("m5.large")


def test_other_types_of_fleet_are_refused(stack: Stack) -> None:
    with pytest.raises(ClientError, match="instant only"):
        stack.fleet("m5.large", Type="maintain")


def test_dry_run_launches_nothing(stack: Stack) -> None:
    with pytest.raises(ClientError, match="DryRunOperation"):
        stack.fleet("m5.large", DryRun=True)
    assert stack.account.fleet.calls == []


def test_refusals_of_a_launch(aws: Account) -> None:
    stack = Stack(aws)
    iam, ec2 = aws.client("iam"), aws.client("ec2")
    iam.create_instance_profile(InstanceProfileName="empty")
    other = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    foreign = ec2.create_security_group(GroupName="foreign", Description="foreign", VpcId=other)["GroupId"]
    for data, code, said in (
        ({"IamInstanceProfile": {"Name": "absent"}}, "InvalidParameterValue", "Invalid IAM Instance Profile name"),
        ({"IamInstanceProfile": {"Name": "empty"}}, "InvalidParameterValue", "has no associated IAM Roles"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [foreign]}]}, "InvalidParameter", "different networks"),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}]},
            "InvalidGroup.NotFound",
            "does not exist",
        ),
    ):
        stack.add_template(**data)
        answer = stack.fleet("m5.large")
        assert codes(answer) == {code}
        assert said in answer["Errors"][0]["ErrorMessage"]
        assert launched(answer) == []
        ec2.delete_launch_template(LaunchTemplateName="template")


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
        ({"AvailabilityZone": "us-east-1c"}, "InvalidParameterValue"),
        ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "m6g.large"}, "InvalidParameterValue"),  # arm64, and the image is x86_64
        ({"InstanceType": "p6-b200.48xlarge", "AvailabilityZone": "us-east-1a"}, "Unsupported"),
    ],
)
def test_refusals_of_an_override(stack: Stack, override: dict[str, str], code: str) -> None:
    whole = {
        "InstanceType": "m5.large",
        "SubnetId": stack.subnets[0],
        "AvailabilityZone": "us-east-1a",
        "ImageId": stack.image(),
        **override,
    }
    answer = stack.fleet(
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Latest"},
                "Overrides": [whole],
            }
        ]
    )
    assert codes(answer) == {code}
    assert launched(answer) == []


def test_a_full_subnet_takes_no_more(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    ec2.create_subnet(VpcId=stack.vpc, CidrBlock="10.0.9.0/28", AvailabilityZone="us-east-1a")
    stack.subnets[0] = ec2.describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.9.0/28"]}])["Subnets"][0][
        "SubnetId"
    ]
    answer = stack.fleet("m5.large", zones="a", count=12)  # 16 addresses, five of them AWS's own
    assert len(launched(answer)) == 11
    assert codes(answer) == {"InsufficientFreeAddressesInSubnet"}
