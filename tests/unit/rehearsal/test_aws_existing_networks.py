"""Networks that the account has already: made as the file says, and seen alike by the program and by the look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from botocore.exceptions import ClientError

from components.eks import existing_network as program
from components.settings import EksSettings
from preflight.aws import instance_types, network, quotas
from preflight.aws.checks import CHECKS
from preflight.finding import in_the_way, run
from rehearsal.aws.account import Account
from rehearsal.aws.ec2.existing import NetworkFileError, Networks
from rehearsal.aws.invokes import invokes
from tests.unit.rehearsal.aws_world import CLUSTER, Stack
from tests.unit.rehearsal.aws_world import account as account_with
from tests.unit.rehearsal.preflight_world import found, looked_at
from tests.unit.test_existing_vpc import STACK, example

FILE: dict[str, Any] = json.loads(STACK.with_name("Pulumi.eks-existing-vpc.network.json").read_text())
VPC = FILE["Vpcs"][0]["VpcId"]
PRIVATE_A, PRIVATE_B, PRIVATE_C, CONTROL_A, CONTROL_B, PUBLIC = (one["SubnetId"] for one in FILE["Subnets"])
SETTINGS = example()
NETWORK = SETTINGS.network.model_dump(by_alias=True, mode="json", exclude_unset=True)


@contextmanager
def account(folder: Path, change: Callable[[dict[str, Any]], object] = lambda file: None) -> Iterator[Account]:
    """An account with the example's network, changed in its file."""
    file = deepcopy(FILE)
    change(file)
    path = folder / "network.json"
    path.write_text(json.dumps(file))
    with account_with(folder, networks=Networks.load(path)) as made:
        yield made


def said(account: Account, **changes: Any) -> list[tuple[str, str]]:
    wanted = {**NETWORK, **changes}
    return found(network.existing, looked_at(account, network={key: one for key, one in wanted.items() if one}))


def test_it_is_there_as_the_file_says(tmp_path: Path) -> None:
    with account(tmp_path) as made:
        ec2 = made.client("ec2")
        (vpc,) = ec2.describe_vpcs(VpcIds=[VPC])["Vpcs"]
        assert vpc["CidrBlock"] == "10.20.0.0/16"
        assert {"Key": "Name", "Value": "company"} in vpc["Tags"]
        subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [VPC]}])["Subnets"]
        assert {one["SubnetId"] for one in subnets} == {one["SubnetId"] for one in FILE["Subnets"]}
        assert {one["SubnetId"] for one in subnets if one["MapPublicIpOnLaunch"]} == {PUBLIC}
        tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [VPC]}])["RouteTables"]
        main = [one["RouteTableId"] for one in tables if any(each["Main"] for each in one["Associations"])]
        assert main == ["rtb-0aaaaaaaaaaaaaaaa"]
        groups = ec2.describe_security_groups(GroupIds=["sg-0123456789abcdef0"])["SecurityGroups"]
        assert groups[0]["VpcId"] == VPC
        # What is made after it has an ID of its own.
        assert ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"] != VPC


def test_a_route_table_is_found_by_one_of_its_subnets_beside_others(tmp_path: Path) -> None:
    def shared(file: dict[str, Any]) -> None:
        file["RouteTables"][-1]["Associations"].append({"SubnetId": PRIVATE_A})

    with account(tmp_path, shared) as made:
        find = made.client("ec2").describe_route_tables
        last = FILE["RouteTables"][-1]["RouteTableId"]
        for subnets in ([PRIVATE_A], [PRIVATE_A, PRIVATE_B], [PRIVATE_B, CONTROL_A]):
            found = find(Filters=[{"Name": "association.subnet-id", "Values": subnets}])["RouteTables"]
            assert last in [one["RouteTableId"] for one in found], subnets


def test_nothing_is_in_the_way_of_the_example(tmp_path: Path) -> None:
    with account(tmp_path) as made:
        seen = looked_at(made, network=NETWORK)
        checked = run(CHECKS, seen)
        assert in_the_way(checked) == []
        assert seen.zones() == ["us-east-1a", "us-east-1b", "us-east-1c"]
        assert not found(network.existing, seen)


def test_a_network_that_is_there_takes_no_quota(tmp_path: Path) -> None:
    with account(tmp_path) as made:
        for service, code in (("vpc", "L-F678F1CE"), ("ec2", "L-0263D0A3"), ("vpc", "L-FE5A380F")):
            made.quotas.set(service, code, 0)
        seen = looked_at(made, network=NETWORK)
        for check in (quotas.vpcs, quotas.addresses, quotas.gateways, instance_types.zones):
            assert not found(check, seen)


def test_without_an_existing_network_nothing_is_looked_at(aws: Account) -> None:
    assert not found(network.existing, looked_at(aws))


def _tagged(subnet: int, key: str, value: str) -> Callable[[dict[str, Any]], object]:
    return lambda file: file["Subnets"][subnet]["Tags"].append({"Key": key, "Value": value})


def _no_default_route(file: dict[str, Any]) -> None:
    file["RouteTables"][0]["Routes"] = []


def _nat_gone(file: dict[str, Any]) -> None:
    """A NAT gateway that was deleted: EC2 keeps the routes to it, beside one that still leads somewhere."""
    file["NatGateways"] = []
    for table in file["RouteTables"]:
        for route in table["Routes"]:
            route.update({"State": "blackhole"} if route.get("NatGatewayId") else {})
    file["RouteTables"][0]["Routes"].append(
        {"DestinationCidrBlock": "10.0.0.0/8", "TransitGatewayId": "tgw-00000001", "State": "active"}
    )


def _peer_gone(file: dict[str, Any]) -> None:
    """A default route that leads out, beside one to a transit gateway that is gone."""
    file["RouteTables"][0]["Routes"].append(
        {"DestinationCidrBlock": "10.0.0.0/8", "TransitGatewayId": "tgw-00000001", "State": "blackhole"}
    )


def _transit_gone(file: dict[str, Any]) -> None:
    gone = {"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": "tgw-00000001", "State": "blackhole"}
    file["RouteTables"][0]["Routes"] = [gone]


def _second_vpc(file: dict[str, Any]) -> None:
    file["Vpcs"].append({"VpcId": "vpc-00000002", "CidrBlock": "10.30.0.0/16"})
    file["Subnets"].append(
        {
            "SubnetId": "subnet-00000002",
            "VpcId": "vpc-00000002",
            "CidrBlock": "10.30.0.0/20",
            "AvailabilityZone": "us-east-1a",
            "Tags": [{"Key": "tier", "Value": "private"}],
        }
    )


PROVOKED: list[Any] = [
    (lambda file: file["Vpcs"][0].update(EnableDnsHostnames=False), {}, "has enableDnsHostnames off"),
    (lambda file: file["Vpcs"][0].update(EnableDnsSupport=False), {}, "has enableDnsSupport off"),
    (_no_default_route, {}, f"has {PRIVATE_A} without a default route"),
    (_nat_gone, {}, f"has {PRIVATE_A}, whose default route is a blackhole (what it led to is gone)"),
    (_transit_gone, {}, f"has {PRIVATE_A}, whose default route is a blackhole"),
    (lambda file: None, {"subnetIds": [PUBLIC, PRIVATE_B]}, f"has {PUBLIC}, a public subnet"),
    (lambda file: None, {"controlPlaneSubnetIds": [CONTROL_A]}, "is in one zone, us-east-1a"),
    (_second_vpc, {"subnetIds": [PRIVATE_A, "subnet-00000002"]}, "lies in another VPC, vpc-00000002"),
    (_second_vpc, {"subnetIds": [], "subnetTags": {"tier": "private"}}, "are carried by subnet-00000002 too"),
    (_tagged(0, "kubernetes.io/cluster/legacy", "owned"), {}, "which the cluster legacy owns"),
    (_tagged(0, "karpenter.sh/discovery", "legacy"), {"tagSubnets": True}, "overwrite the tag karpenter.sh/discovery"),
    (lambda file: file["Subnets"][3].update(AvailableIpAddressCount=4), {}, "with 4 free addresses"),
    (lambda file: None, {"nodeSecurityGroupIds": ["sg-00000009"]}, "is not in this account and region"),
    (lambda file: None, {"vpcId": "vpc-00000009"}, "is not in this account and region"),
]


@pytest.mark.parametrize(("change", "changes", "what"), PROVOKED, ids=[what for _, _, what in PROVOKED])
def test_what_is_wrong_with_it_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], changes: dict[str, Any], what: str
) -> None:
    with account(tmp_path, change) as made:
        assert any(severity == "error" and what in told for severity, told in said(made, **changes))


def test_endpoints_make_a_warning_of_a_missing_way_out(tmp_path: Path) -> None:
    def change(file: dict[str, Any]) -> None:
        _no_default_route(file)
        services = "ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts"
        file["VpcEndpoints"] = [
            {"VpcEndpointId": f"vpce-{index}", "VpcId": VPC, "ServiceName": f"com.amazonaws.us-east-1.{service}"}
            for index, service in enumerate(services)
        ]

    with account(tmp_path, change) as made:
        assert {severity for severity, _ in said(made)} == {"warning"}


def test_a_missing_endpoint_is_found(tmp_path: Path) -> None:
    def change(file: dict[str, Any]) -> None:
        _no_default_route(file)
        endpoint = {"VpcEndpointId": "vpce-1", "VpcId": VPC, "ServiceName": "com.amazonaws.us-east-1.ec2"}
        file["VpcEndpoints"] = [endpoint]

    with account(tmp_path, change) as made:
        assert any(severity == "error" and "ecr.dkr, eks, s3" in told for severity, told in said(made))


def _snake(value: Any) -> Any:
    """A result as the SDK has it."""
    if isinstance(value, list):
        return [_snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(
        **{re.sub(r"[A-Z]", lambda one: f"_{one[0].lower()}", key): _snake(one) for key, one in value.items()}
    )


class _Sdk:
    """Functions of a module of the SDK, answered by the rehearsal's provider."""

    def __init__(self, account: Account, module: str) -> None:
        self._known, self._module = invokes(account), module

    def __getattr__(self, function: str) -> Callable[..., Any]:
        first, *rest = function.split("_")
        name = first + "".join(map(str.capitalize, rest))

        def ask(opts: object = None, **given: Any) -> Any:
            arguments = {re.sub(r"_([a-z])", lambda one: one[1].upper(), key): one for key, one in given.items()}
            answer = self._known[f"aws:{self._module}/{name}:{name}"](arguments)
            tags = answer.pop("tags", {})
            result = _snake(answer)
            result.tags = tags
            return result

        return ask


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        (lambda file: None, {}),
        (_second_vpc, {"subnetIds": [], "subnetTags": {"tier": "private"}}),
        (_no_default_route, {}),
        (_nat_gone, {}),
        (_peer_gone, {}),
        (_transit_gone, {}),
        (lambda file: None, {"subnetIds": [PUBLIC, PRIVATE_B], "vpcId": VPC}),
        (lambda file: None, {"vpcId": "vpc-00000009"}),
    ],
)
def test_the_program_sees_what_the_look_sees(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], object],
    changes: dict[str, Any],
) -> None:
    with account(tmp_path, change) as made:
        monkeypatch.setattr(program, "ec2", _Sdk(made, "ec2"))
        monkeypatch.setattr(program, "eks", _Sdk(made, "eks"))
        wanted = {key: one for key, one in {**NETWORK, **changes}.items() if one}
        seen = looked_at(made, network=wanted)
        settings: EksSettings = seen.settings
        asked = program.find(str(settings.network.vpc_id), settings.network, settings.name, pulumi.InvokeOptions())
        told = seen.existing_network()
        if settings.network.vpc_id == VPC:
            assert asked == told
        assert asked.cidrs == told.cidrs


REFUSED: list[Any] = [
    (lambda file: file.pop("Vpcs"), "Vpcs: Field required"),
    (lambda file: file["Subnets"][0].pop("AvailabilityZone"), r"Subnets\.0\.AvailabilityZone: Field required"),
]


@pytest.mark.parametrize(("change", "text"), REFUSED)
def test_a_file_that_ec2_would_not_answer_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], text: str
) -> None:
    with pytest.raises(NetworkFileError, match=text), account(tmp_path, change):
        pass


def _subnet_outside(file: dict[str, Any]) -> None:
    file["Subnets"][0]["CidrBlock"] = "10.99.0.0/20"


def _nat_elsewhere(file: dict[str, Any]) -> None:
    file["NatGateways"] = []


@pytest.mark.parametrize(
    ("change", "text"), [(_subnet_outside, "10.99.0.0/20"), (_nat_elsewhere, "leads to nothing that the rehearsal")]
)
def test_parts_that_do_not_fit_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], text: str
) -> None:
    with pytest.raises(NetworkFileError, match=text), account(tmp_path, change):
        pass


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    path.write_text("Vpcs:")
    with pytest.raises(NetworkFileError, match="so it is no JSON"):
        Networks.load(path)


def test_a_transit_gateway_is_a_way_out(tmp_path: Path) -> None:
    def change(file: dict[str, Any]) -> None:
        file["RouteTables"][0]["Routes"] = [
            {"DestinationCidrBlock": "10.20.0.0/16", "GatewayId": "local"},
            {"DestinationCidrBlock": "10.0.0.0/8", "VpcPeeringConnectionId": "pcx-1"},
            {"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": "tgw-0123456789abcdef0"},
        ]

    with account(tmp_path, change) as made:
        assert not [told for severity, told in said(made) if severity == "error"]


def test_a_route_that_leads_nowhere_is_no_way_out_and_others_do_not_matter(tmp_path: Path) -> None:
    with account(tmp_path, _nat_gone) as made:
        assert made._view.missing_route(PRIVATE_A)
    with account(tmp_path, _peer_gone) as made:
        assert not made._view.missing_route(PRIVATE_A)
        assert not [told for severity, told in said(made) if severity == "error"]


def test_nodes_of_a_template_with_groups_have_these_alone(stack: Stack) -> None:
    stack.add_cluster()
    group = stack.ec2.create_security_group(GroupName="more", Description="more", VpcId=stack.vpc)["GroupId"]
    template = stack.ec2.create_launch_template(
        LaunchTemplateName="system", LaunchTemplateData={"SecurityGroupIds": [group]}
    )["LaunchTemplate"]["LaunchTemplateId"]
    stack.add_node_group(launchTemplate={"id": template, "version": "1"})
    (node, *_) = stack.ec2.describe_instances(Filters=[{"Name": "tag:eks:cluster-name", "Values": [CLUSTER]}])[
        "Reservations"
    ][0]["Instances"]
    assert [one["GroupId"] for one in node["SecurityGroups"]] == [group]


def test_groups_of_the_control_plane_are_in_its_vpc_and_in_use(stack: Stack) -> None:
    ec2 = stack.account.client("ec2")
    elsewhere = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    groups = {
        vpc: ec2.create_security_group(GroupName="access", Description="access", VpcId=vpc)["GroupId"]
        for vpc in (stack.vpc, elsewhere)
    }

    def network(vpc: str) -> dict[str, Any]:
        return {"subnetIds": stack.subnets, "securityGroupIds": [groups[vpc]]}

    with pytest.raises(ClientError, match="does not exist in the VPC"):
        stack.add_cluster(resourcesVpcConfig=network(elsewhere))
    stack.add_cluster(resourcesVpcConfig=network(stack.vpc))
    seen = stack.account.client("eks").describe_cluster(name=CLUSTER)["cluster"]["resourcesVpcConfig"]
    assert seen["securityGroupIds"] == [groups[stack.vpc]]
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_security_group(GroupId=groups[stack.vpc])
