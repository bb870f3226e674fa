"""EKS beyond moto, over the wire and in this process."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.account import Account
from tests.unit.rehearsal.aws_world import CLUSTER, Stack, trust

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@pytest.fixture
def stack(aws: Account) -> Stack:
    made = Stack(aws)
    made.add_cluster()
    return made


def refused(call: Callable[..., Any], code: str, said: str, **request: Any) -> None:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    assert error["Code"] == code
    assert said in error["Message"]


def test_the_cluster_tells_the_truth(stack: Stack) -> None:
    eks = stack.account.client("eks")
    stack.account.eks.set_endpoint(CLUSTER, "https://127.0.0.1:6443", b"PEM")
    seen = eks.describe_cluster(name=CLUSTER)["cluster"]
    assert seen["endpoint"] == "https://127.0.0.1:6443"
    assert base64.b64decode(seen["certificateAuthority"]["data"]) == b"PEM"
    assert seen["identity"]["oidc"]["issuer"] == stack.account.eks.issuer(CLUSTER)
    assert stack.account.eks.cluster_of(stack.account.eks.issuer(CLUSTER)) == CLUSTER
    assert seen["accessConfig"]["authenticationMode"] == "API"


def test_the_cluster_has_a_real_group_and_real_interfaces(stack: Stack) -> None:
    eks, ec2 = stack.account.client("eks"), stack.account.client("ec2")
    network = eks.describe_cluster(name=CLUSTER)["cluster"]["resourcesVpcConfig"]
    assert network["vpcId"] == stack.vpc
    group = ec2.describe_security_groups(GroupIds=[network["clusterSecurityGroupId"]])["SecurityGroups"][0]
    assert group["VpcId"] == stack.vpc
    assert group["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group["GroupId"]
    interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert {nic["Description"] for nic in interfaces} == {f"Amazon EKS {CLUSTER}"}
    assert {nic["SubnetId"] for nic in interfaces} == set(stack.subnets)
    eks.delete_cluster(name=CLUSTER)
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    refused(ec2.describe_security_groups, "InvalidGroup.NotFound", "", GroupIds=[group["GroupId"]])


def test_the_creator_is_administrator_unless_told_otherwise(stack: Stack) -> None:
    eks = stack.account.client("eks")
    arn = "arn:aws:iam::123456789012:user/administrator"
    assert eks.list_access_entries(clusterName=CLUSTER)["accessEntries"] == [arn]
    policies = eks.list_associated_access_policies(clusterName=CLUSTER, principalArn=arn)["associatedAccessPolicies"]
    assert [policy["policyArn"] for policy in policies] == [ADMIN_POLICY]
    eks.delete_cluster(name=CLUSTER)
    stack.add_cluster(accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False})
    assert eks.list_access_entries(clusterName=CLUSTER)["accessEntries"] == []


def test_access_entries_need_the_api_mode(stack: Stack) -> None:
    eks = stack.account.client("eks")
    eks.delete_cluster(name=CLUSTER)
    stack.add_cluster(accessConfig={})
    refused(
        eks.create_access_entry,
        "InvalidRequestException",
        "authentication mode",
        clusterName=CLUSTER,
        principalArn=stack.node_role,
    )


def test_access_entries(stack: Stack) -> None:
    eks = stack.account.client("eks")
    made = eks.create_access_entry(clusterName=CLUSTER, principalArn=stack.node_role, type="EC2_LINUX")["accessEntry"]
    assert made["kubernetesGroups"] == ["system:nodes"]
    request = {"clusterName": CLUSTER, "principalArn": stack.node_role}
    refused(eks.create_access_entry, "ResourceInUseException", "already in use on this cluster", **request)
    seen = eks.describe_access_entry(**request)["accessEntry"]
    assert (seen["type"], seen["accessEntryArn"]) == ("EC2_LINUX", made["accessEntryArn"])
    refused(
        eks.associate_access_policy,
        "InvalidRequestException",
        "EC2_LINUX",
        **request,
        policyArn=ADMIN_POLICY,
        accessScope={"type": "cluster"},
    )
    eks.delete_access_entry(**request)
    refused(eks.delete_access_entry, "ResourceNotFoundException", "list-access-entries", **request)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"principalArn": "arn:aws:iam::123456789012:role/absent"}, "invalid principal"),
        ({"type": "EC2_SOLARIS"}, "EC2_SOLARIS"),
        ({"type": "EC2_LINUX", "kubernetesGroups": ["nodes"]}, "EC2_LINUX"),
        ({"kubernetesGroups": ["system:masters"]}, "system:"),
    ],
)
def test_bad_access_entries(stack: Stack, change: dict[str, Any], said: str) -> None:
    refused(
        stack.account.client("eks").create_access_entry,
        "InvalidParameterException",
        said,
        **{"clusterName": CLUSTER, "principalArn": stack.node_role, **change},
    )


def test_access_policies(stack: Stack) -> None:
    eks = stack.account.client("eks")
    request = {"clusterName": CLUSTER, "principalArn": stack.node_role}
    eks.create_access_entry(**request)
    refused(
        eks.associate_access_policy,
        "InvalidParameterException",
        "policyArn",
        **request,
        policyArn="arn:aws:iam::aws:policy/AdministratorAccess",
        accessScope={"type": "cluster"},
    )
    eks.associate_access_policy(**request, policyArn=ADMIN_POLICY, accessScope={"type": "cluster"})
    eks.disassociate_access_policy(**request, policyArn=ADMIN_POLICY)
    refused(
        eks.disassociate_access_policy, "ResourceNotFoundException", "not associated", **request, policyArn=ADMIN_POLICY
    )


def test_addons(stack: Stack) -> None:
    eks = stack.account.client("eks")
    request = {"clusterName": CLUSTER, "addonName": "coredns"}
    assert eks.create_addon(**request)["addon"]["status"] == "CREATING"
    refused(eks.create_addon, "ResourceInUseException", "already exists", **request)
    stack.account.eks.settle_addon(CLUSTER, "coredns", "no nodes")
    seen = eks.describe_addon(**request)["addon"]
    assert seen["status"] == "CREATE_FAILED"
    assert seen["health"]["issues"][0]["code"] == "InsufficientNumberOfReplicas"
    assert seen["health"]["issues"][0]["message"] == "no nodes"
    stack.account.eks.settle_addon(CLUSTER, "coredns")
    assert stack.account.eks.addon_status(CLUSTER, "coredns") == "ACTIVE"
    stack.account.eks.settle_addon(CLUSTER, "coredns", "nodes went away")
    assert stack.account.eks.addon_status(CLUSTER, "coredns") == "DEGRADED"
    refused(eks.update_addon, "InvalidParameterException", "not supported", **request, addonVersion="v9")
    eks.update_addon(**request, addonVersion="v1.13.9-eksbuild.1")
    assert eks.describe_addon(**request)["addon"]["addonVersion"] == "v1.13.9-eksbuild.1"
    eks.delete_addon(**request)
    assert eks.list_addons(clusterName=CLUSTER)["addons"] == []
    refused(eks.describe_addon, "ResourceNotFoundException", "No addon: coredns", **request)
    refused(eks.create_addon, "InvalidParameterException", "not supported", clusterName=CLUSTER, addonName="nonsense")


def test_pod_identity_associations(stack: Stack) -> None:
    eks = stack.account.client("eks")
    request = {"clusterName": CLUSTER, "namespace": "kube-system", "serviceAccount": "karpenter"}
    refused(
        eks.create_pod_identity_association,
        "InvalidParameterException",
        "does not exist",
        **request,
        roleArn="arn:aws:iam::123456789012:role/absent",
    )
    refused(
        eks.create_pod_identity_association,
        "InvalidParameterException",
        "Trust policy",
        **request,
        roleArn=stack.node_role,
    )
    made = eks.create_pod_identity_association(**request, roleArn=stack.pod_role)["association"]
    refused(
        eks.create_pod_identity_association,
        "ResourceInUseException",
        made["associationId"],
        **request,
        roleArn=stack.pod_role,
    )
    named = {"clusterName": CLUSTER, "associationId": made["associationId"]}
    assert eks.describe_pod_identity_association(**named)["association"]["roleArn"] == stack.pod_role
    assert len(eks.list_pod_identity_associations(clusterName=CLUSTER, namespace="kube-system")["associations"]) == 1
    assert eks.list_pod_identity_associations(clusterName=CLUSTER, namespace="default")["associations"] == []
    other = stack.role("other", trust("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession"))
    eks.update_pod_identity_association(**named, roleArn=other)
    found = stack.account.eks.association(CLUSTER, "kube-system", "karpenter")
    assert found is not None
    assert found["roleArn"] == other
    eks.delete_pod_identity_association(**named)
    refused(eks.delete_pod_identity_association, "ResourceNotFoundException", "No association", **named)


def test_everything_of_an_absent_cluster_is_absent(aws: Account) -> None:
    eks = aws.client("eks")
    refused(eks.list_addons, "ResourceNotFoundException", "No cluster found for name: nowhere", clusterName="nowhere")
    refused(eks.create_access_entry, "ResourceNotFoundException", "nowhere", clusterName="nowhere", principalArn="x")


def test_a_node_group_launches_its_nodes_and_enters_its_role(stack: Stack) -> None:
    eks, ec2 = stack.account.client("eks"), stack.account.client("ec2")
    stack.add_node_group(2)
    ids = [provider_id.rpartition("/")[2] for provider_id in stack.account.eks.node_instances(CLUSTER, "system")]
    instances = [stack.instance(instance) for instance in ids]
    assert {instance["SubnetId"] for instance in instances} == set(stack.subnets)
    assert {instance["InstanceType"] for instance in instances} == {"m5.large"}
    group = stack.account.eks.security_group(CLUSTER)
    assert {item["GroupId"] for instance in instances for item in instance["SecurityGroups"]} == {group}
    entry = eks.describe_access_entry(clusterName=CLUSTER, principalArn=stack.system_role)["accessEntry"]
    assert entry["type"] == "EC2_LINUX"
    refused(
        eks.create_access_entry,
        "ResourceInUseException",
        "already in use",
        clusterName=CLUSTER,
        principalArn=stack.system_role,
        type="EC2_LINUX",
    )
    refused(eks.delete_cluster, "ResourceInUseException", "nodegroups attached", name=CLUSTER)
    eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName="system", scalingConfig={"desiredSize": 3})
    assert len(stack.account.eks.node_instances(CLUSTER, "system")) == 3
    eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName="system", scalingConfig={"desiredSize": 1})
    assert len(stack.account.eks.node_instances(CLUSTER, "system")) == 1
    eks.delete_nodegroup(clusterName=CLUSTER, nodegroupName="system")
    assert {stack.instance(instance)["State"]["Name"] for instance in ids} == {"terminated"}
    assert [
        profile["InstanceProfileName"]
        for profile in stack.account.client("iam").list_instance_profiles()["InstanceProfiles"]
    ] == ["nodes"]
    eks.delete_cluster(name=CLUSTER)
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []


def test_what_a_node_group_needs(stack: Stack) -> None:
    refused(stack.add_node_group, "InvalidParameterException", "does not exist", subnets=["subnet-0123456789abcdef0"])


def test_nodes_join_with_a_fitting_entry_only(stack: Stack) -> None:
    eks, iam = stack.account.client("eks"), stack.account.client("iam")

    def refusal() -> str:
        return stack.account.eks.node_refusal(CLUSTER, stack.account.roles.by_arn(stack.node_role))

    assert "has no access entry" in refusal()
    assert "EC2_LINUX" in refusal()
    eks.create_access_entry(clusterName=CLUSTER, principalArn=stack.node_role)
    assert "has the type STANDARD" in refusal()
    eks.delete_access_entry(clusterName=CLUSTER, principalArn=stack.node_role)
    eks.create_access_entry(clusterName=CLUSTER, principalArn=stack.node_role, type="EC2_LINUX")
    assert refusal() == ""
    iam.remove_role_from_instance_profile(InstanceProfileName="nodes", RoleName="node")
    iam.detach_role_policy(RoleName="node", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
    iam.delete_role(RoleName="node")
    stack.role("node", trust("ec2.amazonaws.com"))
    assert "older role" in refusal()


def test_versions_are_those_of_the_facts(aws: Account) -> None:
    eks = aws.client("eks")
    offered = {
        one["clusterVersion"]: one["versionStatus"] for one in eks.describe_cluster_versions()["clusterVersions"]
    }
    everything = eks.describe_cluster_versions(includeAll=True)["clusterVersions"]
    assert set(offered.values()) <= {"STANDARD_SUPPORT", "EXTENDED_SUPPORT"}
    assert "1.28" not in offered
    (ended,) = (one for one in everything if one["clusterVersion"] == "1.28")
    assert (ended["versionStatus"], ended["endOfExtendedSupportDate"].year) == ("UNSUPPORTED", 2025)
    (one,) = eks.describe_cluster_versions(clusterVersions=["1.36"])["clusterVersions"]
    assert one["clusterVersion"] == "1.36"
