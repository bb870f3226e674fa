"""EKS's types and the control plane that they start, fill and stop; each precondition is broken once."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.resource import AUTOMATIC, Created, RefusedError
from rehearsal.aws.invokes import invokes
from rehearsal.aws.provider import configuration
from rehearsal.aws.resource import AwsResource
from rehearsal.cluster.charts import Chart
from rehearsal.host.processes import wait_until
from rehearsal.timing import Timing
from tests.unit.rehearsal.provider_aws_world import FakeCluster, World, open_world

CLUSTER, NODES, ADDON = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup", "aws:eks/addon:Addon"
ENTRY, ASSOCIATION = "aws:eks/accessEntry:AccessEntry", "aws:eks/podIdentityAssociation:PodIdentityAssociation"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def cluster(world: World) -> Created:
    return world.cluster()


def _refuses(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        call()


def _plane(world: World) -> FakeCluster:
    running: FakeCluster = world.clusters.running["rehearsed"]
    return running


def _instances(world: World) -> list[dict[str, Any]]:
    found = world.client("ec2").describe_instances(
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    )
    return [instance for reservation in found["Reservations"] for instance in reservation["Instances"]]


# The cluster.


def test_cluster_starts_the_control_plane(world: World, cluster: Created) -> None:
    started = world.clusters.started
    assert [(one["name"], one["version"], one["service_cidr"]) for one in started] == [
        ("rehearsed", "1.36", "172.20.0.0/16")
    ]
    assert started[0]["issuer"] == cluster.outputs["identities"][0]["oidcs"][0]["issuer"]
    assert cluster.outputs["endpoint"] == "https://127.0.0.1:6443"
    assert cluster.outputs["vpcConfig"]["clusterSecurityGroupId"].startswith("sg-")
    assert world.account.cloud("rehearsed").cluster is _plane(world)


def test_cluster_stops_the_control_plane(world: World, cluster: Created) -> None:
    world.delete(CLUSTER, cluster)
    assert world.clusters.running == {}
    assert world.read(CLUSTER, cluster) is None
    assert world.client("ec2").describe_network_interfaces()["NetworkInterfaces"] == []


def test_a_control_plane_that_fails_leaves_no_cluster(world: World) -> None:
    world.clusters.fails = True
    with pytest.raises(RuntimeError, match="kube-apiserver exited"):
        world.cluster()
    assert world.client("eks").list_clusters()["clusters"] == []


def test_public_access_is_for_public_addresses(world: World, cluster: Created) -> None:
    subnets = cluster.outputs["vpcConfig"]["subnetIds"]
    ranges = ["1.1.1.0/24", "10.1.0.128/27", "203.0.113.0/24"]
    inputs = world.cluster_inputs(subnets, name="other", vpcConfig={"subnetIds": subnets, "publicAccessCidrs": ranges})
    words = r"not allowed in publicAccessCidrs: \[10.1.0.128/27, 203.0.113.0/24\]"
    _refuses(lambda: world.create(CLUSTER, **inputs), words)
    _refuses(lambda: world.update(CLUSTER, cluster, **inputs | {"name": "rehearsed"}), words)


def test_endpoint_access_changes_in_place(world: World, cluster: Created) -> None:
    subnets = cluster.outputs["vpcConfig"]["subnetIds"]
    group = cluster.outputs["vpcConfig"]["clusterSecurityGroupId"]
    inputs = world.cluster_inputs(subnets, vpcConfig={"subnetIds": subnets, "publicAccessCidrs": ["1.0.0.0/24"]})
    outputs = world.update(CLUSTER, cluster, **inputs)
    assert outputs["vpcConfig"]["publicAccessCidrs"] == ["1.0.0.0/24"]
    assert outputs["vpcConfig"]["clusterSecurityGroupId"] == group
    assert outputs["endpoint"] == "https://127.0.0.1:6443"


def test_a_control_plane_that_this_machine_cannot_run_is_refused(world: World) -> None:
    def start(name: str, **options: Any) -> FakeCluster:
        raise ValueError("the rehearsal's engines are 1.36")

    world.clusters.start = start
    _refuses(lambda: world.cluster(version="1.35"), r"creating EKS Cluster \(rehearsed\): the rehearsal's engines")


def test_the_version_goes_up_by_one_in_place(world: World, cluster: Created) -> None:
    inputs = world.cluster_inputs(cluster.outputs["vpcConfig"]["subnetIds"])
    refused = "Unsupported Kubernetes minor version update from 1.36 to 1.35"
    _refuses(lambda: world.update(CLUSTER, cluster, **{**inputs, "version": "1.35"}), refused)
    # What this machine cannot do changes nothing in the account.
    _refuses(lambda: world.update(CLUSTER, cluster, **{**inputs, "version": "1.34"}), "engines are 1.36 and 1.35")
    assert world.clusters.upgraded == []
    world.account.eks.cluster(cluster.id).version = "1.35"
    older = Created(cluster.id, {**cluster.outputs, "version": "1.35"})
    assert world.update(CLUSTER, older, **inputs)["version"] == "1.36"
    assert world.clusters.upgraded == [(cluster.id, "1.36")]


def test_the_control_plane_stays_in_its_zones(world: World, cluster: Created) -> None:
    first, second = cluster.outputs["vpcConfig"]["subnetIds"]
    vpc = cluster.outputs["vpcConfig"]["vpcId"]
    twin, third = world.subnet(vpc, 11, "us-east-1b").id, world.subnet(vpc, 12, "us-east-1c").id
    for subnets in ([first, second, third], [first, third]):
        refused = "exact set of AZs 'us-east-1a,us-east-1b'"
        _refuses(partial(world.update, CLUSTER, cluster, **world.cluster_inputs(subnets)), refused)
    assert world.update(CLUSTER, cluster, **world.cluster_inputs([first, twin]))["vpcConfig"]["subnetIds"]


def test_a_given_name_deletes_first_even_where_it_changes(world: World) -> None:
    """pulumi-terraform-bridge, nameRequiresDeleteBeforeReplace; an automatic name is drawn anew."""
    group = world.type(NODES)
    assert group.deletes_first({"nodeGroupName": "a"}, {"nodeGroupName": "b"})
    assert not group.deletes_first({}, {"nodeGroupName": "eks-system-0123456", AUTOMATIC: ["nodeGroupName"]})


def test_cluster_with_node_groups_stays(world: World, cluster: Created) -> None:
    group = world.create(NODES, **world.node_group_inputs(cluster))
    _refuses(lambda: world.delete(CLUSTER, cluster), "ResourceInUseException: Cluster has nodegroups attached")
    assert "rehearsed" in world.clusters.running
    nodes = list(world.clusters.running["rehearsed"].nodes)
    world.delete(NODES, group)
    assert world.clusters.running["rehearsed"].drained == nodes != []
    world.delete(CLUSTER, cluster)


# Node groups.


def test_node_group_makes_instances_and_nodes(world: World, cluster: Created) -> None:
    world.create(NODES, **world.node_group_inputs(cluster, labels={"pool": "system"}))
    assert sorted(instance["InstanceType"] for instance in _instances(world)) == ["m5.large", "m5.large"]
    nodes = _plane(world).nodes
    assert sorted(nodes) == sorted(instance["PrivateDnsName"] for instance in _instances(world))
    for node in nodes.values():
        assert node["taints"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}]
        assert node["labels"].items() >= {"eks.amazonaws.com/nodegroup": "system", "pool": "system"}.items()


def test_nodes_that_are_not_ready_fail_the_group(world: World, cluster: Created) -> None:
    _plane(world).never_ready = True
    _refuses(
        lambda: world.create(NODES, **world.node_group_inputs(cluster)),
        r"creating EKS Node Group \(rehearsed:system\): unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. "
        r"last error: i-.*: NodeCreationFailure: "
        r"Instances failed to join the kubernetes cluster.*deploy Cilium before",
    )
    assert _instances(world) == []
    assert _plane(world).nodes == {}
    assert world.client("eks").list_nodegroups(clusterName="rehearsed")["nodegroups"] == []


def test_nodes_without_a_route_fail_the_group(world: World, cluster: Created) -> None:
    route_tables = world.client("ec2").describe_route_tables()["RouteTables"]
    for table in route_tables:
        for route in table["Routes"]:
            if route["DestinationCidrBlock"] == "0.0.0.0/0":
                world.client("ec2").delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0")
    _refuses(
        lambda: world.create(NODES, **world.node_group_inputs(cluster)),
        "NodeCreationFailure: .*no route to the internet",
    )


def test_node_group_checks_its_inputs(world: World, cluster: Created) -> None:
    good = world.node_group_inputs(cluster)
    foreign = world.subnet(world.vpc(cidrBlock="10.0.0.0/16").id, 7).id
    template = world.create("aws:ec2/launchTemplate:LaunchTemplate", name="system")
    wrong = world.role("eks.amazonaws.com", "wrong").outputs["arn"]
    for inputs, text in (
        ({"subnetIds": [foreign]}, "are not in the VPC"),
        ({"subnetIds": ["subnet-00000000000000000"]}, "InvalidSubnetID.NotFound"),
        ({"instanceTypes": ["m5.gigantic"]}, r"do not exist: \[m5.gigantic\]"),
        ({"scalingConfig": {"minSize": 2, "desiredSize": 1, "maxSize": 3}}, "can't be less than min size 2"),
        ({"scalingConfig": {"minSize": 2, "desiredSize": 4, "maxSize": 3}}, "can't be greater than max size 3"),
        ({"launchTemplate": {"id": "lt-00000000000000000", "version": "1"}}, "LaunchTemplate"),
        ({"launchTemplate": {"id": template.id, "version": "7"}}, "VersionNotFound"),
        ({"nodeRoleArn": "arn:aws:iam::123456789012:role/none"}, "InvalidParameterException"),
        ({"nodeRoleArn": wrong}, "InvalidParameterException"),
        ({"amiType": "WINDOWS_CORE_2022_x86_64"}, "not WINDOWS_CORE_2022_x86_64"),
        ({"clusterName": "none"}, "No cluster found for name: none"),
    ):
        _refuses(lambda inputs=inputs: world.create(NODES, **{**good, **inputs}), text)  # type: ignore[misc]
    assert _instances(world) == []


def test_node_group_grows_and_shrinks(world: World, cluster: Created) -> None:
    inputs = world.node_group_inputs(cluster)
    created = world.create(NODES, **inputs)
    _refuses(lambda: world.update(NODES, created, **{**inputs, "labels": {"pool": "other"}}), "cannot change labels of")
    for size in (4, 2):
        sizes = {"minSize": 2, "desiredSize": size, "maxSize": 10}
        outputs = world.update(NODES, created, **{**inputs, "scalingConfig": sizes})
        created = Created(created.id, outputs)
        assert sorted(_plane(world).nodes) == sorted(one["PrivateDnsName"] for one in _instances(world))
        assert len(_plane(world).nodes) == size


def test_node_group_takes_its_nodes_along(world: World, cluster: Created) -> None:
    created = world.create(NODES, **world.node_group_inputs(cluster))
    world.delete(NODES, created)
    assert _instances(world) == []
    assert _plane(world).nodes == {}
    assert world.read(NODES, created) is None


def test_node_group_goes_after_its_control_plane(world: World, cluster: Created) -> None:
    created = world.create(NODES, **world.node_group_inputs(cluster))
    world.clusters.stop("rehearsed")
    world.delete(NODES, created)
    assert _instances(world) == []


def test_nodes_get_the_user_data_of_their_template_which_must_be_mime(world: World, cluster: Created) -> None:
    def template(name: str, user_data: str) -> dict[str, str]:
        encoded = base64.b64encode(user_data.encode()).decode()
        made = world.create("aws:ec2/launchTemplate:LaunchTemplate", name=name, userData=encoded)
        return {"id": made.id, "version": "1"}

    inputs = world.node_group_inputs(cluster)
    script = "#!/bin/sh\necho Hello\n"
    _refuses(
        lambda: world.create(NODES, **{**inputs, "launchTemplate": template("script", script)}),
        "User data was not in the MIME multipart format",
    )
    assert not _instances(world)
    archive = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\n{script}\n--b--\n'
    world.create(NODES, **{**inputs, "launchTemplate": template("archive", archive)})
    for instance in _instances(world):
        answer = world.client("ec2").describe_instance_attribute(
            InstanceId=instance["InstanceId"], Attribute="userData"
        )
        assert base64.b64decode(answer["UserData"]["Value"]).decode() == archive


def test_a_new_launch_template_version_is_taken(world: World, cluster: Created) -> None:
    template = world.create("aws:ec2/launchTemplate:LaunchTemplate", name="system")
    inputs = world.node_group_inputs(cluster, launchTemplate={"id": template.id, "version": "1"})
    created = world.create(NODES, **inputs)
    world.update("aws:ec2/launchTemplate:LaunchTemplate", template, name="system", instanceType="m5.large")
    outputs = world.update(NODES, created, **{**inputs, "launchTemplate": {"id": template.id, "version": "2"}})
    assert outputs["launchTemplate"]["version"] == "2"


# Add-ons.


def test_coredns_gets_the_tenth_address_of_the_services(world: World, cluster: Created) -> None:
    world.create(ADDON, clusterName=cluster.id, addonName="coredns")
    objects = _plane(world).objects
    assert objects["Service", "kube-dns"]["spec"]["clusterIP"] == "172.20.0.10"
    deployment = objects["Deployment", "coredns"]["spec"]
    assert deployment["replicas"] == 2
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in deployment["template"]["spec"]["tolerations"]


def test_pod_identity_agent_runs_everywhere(world: World, cluster: Created) -> None:
    world.create(ADDON, clusterName=cluster.id, addonName="eks-pod-identity-agent")
    pod = _plane(world).objects["DaemonSet", "eks-pod-identity-agent"]["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert world.account.eks.addon_status("rehearsed", "eks-pod-identity-agent") == "ACTIVE"


@pytest.mark.parametrize("addon", ["coredns", "eks-pod-identity-agent"])
def test_addon_without_its_replicas_fails(world: World, cluster: Created, addon: str) -> None:
    _plane(world).unavailable = "0 of 2 pods are available"
    _refuses(
        lambda: world.create(ADDON, clusterName=cluster.id, addonName=addon),
        r"creating EKS Add-On \(rehearsed:.*\): unexpected state 'CREATE_FAILED'.*InsufficientNumberOfReplicas: "
        ".*0 of 2 pods are available",
    )
    assert world.client("eks").list_addons(clusterName="rehearsed")["addons"] == []
    assert _plane(world).objects == {}
    _plane(world).unavailable = ""
    world.create(ADDON, clusterName=cluster.id, addonName=addon)


@pytest.fixture
def driver(world: World, cluster: Created, tmp_path: Path) -> dict[str, Any]:
    """The EBS CSI driver's add-on, with an identity for its controller."""
    schema = {"type": "object", "additionalProperties": False, "properties": {"controller": {"type": "object"}}}
    (tmp_path / "values.schema.json").write_text(json.dumps(schema))
    _plane(world).chart = Chart("aws-ebs-csi-driver", "2.62.0", tmp_path)
    role = world.role("pods.eks.amazonaws.com", "ebs-csi", "sts:AssumeRole", "sts:TagSession")
    world.create(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        role="ebs-csi",
        policyArn="arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2",
    )
    world.create(
        ASSOCIATION,
        clusterName=cluster.id,
        namespace="kube-system",
        serviceAccount="ebs-csi-controller-sa",
        roleArn=role.outputs["arn"],
    )
    return {"clusterName": cluster.id, "addonName": "aws-ebs-csi-driver"}


def test_the_driver_runs_as_its_chart_has_it(world: World, driver: dict[str, Any]) -> None:
    values = {"controller": {"region": "us-east-1"}}
    created = world.create(ADDON, **driver, configurationValues=json.dumps(values))
    assert _plane(world).rendered == [values]
    assert {("Deployment", "ebs-csi-controller"), ("DaemonSet", "ebs-csi-node")} <= set(_plane(world).objects)
    other = json.dumps({"controller": {"region": "us-east-1", "replicaCount": 3}})
    assert world.update(ADDON, created, **driver, configurationValues=other)["configurationValues"] == other
    assert _plane(world).rendered[-1] == json.loads(other)
    world.delete(ADDON, created)
    assert _plane(world).objects == {}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ('{"contoller": {}}', r"ConfigurationValue provided in request is not supported.*contoller: is not defined"),
        ('{"controller": 1}', r"Json schema validation failed with error: \[\$.controller: 1 is not of type 'object'"),
        ("[]", "it is no JSON object"),
        ("{", "it is no JSON object"),
    ],
)
def test_a_configuration_that_the_add_on_does_not_have(
    world: World, driver: dict[str, Any], values: str, text: str
) -> None:
    _refuses(lambda: world.create(ADDON, **driver, configurationValues=values), text)
    assert world.client("eks").list_addons(clusterName="rehearsed")["addons"] == []


def test_what_has_no_configuration_here_takes_none(world: World, cluster: Created) -> None:
    _refuses(
        lambda: world.create(ADDON, clusterName=cluster.id, addonName="coredns", configurationValues="{}"),
        "the rehearsal knows no configuration of the add-on coredns",
    )


def test_a_driver_without_an_identity_crashes(world: World, driver: dict[str, Any]) -> None:
    eks = world.client("eks")
    (association,) = eks.list_pod_identity_associations(clusterName="rehearsed")["associations"]
    eks.delete_pod_identity_association(clusterName="rehearsed", associationId=association["associationId"])
    _refuses(lambda: world.create(ADDON, **driver), r"CREATE_FAILED.*no pod identity association gives them one")


def test_a_driver_that_may_make_no_volume_crashes(world: World, driver: dict[str, Any]) -> None:
    arn = "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2"
    world.client("iam").detach_role_policy(RoleName="ebs-csi", PolicyArn=arn)
    _refuses(lambda: world.create(ADDON, **driver), r"role/ebs-csi does not allow ec2:CreateVolume: implicitDeny")


def test_addon_takes_its_workload_along_unless_preserved(world: World, cluster: Created) -> None:
    for preserve, left in ((False, False), (True, True)):
        created = world.create(ADDON, clusterName=cluster.id, addonName="coredns", preserve=preserve)
        world.delete(ADDON, created)
        assert bool(_plane(world).objects) is left


def test_addon_needs_its_cluster(world: World) -> None:
    _refuses(lambda: world.create(ADDON, clusterName="none", addonName="coredns"), "No cluster found for name: none")


# Access and identity.


def test_access_entry_is_made_once(world: World, cluster: Created) -> None:
    arn = world.node_role("karpenter-nodes")
    entry = {"clusterName": cluster.id, "principalArn": arn, "type": "EC2_LINUX"}
    created = world.create(ENTRY, **entry)
    assert created.outputs["kubernetesGroups"] == ["system:nodes"]
    _refuses(
        lambda: world.create(ENTRY, **entry), "ResourceInUseException: The specified access entry resource is already"
    )
    assert world.update(ENTRY, created, **entry)["kubernetesGroups"] == ["system:nodes"]


def test_the_role_of_a_node_group_has_its_entry_already(world: World, cluster: Created) -> None:
    inputs = world.node_group_inputs(cluster)
    world.create(NODES, **inputs)
    _refuses(
        lambda: world.create(ENTRY, clusterName=cluster.id, principalArn=inputs["nodeRoleArn"], type="EC2_LINUX"),
        "ResourceInUseException",
    )


def test_access_needs_the_api_mode(world: World) -> None:
    created = world.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
    _refuses(
        lambda: world.create(ENTRY, clusterName=created.id, principalArn=world.node_role("karpenter-nodes")),
        "authentication mode must be set to one of",
    )


def test_access_policy_needs_entry_and_policy(world: World, cluster: Created) -> None:
    token, arn = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation", world.node_role("operators")
    inputs = {
        "clusterName": cluster.id,
        "principalArn": arn,
        "accessScope": {"type": "cluster"},
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
    }
    _refuses(lambda: world.create(token, **inputs), "principalArn could not be found")
    world.create(ENTRY, clusterName=cluster.id, principalArn=arn)
    wrong = {**inputs, "policyArn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}
    _refuses(lambda: world.create(token, **wrong), "policyArn")
    world.create(token, **inputs)


def test_association_is_made_once_for_a_role_that_trusts_pods(world: World, cluster: Created) -> None:
    inputs = {"clusterName": cluster.id, "namespace": "kube-system", "serviceAccount": "karpenter"}
    wrong = world.role("ec2.amazonaws.com", "wrong").outputs["arn"]
    right = world.role("pods.eks.amazonaws.com", "right", "sts:AssumeRole", "sts:TagSession").outputs["arn"]
    _refuses(lambda: world.create(ASSOCIATION, **inputs, roleArn=wrong), "Trust policy of the role provided is invalid")
    created = world.create(ASSOCIATION, **inputs, roleArn=right)
    assert created.id.startswith("a-")
    _refuses(lambda: world.create(ASSOCIATION, **inputs, roleArn=right), "ResourceInUseException: Association already")


# What a first contact with AWS brings to light.

LOGS = {"name": "/aws/eks/rehearsed/cluster", "retentionInDays": 30}
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"


def _log_groups(world: World) -> list[str]:
    groups = invokes(world.account)["aws:cloudwatch/getLogGroups:getLogGroups"]({"logGroupNamePrefix": LOGS["name"]})
    return [str(name) for name in groups["logGroupNames"]]


def test_the_log_group_of_a_cluster_that_is_gone_is_made_again(tmp_path: Path) -> None:
    with open_world(tmp_path, timing=Timing(last_log_lines=0.05)) as world:
        group, cluster = world.create(LOG_GROUP, **LOGS), world.cluster(enabledClusterLogTypes=["audit"])
        world.delete(CLUSTER, cluster)
        world.delete(LOG_GROUP, group)
        wait_until(lambda: bool(_log_groups(world)), "the log group", 10)
        _refuses(lambda: world.create(LOG_GROUP, **LOGS), "ResourceAlreadyExistsException: The specified log group")
        left_over = world.type(LOG_GROUP).read(group.id, {})
        assert left_over is not None
        assert left_over["retentionInDays"] == 0


def test_a_log_group_that_was_kept_stays_as_it_is(tmp_path: Path) -> None:
    with open_world(tmp_path, timing=Timing(last_log_lines=0)) as world:
        group = world.create(LOG_GROUP, **LOGS)
        world.delete(CLUSTER, world.cluster(enabledClusterLogTypes=["audit"]))
        assert world.read(LOG_GROUP, group) == group.outputs


def test_the_kind_of_support_is_kept(world: World) -> None:
    cluster = world.cluster(upgradePolicy={"supportType": "STANDARD"})
    assert cluster.outputs["upgradePolicy"] == {"supportType": "STANDARD"}
    inputs = world.cluster_inputs(cluster.outputs["vpcConfig"]["subnetIds"])
    extended = {"supportType": "EXTENDED"}
    assert world.update(CLUSTER, cluster, **inputs, upgradePolicy=extended)["upgradePolicy"] == extended


def test_a_protected_cluster_is_not_deleted(world: World) -> None:
    cluster = world.cluster(deletionProtection=True)
    _refuses(lambda: world.delete(CLUSTER, cluster), "InvalidRequestException: .*deletion protection")
    assert _plane(world)
    inputs = {key: cluster.outputs[key] for key in ("name", "roleArn", "vpcConfig", "accessConfig")}
    outputs = world.update(CLUSTER, cluster, **inputs, bootstrapSelfManagedAddons=False, deletionProtection=False)
    assert outputs["deletionProtection"] is False
    world.delete(CLUSTER, cluster)
    assert not world.clusters.running


def test_zonal_shift_is_off_until_it_is_turned_on(world: World, cluster: Created) -> None:
    assert cluster.outputs["zonalShiftConfig"] == {"enabled": False}
    inputs = {key: cluster.outputs[key] for key in ("name", "roleArn", "vpcConfig", "accessConfig")}
    outputs = world.update(
        CLUSTER, cluster, **inputs, bootstrapSelfManagedAddons=False, zonalShiftConfig={"enabled": True}
    )
    assert outputs["zonalShiftConfig"] == {"enabled": True}


def test_an_addon_has_certain_versions(world: World, cluster: Created) -> None:
    inputs = {"clusterName": cluster.id, "addonName": "coredns"}
    said = "InvalidParameterException: Addon version specified is not supported"
    _refuses(lambda: world.create(ADDON, **inputs, addonVersion="v0"), said)
    find = invokes(world.account)["aws:eks/getAddonVersion:getAddonVersion"]
    asked = {"addonName": "coredns", "kubernetesVersion": "1.36"}
    default, newest = find(asked)["version"], find({**asked, "mostRecent": True})["version"]
    addon = world.create(ADDON, **inputs, addonVersion=default)
    _refuses(lambda: world.update(ADDON, addon, **inputs, addonVersion="v0"), said)
    assert world.update(ADDON, addon, **inputs, addonVersion=newest)["addonVersion"] == newest != default


def test_another_version_replaces_the_nodes_by_those_of_its_newest_image(world: World, cluster: Created) -> None:
    world.account.eks.cluster(cluster.id).version = "1.35"
    inputs = world.node_group_inputs(cluster)
    group = world.create(NODES, **{**inputs, "version": "1.35"})
    assert group.outputs["releaseVersion"] == "1.35.4-20260807"
    before = set(_plane(world).nodes)
    outputs = world.update(NODES, group, **{**inputs, "version": "1.36"})
    assert (outputs["version"], outputs["releaseVersion"]) == ("1.36", "1.36.3-20260807")
    assert len(_plane(world).nodes) == 2
    assert not before & set(_plane(world).nodes)


def test_another_release_of_the_image_replaces_the_nodes(world: World, cluster: Created) -> None:
    folder = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended"
    find = invokes(world.account)["aws:ssm/getParameter:getParameter"]
    newest = find({"name": f"{folder}/release_version"})["insecureValue"]
    _refuses(lambda: find({"name": f"{folder}/nothing"}), "reading SSM Parameter .*: couldn't find resource")
    inputs = world.node_group_inputs(cluster, version="1.36", releaseVersion="1.36.3-20260703")
    said = (
        "InvalidParameterException: Requested release version 1.35.4-20260703 is not valid for kubernetes version 1.36"
    )
    _refuses(lambda: world.create(NODES, **{**inputs, "releaseVersion": "1.35.4-20260703"}), said)
    group = world.create(NODES, **inputs)
    before = set(_plane(world).nodes)
    outputs = world.update(NODES, group, **{**inputs, "releaseVersion": newest})
    assert outputs["releaseVersion"] == newest == "1.36.3-20260807"
    after = set(_plane(world).nodes)
    assert len(after) == len(before) == 2
    assert not after & before
    assert {instance["ImageId"] for instance in _instances(world)} == {
        find({"name": f"{folder}/image_id"})["insecureValue"]
    }
    # A release that exists, with its own kubelet, is made when it is asked for.
    real = world.update(NODES, Created(group.id, outputs), **{**inputs, "releaseVersion": "1.36.2-20260714"})
    assert real["releaseVersion"] == "1.36.2-20260714"
    outputs = world.update(NODES, Created(group.id, real), **{**inputs, "releaseVersion": newest})
    after = set(_plane(world).nodes)
    same = Created(group.id, outputs)
    world.update(NODES, same, **{**inputs, "releaseVersion": newest})
    assert set(_plane(world).nodes) == after


def test_a_cluster_is_told_as_whom_it_is_made(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        given = {"region": "us-east-1", "profile": "platform", "assumeRoles": '[{"roleArn": "arn:a"}]'}
        known = configuration(world.account, world.clusters).configure(given, threading.Event())
        (kind,) = [kind for kind in known.resources if kind.token == CLUSTER]
        assert isinstance(kind, AwsResource)
        assert kind.session.deployer == {"--profile": "platform", "--role-arn": "arn:a"}


def test_the_default_security_group_is_emptied_and_let_go_of(world: World) -> None:
    vpc = world.vpc()
    group = world.create("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", vpcId=vpc.id)
    assert group.id == vpc.outputs["defaultSecurityGroupId"]
    described = world.client("ec2").describe_security_groups(GroupIds=[group.id])["SecurityGroups"][0]
    assert not described["IpPermissions"]
    assert not described["IpPermissionsEgress"]
    world.delete("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", group)
    world.delete("aws:ec2/vpc:Vpc", vpc)
