"""What the stand-in refuses: inputs before any call, requests as AWS does, and a wrong configuration."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.attachment.resource import UNKNOWN, Created, RefusedError
from rehearsal.aws.invokes import invokes
from rehearsal.aws.provider import configuration
from rehearsal.aws.resource import ROWS
from tests.unit.rehearsal.aws_world import document, trust
from tests.unit.rehearsal.provider_aws_world import World, open_world
from tests.unit.rehearsal.recordings import resolved

TABLE = yaml.safe_load(Path(__file__).with_name("aws_refusals.yaml").read_text())


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


def _named(row: dict[str, Any]) -> str:
    return f"{row['type'].rpartition(':')[2]}-{row.get('reason') or row['refused']}"


@pytest.mark.parametrize("row", TABLE["checks"], ids=_named)
def test_inputs_are_refused_without_a_call(checks: World, row: dict[str, Any]) -> None:
    failures = checks.failures(row["type"], **row["given"])
    assert list(failures) == [row["property"]]
    assert row["reason"] in failures[row["property"]]


@pytest.mark.parametrize("row", TABLE["lengths"], ids=_named)
def test_long_texts_are_refused_without_a_call(checks: World, row: dict[str, Any]) -> None:
    tags = {
        f"{'x' * row.get('key', 1)}{number or ''}": "y" * row.get("value", 1) for number in range(row.get("count", 1))
    }
    wrong = tags if row["property"] == "tags" else "x" * row["length"]
    failures = checks.failures(row["type"], **{**row["given"], row["property"]: wrong})
    assert list(failures) == [row["property"]]
    assert row["reason"] in failures[row["property"]]


@pytest.mark.parametrize("token", ROWS)
def test_unknown_inputs_are_let_through(checks: World, token: str) -> None:
    resource = checks.type(token)
    checked, failures = resource.check(dict.fromkeys(resource.accepts, UNKNOWN), name="thing")
    assert failures == []
    assert resource.preview(checked, id="", state={}).keys() >= checked.keys()


@pytest.mark.parametrize("row", TABLE["creations"], ids=_named)
def test_creation_is_refused_as_aws_refuses_it(world: World, row: dict[str, Any]) -> None:
    given = resolved(row["given"], world.surroundings)
    if row.get("twice"):
        world.create(row["type"], **given)
    before = list(world.clusters.started)
    _refuses(lambda: world.create(row["type"], **given), row["refused"])
    assert world.clusters.started == before


@pytest.mark.parametrize("policy", ["{", trust("ec2.amazonaws.com").replace("Principal", "Nobody")])
def test_a_refused_role_is_not_left_behind(world: World, policy: str) -> None:
    _refuses(lambda: world.create("aws:iam/role:Role", name="bad", assumeRolePolicy=policy), "Malformed")
    assert all(role["RoleName"] != "bad" for role in world.client("iam").list_roles()["Roles"])


def test_unknown_properties_are_found(checks: World) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "ipv6CidrBlock": "x"}
    assert checks.type("aws:ec2/vpc:Vpc").unknown(inputs) == ["ipv6CidrBlock"]


def test_missing_names_are_made_up_with_the_types_prefix(checks: World) -> None:
    assert checks.type("aws:kms/alias:Alias").autoname({}, {}, "secrets-1a2b3c4")["name"] == "alias/secrets-1a2b3c4"
    assert checks.type("aws:eks/nodeGroup:NodeGroup").autoname({}, {}, "x-1a2b3c4")["nodeGroupName"] == "x-1a2b3c4"


def _refuses(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        call()


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


def test_an_endpoints_name_is_taken_once_and_free_again(world: World) -> None:
    vpc = world.vpc().id
    subnets = [world.subnet(vpc).id]
    first = _endpoint(world, vpc, subnets)
    _endpoint(world, vpc, subnets, "ec2")
    world.delete("aws:ec2/vpcEndpoint:VpcEndpoint", first)
    _endpoint(world, vpc, subnets)


def test_new_group_lets_nothing_out(world: World) -> None:
    group = world.group(world.vpc().id)
    seen = world.client("ec2").describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
    assert seen["IpPermissionsEgress"] == []


def test_white_space_does_not_count(world: World) -> None:
    policy = json.dumps(json.loads(document(Action="ec2:RunInstances", Resource="*")), indent=2000)
    assert len(policy) > 6144
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


def test_attached_policy_stays(world: World) -> None:
    role = world.role("ec2.amazonaws.com", "nodes")
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    policy = world.create("aws:iam/policy:Policy", name="own", policy=document(Action="ec2:RunInstances", Resource="*"))
    world.create(token, role=role.id, policyArn=policy.id)
    _refuses(lambda: world.delete("aws:iam/policy:Policy", policy), "DeleteConflict")


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


def test_rule_keeps_its_targets(world: World) -> None:
    token = "aws:cloudwatch/eventRule:EventRule"
    rule = world.create(token, name="rule", eventPattern='{"source": ["aws.ec2"]}')
    world.create(
        "aws:cloudwatch/eventTarget:EventTarget",
        rule=rule.id,
        targetId="queue",
        arn="arn:aws:sqs:us-east-1:123456789012:queue",
    )
    _refuses(lambda: world.delete(token, rule), "Rule can't be deleted since it has targets.")


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
