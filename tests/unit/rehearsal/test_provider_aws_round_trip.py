"""Each type through its life: create, read, change, drift by hand, delete, gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.attachment.difference import changes
from karpstack.rehearsal.attachment.resource import AUTOMATIC, Properties, RefusedError
from karpstack.rehearsal.aws.resource import ROWS, AwsResource
from tests.steering import IDS_OF_NOTHING
from tests.unit.rehearsal.provider_aws_world import CASES, World, open_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


#: What AWS made, and the provider only lets go of.
_LET_GO = {"aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"}
_TAGGED = [token for token, row in ROWS.items() if "tags" in row.accepts]


def test_every_type_has_a_case() -> None:
    assert set(ROWS) == set(CASES)


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

    if case.changed:
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
    "aws:ec2/securityGroupRule:SecurityGroupRule": "{securityGroupId}_ingress_tcp_443_443_10.0.0.0/16_10.1.0.0/16",
    "aws:cloudwatch/eventTarget:EventTarget": "{rule}/{targetId}",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "{clusterName},{id}",
}


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
    assert id == created.id
    for key in resource.row.required:
        assert seen[key] == created.outputs[key]
    return resource, seen, checked


def _changes(resource: AwsResource, state: Properties, wanted: Properties) -> dict[str, bool]:
    """What changed, and whether it replaces."""
    before = resource.before(resource.inputs_of(state, {}), state, wanted)
    return {change.text: change.replaces for change in changes(before, wanted, resource.replacing(before, wanted))}


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
    cluster, state, wanted = _imported(
        world, "aws:eks/cluster:Cluster", **CASES["aws:eks/cluster:Cluster"].inputs(world)
    )
    assert state["bootstrapSelfManagedAddons"] is False
    assert _changes(cluster, state, {**wanted, "bootstrapSelfManagedAddons": True}) == {
        "bootstrapSelfManagedAddons": True
    }
    assert state["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is True
    unencrypted = {key: value for key, value in wanted.items() if key != "encryptionConfig"}
    assert _changes(cluster, state, unencrypted) == {"encryptionConfig": True}
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
    """Of the version the node group would otherwise be an unknown update."""
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    template, state, wanted = _imported(world, token, **CASES[token].inputs(world))
    id = str(state["arn"]).rpartition("/")[2]
    assert template.preview({**wanted, "updateDefaultVersion": True}, id=id, state=state)["latestVersion"] == 1
    assert "latestVersion" not in template.preview({**wanted, "userData": "ZWNobw=="}, id=id, state=state)


@pytest.mark.parametrize("token", IMPORTED_BY)
def test_an_id_of_another_form_is_no_import(world: World, token: str) -> None:
    with pytest.raises(RefusedError, match=r"unexpected format (of|for) ID"):
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


def test_a_given_name_deletes_first_even_where_it_changes(world: World) -> None:
    """pulumi-terraform-bridge, nameRequiresDeleteBeforeReplace; an automatic name is drawn again."""
    group = world.type("aws:eks/nodeGroup:NodeGroup")
    assert group.deletes_first({"nodeGroupName": "a"}, {"nodeGroupName": "b"})
    assert not group.deletes_first({}, {"nodeGroupName": "eks-system-0123456", AUTOMATIC: ["nodeGroupName"]})


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


def test_an_id_of_nothing_is_refused_or_found_to_be_gone(world: World) -> None:
    for resource, id in product(world.all(), IDS_OF_NOTHING):
        with suppress(RefusedError):
            assert resource.read(*resource.imported(id)) is None, (resource.token, id)
