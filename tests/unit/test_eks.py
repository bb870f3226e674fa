"""components.eks and components.kubernetes under Pulumi's mocks: parents, wiring, order, secrets."""

from __future__ import annotations

import json
import runpy
from functools import cache, partial
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components import eks, versions
from components.eks import environment
from components.kubernetes import live
from components.kubernetes.cilium import refuse_other_addresses
from components.problems import SettingsError
from components.settings.reach_checks import out_of_reach
from tests.unit.example_stack import eks as settings
from tests.unit.example_stack import example
from tests.unit.mock_engine import ACCOUNT, PARTITION, REGION, ZONES, Deployment, Registered, deploy, unknown

MAIN = Path(__file__).resolve().parents[2] / "__main__.py"
ADMIN = "arn:aws:iam::210987654321:role/teams/platform-admin"


def deployed(preview: bool = False, **changes: Any) -> Deployment:
    def program() -> None:
        pulumi.runtime.set_all_config(example(**changes))
        runpy.run_path(str(MAIN), run_name="__main__")

    return deploy(program, preview)


@cache
def stack() -> Deployment:
    """The example as it is."""
    return deployed()


@cache
def variant() -> Deployment:
    """Every choice made the other way."""
    provider: dict[str, Any] = {"aws:profile": "platform"}
    return deployed(
        **provider,
        cluster__addonVersions={"coredns": "v1"},
        cluster__admins=[ADMIN],
        cluster__deletionProtection=False,
        karpenter__settings={"enableZonalShift": True},
        systemNodes__releaseVersion="1.36.2-20260714",
        cluster__publicAccessCidrs=["1.1.1.0/24"],
        karpenter__identity="irsa",
        karpenter__interruptionQueue=False,
        network__flowLogRetentionDays=7,
        network__natGateways="per-zone",
        network__zones=["us-east-1b", "us-east-1d"],
        nodePools={},
    )


def release(deployment: Deployment, name: str) -> Registered:
    return deployment.one(f"eks-{name}", "kubernetes:helm.sh/v3:Release")


def resource(deployment: Deployment, type_: str) -> Registered:
    (only,) = deployment.of(type_)
    return only


CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


def test_fewer_than_100_resources() -> None:
    assert 60 < len(stack().resources) < 100


def test_every_resource_has_a_component_as_parent_and_every_component_is_ours() -> None:
    for each in stack().resources.values():
        parent = stack().resources.get(each.parent)
        if each.type == "karpstack:eks:Environment":
            assert parent is None
        else:
            assert parent is not None, each.urn
            assert parent.type.startswith("karpstack:"), each.urn
        if not each.request.custom:
            assert each.type.split(":")[1] in ("eks", "kubernetes"), each.urn


def test_logical_names_lie_under_their_components() -> None:
    for each in stack().resources.values():
        parent = stack().resources.get(each.parent)
        assert parent is None or each.name.startswith(f"{parent.name}-"), each.urn


def test_only_private_subnets_can_be_discovered() -> None:
    subnets = stack().of("aws:ec2/subnet:Subnet")
    discovered = {subnet.name for subnet in subnets if "karpenter.sh/discovery" in subnet.inputs["tags"]}
    assert discovered == {f"eks-network-private-{index}" for index in range(3)}
    assert {subnet.name for subnet in subnets} - discovered == {f"eks-network-public-{index}" for index in range(3)}


def test_nodes_and_control_plane_are_in_private_subnets() -> None:
    private = [f"eks-network-private-{index}-id" for index in range(3)]
    assert resource(stack(), CLUSTER).inputs["vpcConfig"]["subnetIds"] == private
    assert resource(stack(), NODE_GROUP).inputs["subnetIds"] == private


def test_each_zone_has_its_subnets_and_one_gateway_serves_all() -> None:
    subnets = stack().of("aws:ec2/subnet:Subnet")
    assert sorted(subnet.inputs["availabilityZone"] for subnet in subnets) == sorted(ZONES[:3] * 2)
    assert len(stack().of("aws:ec2/natGateway:NatGateway")) == 1
    assert len(stack().of("aws:ec2/routeTableAssociation:RouteTableAssociation")) == 6


def test_a_gateway_for_each_named_zone() -> None:
    subnets = variant().of("aws:ec2/subnet:Subnet")
    assert sorted(subnet.inputs["availabilityZone"] for subnet in subnets) == ["us-east-1b"] * 2 + ["us-east-1d"] * 2
    assert len(variant().of("aws:ec2/natGateway:NatGateway")) == 2
    tables = {
        link.inputs["subnetId"]: link.inputs["routeTableId"]
        for link in variant().of("aws:ec2/routeTableAssociation:RouteTableAssociation")
    }
    assert tables["eks-network-private-0-id"] == "eks-network-0-private-id"
    assert tables["eks-network-private-1-id"] == "eks-network-1-private-id"


def test_a_region_with_too_few_zones_is_refused() -> None:
    with pytest.raises(pulumi.RunError, match="at least 5 zones, but this region offers EKS in 4"):
        deployed(network__zones=5)


def test_a_zone_without_control_planes_is_refused_by_the_account() -> None:
    """The mocks' account has four zones, and us-east-1e is where EKS has none."""
    with pytest.raises(SettingsError, match=r"network.zones = .*\n.*names us-east-1e, in which this account"):
        deployed(network__zones=["us-east-1a", "us-east-1e"])


def test_the_control_plane_is_closed_encrypted_and_bare() -> None:
    inputs = resource(stack(), CLUSTER).inputs
    assert inputs["bootstrapSelfManagedAddons"] is False
    assert inputs["accessConfig"]["authenticationMode"] == "API"
    assert inputs["encryptionConfig"]["resources"] == ["secrets"]
    assert inputs["vpcConfig"]["endpointPrivateAccess"] is True
    assert inputs["vpcConfig"]["endpointPublicAccess"] is False
    assert "publicAccessCidrs" not in inputs["vpcConfig"]
    assert len(inputs["enabledClusterLogTypes"]) == 5
    assert inputs["kubernetesNetworkConfig"] == {"serviceIpv4Cidr": "172.20.0.0/16"}


def test_add_ons_and_system_nodes_are_kept_up_to_date() -> None:
    versions = {addon.inputs["addonName"]: addon.inputs["addonVersion"] for addon in stack().of("aws:eks/addon:Addon")}
    assert versions == {name: f"default of {name} for 1.36" for name in ("coredns", "eks-pod-identity-agent")}
    group = resource(stack(), NODE_GROUP)
    path = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/release_version"
    assert group.inputs["releaseVersion"] == f"text of {path}"
    assert not group.secrets
    assert resource(variant(), "aws:eks/addon:Addon").inputs["addonVersion"] == "v1"
    assert resource(variant(), NODE_GROUP).inputs["releaseVersion"] == "1.36.2-20260714"


def test_a_protected_cluster_is_protected_before_anything_is_deleted() -> None:
    for deployment, protected in ((stack(), True), (variant(), False)):
        cluster = resource(deployment, CLUSTER)
        assert (cluster.inputs["deletionProtection"], cluster.request.protect) == (protected, protected)


def test_zonal_shift_is_the_clusters_as_soon_as_it_is_the_controllers() -> None:
    assert resource(stack(), CLUSTER).inputs["zonalShiftConfig"] == {"enabled": False}
    assert resource(variant(), CLUSTER).inputs["zonalShiftConfig"] == {"enabled": True}


GROUP = "/aws/eks/karpstack-eks/cluster"


@pytest.mark.parametrize(
    ("log_groups", "clusters", "taken_over", "as_it_is"),
    [
        ([], [], "", False),
        ([f"{GROUP}-other"], [], "", False),
        ([GROUP], [], GROUP, True),  # an earlier cluster's
        ([GROUP], ["karpstack-eks"], GROUP, False),  # this cluster's
    ],
)
def test_the_log_group_outlives_the_cluster(
    log_groups: list[str], clusters: list[str], taken_over: str, as_it_is: bool
) -> None:
    deployment = deploy(lambda: eks.Environment("eks", settings()), log_groups=log_groups, clusters=clusters)
    logs = deployment.one("eks-cluster-logs").request
    assert logs.retainOnDelete
    assert logs.importId == taken_over
    assert list(logs.ignoreChanges) == (["retentionInDays", "tags"] if as_it_is else [])


@pytest.mark.parametrize(
    ("changes", "is_other"),
    [
        ({"systemNodes__instanceType": "m6i.large"}, True),
        ({"systemNodes__instanceType": "m6g.large", "systemNodes__amiType": "AL2023_ARM_64_STANDARD"}, True),
        ({"network__zones": 4}, True),
        ({"systemNodes__maxSize": 4, "systemNodes__diskSize": 60, "cluster__version": "1.35"}, False),
        ({"network__zones": ZONES[:3]}, False),
    ],
)
def test_system_nodes_of_another_type_come_before_the_old_ones_go(changes: dict[str, Any], is_other: bool) -> None:
    """Two groups have two names, and a change of what EKS changes in place keeps the name."""
    old, new = (resource(one, NODE_GROUP) for one in (stack(), deployed(**changes)))
    assert new.request.deleteBeforeReplaceDefined
    assert not new.request.deleteBeforeReplace
    assert (old.inputs["nodeGroupName"] != new.inputs["nodeGroupName"]) is is_other


def test_the_cluster_is_known_by_its_arn_and_not_by_its_address() -> None:
    """Without an identifier, another address or authority replaces every object in the cluster."""
    provider = resource(stack(), "pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == "arn:eks-cluster-control-plane"
    assert list(provider.request.hooks.before_create) == ["eks-kubernetes-kept"]


CILIUM = "kubernetes:helm.sh/v3:Release"


def cilium_update(**changes: Any) -> pulumi.ResourceHookArgs:
    pool = {"clusterPoolIPv4PodCIDRList": ["10.100.0.0/16"], "clusterPoolIPv4MaskSize": 24.0}
    old, new = ({"values": {"ipam": {"operator": each}}} for each in (pool, pool | changes))
    return pulumi.ResourceHookArgs("urn", "id", "eks-cilium-release", CILIUM, old_inputs=old, new_inputs=new)


def test_a_change_of_pods_addresses_is_refused() -> None:
    assert list(release(stack(), "cilium-release").request.hooks.before_update) == ["eks-cilium-pods"]
    for change, text in (
        (
            {"clusterPoolIPv4PodCIDRList": ["10.101.0.0/16"]},
            "karpstack:network.podCidr 10.100.0.0/16 -> 10.101.0.0/16",
        ),
        ({"clusterPoolIPv4MaskSize": 25}, "karpstack:network.podCidrMaskSize 24 -> 25"),
    ):
        with pytest.raises(pulumi.RunError) as caught:
            refuse_other_addresses(cilium_update(**change))
        assert text in str(caught.value)
        assert "another stack" in str(caught.value)
    refuse_other_addresses(cilium_update())
    refuse_other_addresses(cilium_update(clusterPoolIPv4MaskSize="24"))
    refuse_other_addresses(pulumi.ResourceHookArgs("urn", "id", "eks-cilium-release", CILIUM))


@pytest.mark.parametrize(
    ("changes", "variables", "is_refused"),
    [
        ({}, {}, True),
        ({}, {"AWS_ENDPOINT_URL": "https://vpce-1.eks.us-east-1.vpce.amazonaws.com"}, True),
        ({}, {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, False),
        ({}, {"AWS_ENDPOINT_URL": "http://localhost:4566"}, False),
        ({}, {"PULUMI_DEBUG_PROVIDERS": "kubernetes:1"}, True),
        ({}, {"PULUMI_DEBUG_PROVIDERS": "kubernetes:1,aws:2"}, False),
        ({"cluster__publicAccessCidrs": ["1.1.1.0/24"]}, {}, False),
    ],
)
def test_a_cluster_that_nobody_could_reach_is_refused(
    changes: dict[str, Any], variables: dict[str, str], is_refused: bool
) -> None:
    told = settings(**changes)
    found = list(out_of_reach(told.network, told.cluster, variables))
    assert [problem.key for problem in found] == ["karpstack:cluster.publicAccessCidrs"] * is_refused


def test_it_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "out_of_reach", partial(out_of_reach, variables={}))
    with pytest.raises(SettingsError, match="without a public endpoint"):
        deployed()


def test_what_needs_the_cluster_waits_until_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of an after hook would only be a warning."""

    def program() -> None:
        monkeypatch.setattr(live.wait_until_served, "side_effect", pulumi.RunError("it did not answer"))
        eks.Environment("eks", settings())

    with pytest.raises(pulumi.RunError, match="it did not answer"):
        deploy(program)
    assert not resource(stack(), CLUSTER).request.hooks.after_create


def test_flow_logs_are_a_choice() -> None:
    assert not stack().of("aws:ec2/flowLog:FlowLog")
    log = resource(variant(), "aws:ec2/flowLog:FlowLog")
    assert log.inputs["vpcId"] == "eks-network-vpc-id"
    assert log.inputs["logDestination"] == "arn:eks-flow-logs-group"
    assert variant().one("eks-flow-logs-group").inputs["retentionInDays"] == 7
    assert variant().needs(
        log, variant().one("eks-flow-logs-delivery", "aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    )


def test_the_vpcs_own_security_group_lets_nothing_through() -> None:
    group = resource(stack(), "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup").inputs
    assert group["vpcId"] == "eks-network-vpc-id"
    assert not {"ingress", "egress"} & group.keys()


def test_a_public_endpoint_is_there_for_the_list_alone() -> None:
    vpc_config = resource(variant(), CLUSTER).inputs["vpcConfig"]
    assert vpc_config["endpointPublicAccess"] is True
    assert vpc_config["publicAccessCidrs"] == ["1.1.1.0/24"]


def test_the_clusters_own_security_group_can_be_discovered() -> None:
    tag = resource(stack(), "aws:ec2/tag:Tag").inputs
    assert tag == {"resourceId": "sg-cluster", "key": "karpenter.sh/discovery", "value": "karpstack-eks"}


def test_system_nodes_are_tainted_and_keep_their_credentials() -> None:
    group = resource(stack(), NODE_GROUP).inputs
    assert group["taints"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}]
    assert group["scalingConfig"] == {"minSize": 2, "desiredSize": 2, "maxSize": 10}
    template = resource(stack(), "aws:ec2/launchTemplate:LaunchTemplate").inputs
    assert template["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    assert template["blockDeviceMappings"][0]["ebs"]["encrypted"] == "true"


def test_karpenters_nodes_have_a_role_of_their_own_that_may_enter() -> None:
    names = {role.inputs["name"] for role in stack().of("aws:iam/role:Role")}
    assert names == {
        "karpstack-eks-cluster",
        "karpstack-eks-system-nodes",
        "karpstack-eks-karpenter-nodes",
        "karpstack-eks-karpenter-controller",
    }
    entry = resource(stack(), "aws:eks/accessEntry:AccessEntry").inputs
    assert entry["principalArn"] == "arn:eks-node-role"
    assert entry["type"] == "EC2_LINUX"
    for node_class in stack().of(NODE_CLASS):
        assert node_class.inputs["spec"]["role"] == "karpstack-eks-karpenter-nodes"


def test_nodes_do_not_get_the_permissions_of_the_vpc_cni() -> None:
    policies = {link.inputs["policyArn"] for link in stack().of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")}
    assert f"arn:{PARTITION}:iam::aws:policy/AmazonEKSWorkerNodePolicy" in policies
    assert not any("AmazonEKS_CNI_Policy" in policy for policy in policies)


def test_administrators_get_an_entry_and_the_policy() -> None:
    entry = variant().one("eks-access-admin-210987654321-platform-admin", "aws:eks/accessEntry:AccessEntry")
    assert (entry.inputs["principalArn"], entry.inputs["type"]) == (ADMIN, "STANDARD")
    policy = resource(variant(), "aws:eks/accessPolicyAssociation:AccessPolicyAssociation").inputs
    assert policy["policyArn"] == f"arn:{PARTITION}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert policy["accessScope"] == {"type": "cluster"}


def test_the_controllers_policies_are_scoped_to_this_environment() -> None:
    policies = {policy.name: json.loads(policy.inputs["policy"]) for policy in stack().of("aws:iam/policy:Policy")}
    assert len(policies) == 7
    passed = policies["eks-controller-iam-integration"]["Statement"][0]
    # By name: at the first preview the resources have no ARN yet, and the policy pack must see the documents.
    (node_role,) = [role.inputs["name"] for role in stack().of("aws:iam/role:Role") if role.name == "eks-node-role"]
    queue = resource(stack(), "aws:sqs/queue:Queue").inputs["name"]
    assert (passed["Action"], passed["Resource"]) == (
        "iam:PassRole",
        f"arn:{PARTITION}:iam::{ACCOUNT}:role/{node_role}",
    )
    assert policies["eks-controller-interruption"]["Statement"][0]["Resource"] == (
        f"arn:{PARTITION}:sqs:{REGION}:{ACCOUNT}:{queue}"
    )
    assert policies["eks-controller-eks-integration"]["Statement"][0]["Resource"] == (
        f"arn:{PARTITION}:eks:{REGION}:{ACCOUNT}:cluster/karpstack-eks"
    )


def test_nodes_roles_are_for_ec2_as_the_partition_calls_it() -> None:
    stack = settings(**{"aws:region": "cn-north-1", "network__zones": 2, "nodePools": {}})
    made = deploy(lambda: eks.Environment("eks", stack))
    for name in ("eks-node-role", "eks-system-node-role"):
        trust = json.loads(made.one(name).inputs["assumeRolePolicy"])
        assert trust["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com.cn"}


def test_pod_identity_ties_the_role_to_the_charts_service_account() -> None:
    association = resource(stack(), ASSOCIATION).inputs
    values = release(stack(), "karpenter-controller").inputs["values"]
    assert association["namespace"] == release(stack(), "karpenter-controller").inputs["namespace"]
    assert association["serviceAccount"] == values["serviceAccount"]["name"]
    assert association["roleArn"] == "arn:eks-controller-role"
    assert values["serviceAccount"]["annotations"] == {}
    assert not stack().of("aws:iam/openIdConnectProvider:OpenIdConnectProvider")


def test_the_controllers_role_is_taken_for_its_pods_only() -> None:
    trust = json.loads(stack().one("eks-controller-role").inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Condition"]["StringEquals"] == {
        "aws:SourceAccount": ACCOUNT,
        "aws:RequestTag/eks-cluster-arn": f"arn:{PARTITION}:eks:{REGION}:{ACCOUNT}:cluster/karpstack-eks",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "karpenter",
    }


def test_irsa_instead_of_pod_identity() -> None:
    assert not variant().of(ASSOCIATION)
    provider = resource(variant(), "aws:iam/openIdConnectProvider:OpenIdConnectProvider")
    assert provider.inputs["url"] == "https://oidc.eks.us-east-1.amazonaws.com/id/ABC"
    role = variant().one("eks-controller-role").inputs
    assert "oidc.eks.us-east-1.amazonaws.com/id/ABC:sub" in role["assumeRolePolicy"]
    values = release(variant(), "karpenter-controller").inputs["values"]
    assert values["serviceAccount"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:eks-controller-role"}
    addons = {addon.inputs["addonName"] for addon in variant().of("aws:eks/addon:Addon")}
    assert addons == {"coredns"}


def test_interruptions_reach_the_controller() -> None:
    queue = resource(stack(), "aws:sqs/queue:Queue").inputs
    assert queue["sqsManagedSseEnabled"] is True
    assert queue["messageRetentionSeconds"] == 300
    targets = stack().of("aws:cloudwatch/eventTarget:EventTarget")
    assert len(targets) == len(stack().of("aws:cloudwatch/eventRule:EventRule")) == 5
    assert {target.inputs["arn"] for target in targets} == {"arn:eks-interruption-queue"}
    values = release(stack(), "karpenter-controller").inputs["values"]
    assert values["settings"]["interruptionQueue"] == queue["name"]


def test_the_queue_takes_what_its_own_rules_send() -> None:
    policy = json.loads(resource(stack(), "aws:sqs/queuePolicy:QueuePolicy").inputs["policy"])
    queue = resource(stack(), "aws:sqs/queue:Queue").inputs["name"]
    assert {statement["Resource"] for statement in policy["Statement"]} == {
        f"arn:{PARTITION}:sqs:{REGION}:{ACCOUNT}:{queue}"
    }
    senders = policy["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"]
    rules = [rule.inputs["name"] for rule in stack().of("aws:cloudwatch/eventRule:EventRule")]
    assert sorted(senders) == sorted(f"arn:{PARTITION}:events:{REGION}:{ACCOUNT}:rule/{name}" for name in rules)


def test_without_a_queue_nothing_of_it_is_left() -> None:
    assert not [each for each in variant().resources if "nterruption" in each]
    assert release(variant(), "karpenter-controller").inputs["values"]["settings"]["interruptionQueue"] == ""


def test_the_accounts_spot_role_is_not_ours_to_make() -> None:
    assert not stack().of("aws:iam/serviceLinkedRole:ServiceLinkedRole")
    policy = stack().one("eks-controller-spot-role", "aws:iam/policy:Policy").inputs["policy"]
    assert "iam:CreateServiceLinkedRole" in policy


def test_before_there_is_a_cluster_all_values_are_known_but_its_address() -> None:
    first = deployed(preview=True)
    cilium, karpenter = (release(first, name).inputs["values"] for name in ("cilium-release", "karpenter-controller"))
    assert set(unknown(cilium)) == {"k8sServiceHost", "k8sServicePort"}
    assert set(unknown(karpenter)) == {"settings.clusterEndpoint"}


def test_the_kubeconfig_is_a_secret() -> None:
    provider = resource(stack(), "pulumi:providers:kubernetes")
    assert provider.secrets == {"kubeconfig"}
    assert "https://ABC.gr7" in provider.inputs["kubeconfig"]
    assert "--profile" not in provider.inputs["kubeconfig"]
    assert "--profile" in resource(variant(), "pulumi:providers:kubernetes").inputs["kubeconfig"]


def test_everything_in_the_cluster_uses_its_provider() -> None:
    provider = resource(stack(), "pulumi:providers:kubernetes")
    for each in stack().resources.values():
        if each.type.startswith("kubernetes:"):
            assert each.request.provider == f"{provider.urn}::{provider.name}-id", each.urn


def test_charts_are_the_pinned_ones_under_names_that_do_not_change() -> None:
    charts = {
        each.inputs["name"]: (each.inputs["chart"], each.inputs["version"])
        for each in stack().of("kubernetes:helm.sh/v3:Release")
    }
    assert charts == {
        "cilium": ("cilium", "1.20.2"),
        "karpenter-crd": ("oci://public.ecr.aws/karpenter/karpenter-crd", versions.KARPENTER_AWS),
        "karpenter": ("oci://public.ecr.aws/karpenter/karpenter", versions.KARPENTER_AWS),
    }


def test_cilium_is_not_awaited_and_knows_the_api_server() -> None:
    cilium = release(stack(), "cilium-release").inputs
    assert cilium["skipAwait"] is True
    assert cilium["values"]["k8sServiceHost"] == "abc.gr7.us-east-1.eks.amazonaws.com"
    assert "skipAwait" not in release(stack(), "karpenter-controller").inputs


def test_a_change_of_cilium_is_awaited_once_there_are_nodes() -> None:
    def patches(deployment: Deployment) -> dict[str, Any]:
        return {
            each.inputs["metadata"]["name"]: each.inputs["metadata"]["annotations"]["karpstack.io/release"]
            for kind in ("DaemonSet", "Deployment")
            for each in deployment.of(f"kubernetes:apps/v1:{kind}Patch")
        }

    assert set(patches(stack())) == {"cilium", "cilium-operator"}
    assert patches(stack()) == patches(deployed())
    assert not set(patches(stack()).values()) & set(patches(deployed(network__podCidrMaskSize=25)).values())


def test_the_node_pools_are_the_stacks() -> None:
    assert [each.inputs["metadata"]["name"] for each in stack().of(NODE_POOL)] == ["default"]
    assert sorted(each.inputs["metadata"]["name"] for each in stack().of(NODE_CLASS)) == ["bottlerocket", "default"]


ORDER = [
    # what, needs what, and so is deleted before it
    (NODE_GROUP, "eks-cilium-release"),
    (NODE_GROUP, "eks-network-0-private-default"),
    ("eks-cilium-roll-out-agent", NODE_GROUP),
    ("eks-cilium-roll-out-agent", "eks-cilium-release"),
    ("eks-addons-coredns", NODE_GROUP),
    ("eks-addons-eks-pod-identity-agent", NODE_GROUP),
    ("eks-karpenter-controller", "eks-addons-coredns"),
    ("eks-karpenter-controller", "eks-addons-eks-pod-identity-agent"),
    ("eks-karpenter-controller", "eks-karpenter-crd"),
    ("eks-karpenter-controller", ASSOCIATION),
    ("eks-karpenter-controller", "eks-controller-node-lifecycle"),
    ("eks-nodes-class-default", "eks-karpenter-controller"),
    (NODE_POOL, "eks-nodes-class-default"),
    (NODE_POOL, "eks-nodes-class-bottlerocket"),
    (NODE_POOL, "eks-access-nodes"),
    (NODE_POOL, "eks-node-role"),
    (NODE_POOL, "eks-node-AmazonEKSWorkerNodePolicy"),
    (NODE_POOL, "eks-interruption-queue-policy"),
    (NODE_POOL, "eks-interruption-spot-interruption"),
    ("eks-nodes-class-default", "eks-cluster-discovery"),
    ("eks-nodes-class-default", "eks-node-role"),
    (CLUSTER, "eks-cluster-role-policy"),
    (CLUSTER, "eks-cluster-logs"),
    (CLUSTER, "aws:kms/key:Key"),
    ("aws:ec2/natGateway:NatGateway", "eks-network-public-default"),
]


def matching(what: str) -> list[Registered]:
    found = [each for each in stack().resources.values() if each.request.custom and what in (each.type, each.name)]
    assert found, what
    return found


@pytest.mark.parametrize(("later", "earlier"), ORDER)
def test_order(later: str, earlier: str) -> None:
    for one in matching(later):
        for other in matching(earlier):
            assert stack().needs(one, other), f"{one.name} may come before {other.name}"
            assert not stack().needs(other, one)


def test_the_crds_do_not_wait_for_nodes() -> None:
    assert not stack().needs(release(stack(), "karpenter-crd"), resource(stack(), NODE_GROUP))


def test_nothing_is_deleted_with_the_cluster_and_node_pools_have_time() -> None:
    assert not any(each.request.deletedWith for each in stack().resources.values())
    assert (
        resource(stack(), NODE_POOL).request.customTimeouts.delete == "80m"
    )  # an hour of draining, and what comes after
    assert all(each.request.customTimeouts.delete == "30m" for each in stack().of(NODE_CLASS))


def test_every_taggable_resource_carries_the_environments_tags() -> None:
    tagged = [each for each in stack().resources.values() if "tags" in each.inputs]
    assert len(tagged) > 30
    for each in tagged:
        assert each.inputs["tags"].items() >= {"owner": "platform", "environment": "development"}.items(), each.urn


def test_user_data_is_a_secret() -> None:
    script = "#!/bin/sh\ncurl --header 'Authorization: ...' https://example.org\n"
    classes = deployed(nodeClasses__default__userData=script).of(NODE_CLASS)
    assert {one.inputs["metadata"]["name"]: one.secrets for one in classes} == {
        "default": frozenset({"spec"}),
        "bottlerocket": frozenset(),
    }
    assert [one.inputs["spec"].get("userData") for one in classes if one.secrets] == [script]
