"""Each type through its life: create, read, change, drift by hand, delete, gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.difference import changes
from rehearsal.attachment.resource import Properties, RefusedError
from rehearsal.aws.provider import TYPES
from rehearsal.aws.resource import AwsResource
from tests.unit.rehearsal.aws_world import document, trust
from tests.unit.rehearsal.provider_aws_world import World, open_world

_TAGS = {"owner": "platform", "cost-centre": "0000"}
_SEND = document(Effect="Allow", Principal={"Service": "events.amazonaws.com"}, Action="sqs:SendMessage", Resource="*")
_ALLOW = document(Action="ec2:RunInstances", Resource="*")
_PATTERN = '{"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@dataclass(frozen=True)
class Case:
    """What it takes to make one of a type, what to change, and what its ID looks like.

    `id` is formatted with the inputs and with the last part of the ARN as `last`.
    """

    inputs: Callable[[World], Properties]
    id: str
    change: Callable[[World], Properties] | None = None
    outputs: tuple[str, ...] = ()
    world: dict[str, Any] = field(default_factory=dict)


def _subnet(world: World) -> str:
    return world.subnet(world.vpc().id).id


def _nat(world: World) -> Properties:
    vpc = world.vpc()
    world.gateway(vpc.id)
    return {
        "subnetId": world.subnet(vpc.id).id,
        "allocationId": world.create("aws:ec2/eip:Eip", domain="vpc").id,
        "tags": _TAGS,
    }


def _route(world: World) -> Properties:
    vpc = world.vpc()
    return {
        "routeTableId": world.table(vpc.id).id,
        "destinationCidrBlock": "0.0.0.0/0",
        "gatewayId": world.gateway(vpc.id).id,
    }


def _endpoint(world: World) -> dict[str, Any]:
    vpc = world.vpc()
    return {
        "vpcId": vpc.id,
        "serviceName": "com.amazonaws.us-east-1.sqs",
        "vpcEndpointType": "Interface",
        "privateDnsEnabled": True,
        "subnetIds": [world.subnet(vpc.id).id],
        "securityGroupIds": [world.group(vpc.id).id],
        "tags": _TAGS,
    }


def _nat_route(world: World) -> Properties:
    subnet = world.client("ec2").describe_subnets(Filters=[{"Name": "tag-key", "Values": ["public"]}])["Subnets"]
    return {"gatewayId": None, "natGatewayId": world.nat(subnet[0]["SubnetId"] if subnet else _public(world)).id}


def _public(world: World) -> str:
    vpc = world.client("ec2").describe_internet_gateways()["InternetGateways"][0]["Attachments"][0]["VpcId"]
    return world.subnet(vpc, 9).id


def _association(world: World) -> Properties:
    vpc = world.vpc()
    return {"routeTableId": world.table(vpc.id).id, "subnetId": world.subnet(vpc.id).id}


def _queue(world: World) -> str:
    return world.create("aws:sqs/queue:Queue", name="interruption").id


def _target(world: World) -> Properties:
    queue = world.create("aws:sqs/queue:Queue", name="interruption")
    rule = world.create("aws:cloudwatch/eventRule:EventRule", name="spot", eventPattern=_PATTERN)
    return {"rule": rule.id, "arn": queue.outputs["arn"], "targetId": "queue"}


def _cluster(world: World) -> Properties:
    _, subnets = world.network()
    key = world.create("aws:kms/key:Key")
    return world.cluster_inputs(
        subnets,
        tags=_TAGS,
        enabledClusterLogTypes=["audit", "api"],
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
        encryptionConfig={"provider": {"keyArn": key.outputs["arn"]}, "resources": ["secrets"]},
    )


def _access_entry(world: World) -> Properties:
    return {
        "clusterName": world.cluster().id,
        "principalArn": world.node_role("karpenter-nodes"),
        "type": "STANDARD",
        "kubernetesGroups": ["developers"],
        "tags": _TAGS,
    }


def _access_policy(world: World) -> Properties:
    inputs = _access_entry(world)
    world.create("aws:eks/accessEntry:AccessEntry", **inputs)
    return {
        "clusterName": inputs["clusterName"],
        "principalArn": inputs["principalArn"],
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        "accessScope": {"type": "cluster"},
    }


def _pod_role(world: World, name: str) -> str:
    return str(world.role("pods.eks.amazonaws.com", name, "sts:AssumeRole", "sts:TagSession").outputs["arn"])


CASES: dict[str, Case] = {
    "aws:ec2/vpc:Vpc": Case(
        lambda world: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, "enableDnsSupport": True, "tags": _TAGS},
        "{last}",
        lambda world: {"enableDnsHostnames": False},
        ("defaultSecurityGroupId", "mainRouteTableId"),
    ),
    "aws:ec2/subnet:Subnet": Case(
        lambda world: {
            "vpcId": world.vpc().id,
            "cidrBlock": "10.0.1.0/24",
            "availabilityZone": "us-east-1a",
            "tags": _TAGS,
        },
        "{last}",
        lambda world: {"mapPublicIpOnLaunch": True},
        ("availabilityZoneId",),
    ),
    "aws:ec2/internetGateway:InternetGateway": Case(
        lambda world: {"vpcId": world.vpc().id, "tags": _TAGS},
        "{last}",
        lambda world: {"vpcId": world.vpc(cidrBlock="10.1.0.0/16").id},
    ),
    "aws:ec2/eip:Eip": Case(lambda world: {"domain": "vpc", "tags": _TAGS}, "{last}", None, ("publicIp",)),
    "aws:ec2/natGateway:NatGateway": Case(_nat, "nat-", None, ("publicIp", "privateIp", "networkInterfaceId")),
    "aws:ec2/routeTable:RouteTable": Case(lambda world: {"vpcId": world.vpc().id, "tags": _TAGS}, "{last}"),
    "aws:ec2/route:Route": Case(_route, "r-{routeTableId}1080289494", _nat_route, ("state",)),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Case(_association, "rtbassoc-"),
    "aws:ec2/securityGroup:SecurityGroup": Case(
        lambda world: {"vpcId": world.vpc().id, "name": "nodes", "tags": _TAGS}, "{last}", None, ("ownerId",)
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Case(
        lambda world: {
            "securityGroupId": world.group(world.vpc().id).id,
            "ipProtocol": "tcp",
            "fromPort": 443,
            "toPort": 443,
            "cidrIpv4": "10.0.0.0/16",
            "description": "API",
            "tags": _TAGS,
        },
        "{last}",
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Case(
        lambda world: {
            "securityGroupId": world.group(world.vpc().id).id,
            "ipProtocol": "-1",
            "cidrIpv4": "0.0.0.0/0",
            "tags": _TAGS,
        },
        "{last}",
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Case(
        _endpoint,
        "vpce-",
        lambda world: {"policy": json.dumps({"Version": "2012-10-17", "Statement": []})},
        ("arn", "state", "networkInterfaceIds"),
    ),
    "aws:ec2/tag:Tag": Case(
        lambda world: {"resourceId": _subnet(world), "key": "karpenter.sh/discovery", "value": "one"},
        "{resourceId},{key}",
        lambda world: {"value": "two"},
    ),
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Case(
        lambda world: {"vpcId": world.vpc().id, "tags": _TAGS}, "sg-", None, ("arn", "name", "description")
    ),
    "aws:ec2/flowLog:FlowLog": Case(
        lambda world: {
            "vpcId": world.vpc().id,
            "trafficType": "ALL",
            "logDestination": world.create("aws:cloudwatch/logGroup:LogGroup", name="flow").outputs["arn"],
            "iamRoleArn": world.role("vpc-flow-logs.amazonaws.com", "flow").outputs["arn"],
            "tags": _TAGS,
        },
        "fl-",
        None,
        ("arn",),
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": Case(
        lambda world: {
            "name": "system",
            "updateDefaultVersion": True,
            "tags": _TAGS,
            "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
            "blockDeviceMappings": [
                {
                    "deviceName": "/dev/xvda",
                    "ebs": {"volumeSize": 20, "volumeType": "gp3", "encrypted": "true", "deleteOnTermination": "true"},
                }
            ],
            "tagSpecifications": [{"resourceType": "instance", "tags": {"Name": "system"}}],
        },
        "{last}",
        lambda world: {
            "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2}
        },
        ("latestVersion", "defaultVersion"),
    ),
    "aws:eks/cluster:Cluster": Case(
        _cluster,
        "{name}",
        lambda world: {"enabledClusterLogTypes": ["audit"]},
        ("endpoint", "certificateAuthority", "identities", "status"),
    ),
    "aws:eks/nodeGroup:NodeGroup": Case(
        lambda world: world.node_group_inputs(world.cluster(), tags=_TAGS, updateConfig={"maxUnavailable": 1}),
        "{clusterName}:{nodeGroupName}",
        lambda world: {"scalingConfig": {"minSize": 2, "desiredSize": 3, "maxSize": 10}},
        ("arn", "status"),
    ),
    "aws:eks/addon:Addon": Case(
        lambda world: {"clusterName": world.cluster().id, "addonName": "coredns", "tags": _TAGS},
        "{clusterName}:{addonName}",
        lambda world: {"addonVersion": "v1.13.9-eksbuild.1"},
        ("arn",),
    ),
    "aws:eks/accessEntry:AccessEntry": Case(
        _access_entry,
        "{clusterName}:{principalArn}",
        lambda world: {"kubernetesGroups": ["operators"]},
        ("accessEntryArn", "userName"),
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Case(
        _access_policy, "{clusterName}#{principalArn}#{policyArn}", None, ("associatedAt",)
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Case(
        lambda world: {
            "clusterName": world.cluster().id,
            "namespace": "kube-system",
            "serviceAccount": "karpenter",
            "roleArn": _pod_role(world, "controller"),
            "tags": _TAGS,
        },
        "a-",
        lambda world: {"roleArn": _pod_role(world, "other")},
        ("associationArn", "associationId"),
    ),
    "aws:iam/instanceProfile:InstanceProfile": Case(
        lambda world: {"name": "nodes", "role": world.role("ec2.amazonaws.com", "nodes").id, "tags": _TAGS},
        "{name}",
        lambda world: {"role": world.role("ec2.amazonaws.com", "others").id},
        ("arn", "uniqueId"),
    ),
    "aws:iam/role:Role": Case(
        lambda world: {
            "name": "nodes",
            "assumeRolePolicy": trust("ec2.amazonaws.com"),
            "description": "a",
            "tags": _TAGS,
        },
        "{name}",
        lambda world: {"assumeRolePolicy": trust("eks.amazonaws.com"), "description": "b"},
        ("arn", "uniqueId", "createDate"),
    ),
    "aws:iam/policy:Policy": Case(
        lambda world: {"name": "node-lifecycle", "policy": _ALLOW, "description": "a", "tags": _TAGS},
        "arn:aws:iam::123456789012:policy/{name}",
        lambda world: {"policy": document(Action="ec2:CreateFleet", Resource="*")},
        ("arn", "policyId"),
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Case(
        lambda world: {
            "role": world.role("ec2.amazonaws.com", "nodes").id,
            "policyArn": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
        },
        "{role}/{policyArn}",
    ),
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": Case(
        lambda world: {
            "url": "https://oidc.eks.us-east-1.amazonaws.com/id/ABCDEF",
            "tags": _TAGS,
            "clientIdLists": ["sts.amazonaws.com"],
        },
        "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABCDEF",
        lambda world: {"thumbprintLists": ["9e99a48a9960b14926bb7f3b02e22da2b0ab7280"]},
        ("arn",),
    ),
    "aws:iam/serviceLinkedRole:ServiceLinkedRole": Case(
        lambda world: {"awsServiceName": "spot.amazonaws.com", "description": "a"},
        "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot",
        lambda world: {"description": "b"},
        ("name", "path"),
    ),
    "aws:sqs/queue:Queue": Case(
        lambda world: {
            "name": "interruption",
            "messageRetentionSeconds": 300,
            "sqsManagedSseEnabled": True,
            "tags": _TAGS,
        },
        "https://sqs.us-east-1.amazonaws.com/123456789012/{name}",
        lambda world: {"messageRetentionSeconds": 600},
        ("arn", "url"),
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Case(
        lambda world: {"queueUrl": _queue(world), "policy": _SEND},
        "{queueUrl}",
        lambda world: {"policy": _SEND.replace("events", "sqs")},
    ),
    "aws:cloudwatch/eventRule:EventRule": Case(
        lambda world: {"name": "spot", "eventPattern": _PATTERN, "description": "a", "tags": _TAGS},
        "{name}",
        lambda world: {"description": "b"},
        ("arn",),
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Case(
        _target, "{rule}-{targetId}", lambda world: {"arn": "arn:aws:sqs:us-east-1:123456789012:other"}
    ),
    "aws:cloudwatch/logGroup:LogGroup": Case(
        lambda world: {"name": "/aws/eks/rehearsed/cluster", "retentionInDays": 7, "tags": _TAGS},
        "{name}",
        lambda world: {"retentionInDays": 30},
        ("arn",),
    ),
    "aws:kms/key:Key": Case(
        lambda world: {"description": "a", "enableKeyRotation": True, "deletionWindowInDays": 7, "tags": _TAGS},
        "{last}",
        lambda world: {"description": "b", "enableKeyRotation": False},
        ("arn", "keyId"),
    ),
    "aws:kms/alias:Alias": Case(
        lambda world: {"name": "alias/rehearsed", "targetKeyId": world.create("aws:kms/key:Key").id},
        "{name}",
        lambda world: {"targetKeyId": world.create("aws:kms/key:Key").id},
        ("targetKeyArn",),
    ),
}
#: What AWS made, and the provider only lets go of.
_LET_GO = {"aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"}
_TAGGED = [kind.token for kind in TYPES if "tags" in kind.accepts]


def test_every_type_has_a_case() -> None:
    assert {kind.token for kind in TYPES} == set(CASES)


@pytest.mark.parametrize("token", CASES)
def test_life_of_a_resource(world: World, token: str) -> None:
    case, resource = CASES[token], world.type(token)
    inputs = world.check(token, **case.inputs(world))
    created = resource.create(inputs, timeout=5.0)

    last = str(created.outputs.get("arn", "")).rpartition("/")[2]
    assert created.id.startswith(case.id.format(last=last, **{**created.outputs, **inputs}))
    assert not [name for name in case.outputs if created.outputs.get(name) in (None, "", [])]
    assert world.read(token, created) == created.outputs, "reading at once shows something else"
    assert resource.inputs_of(created.outputs, inputs) == inputs, "an untouched resource shows drift"

    again = resource.update(created.id, created.outputs, inputs, timeout=5.0)
    assert again.keys() == created.outputs.keys(), "the same inputs are taken for a change"

    if case.change:
        new = {name: value for name, value in {**inputs, **case.change(world)}.items() if value is not None}
        assert not {name for name in new if new[name] != inputs.get(name)} & resource.replace_on
        outputs = resource.update(created.id, created.outputs, new, timeout=5.0)
        assert outputs == resource.read(created.id, outputs)
        assert resource.inputs_of(outputs, new) == new, "the change did not arrive"
        created = type(created)(created.id, outputs)

    world.delete(token, created)
    assert (world.read(token, created) is None) is (token not in _LET_GO)
    world.delete(token, created)


@pytest.mark.parametrize("token", _TAGGED)
def test_tags_are_changed_in_place(world: World, token: str) -> None:
    inputs = {**CASES[token].inputs(world), "tags": {"keep": "1", "change": "2", "drop": "3"}}
    created = world.create(token, **inputs)
    outputs = world.update(token, created, **{**inputs, "tags": {"keep": "1", "change": "4", "new": "5"}})
    assert outputs["tags"] == outputs["tagsAll"] == {"keep": "1", "change": "4", "new": "5"}


def test_tags_removed_by_hand_are_drift(world: World) -> None:
    token = "aws:ec2/subnet:Subnet"
    inputs = world.check(token, vpcId=world.vpc().id, cidrBlock="10.0.1.0/24", tags={"karpenter.sh/discovery": "x"})
    created = world.type(token).create(inputs, timeout=5.0)
    world.client("ec2").delete_tags(Resources=[created.id], Tags=[{"Key": "karpenter.sh/discovery"}])
    outputs = world.read(token, created)
    assert outputs is not None
    assert world.type(token).inputs_of(outputs, inputs)["tags"] == {}


def test_default_tags_are_on_everything_but_not_drift(world: World) -> None:
    tagged = World(world.account, world.clusters, {"team": "platform", "stage": "test"})
    created = tagged.create("aws:sqs/queue:Queue", name="queue", tags={"stage": "own"})
    assert created.outputs["tags"] == {"stage": "own"}
    assert created.outputs["tagsAll"] == {"team": "platform", "stage": "own"}
    assert tagged.create("aws:ec2/vpc:Vpc", cidrBlock="10.0.0.0/16").outputs.get("tags") is None


def test_changed_default_tags_are_a_change_of_the_inputs(world: World) -> None:
    before, after = (World(world.account, world.clusters, {"team": team}) for team in ("platform", "edge"))
    checked = [each.check("aws:ec2/vpc:Vpc", cidrBlock="10.0.0.0/16") for each in (before, after)]
    assert [inputs["tagsAll"] for inputs in checked] == [{"team": "platform"}, {"team": "edge"}]


def test_a_value_that_would_be_answered_anyway_is_taken(world: World) -> None:
    subnet = world.type("aws:ec2/subnet:Subnet")
    assert not subnet.unknown({"enableDns64": False, "outpostArn": ""})
    assert subnet.unknown({"enableDns64": True, "outpostArn": "arn"}) == ["enableDns64", "outpostArn"]


def test_an_import_takes_no_inputs_from_what_is_not_there(world: World) -> None:
    created = world.role("ec2.amazonaws.com", "nodes")
    inputs = world.type("aws:iam/role:Role").inputs_of(created.outputs, {})
    assert created.outputs["description"] == ""
    assert "description" not in inputs


#: By what the provider imports a resource, where that is not its ID (registry.terraform.io, "Import" of each).
IMPORTED_BY = {
    "aws:ec2/route:Route": "{routeTableId}_{destinationCidrBlock}",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "{subnetId}/{routeTableId}",
    "aws:cloudwatch/eventTarget:EventTarget": "{rule}/{targetId}",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "{clusterName},{id}",
}


@pytest.mark.parametrize("token", CASES)
def test_it_is_found_by_that_by_which_it_is_imported(world: World, token: str) -> None:
    created, resource = world.create(token, **CASES[token].inputs(world)), world.type(token)
    known = {**created.outputs, "id": created.id}
    id, state = resource.imported(IMPORTED_BY.get(token, "{id}").format(**known))
    assert id == created.id
    seen = resource.read(id, state)
    assert seen is not None
    assert isinstance(resource, AwsResource)
    for key in resource.required:
        assert seen[key] == created.outputs[key]


#: What an import leaves unset, and the first update after it sets in Pulumi's state: what AWS does not tell. The
#: provider's own tests of imports leave it out, too (ImportStateVerifyIgnore, and importIgnore in comments).
UNREAD = {
    "aws:ec2/launchTemplate:LaunchTemplate": {"updateDefaultVersion"},
    "aws:ec2/securityGroup:SecurityGroup": {"revokeRulesOnDelete"},
    "aws:eks/addon:Addon": {"resolveConflictsOnUpdate", "preserve"},
    "aws:kms/key:Key": {"deletionWindowInDays"},
}


def _imported(world: World, token: str, **inputs: Any) -> tuple[AwsResource, Properties, Properties]:
    """A resource that was made with inputs, and imported: its type, its state, and the inputs."""
    resource = world.type(token)
    assert isinstance(resource, AwsResource)
    checked = world.check(token, **inputs)
    created = resource.create(checked, timeout=5.0)
    known = {**created.outputs, "id": created.id}
    id, state = resource.imported(IMPORTED_BY.get(token, "{id}").format(**known))
    seen = resource.read(id, state)
    assert seen is not None
    return resource, seen, checked


def _changes(resource: AwsResource, state: Properties, wanted: Properties) -> dict[str, bool]:
    """What changed, and whether it replaces."""
    before = resource.before(resource.inputs_of(state, {}), state, wanted)
    return {change.text: change.replaces for change in changes(before, wanted, resource.replace_on)}


@pytest.mark.parametrize("token", CASES)
def test_what_was_made_as_the_program_says_is_imported_without_a_replacement(world: World, token: str) -> None:
    more = {"resolveConflictsOnUpdate": "PRESERVE", "preserve": True} if token == "aws:eks/addon:Addon" else {}
    inputs = {**CASES[token].inputs(world), **more}
    resource, state, wanted = _imported(world, token, **inputs)
    found = _changes(resource, state, wanted)
    assert not [name for name, replaces in found.items() if replaces]
    assert found.keys() <= UNREAD.get(token, set())
    assert not resource.differs(state, wanted) - UNREAD.get(token, set()), "the account would be asked to change it"


def test_a_cluster_of_addons_that_eks_installed_is_replaced_by_a_program_that_wants_them(world: World) -> None:
    """As hashicorp/terraform-provider-aws#39058 has it: its Read says false of every cluster that it imports."""
    cluster, state, wanted = _imported(world, "aws:eks/cluster:Cluster", **_cluster(world))
    assert state["bootstrapSelfManagedAddons"] is False
    assert _changes(cluster, state, {**wanted, "bootstrapSelfManagedAddons": True}) == {
        "bootstrapSelfManagedAddons": True
    }
    assert state["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is True
    of_nobody = {**wanted, "accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}}
    assert _changes(cluster, state, of_nobody) == {"accessConfig.bootstrapClusterCreatorAdminPermissions": True}


def test_what_the_cloud_chose_is_no_change_and_what_it_was_told_is(world: World) -> None:
    subnet, state, wanted = _imported(
        world, "aws:ec2/subnet:Subnet", vpcId=world.vpc().id, cidrBlock="10.0.1.0/24", tags={"tier": ""}
    )
    assert state["availabilityZone"]
    assert not _changes(subnet, state, {key: value for key, value in wanted.items() if key != "availabilityZone"})
    another = "us-east-1a" if state["availabilityZone"] != "us-east-1a" else "us-east-1b"
    assert _changes(subnet, state, {**wanted, "availabilityZone": another}) == {"availabilityZone": True}
    assert _changes(subnet, state, {**wanted, "tags": {}, "tagsAll": {}}) == {"tags.tier": False, "tagsAll.tier": False}


def test_what_the_program_takes_out_of_a_block_is_a_change_unless_aws_chooses_it(world: World) -> None:
    inputs = CASES["aws:eks/cluster:Cluster"].inputs(world)
    network = {**inputs["vpcConfig"], "securityGroupIds": [world.group(_vpc(world, inputs)).id]}
    cluster, state, wanted = _imported(world, "aws:eks/cluster:Cluster", **{**inputs, "vpcConfig": network})
    taken_out = ("publicAccessCidrs", "securityGroupIds")
    without = {key: value for key, value in wanted["vpcConfig"].items() if key not in taken_out}
    found = _changes(cluster, state, {**wanted, "vpcConfig": without})
    assert found == {"vpcConfig.securityGroupIds": False}


def _vpc(world: World, inputs: Properties) -> str:
    subnets = world.client("ec2").describe_subnets(SubnetIds=inputs["vpcConfig"]["subnetIds"])["Subnets"]
    return str(subnets[0]["VpcId"])


def test_a_launch_template_keeps_its_version_where_only_its_default_is_told(world: World) -> None:
    """Of the version the node group would otherwise be an update that nobody knows."""
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    template, state, wanted = _imported(world, token, **CASES[token].inputs(world))
    id = str(state["arn"]).rpartition("/")[2]
    assert template.preview({**wanted, "updateDefaultVersion": True}, id=id, state=state)["latestVersion"] == 1
    assert "latestVersion" not in template.preview({**wanted, "userData": "ZWNobw=="}, id=id, state=state)


@pytest.mark.parametrize("token", IMPORTED_BY)
def test_an_id_of_another_form_is_no_import(world: World, token: str) -> None:
    with pytest.raises(RefusedError, match="unexpected format of ID"):
        world.type(token).imported("one")


def test_a_group_revokes_its_rules_before_it_goes(world: World) -> None:
    token, vpc = "aws:ec2/securityGroup:SecurityGroup", world.vpc().id
    group = world.create(token, vpcId=vpc, name="one", revokeRulesOnDelete=True)
    other = world.group(vpc, "other")
    for own, peer in ((group, other), (other, group)):
        world.create(
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            securityGroupId=own.id,
            ipProtocol="-1",
            referencedSecurityGroupId=peer.id,
        )
    with pytest.raises(Exception, match="DependencyViolation"):
        world.delete(token, group)
    rules = world.client("ec2").describe_security_group_rules()["SecurityGroupRules"]
    assert group.id not in {rule["GroupId"] for rule in rules}


def test_aws_own_tags_are_left_alone(world: World) -> None:
    created = world.vpc(tags={"owner": "platform"})
    backend = world.client("ec2")
    backend.create_tags(Resources=[created.id], Tags=[{"Key": "aws:cloudformation:stack", "Value": "x"}])
    outputs = world.read("aws:ec2/vpc:Vpc", created)
    assert outputs is not None
    assert outputs["tagsAll"] == {"owner": "platform"}


def test_a_failure_after_creation_leaves_nothing(world: World) -> None:
    with pytest.raises(Exception, match="InvalidVpcID"):
        world.create("aws:ec2/internetGateway:InternetGateway", vpcId="vpc-00000000000000000")
    assert world.client("ec2").describe_internet_gateways()["InternetGateways"] == []


def test_documents_keep_the_programs_spelling(world: World) -> None:
    spelt = trust("ec2.amazonaws.com").replace(" ", "\n  ")
    created = world.create("aws:iam/role:Role", name="nodes", assumeRolePolicy=spelt)
    assert created.outputs["assumeRolePolicy"] == spelt


def test_a_document_changed_by_hand_is_drift(world: World) -> None:
    created = world.create("aws:iam/role:Role", name="nodes", assumeRolePolicy=trust("ec2.amazonaws.com"))
    world.client("iam").update_assume_role_policy(RoleName="nodes", PolicyDocument=trust("eks.amazonaws.com"))
    outputs = world.read("aws:iam/role:Role", created)
    assert outputs is not None
    assert "eks.amazonaws.com" in outputs["assumeRolePolicy"]


def test_a_changed_launch_template_gets_a_version(world: World) -> None:
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    inputs = CASES[token].inputs(world)
    created = world.create(token, **inputs)
    assert created.outputs["latestVersion"] == 1
    tagged = {**inputs, "tagSpecifications": [{"resourceType": "instance", "tags": {"Name": "other"}}]}
    resource = world.type(token)
    preview = resource.preview(world.check(token, **tagged), id=created.id, state=created.outputs)
    assert "latestVersion" not in preview
    outputs = world.update(token, created, **tagged)
    assert (outputs["latestVersion"], outputs["defaultVersion"]) == (2, 2)


def test_further_security_groups_are_no_drift(world: World) -> None:
    vpc, subnets = world.network()
    group = world.group(vpc.id).id
    network = {"subnetIds": subnets, "publicAccessCidrs": ["1.1.1.0/24"], "securityGroupIds": [group]}
    for token, given in (
        ("aws:eks/cluster:Cluster", world.cluster_inputs(subnets, vpcConfig=network)),
        ("aws:ec2/launchTemplate:LaunchTemplate", {"name": "system", "vpcSecurityGroupIds": [group]}),
    ):
        inputs = world.check(token, **given)
        created = world.type(token).create(inputs, timeout=5.0)
        assert world.read(token, created) == created.outputs
        assert world.type(token).inputs_of(created.outputs, inputs) == inputs
