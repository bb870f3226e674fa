"""Clusters that the account has already: made as the file says, by the requests that EKS refuses, and seen so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.resource import RefusedError
from rehearsal.aws.ec2.existing import Networks
from rehearsal.aws.eks.existing import ClusterFileError, Description, make
from rehearsal.aws.invokes import invokes
from rehearsal.aws.resource import Session
from rehearsal.host.processes import wait_until
from tests.unit.rehearsal.provider_aws_world import FakeCluster, World, open_world
from tests.unit.rehearsal.resource_world import changed_to, without
from tests.unit.test_existing_cluster import STACK

NETWORK = Networks.load(STACK.with_name("Pulumi.eks-existing-cluster.network.json"))
FILE: dict[str, Any] = json.loads(STACK.with_name("Pulumi.eks-existing-cluster.cluster.json").read_text())
NAME = FILE["cluster"]["name"]
Change = Callable[[dict[str, Any]], object]


def description(folder: Path, change: Change = lambda file: None) -> Description:
    file = deepcopy(FILE)
    change(file)
    path = folder / "cluster.json"
    path.write_text(json.dumps(file))
    return Description.load(path)


@contextmanager
def account(folder: Path, change: Change = lambda file: None) -> Iterator[World]:
    """An account with the example's cluster, changed in its file."""
    with open_world(folder, networks=NETWORK) as world:
        make(description(folder, change), Session(world.account, world.clusters))
        yield world


def plane(world: World) -> FakeCluster:
    running: FakeCluster = world.clusters.running[NAME]
    return running


def asked(world: World, name: str, /, **arguments: Any) -> Mapping[str, Any]:
    kind = "iam" if name.startswith("getOpenId") else "eks"
    return invokes(world.account)[f"aws:{kind}/{name}:{name}"](arguments)


def test_it_is_there_as_the_file_says(tmp_path: Path) -> None:
    with account(tmp_path) as world:
        (started,) = world.clusters.started
        assert (started["version"], started["service_cidr"], started["deployer_known"]) == ("1.36", "172.20.0.0/16", 0)
        seen = asked(world, "getCluster", name=NAME)
        assert (seen["status"], seen["version"]) == ("ACTIVE", "1.36")
        assert seen["accessConfigs"][0]["authenticationMode"] == "API_AND_CONFIG_MAP"
        assert seen["vpcConfig"]["clusterSecurityGroupId"] == "sg-0fedcba9876543210"
        assert seen["computeConfigs"] == [{"enabled": False}]
        assert len(plane(world).nodes) == 6
        labels = [node["labels"] for node in plane(world).nodes.values()]
        assert sum(one["eks.amazonaws.com/nodegroup"] == "batch" and one["team"] == "batch" for one in labels) == 2
        assert ("DaemonSet", "aws-node") in plane(world).objects
        assert ("Deployment", "cluster-autoscaler") in plane(world).objects
        assert [world.account.eks.addon_status(NAME, one["addonName"]) for one in FILE["addons"]] == ["ACTIVE"] * 4


def test_the_program_is_told_of_its_groups_add_ons_and_provider(tmp_path: Path) -> None:
    with account(tmp_path) as world:
        assert sorted(asked(world, "getNodeGroups", clusterName=NAME)["names"]) == ["batch", "core", "general"]
        group = asked(world, "getNodeGroup", clusterName=NAME, nodeGroupName="general")
        assert group["subnetIds"] == FILE["nodegroups"][1]["subnets"]
        assert group["scalingConfigs"][0]["desiredSize"] == 2
        assert asked(world, "getAddon", clusterName=NAME, addonName="vpc-cni")["serviceAccountRoleArn"] == ""
        issuer = asked(world, "getCluster", name=NAME)["identities"][0]["oidcs"][0]["issuer"]
        assert asked(world, "getOpenIdConnectProvider", url=issuer)["clientIdLists"] == ["sts.amazonaws.com"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("getNodeGroup", {"clusterName": NAME, "nodeGroupName": "none"}),
        ("getAddon", {"clusterName": NAME, "addonName": "aws-ebs-csi-driver"}),
        ("getOpenIdConnectProvider", {"url": "https://oidc.eks.us-east-1.amazonaws.com/id/NONE"}),
    ],
)
def test_what_is_not_there_is_not_found(tmp_path: Path, name: str, arguments: dict[str, str]) -> None:
    with account(tmp_path) as world, pytest.raises(RefusedError, match="couldn't find resource"):
        asked(world, name, **arguments)


def test_a_provider_of_another_issuer_is_not_its_own(tmp_path: Path) -> None:
    def other(file: dict[str, Any]) -> None:
        file["OpenIDConnectProviderList"][0]["Arn"] += "0"

    with account(tmp_path, other) as world:
        assert not world.client("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"]


def test_an_add_on_may_have_a_role_and_any_version(tmp_path: Path) -> None:
    role = "arn:aws:iam::123456789012:role/cni"

    def given(file: dict[str, Any]) -> None:
        file["addons"][0] |= {"serviceAccountRoleArn": role, "addonVersion": "v1.12.6-eksbuild.2"}

    with account(tmp_path, given) as world:
        seen = asked(world, "getAddon", clusterName=NAME, addonName="vpc-cni")
        assert (seen["serviceAccountRoleArn"], seen["addonVersion"]) == (role, "v1.12.6-eksbuild.2")
        annotations = plane(world).objects["ServiceAccount", "aws-node"]["metadata"]["annotations"]
        assert annotations == {"eks.amazonaws.com/role-arn": role}


def test_nodes_of_a_group_that_is_scaled_join(tmp_path: Path) -> None:
    with account(tmp_path) as world:
        world.client("eks").update_nodegroup_config(
            clusterName=NAME, nodegroupName="batch", scalingConfig={"minSize": 0, "desiredSize": 4, "maxSize": 10}
        )
        wait_until(lambda: len(plane(world).nodes) == 8, "the new nodes", 5)


def test_whoever_deploys_may_be_nobody_there(tmp_path: Path) -> None:
    def nobody(file: dict[str, Any]) -> None:
        file["cluster"]["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] = False

    with account(tmp_path, nobody) as world:
        assert world.clusters.started[0]["deployer_known"] is None


def test_a_cluster_with_the_config_map_alone_takes_no_access_entry(tmp_path: Path) -> None:
    def old(file: dict[str, Any]) -> None:
        file["cluster"]["accessConfig"] = {"authenticationMode": "CONFIG_MAP"}

    with account(tmp_path, old) as world:
        eks = world.client("eks")
        with pytest.raises(eks.exceptions.InvalidRequestException, match="authentication mode must be set to one of"):
            eks.create_access_entry(
                clusterName=NAME, principalArn="arn:aws:iam::123456789012:role/shop-nodes", type="EC2_LINUX"
            )


def test_other_states_are_played(tmp_path: Path) -> None:
    def other(file: dict[str, Any]) -> None:
        file["cluster"] |= {"status": "UPDATING", "computeConfig": {"enabled": True}}

    with account(tmp_path, other) as world:
        seen = asked(world, "getCluster", name=NAME)
        assert (seen["status"], seen["computeConfigs"]) == ("UPDATING", [{"enabled": True}])


def test_what_kubectl_prints_is_applied_without_what_the_api_server_wrote(tmp_path: Path) -> None:
    def printed(file: dict[str, Any]) -> None:
        file["items"][0]["metadata"] |= {
            "uid": "1",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        file["items"][0]["status"] = {"replicas": 1}

    with account(tmp_path, printed) as world:
        applied = plane(world).objects["Deployment", "cluster-autoscaler"]
        assert "status" not in applied
        assert applied["metadata"].keys() == {"name", "namespace", "labels"}


GROUP = ("nodegroups", 0)
REFUSED: dict[str, tuple[Change, str]] = {
    "no cluster": (without("cluster"), "cluster: Field required"),
    "a group without a type": (without(*GROUP, "instanceTypes"), r"nodegroups\.0\.instanceTypes: Field required"),
    "a version that is not offered": (changed_to("1.19", "cluster", "version"), "unsupported Kubernetes version 1.19"),
    "a subnet that is not there": (
        changed_to(["subnet-00000009"], "cluster", "resourcesVpcConfig", "subnetIds"),
        "subnet-00000009",
    ),
    "a VPC that its subnets are not in": (
        changed_to("vpc-00000001", "cluster", "resourcesVpcConfig", "vpcId"),
        r"its vpcId is vpc-00000001, and its subnets \(subnet-",
    ),
    "a type that is not there": (changed_to(["m5.tiny"], *GROUP, "instanceTypes"), "m5.tiny"),
    "sizes that contradict each other": (
        changed_to({"minSize": 4, "desiredSize": 3, "maxSize": 5}, *GROUP, "scalingConfig"),
        "can't be less than min size 4",
    ),
    "an add-on that nobody has": (changed_to("coredsn", "addons", 2, "addonName"), "coredsn"),
    "a role of another account": (
        changed_to("arn:aws:iam::210987654321:role/nodes", *GROUP, "nodeRole"),
        "is no role of the rehearsed account, 123456789012",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, case: str) -> None:
    change, text = REFUSED[case]
    with pytest.raises(ClusterFileError, match=text), account(tmp_path, change):
        pass


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text("cluster:")
    with pytest.raises(ClusterFileError, match="so it is no JSON"):
        Description.load(path)


def test_nodes_that_find_no_network_are_there_and_not_ready(tmp_path: Path) -> None:
    """As in a cluster that waits for Cilium: its node groups are not waited for."""

    def bare(file: dict[str, Any]) -> None:
        file["addons"] = file["addons"][2:]

    with open_world(tmp_path, networks=NETWORK) as world:
        start = world.clusters.start

        def never_ready(name: str, **options: Any) -> FakeCluster:
            started: FakeCluster = start(name, **options)
            started.never_ready, started.unavailable = True, "0 of 2 pods are ready"
            return started

        world.clusters.start = never_ready
        make(description(tmp_path, bare), Session(world.account, world.clusters))
        assert len(plane(world).nodes) == 6
        assert world.account.eks.addon_status(NAME, "coredns") == "DEGRADED"


def test_add_ons_of_a_cluster_without_nodes_are_not_waited_for_long(tmp_path: Path) -> None:
    waited: list[float] = []
    with open_world(tmp_path, networks=NETWORK) as world:
        start = world.clusters.start

        def without_nodes(name: str, **options: Any) -> FakeCluster:
            started: FakeCluster = start(name, **options)

            def wait_available(kind: str, namespace: str, name: str, timeout: float) -> str:
                waited.append(timeout)
                return "0 of 2 pods are ready"

            started.wait_available = wait_available  # type: ignore[method-assign]
            return started

        world.clusters.start = without_nodes
        make(description(tmp_path, changed_to([], "nodegroups")), Session(world.account, world.clusters))
        assert world.account.eks.addon_status(NAME, "coredns") == "DEGRADED"
    assert max(waited) < 5


def test_a_part_that_is_none_is_refused_and_what_a_list_has_is_not(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.eks.cluster.json"
    path.write_text(json.dumps(FILE | {"apiVersion": "v1", "kind": "List", "metadata": {}}))
    assert len(Description.load(path).nodegroups) == 3
    path.write_text(json.dumps({"nodegroup" if key == "nodegroups" else key: part for key, part in FILE.items()}))
    with pytest.raises(
        ClusterFileError, match=r"nodegroup is no part of it, .* OpenIDConnectProviderList, addons, clus"
    ):
        Description.load(path)
