"""What the stand-in refuses: inputs before any call, requests as AWS does, and a wrong configuration."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.resource import UNKNOWN, Created, Properties, RefusedError
from rehearsal.aws.iam import resources as iam
from rehearsal.aws.invokes import invokes
from rehearsal.aws.provider import configuration
from tests.unit.rehearsal.aws_world import document, trust
from tests.unit.rehearsal.provider_aws_world import World, open_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


class _NoAccount:
    """An account that no check may touch."""

    region, account_id = "us-east-1", "123456789012"

    def client(self, service: str) -> Any:
        raise AssertionError(f"a check called {service}")


@pytest.fixture
def checks() -> World:
    return World(_NoAccount(), None)


CHECKS: list[tuple[str, Properties, str, str]] = [
    ("aws:iam/role:Role", {"name": "x" * 65, "assumeRolePolicy": "{}"}, "name", "65 characters"),
    ("aws:iam/role:Role", {"name": "x"}, "assumeRolePolicy", "Missing required argument"),
    ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": {"aws:x": "1"}}, "tags", "begins with aws:"),
    ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": {"x" * 129: "1"}}, "tags", "129 characters"),
    ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": {"x": "y" * 257}}, "tags", "AWS takes 256"),
    ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": {f"k{n}": "" for n in range(51)}}, "tags", "51 tags"),
    ("aws:sqs/queue:Queue", {"name": "x" * 81}, "name", "81 characters"),
    ("aws:sqs/queue:Queue", {"messageRetentionSeconds": 59}, "messageRetentionSeconds", r"\(60 - 1209600\)"),
    ("aws:cloudwatch/logGroup:LogGroup", {"retentionInDays": 8}, "retentionInDays", "expected one of"),
    ("aws:kms/key:Key", {"deletionWindowInDays": 6}, "deletionWindowInDays", r"\(7 - 30\)"),
    ("aws:kms/alias:Alias", {"name": "mine", "targetKeyId": "x"}, "name", "alias/"),
    ("aws:kms/alias:Alias", {"name": "alias/aws/mine", "targetKeyId": "x"}, "name", "AWS's own"),
    ("aws:iam/serviceLinkedRole:ServiceLinkedRole", {"awsServiceName": "spot"}, "awsServiceName", "valid AWS service"),
    ("aws:eks/addon:Addon", {"clusterName": "x", "addonName": "adot"}, "addonName", "no workload"),
    ("aws:eks/cluster:Cluster", {"roleArn": "x", "vpcConfig": {}}, "bootstrapSelfManagedAddons", "set it to false"),
    (
        "aws:eks/cluster:Cluster",
        {
            "roleArn": "x",
            "vpcConfig": {},
            "bootstrapSelfManagedAddons": False,
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/25"},
        },
        "kubernetesNetworkConfig",
        "between 12 and 24",
    ),
    (
        "aws:eks/cluster:Cluster",
        {
            "roleArn": "x",
            "vpcConfig": {},
            "bootstrapSelfManagedAddons": False,
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "100.64.0.0/16"},
        },
        "kubernetesNetworkConfig",
        "must be within",
    ),
    (
        "aws:eks/cluster:Cluster",
        {
            "roleArn": "x",
            "vpcConfig": {},
            "bootstrapSelfManagedAddons": False,
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.1/16"},
        },
        "kubernetesNetworkConfig",
        "no network",
    ),
]


@pytest.mark.parametrize(("token", "inputs", "name", "reason"), CHECKS)
def test_inputs_are_refused_without_a_call(
    checks: World, token: str, inputs: Properties, name: str, reason: str
) -> None:
    import re

    failures = checks.failures(token, **inputs)
    assert list(failures) == [name]
    assert re.search(reason, failures[name])


@pytest.mark.parametrize(("token", "inputs"), [(token, inputs) for token, inputs, _, _ in CHECKS])
def test_unknown_inputs_are_let_through(checks: World, token: str, inputs: Properties) -> None:
    resource = checks.type(token)
    unknown = dict.fromkeys(resource.accepts, UNKNOWN)
    checked, failures = resource.check(unknown, name="thing")
    assert failures == []
    assert resource.preview(checked, id="", state={}).keys() >= checked.keys()


def test_unknown_properties_are_found(checks: World) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "ipv6CidrBlock": "x"}
    assert checks.type("aws:ec2/vpc:Vpc").unknown(inputs) == ["ipv6CidrBlock"]


def test_missing_names_are_made_up_with_the_types_prefix(checks: World) -> None:
    assert checks.type("aws:kms/alias:Alias").autoname({}, {}, "secrets-1a2b3c4")["name"] == "alias/secrets-1a2b3c4"
    assert checks.type("aws:eks/nodeGroup:NodeGroup").autoname({}, {}, "x-1a2b3c4")["nodeGroupName"] == "x-1a2b3c4"


def _refuses(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        call()


def test_subnet_outside_its_vpc(world: World) -> None:
    vpc = world.vpc()
    _refuses(
        lambda: world.create("aws:ec2/subnet:Subnet", vpcId=vpc.id, cidrBlock="10.9.0.0/24"),
        r"creating EC2 Subnet: operation error EC2: CreateSubnet, api error InvalidSubnet.Range",
    )


def test_two_subnets_with_one_cidr(world: World) -> None:
    vpc = world.vpc()
    world.subnet(vpc.id)
    _refuses(lambda: world.subnet(vpc.id, zone="us-east-1b"), "InvalidSubnet.Conflict")


def test_what_is_in_use_does_not_go(world: World) -> None:
    vpc = world.vpc()
    gateway, subnet, group = world.gateway(vpc.id), world.subnet(vpc.id), world.group(vpc.id)
    nat = world.nat(subnet.id)
    world.client("ec2").create_network_interface(SubnetId=subnet.id, Groups=[group.id])
    _refuses(lambda: world.delete("aws:ec2/subnet:Subnet", subnet), "DependencyViolation: The subnet")
    _refuses(lambda: world.delete("aws:ec2/internetGateway:InternetGateway", gateway), "mapped public address")
    _refuses(lambda: world.delete("aws:ec2/securityGroup:SecurityGroup", group), "has a dependent object")
    _refuses(lambda: world.delete("aws:ec2/vpc:Vpc", vpc), "DependencyViolation: The vpc")
    assert world.read("aws:ec2/natGateway:NatGateway", nat) == nat.outputs


def test_the_whole_network_goes_in_order(world: World) -> None:
    vpc = world.vpc()
    gateway, subnet = world.gateway(vpc.id), world.subnet(vpc.id)
    nat = world.nat(subnet.id)
    address = nat.outputs["allocationId"]
    world.delete("aws:ec2/natGateway:NatGateway", nat)
    world.type("aws:ec2/eip:Eip").delete(address, {}, timeout=5.0)
    world.delete("aws:ec2/subnet:Subnet", subnet)
    world.delete("aws:ec2/internetGateway:InternetGateway", gateway)
    world.delete("aws:ec2/vpc:Vpc", vpc)
    assert world.read("aws:ec2/vpc:Vpc", vpc) is None


def test_nat_gateway_needs_an_internet_gateway(world: World) -> None:
    subnet = world.subnet(world.vpc().id)
    _refuses(lambda: world.nat(subnet.id), "Gateway.NotAttached: Network vpc-.* has no Internet gateway attached")


def test_nat_gateway_needs_a_free_address(world: World) -> None:
    vpc = world.vpc()
    world.gateway(vpc.id)
    subnet = world.subnet(vpc.id)
    taken = world.nat(subnet.id).outputs["allocationId"]
    _refuses(
        lambda: world.create("aws:ec2/natGateway:NatGateway", subnetId=subnet.id, allocationId=taken),
        r"Elastic IP address \[eipalloc-.*\] is already associated",
    )
    _refuses(lambda: world.create("aws:ec2/natGateway:NatGateway", subnetId=subnet.id), "AllocationId")


def _endpoint(world: World, vpc: str, subnets: list[str], service: str = "sqs", **inputs: Any) -> Created:
    """An interface endpoint that answers to the service's name."""
    wanted = {
        "vpcId": vpc,
        "subnetIds": subnets,
        "serviceName": f"com.amazonaws.us-east-1.{service}",
        "vpcEndpointType": "Interface",
        "privateDnsEnabled": True,
    }
    return world.create("aws:ec2/vpcEndpoint:VpcEndpoint", **{**wanted, **inputs})


def test_an_endpoint_is_of_a_service_that_has_one(world: World) -> None:
    vpc = world.vpc().id
    subnets = [world.subnet(vpc).id]
    _refuses(lambda: _endpoint(world, vpc, subnets, "iam"), "InvalidServiceName: The Vpc Endpoint Service '.*iam'")
    elsewhere = "com.amazonaws.eu-west-1.sqs"
    _refuses(lambda: _endpoint(world, vpc, subnets, serviceName=elsewhere), "InvalidServiceName")
    _refuses(lambda: _endpoint(world, vpc, subnets, vpcEndpointType="Gateway"), "InvalidParameter: Endpoint type")


def test_an_endpoints_name_is_taken_once_and_free_again(world: World) -> None:
    vpc = world.vpc().id
    subnets = [world.subnet(vpc).id]
    first = _endpoint(world, vpc, subnets)
    _refuses(
        lambda: _endpoint(world, vpc, subnets), "InvalidParameter: private-dns-enabled cannot be set .*sqs.us-east-1"
    )
    _endpoint(world, vpc, subnets, "ec2")
    world.delete("aws:ec2/vpcEndpoint:VpcEndpoint", first)
    _endpoint(world, vpc, subnets)


@pytest.mark.parametrize("attribute", ["enableDnsSupport", "enableDnsHostnames"])
def test_an_endpoints_name_needs_the_vpcs_dns(world: World, attribute: str) -> None:
    vpc = world.vpc(**{attribute: False}).id
    _refuses(lambda: _endpoint(world, vpc, [world.subnet(vpc).id]), "InvalidParameter: Enabling private DNS requires")


def test_an_endpoint_has_one_subnet_a_zone_all_of_its_vpc(world: World) -> None:
    vpc = world.vpc().id
    subnets = [world.subnet(vpc, 1).id, world.subnet(vpc, 2).id]
    _refuses(lambda: _endpoint(world, vpc, subnets), f"DuplicateSubnetsInSameZone: .*{subnets[0]}")
    other = world.vpc(cidrBlock="10.1.0.0/16").id
    _refuses(lambda: _endpoint(world, other, subnets[:1]), f"InvalidParameter: subnet {subnets[0]} does not belong")
    group = world.group(other).id
    _refuses(
        lambda: _endpoint(world, vpc, subnets[:1], securityGroupIds=[group]),
        f"InvalidParameter: security group {group} does not belong",
    )


def test_route_needs_one_target_that_exists(world: World) -> None:
    vpc = world.vpc()
    inputs = {"routeTableId": world.table(vpc.id).id, "destinationCidrBlock": "0.0.0.0/0"}
    create = "aws:ec2/route:Route"
    _refuses(lambda: world.create(create, **inputs), "one of gatewayId and natGatewayId")
    _refuses(lambda: world.create(create, **inputs, natGatewayId="nat-00000000000000000"), "NatGatewayID.NotFound")
    _refuses(lambda: world.create(create, **inputs, gatewayId="igw-00000000000000000"), "InvalidInternetGatewayID")
    gateway = world.gateway(vpc.id).id
    world.create(create, **inputs, gatewayId=gateway)
    _refuses(lambda: world.create(create, **inputs, gatewayId=gateway), "RouteAlreadyExists")


def test_subnet_has_one_route_table(world: World) -> None:
    vpc = world.vpc()
    subnet = world.subnet(vpc.id).id
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    world.create(token, subnetId=subnet, routeTableId=world.table(vpc.id).id)
    _refuses(
        lambda: world.create(token, subnetId=subnet, routeTableId=world.table(vpc.id).id), "Resource.AlreadyAssociated"
    )


@pytest.mark.parametrize("resource", ["sg-00000000000000000", "subnet-00000000000000000", "thing-1"])
def test_tag_needs_its_resource(world: World, resource: str) -> None:
    _refuses(
        lambda: world.create("aws:ec2/tag:Tag", resourceId=resource, key="a", value="b"),
        "creating EC2 Tag: .*(NotFound|InvalidID)",
    )


def test_group_rule_needs_one_peer(world: World) -> None:
    token, group = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", world.group(world.vpc().id).id
    _refuses(lambda: world.create(token, securityGroupId=group, ipProtocol="-1"), "got none")
    world.create(token, securityGroupId=group, ipProtocol="-1", cidrIpv4="10.0.0.0/8")
    _refuses(
        lambda: world.create(token, securityGroupId=group, ipProtocol="-1", cidrIpv4="10.0.0.0/8"),
        "InvalidPermission.Duplicate",
    )


def test_new_group_lets_nothing_out(world: World) -> None:
    group = world.group(world.vpc().id)
    seen = world.client("ec2").describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
    assert seen["IpPermissionsEgress"] == []


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("{", "MalformedPolicyDocument: This policy contains invalid Json"),
        (
            json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]}),
            "MalformedPolicyDocument: Missing required field Principal",
        ),
        (
            document(Principal={"Service": "ec2.amazonaws.com"}, Action="sts:AssumeRole", Resource="*"),
            "MalformedPolicyDocument: Has prohibited field Resource",
        ),
        (document(Principal={"Service": "ec2.amazonaws.com"}, Action="ec2:RunInstances"), "MalformedPolicyDocument"),
        (
            document(Principal={"Service": ["ec2.amazonaws.com"] * 120}, Action="sts:AssumeRole"),
            "LimitExceeded: Cannot exceed quota for ACLSizePerRole: 2048",
        ),
    ],
)
def test_trust_policy_that_iam_refuses(world: World, policy: str, text: str) -> None:
    _refuses(lambda: world.create("aws:iam/role:Role", name="bad", assumeRolePolicy=policy), text)
    assert all(role["RoleName"] != "bad" for role in world.client("iam").list_roles()["Roles"])


def test_policy_that_iam_refuses(world: World) -> None:
    token = "aws:iam/policy:Policy"
    _refuses(lambda: world.create(token, name="bad", policy="{"), "MalformedPolicyDocument")
    no_resource = document(Action="ec2:RunInstances")
    _refuses(lambda: world.create(token, name="bad", policy=no_resource), "MalformedPolicyDocument")
    long = document(Action=[f"ec2:Describe{'x' * 60}{n}" for n in range(90)], Resource="*")
    _refuses(lambda: world.create(token, name="bad", policy=long), "Cannot exceed quota for PolicySize: 6144")


def test_white_space_does_not_count(world: World) -> None:
    policy = json.dumps(json.loads(document(Action="ec2:RunInstances", Resource="*")), indent=2000)
    assert len(policy) > iam.POLICY_LIMIT
    world.create("aws:iam/policy:Policy", name="wide", policy=policy)


def test_role_with_policies_stays_unless_forced(world: World) -> None:
    token = "aws:iam/role:Role"
    role = world.role("ec2.amazonaws.com", "nodes")
    world.create(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        role=role.id,
        policyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
    )
    _refuses(lambda: world.delete(token, role), "DeleteConflict: Cannot delete entity, must detach all policies first")
    forced = world.update(
        token, role, name="nodes", assumeRolePolicy=role.outputs["assumeRolePolicy"], forceDetachPolicies=True
    )
    world.type(token).delete(role.id, forced, timeout=5.0)
    assert world.read(token, role) is None


def test_role_leaves_its_instance_profiles(world: World) -> None:
    role = world.role("ec2.amazonaws.com", "nodes")
    world.client("iam").create_instance_profile(InstanceProfileName="left")
    world.client("iam").add_role_to_instance_profile(InstanceProfileName="left", RoleName="nodes")
    world.delete("aws:iam/role:Role", role)
    assert world.client("iam").get_instance_profile(InstanceProfileName="left")["InstanceProfile"]["Roles"] == []


def test_role_takes_ten_policies(world: World) -> None:
    role = world.role("ec2.amazonaws.com", "nodes")
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    arns = [
        world.create(
            "aws:iam/policy:Policy", name=f"policy-{number}", policy=document(Action="ec2:RunInstances", Resource="*")
        ).id
        for number in range(11)
    ]
    for arn in arns[:10]:
        world.create(token, role=role.id, policyArn=arn)
    _refuses(lambda: world.create(token, role=role.id, policyArn=arns[10]), "quota for PoliciesPerRole: 10")


def test_attached_policy_must_exist_and_stays(world: World) -> None:
    role = world.role("ec2.amazonaws.com", "nodes")
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    _refuses(
        lambda: world.create(token, role=role.id, policyArn="arn:aws:iam::aws:policy/AmazonEKSNoSuchPolicy"),
        "NoSuchEntity: Policy .* does not exist or is not attachable",
    )
    policy = world.create("aws:iam/policy:Policy", name="own", policy=document(Action="ec2:RunInstances", Resource="*"))
    world.create(token, role=role.id, policyArn=policy.id)
    _refuses(lambda: world.delete("aws:iam/policy:Policy", policy), "DeleteConflict")


def test_names_are_taken_once(world: World) -> None:
    world.role("ec2.amazonaws.com", "nodes")
    _refuses(lambda: world.role("ec2.amazonaws.com", "nodes"), r"creating IAM Role \(nodes\): .*EntityAlreadyExists")
    world.create("aws:sqs/queue:Queue", name="queue")
    _refuses(lambda: world.create("aws:sqs/queue:Queue", name="queue"), "A queue already exists with the name queue")


def test_an_account_that_has_used_spot_has_its_role(tmp_path: Path) -> None:
    with open_world(tmp_path, used_spot=True) as world:
        _refuses(
            lambda: world.create("aws:iam/serviceLinkedRole:ServiceLinkedRole", awsServiceName="spot.amazonaws.com"),
            "InvalidInput: Service role name AWSServiceRoleForEC2Spot has been taken in this account, please try a "
            "different suffix.",
        )


def test_a_policy_has_five_versions_at_most(world: World) -> None:
    token = "aws:iam/policy:Policy"
    policy = document(Action="ec2:RunInstances", Resource="*")
    created = world.create(token, name="own", policy=policy)
    outputs = created.outputs
    for number in range(7):
        new = world.check(
            token, name="own", policy=document(Action=["ec2:RunInstances", f"ec2:Describe{number}"], Resource="*")
        )
        outputs = world.type(token).update(created.id, outputs, new, timeout=5.0)
    assert "ec2:Describe6" in outputs["policy"]
    assert len(world.client("iam").list_policy_versions(PolicyArn=created.id)["Versions"]) == 5


def test_provider_of_plain_http_is_refused(world: World) -> None:
    _refuses(
        lambda: world.create(
            "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
            url="http://issuer",
            clientIdLists=["sts.amazonaws.com"],
        ),
        "Invalid Open ID Connect Provider URL",
    )


@pytest.mark.parametrize("policy", ["{", "[]", json.dumps({"Statement": [{"Effect": "Allow"}]})])
def test_queue_policy_that_sqs_refuses(world: World, policy: str) -> None:
    queue = world.create("aws:sqs/queue:Queue", name="queue")
    _refuses(
        lambda: world.create("aws:sqs/queuePolicy:QueuePolicy", queueUrl=queue.id, policy=policy),
        "Invalid value for the parameter Policy",
    )


def test_rule_needs_a_pattern_and_keeps_its_targets(world: World) -> None:
    token = "aws:cloudwatch/eventRule:EventRule"
    _refuses(lambda: world.create(token, name="rule"), "EventPattern or ScheduleExpression must be specified")
    _refuses(lambda: world.create(token, name="rule", eventPattern="no pattern"), "InvalidEventPatternException")
    rule = world.create(token, name="rule", eventPattern='{"source": ["aws.ec2"]}')
    world.create(
        "aws:cloudwatch/eventTarget:EventTarget",
        rule=rule.id,
        targetId="queue",
        arn="arn:aws:sqs:us-east-1:123456789012:queue",
    )
    _refuses(lambda: world.delete(token, rule), "Rule can't be deleted since it has targets.")
    _refuses(
        lambda: world.create("aws:cloudwatch/eventTarget:EventTarget", rule="none", arn="arn:x", targetId="a"),
        "ResourceNotFoundException",
    )


def test_alias_needs_its_key(world: World) -> None:
    _refuses(lambda: world.create("aws:kms/alias:Alias", name="alias/none", targetKeyId="none"), "NotFoundException")


def test_what_went_by_hand_is_found_on_update(world: World) -> None:
    created = world.create("aws:sqs/queue:Queue", name="queue", tags={"a": "b"})
    world.client("sqs").delete_queue(QueueUrl=created.id)
    _refuses(lambda: world.update("aws:sqs/queue:Queue", created, name="queue", tags={"a": "c"}), "updating SQS Queue")
    assert world.read("aws:sqs/queue:Queue", created) is None


# The provider's configuration and functions.


def test_region_is_required_and_must_be_the_accounts(world: World) -> None:
    settings = configuration(world.account, world.clusters)
    _refuses(lambda: settings.configure({}, threading.Event()), "pulumi config set aws:region us-east-1")
    _refuses(
        lambda: settings.configure({"region": "eu-west-1"}, threading.Event()),
        "'eu-west-1', but the rehearsed account is in us-east-1",
    )
    assert settings.replaces({"region": "eu-west-1"}, {"region": "us-east-1"}) == ["region"]
    assert settings.replaces({"region": "us-east-1"}, {"region": "us-east-1"}) == []


@pytest.mark.parametrize("given", [["123456789012"], '["123456789012"]', "[123456789012]", [], None])
def test_the_rehearsed_account_is_allowed_where_the_stack_names_it(world: World, given: Any) -> None:
    settings = configuration(world.account, world.clusters)
    assert "allowedAccountIds" in settings.names
    settings.configure({"region": "us-east-1", "allowedAccountIds": given}, threading.Event())
    _refuses(
        lambda: settings.configure({"region": "us-east-1", "allowedAccountIds": ["1"]}, threading.Event()),
        "AWS account ID not allowed: 123456789012",
    )


@pytest.mark.parametrize("given", [{"tags": {"team": "platform"}}, '{"tags": {"team": "platform"}}'])
def test_default_tags_come_as_a_block_or_as_json(world: World, given: Any) -> None:
    settings = configuration(world.account, world.clusters)
    provider = settings.configure({"region": "us-east-1", "defaultTags": given}, threading.Event())
    queue = provider.resource("aws:sqs/queue:Queue")
    inputs, _ = queue.check({"name": "queue"}, name="queue")
    assert queue.create(inputs, timeout=5.0).outputs["tagsAll"] == {"team": "platform"}
    with pytest.raises(RefusedError, match="no stand-in for aws:s3/bucket:Bucket"):
        provider.resource("aws:s3/bucket:Bucket")


def test_functions(world: World) -> None:
    known = {token.rpartition(":")[2]: call for token, call in invokes(world.account).items()}
    assert known["getCallerIdentity"]({"id": None})["accountId"] == "123456789012"
    assert known["getPartition"]({})["partition"] == "aws"
    assert known["getRegion"]({})["name"] == "us-east-1"
    zones = known["getAvailabilityZones"](
        {
            "state": "available",
            "excludeZoneIds": ["use1-az3"],
            "filters": [{"name": "opt-in-status", "values": ["opt-in-not-required"]}],
        }
    )
    assert zones["names"] == sorted(zones["names"])
    assert len(zones["names"]) >= 3
    assert "use1-az3" not in zones["zoneIds"]
    _refuses(
        lambda: known["getCluster"]({"name": "none", "tags": None}), r"reading EKS Cluster \(none\): couldn't find"
    )
    _refuses(lambda: known["getRegion"]({"region": "eu-west-1"}), "in us-east-1 alone")
    _refuses(lambda: known["getAvailabilityZones"]({"region": "eu-west-1"}), "does not know the argument region")


def test_trust_helper_is_what_iam_takes(world: World) -> None:
    world.create("aws:iam/role:Role", name="ok", assumeRolePolicy=trust("ec2.amazonaws.com"))
