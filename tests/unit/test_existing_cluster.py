"""A cluster that is there: what the program puts on it, and what it refuses before anything is made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pulumi
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis.strategies import DataObject, data

from components import eks, settings
from components.problems import SettingsError
from components.settings.existing_cluster import FoundCluster, Workloads, problems
from components.settings.existing_network import FoundNetwork
from components.workloads import eks as existing_workloads
from karpenter.findings import Finding
from tests.conftest import Golden
from tests.mutations import mutations
from tests.unit.example_stack import ROOT, changed, raw
from tests.unit.found_network import found_network
from tests.unit.made_certificates import certificate
from tests.unit.mock_engine import ACCOUNT, PARTITION, Deployment, Registered, deploy
from tests.unit.test_settings_arrive import keys

STACK = ROOT / "examples" / "existing-cluster" / "Pulumi.eks-existing-cluster.yaml"
NAME, CLUSTER = "karpstack-shop", "Shop_1"
VPC, OTHER_VPC = "vpc-00000001", "vpc-00000002"
A, B, C = (f"subnet-0000000{letter}" for letter in "abc")
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
RELEASE = "kubernetes:helm.sh/v3:Release"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
#: A cluster with the VPC CNI, the agent and three managed nodes.
RUNS = Workloads(networks=["aws-node"], kube_proxy=True, agent=True, ready=3, places=3)
#: One that has no network yet.
BARE = Workloads(agent=True)
CILIUM: dict[str, Any] = {"cilium": {"install": True}, "network__podCidr": "10.244.0.0/16"}


def config(**changes: Any) -> dict[str, str]:
    """The example's configuration in a network that the mocks have, without subnets of its own; None removes a key."""
    said = yaml.safe_load(STACK.read_text())["config"]
    said["karpstack:network"] = {}
    return raw(changed(said, changes))


def example(**changes: Any) -> settings.ExistingEksSettings:
    loaded = settings.load(config(**changes))
    assert isinstance(loaded, settings.ExistingEksSettings)
    return loaded


def deployed(
    runs: Workloads = RUNS,
    preview: bool = False,
    clusters: Sequence[str] = (CLUSTER,),
    errors: dict[str, str] | None = None,
    **changes: Any,
) -> Deployment:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_workloads, "look", lambda kubeconfig, stack: runs)
        return deploy(lambda: eks.Environment("eks", example(**changes)), preview, clusters=clusters, errors=errors)


@cache
def stack() -> Deployment:
    return deployed()


def release(deployment: Deployment, name: str) -> Registered:
    return deployment.one(f"eks-{name}", RELEASE)


def one(deployment: Deployment, kind: str) -> dict[str, Any]:
    (only,) = deployment.of(kind)
    return only.inputs


def test_nothing_of_cluster_network_or_node_groups_is_made() -> None:
    kinds = {each.type.split("/")[0] for each in stack().resources.values() if each.type.startswith("aws:")}
    assert kinds == {"aws:iam", "aws:sqs", "aws:cloudwatch", "aws:eks"}
    of_eks = {each.type for each in stack().resources.values() if each.type.startswith("aws:eks/")}
    assert of_eks == {
        "aws:eks/accessEntry:AccessEntry",
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
    }
    assert {each.inputs["name"] for each in stack().of(RELEASE)} == {"karpenter", "karpenter-crd"}


def test_what_is_made_is_called_like_the_stack_and_is_for_the_cluster() -> None:
    roles = {role.inputs["name"] for role in stack().of("aws:iam/role:Role")}
    assert roles == {f"{NAME}-karpenter-nodes", f"{NAME}-karpenter-controller"}
    assert one(stack(), "aws:eks/accessEntry:AccessEntry")["clusterName"] == CLUSTER
    association = one(stack(), "aws:eks/podIdentityAssociation:PodIdentityAssociation")
    assert association["clusterName"] == CLUSTER
    values = release(stack(), "karpenter-controller").inputs["values"]
    assert values["settings"]["clusterName"] == CLUSTER
    assert values["settings"]["clusterEndpoint"] == "https://DEF.gr7.us-east-1.eks.amazonaws.com"
    assert values["settings"]["interruptionQueue"] == f"{NAME}-interruption"
    assert values["additionalLabels"] == {"karpstack.io/stack": NAME}
    (policy,) = (one for one in stack().of("aws:iam/policy:Policy") if one.name == "eks-controller-eks-integration")
    assert f":cluster/{CLUSTER}" in policy.inputs["policy"]


def test_subnets_are_the_managed_node_groups_and_the_group_is_the_clusters() -> None:
    spec = one(stack(), NODE_CLASS)["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": A}, {"id": B}]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-cluster"}]


def test_behind_a_proxy_what_was_found_is_reached_directly() -> None:
    said: dict[str, Any] = {
        "proxy": {"https": "http://proxy.corp.example:3128"},
        "trustedCertificates": [certificate()],
    }
    made = deployed(**said)
    values = release(made, "karpenter-controller").inputs["values"]
    told = {one["name"]: one["value"] for one in values["controller"]["env"]}
    inside = ("def.gr7.us-east-1.eks.amazonaws.com", "10.0.0.0/16", "172.20.0.0/16", "169.254.170.23")
    assert {*inside} <= {*told["NO_PROXY"].split(",")}
    assert told["NO_PROXY"] in one(made, NODE_CLASS)["spec"]["userData"]
    files = one(made, "kubernetes:core/v1:ConfigMap")
    assert files["metadata"]["labels"] == {"karpstack.io/stack": NAME}
    assert values["extraVolumes"][0]["configMap"]["name"] == files["metadata"]["name"]
    (config_map,) = made.of("kubernetes:core/v1:ConfigMap")
    assert made.needs(release(made, "karpenter-controller"), config_map)
    overlay = release(deployed(BARE, **CILIUM, **said), "karpenter-controller").inputs["values"]
    assert "10.244.0.0/16" in next(
        each["value"] for each in overlay["controller"]["env"] if each["name"] == "NO_PROXY"
    ).split(",")


def test_subnets_and_groups_may_be_named() -> None:
    made = deployed(network__subnetIds=[B, C], network__nodeSecurityGroupIds=["sg-00000001"])
    spec = one(made, NODE_CLASS)["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": B}, {"id": C}]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-cluster"}, {"id": "sg-00000001"}]
    by_tags = deployed(network__subnetTags={"tier": "private"})
    assert one(by_tags, NODE_CLASS)["spec"]["subnetSelectorTerms"] == [{"tags": {"tier": "private"}}]


def test_without_cilium_of_ours_nothing_waits_for_it_and_karpenter_counts_addresses() -> None:
    assert "startupTaints" not in one(stack(), NODE_POOL)["spec"]["template"]["spec"]
    assert "kubelet" not in one(stack(), NODE_CLASS)["spec"]


def test_startup_taints_of_ones_own_stay() -> None:
    pool = json.loads(config()["karpstack:nodePools"])["default"]
    taint = {"key": "example.org/starting", "effect": "NoSchedule"}
    pool["template"]["spec"]["startupTaints"] = [taint]
    assert one(deployed(nodePools={"default": pool}), NODE_POOL)["spec"]["template"]["spec"]["startupTaints"] == [taint]


def test_where_the_vpc_cni_acts_as_the_node_the_node_may() -> None:
    cni = f"arn:{PARTITION}:iam::aws:policy/AmazonEKS_CNI_Policy"
    assert cni in {link.inputs["policyArn"] for link in stack().of(ATTACHMENT)}
    with_role = deployed(replace(RUNS, cni_role=True))
    assert cni not in {link.inputs["policyArn"] for link in with_role.of(ATTACHMENT)}
    other = deployed(replace(RUNS, networks=["calico-node"]))
    assert cni not in {link.inputs["policyArn"] for link in other.of(ATTACHMENT)}


def test_irsa_takes_the_provider_that_is_there() -> None:
    made = deployed(karpenter__identity="irsa")
    assert not made.of("aws:iam/openIdConnectProvider:OpenIdConnectProvider")
    assert not made.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    trust = json.loads(made.one("eks-controller-role").inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {
        "Federated": f"arn:{PARTITION}:iam::{ACCOUNT}:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/DEF"
    }


def test_cilium_comes_where_the_settings_ask_for_it() -> None:
    made = deployed(BARE, **CILIUM)
    values = release(made, "cilium-release").inputs["values"]
    assert values["k8sServiceHost"] == "def.gr7.us-east-1.eks.amazonaws.com"
    assert values["commonLabels"] == {"karpstack.io/stack": NAME}
    assert one(made, NODE_CLASS)["spec"]["kubelet"] == {"maxPods": 110}
    taints = one(made, NODE_POOL)["spec"]["template"]["spec"]["startupTaints"]
    assert [taint["key"] for taint in taints] == ["node.cilium.io/agent-not-ready"]
    assert made.needs(release(made, "karpenter-controller"), release(made, "cilium-release"))


def test_the_kubeconfig_is_the_clusters_and_a_secret() -> None:
    provider = stack().one("eks-kubernetes")
    assert provider.secrets == {"kubeconfig"}
    said = json.loads(provider.inputs["kubeconfig"])
    assert said["clusters"][0]["cluster"]["server"] == "https://DEF.gr7.us-east-1.eks.amazonaws.com"
    assert CLUSTER in said["users"][0]["user"]["exec"]["args"]


def test_all_of_it_is_known_at_the_first_preview() -> None:
    previewed = deployed(preview=True)
    assert one(previewed, NODE_CLASS)["spec"]["subnetSelectorTerms"] == [{"id": A}, {"id": B}]
    settings_ = release(previewed, "karpenter-controller").inputs["values"]["settings"]
    assert settings_["clusterEndpoint"] == "https://DEF.gr7.us-east-1.eks.amazonaws.com"


def test_a_cluster_that_is_not_there_is_refused_before_anything_is_made() -> None:
    with pytest.raises(SettingsError, match=r'cluster\.existing = "Elsewhere"\n.*is not in this account and region'):
        deployed(cluster__existing="Elsewhere")


def test_what_is_wrong_is_refused_before_anything_is_made() -> None:
    with pytest.raises(SettingsError, match=r"karpenter\.identity = .*\n.*needs the Pod Identity agent"):
        deployed(replace(RUNS, agent=False))


def denied(service: str, operation: str) -> str:
    """What the provider says of a call that AWS refuses."""
    right = f"{service.lower()}:{operation}"
    return (
        f"reading Shop_1: operation error {service}: {operation}, https response error StatusCode: 403, RequestID: 1, "
        "api error AccessDeniedException: User: arn:aws:sts::123456789012:assumed-role/deployer/me is not authorized "
        f"to perform: {right} on resource: * because no identity-based policy allows the {right} action"
    )


MISSING: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("getAddon", "EKS", "DescribeAddon", {}, "whether its VPC CNI has a role of its own"),
    (
        "getOpenIdConnectProvider",
        "IAM",
        "ListOpenIDConnectProviders",
        {"karpenter__identity": "irsa"},
        "whether the account has an OIDC provider for its issuer",
    ),
    ("getCluster", "EKS", "DescribeCluster", {}, "whether Karpenter can work on it"),
    ("getRouteTable", "EC2", "DescribeRouteTables", {}, "whether Karpenter can work on it"),
]


@pytest.mark.parametrize(("function", "service", "operation", "changes", "unknown"), MISSING)
def test_a_right_that_is_missing_is_told_with_what_nobody_knows_without_it(
    function: str, service: str, operation: str, changes: dict[str, Any], unknown: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        deployed(errors={function: denied(service, operation)}, **changes)
    (problem,) = refused.value.problems
    assert problem.key == "karpstack:cluster.existing"
    assert f"may not call {service.lower()}:{operation}, and without it nobody knows {unknown}" in problem.consequence
    assert f"have {service.lower()}:{operation} allowed" in problem.fix


def test_an_add_on_that_is_not_there_has_no_role() -> None:
    made = deployed(errors={"getAddon": "reading EKS Add-On (Shop_1:vpc-cni): couldn't find resource"})
    cni = f"arn:{PARTITION}:iam::aws:policy/AmazonEKS_CNI_Policy"
    assert cni in {link.inputs["policyArn"] for link in made.of(ATTACHMENT)}


def test_what_fails_otherwise_is_no_answer_either() -> None:
    with pytest.raises(Exception, match="ThrottlingException"):
        deployed(errors={"getAddon": "operation error EKS: DescribeAddon, ThrottlingException: Rate exceeded"})


def test_what_may_be_meant_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *rest: said.append(text))
    deployed(replace(RUNS, autoscalers=["kube-system/cluster-autoscaler"]))
    (text,) = (each for each in said if "Cluster Autoscaler" in each)
    assert "docs/move-from-cluster-autoscaler.md" in text


def network(**changes: Any) -> FoundNetwork:
    subnets = dict(found_network("abc").subnets)
    for name, change in changes.pop("subnet", {}).items():
        subnets[name] = replace(subnets[name], **change)
    return found_network("abc", **{"subnets": subnets, "has_cluster": True, **changes})


def found(**changes: Any) -> FoundCluster:
    """A cluster on which the example works, with changes; those that `Workloads` has are its."""
    known: dict[str, Any] = {
        "status": "ACTIVE",
        "version": "1.36",
        "authentication_mode": "API_AND_CONFIG_MAP",
        "auto_mode": False,
        "service_cidr": "172.20.0.0/16",
        "vpc_id": VPC,
        "security_group_id": "sg-cluster",
        "subnet_ids": [A, B],
        "has_provider": True,
        "cni_role": False,
        "network": network(),
        "workloads": RUNS,
    }
    inside = {key: changes.pop(key) for key in [*changes] if key not in known}
    return FoundCluster(**{**known, **changes, **({"workloads": replace(RUNS, **inside)} if inside else {})})


def said(cluster: FoundCluster, **changes: Any) -> list[Finding]:
    return list(problems(example(**changes), cluster))


def test_a_proxy_that_may_open_tls_too_early_is_told_unless_ec2_is_reached_without_it() -> None:
    behind = {"proxy": {"https": "http://proxy.corp.example:3128"}, "trustedCertificates": [certificate()]}
    (doubt,) = (one for one in said(found(), **behind) if one.key == "karpstack:proxy.https")
    assert "ec2.us-east-1.amazonaws.com" in doubt.consequence
    assert doubt.warning
    assert "proxy.https" not in str(said(found(network=network(endpoints=("ec2",))), **behind))


BY_TAGS: dict[str, Any] = {"network__subnetTags": {"tier": "private"}}
WRONG: dict[str, tuple[FoundCluster, dict[str, Any], str, str]] = {
    "being deleted": (found(status="DELETING"), {}, "cluster.existing", "is DELETING"),
    "old": (found(version="1.24"), {}, "karpenter.chartVersion", "the cluster has 1.24"),
    "aws-auth alone": (
        found(authentication_mode="CONFIG_MAP"),
        {},
        "cluster.existing",
        "has the authentication mode CONFIG_MAP: EKS takes no access entry",
    ),
    "auto mode": (found(auto_mode=True), {}, "cluster.existing", "has EKS Auto Mode"),
    "no provider": (
        found(has_provider=False),
        {"karpenter__identity": "irsa"},
        "karpenter.identity",
        "needs an OIDC provider of IAM",
    ),
    "no agent": (found(agent=False), {}, "karpenter.identity", "needs the Pod Identity agent"),
    "not let in": (found(refusal="401 Unauthorized"), {}, "cluster.existing", "administrator: 401 Unauthorized"),
    "no subnets": (found(subnet_ids=[]), {}, "network.subnetIds", "leaves open where nodes live"),
    "no subnet with the tags": (found(), BY_TAGS, "network.subnetTags", "are carried by no subnet of vpc-00000001"),
    "a subnet of another VPC with the tags": (
        found(network=network(selected=[A, C], subnet={C: {"vpc_id": OTHER_VPC}})),
        BY_TAGS,
        "network.subnetTags",
        "are carried by subnet-0000000c too, of another VPC",
    ),
    "a subnet of another VPC": (
        found(subnet_ids=[A, C], network=network(subnet={C: {"vpc_id": OTHER_VPC}})),
        {"network__subnetIds": [A, C]},
        "network.subnetIds",
        "names subnet-0000000c, not in vpc-00000001",
    ),
    "public": (found(network=network(subnet={A: {"way_out": "public"}})), {}, "network.subnetIds", "a public subnet"),
    "no way out": (
        found(network=network(subnet={A: {"way_out": "none"}})),
        {},
        "network.subnetIds",
        "has subnet-0000000a without a default route, in a VPC without endpoints",
    ),
    "a blackhole": (
        found(network=network(subnet={A: {"way_out": "blackhole"}})),
        {},
        "network.subnetIds",
        "has subnet-0000000a, whose default route is a blackhole (what it led to is gone), in a VPC w",
    ),
    "no such group": (
        found(),
        {"network__nodeSecurityGroupIds": ["sg-00000002"]},
        "network.nodeSecurityGroupIds[0]",
        "is not in this account and region",
    ),
    "no network": (
        found(networks=[], ready=0, places=3),
        {},
        "cilium.install",
        "leaves Shop_1 without a network",
    ),
    "a second network": (found(), CILIUM, "cilium.install", "which has the VPC CNI (DaemonSet aws-node) and kube-pro"),
    "an unknown network": (
        found(workloads=Workloads(agent=True, ready=2, places=2)),
        CILIUM,
        "cilium.install",
        "which has 2 nodes that are ready, and so a network already",
    ),
    "kube-proxy alone": (
        found(workloads=replace(BARE, kube_proxy=True)),
        CILIUM,
        "cilium.install",
        "which has kube-proxy already",
    ),
    "the VPC CNI beside ours": (
        found(workloads=replace(BARE, own_network=True, networks=["aws-node"])),
        CILIUM,
        "cilium.install",
        "which has the VPC CNI",
    ),
    "pods in the VPC's range": (
        found(workloads=BARE),
        {**CILIUM, "network__podCidr": "10.0.64.0/18"},
        "network.podCidr",
        "overlaps 10.0.0.0/16",
    ),
    "pods in the range of Services": (
        found(workloads=BARE),
        {**CILIUM, "network__podCidr": "172.20.0.0/18"},
        "network.podCidr",
        "overlaps 172.20.0.0/16",
    ),
    "another Karpenter": (found(controllers=["karpenter/karpenter"]), {}, "cluster.existing", "has a Karpenter of its"),
    "CRDs of another release": (
        found(definitions=["nodepools.karpenter.sh"]),
        {},
        "cluster.existing",
        "has nodepools.karpenter.sh already, which Helm has not made",
    ),
    "another Karpenter and its CRDs": (
        found(controllers=["karpenter/karpenter"], definitions=["nodepools.karpenter.sh"]),
        {},
        "cluster.existing",
        "has a Karpenter of its own",
    ),
    "too few places": (found(places=1), {}, "karpenter.replicas", "is more than Shop_1 has places for, 1"),
    "no image": (
        found(),
        {"nodeClasses__default__amiSelectorTerms": [{"alias": "al2@latest"}]},
        "nodeClasses.default.amiSelectorTerms[0].alias",
        "there is no image for Kubernetes 1.36",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_its_key(case: str) -> None:
    cluster, changes, key, consequence = WRONG[case]
    (problem,) = said(cluster, **changes)
    assert problem.key == f"karpstack:{key}"
    assert consequence in problem.consequence
    assert not problem.warning
    assert problem.fix


RIGHT: dict[str, tuple[FoundCluster, dict[str, Any]]] = {
    "as it is": (found(), {}),
    "irsa without the agent": (found(agent=False), {"karpenter__identity": "irsa"}),
    "a network that is not known here": (found(networks=[]), {}),
    "no network, and Cilium asked for": (found(workloads=BARE), CILIUM),
    "our Cilium, at the second update": (found(workloads=Workloads(agent=True, own_network=True, ready=3)), CILIUM),
    "endpoints instead of a way out": (
        found(network=network(subnet={A: {"way_out": "none"}}, endpoints=("ec2",))),
        {},
    ),
    "tags": (found(network=network(selected=[A, B])), BY_TAGS),
    "Windows where the VPC CNI is": (
        found(),
        {"nodeClasses__default__amiSelectorTerms": [{"alias": "windows2022@latest"}]},
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_taken(case: str) -> None:
    cluster, changes = RIGHT[case]
    assert said(cluster, **changes) == []


DOUBTFUL: dict[str, tuple[FoundCluster, str, str]] = {
    "few addresses": (found(network=network(subnet={A: {"free": 8}})), "network.subnetIds", "with 8 free addresses"),
    "public addresses": (
        found(network=network(subnet={A: {"way_out": "public", "gives_public_addresses": True}})),
        "network.subnetIds",
        "each node there gets a public address",
    ),
    "Cluster Autoscaler": (found(autoscalers=["kube-system/ca"]), "cluster.existing", "has Cluster Autoscaler too"),
    "somebody's Cilium": (
        found(networks=["cilium"]),
        "nodePools.default.template.spec.startupTaints",
        "lacks node.cilium.io/agent-not-ready",
    ),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_what_may_be_meant_is_a_warning(case: str) -> None:
    cluster, key, consequence = DOUBTFUL[case]
    (problem,) = said(cluster)
    assert (problem.key, problem.warning) == (f"karpstack:{key}", True)
    assert consequence in problem.consequence


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no name": ({"cluster__existing": "shop cluster"}, "cluster.existing", "cannot be used"),
    "a version": ({"cluster__version": "1.36"}, "cluster.version", "is about a cluster that the stack makes"),
    "admins": ({"cluster__admins": []}, "cluster.admins", "is about a cluster that the stack makes"),
    "a VPC": ({"network__vpcId": VPC}, "network.vpcId", "is about a cluster that the stack makes"),
    "tagged subnets": ({"network__tagSubnets": True}, "network.tagSubnets", "is about a cluster that the stack makes"),
    "system nodes": ({"systemNodes": {"minSize": 2}}, "systemNodes", "is about a node group that the stack makes"),
    "no key": ({"cluster__exists": True}, "cluster.exists", "is not a setting"),
    "subnets by both": (
        {"network__subnetIds": [A], **BY_TAGS},
        "network.subnetIds",
        "leaves open in which subnets nodes live",
    ),
    "a subnet twice": ({"network__subnetIds": [A, A]}, "network.subnetIds", "names subnet-0000000a twice"),
    "Cilium without a range": ({"cilium": {"install": True}}, "network.podCidr", "is where Cilium"),
    "a range without Cilium": ({"network__podCidr": "10.244.0.0/16"}, "network.podCidr", "is about Cilium of the st"),
    "a mask without Cilium": ({"network__podCidrMaskSize": 25}, "network.podCidrMaskSize", "is about Cilium of the"),
    "a chart without Cilium": ({"cilium": {"chartVersion": "1.20.2"}}, "cilium.chartVersion", "is about Cilium of"),
    "Hubble without Cilium": ({"cilium": {"hubble": True}}, "cilium.hubble", "is about Cilium of"),
    "a policy without Cilium": ({"cilium": {"defaultDeny": True}}, "cilium.defaultDeny", "is about Cilium of"),
    "add-ons of the owner's": ({"addons": {"metricsServer": True}}, "addons", "has its add-ons from its owner"),
    "more pods than addresses": (
        {**CILIUM, "nodeClasses__default__kubelet": {"maxPods": 300}},
        "nodeClasses.default.kubelet.maxPods",
        "is more than the 252 pod addresses",
    ),
    "Windows and Cilium": (
        {
            **CILIUM,
            "nodePools__default__template__spec__requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}
            ],
        },
        "nodePools.default.template.spec.requirements",
        "admit no Linux",
    ),
    "a role": ({"nodeClasses__default__role": "mine"}, "nodeClasses.default.role", "is set by the environment"),
    "spot without a queue": (
        {"karpenter__interruptionQueue": False},
        "nodePools.default.template.spec.requirements",
        "allows spot instances while karpenter.interruptionQueue is false",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_stack_file_that_cannot_work_is_refused(case: str) -> None:
    changes, key, consequence = REFUSED[case]
    with pytest.raises(SettingsError) as caught:
        settings.load(config(**changes))
    (problem,) = caught.value.problems
    assert problem.key == f"karpstack:{key}"
    assert consequence in problem.consequence


#: Another value of each setting that a cluster of the stack's own does not have, or has in another section.
OTHER: dict[str, tuple[Any, dict[str, Any]]] = {
    "cluster.existing": ("Shop_2", {}),
    "network.subnetIds": ([B, C], {}),
    "network.subnetTags": ({"tier": "private"}, {}),
    "network.nodeSecurityGroupIds": (["sg-00000001"], {}),
    "network.podCidr": ("10.245.0.0/16", CILIUM),
    "network.podCidrMaskSize": (25, CILIUM),
    "cilium.install": (True, {}),
    "cilium.chartVersion": ("1.19.6", CILIUM),
    "cilium.hubble": (True, CILIUM),
    "cilium.encryption": ("wireguard", CILIUM),
    "cilium.defaultDeny": (True, CILIUM),
    "name": ("karpstack-other", {}),
}


def inputs(runs: Workloads, **changes: Any) -> dict[str, Any]:
    made = deployed(runs, clusters=[CLUSTER, "Shop_2"], **changes)
    return {each.urn: each.inputs for each in made.resources.values() if each.request.custom}


@pytest.mark.parametrize("key", OTHER)
def test_another_value_changes_an_input(key: str) -> None:
    value, given = OTHER[key]
    if key == "cilium.install":
        assert inputs(BARE, **CILIUM) != inputs(RUNS)
        return
    runs = BARE if given else RUNS
    assert inputs(runs, **given) != inputs(runs, **{**given, key.replace(".", "__"): value})


def test_every_setting_of_its_own_has_another_value_here() -> None:
    shared = {
        key for key in keys(settings.EksSettings) if key.split(".")[0] not in ("cluster", "network", "cilium", "addons")
    }
    assert {*keys(settings.ExistingEksSettings)} - shared == {*OTHER} - {"name"}


def documents() -> Iterator[tuple[str, Any]]:
    yield "existing-cluster-node-class", one(stack(), NODE_CLASS)["spec"]
    yield "existing-cluster-node-pool", one(stack(), NODE_POOL)["spec"]
    yield "existing-cluster-values", release(stack(), "karpenter-controller").inputs["values"]


def test_documents(golden: Golden) -> None:
    for name, document in documents():
        golden(name, document)


def test_the_example_names_what_its_files_have() -> None:
    loaded = settings.load(raw(yaml.safe_load(STACK.read_text())["config"]))
    assert isinstance(loaded, settings.ExistingEksSettings)
    cluster, network = (
        json.loads(STACK.with_name(f"{STACK.stem}.{part}.json").read_text()) for part in ("cluster", "network")
    )
    assert loaded.cluster.existing == cluster["cluster"]["name"]
    subnets = {one["SubnetId"] for one in network["Subnets"]}
    of_groups = {subnet for group in cluster["nodegroups"] for subnet in group["subnets"]}
    assert {*loaded.network.subnet_ids, *of_groups, *cluster["cluster"]["resourcesVpcConfig"]["subnetIds"]} <= subnets


@examples(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(draw=data())
def test_a_broken_stack_file_ends_in_settings_or_in_sentences(draw: DataObject) -> None:
    said = yaml.safe_load(STACK.read_text())["config"]
    config = draw.draw(mutations(said))
    try:
        settings.load(raw(config if isinstance(config, dict) else {}))
    except SettingsError as error:
        told = str(error)
    else:
        told = ""
    assert len(told) < 10_000
