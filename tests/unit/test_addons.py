"""What runs beside Karpenter on EKS: documents, checks, and the program under Pulumi's mocks."""

from __future__ import annotations

import json
import runpy
from functools import cache
from typing import Any

import pulumi
import pytest
import yaml

from components import settings, versions
from components.documents import addons, iam, manifests
from components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES, LoadBalancerScope
from components.problems import SettingsError
from karpenter.findings import Finding
from tests.conftest import Golden
from tests.unit.example_stack import ROOT, example, raw
from tests.unit.mock_engine import Deployment, deploy

MAIN = ROOT / "__main__.py"
ALL = {"ebsCsi": True, "metricsServer": True, "loadBalancerController": True}
ADDON, ROLE = "aws:eks/addon:Addon", "aws:iam/role:Role"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
RELEASE = "kubernetes:helm.sh/v3:Release"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
TAGS = {"owner": "platform"}
HOST_PORTS = (addons.METRICS_SERVER_PORT,)
#: What listens on every node already: the kubelet, Cilium's health, its agent's and operator's metrics.
TAKEN = {10250, 4240, 4244, 9234, 9962, 9963}


@cache
def stack(**wanted: bool) -> Deployment:
    def program() -> None:
        pulumi.runtime.set_all_config(example(addons=wanted))
        runpy.run_path(str(MAIN), run_name="__main__")

    return deploy(program)


def refused(**changes: Any) -> list[Finding]:
    with pytest.raises(SettingsError) as raised:
        settings.load(example(**changes))
    return list(raised.value.problems)


# Documents.


def load_balancers(partition: str, cluster: str) -> dict[str, iam.Document]:
    scope = LoadBalancerScope(partition=partition, region="us-east-1", account_id="123456789012", cluster_name=cluster)
    return {subject: make(scope) for subject, make in LOAD_BALANCER_POLICIES.items()}


def test_values(golden: Golden) -> None:
    golden("values-ebs-csi-driver", addons.ebs_csi_driver(region="us-east-1", tags=TAGS))
    golden("values-metrics-server", addons.metrics_server(replicas=2))
    golden(
        "values-load-balancer-controller",
        addons.load_balancer_controller(
            cluster_name="demo",
            region="us-east-1",
            vpc_id="vpc-1",
            service_account="aws-load-balancer-controller",
            replicas=2,
            isolated=False,
            tags=TAGS,
        ),
    )


def test_the_default_storage_class_is_encrypted_and_waits_for_its_pod(golden: Golden) -> None:
    made = addons.storage_class()
    golden("storage-class", made)
    assert made["parameters"]["encrypted"] == "true"
    assert made["volume_binding_mode"] == "WaitForFirstConsumer"


def test_what_the_api_server_calls_is_on_the_hosts_network_with_ports_of_its_own() -> None:
    metrics = addons.metrics_server(replicas=2)
    assert metrics["hostNetwork"]["enabled"]
    assert not TAKEN & {*HOST_PORTS}
    for values in (
        metrics,
        stack(**ALL).one("eks-extra-addons-aws-load-balancer-controller", RELEASE).inputs["values"],
    ):
        assert values["hostNetwork"]
        # Two pods with a port of the host never share a node: one more than nodes would wait for ever.
        assert values["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_policy_of_the_load_balancer_controller(golden: Golden) -> None:
    for subject, document in load_balancers("aws", "demo").items():
        golden(f"policy-load-balancers-{subject}", document)
    for document in load_balancers("aws-us-gov", "n" * 43).values():
        assert len(json.dumps(document, separators=(",", ":"))) < 6144
    assert "arn:aws:" not in json.dumps(load_balancers("aws-cn", "demo"))


def test_two_clusters_may_not_touch_each_others_load_balancers() -> None:
    mine, others = (json.dumps(load_balancers("aws", name)) for name in ("demo", "other"))
    assert mine.replace("demo", "other") == others != mine


def test_the_driver_may_attach_to_instances_of_karpenter() -> None:
    assert iam.EBS_CSI_MANAGED_POLICIES == ("AmazonEBSCSIDriverPolicyV2",)


# Checks.


def test_a_version_of_an_add_on_that_is_not_there() -> None:
    (problem,) = refused(cluster__addonVersions={"aws-ebs-csi-driver": "v1.62.0-eksbuild.1"})
    assert problem.key == "karpstack:cluster.addonVersions.aws-ebs-csi-driver"
    assert "would change nothing" in problem.consequence
    settings.load(example(cluster__addonVersions={"aws-ebs-csi-driver": "v1"}, addons={"ebsCsi": True}))


@pytest.mark.parametrize("wanted", [False, True])
def test_a_startup_taint_that_nobody_lifts_is_a_warning(wanted: bool) -> None:
    pool = {"template": {"spec": {"startupTaints": [addons.EBS_CSI_STARTUP_TAINT]}}}
    warned: list[Finding] = []
    settings.load(
        example(nodePools={"default": pool}, addons={"ebsCsi": wanted}, karpenter__interruptionQueue=True),
        warn=warned.append,
    )
    about = [each for each in warned if each.key.endswith("startupTaints")]
    assert bool(about) is not wanted
    assert all("no pod ever runs on these nodes" in each.consequence for each in about)


@pytest.mark.parametrize(
    ("tag", "value", "which"),
    [
        ("ebs.csi.aws.com/cluster-name", "x", "ebsCsi"),
        ("CSIVolumeName", "x", "ebsCsi"),
        ("ingress.k8s.aws/stack", "x", "loadBalancerController"),
        ("elbv2.k8s.aws/cluster", "x", "loadBalancerController"),
        ("a=b", "c", "loadBalancerController"),
    ],
)
def test_tags_with_which_one_of_them_would_not_start(tag: str, value: str, which: str) -> None:
    (problem,) = refused(tags={"owner": "platform", tag: value}, addons={which: True})
    assert problem.key.startswith("karpstack:tags")
    settings.load(example(tags={"owner": "platform", tag: value}))  # where nobody is given them


def test_an_unknown_add_on_is_refused_by_name() -> None:
    (problem,) = refused(addons={"ebsCSI": True})
    assert problem.key == "karpstack:addons.ebsCSI"
    assert "ebsCsi" in problem.fix


def test_the_example_asks_for_everything() -> None:
    file = ROOT / "examples" / "addons" / "Pulumi.eks-addons.yaml"
    loaded = settings.load(raw(yaml.safe_load(file.read_text())["config"]))
    assert isinstance(loaded, settings.EksSettings)
    assert {*loaded.addons.model_dump(by_alias=True).items()} == {*ALL.items()}
    assert (loaded.cilium.hubble, loaded.cilium.encryption, loaded.cilium.default_deny) == (True, "wireguard", True)


# The program.


def test_none_of_them_unless_asked_for() -> None:
    assert not [each for each in stack().resources.values() if "extra-addons" in each.name]
    (pool,) = stack().of(NODE_POOL)
    assert [taint["key"] for taint in pool.inputs["spec"]["template"]["spec"]["startupTaints"]] == [
        "node.cilium.io/agent-not-ready"
    ]


def test_node_pools_wait_for_the_driver_where_there_is_one() -> None:
    deployment = stack(ebsCsi=True)
    (pool,) = deployment.of(NODE_POOL)
    taints = pool.inputs["spec"]["template"]["spec"]["startupTaints"]
    assert addons.EBS_CSI_STARTUP_TAINT in taints
    assert len(taints) == 2


def test_each_goes_after_the_node_pools_and_its_identity_comes_first() -> None:
    deployment = stack(**ALL)
    driver = deployment.one("eks-extra-addons-aws-ebs-csi-driver", ADDON)
    agent = deployment.one("eks-addons-eks-pod-identity-agent", ADDON)
    controller = deployment.one("eks-extra-addons-aws-load-balancer-controller", RELEASE)
    (pool,) = deployment.of(NODE_POOL)
    for each, label in ((driver, "ebs-csi"), (controller, "load-balancers")):
        assert deployment.needs(pool, each)
        assert deployment.needs(each, agent)
        association = deployment.one(f"eks-extra-addons-{label}-association", ASSOCIATION)
        assert deployment.needs(each, association)
        for attached in deployment.of(ATTACHMENT):
            if attached.name.startswith(f"eks-extra-addons-{label}-"):
                assert deployment.needs(association, attached)
    assert deployment.needs(deployment.one("eks-extra-addons-storage-class"), driver)


def test_the_agent_is_there_for_them_where_the_controller_has_irsa() -> None:
    def program() -> None:
        pulumi.runtime.set_all_config(example(addons={"ebsCsi": True}, karpenter__identity="irsa"))
        runpy.run_path(str(MAIN), run_name="__main__")

    assert deploy(program).one("eks-addons-eks-pod-identity-agent", ADDON)


def test_each_role_is_for_the_pods_of_one_service_account() -> None:
    deployment = stack(**ALL)
    for label, account in (("ebs-csi", "ebs-csi-controller-sa"), ("load-balancers", "aws-load-balancer-controller")):
        role = deployment.one(f"eks-extra-addons-{label}-role", ROLE)
        condition = json.loads(role.inputs["assumeRolePolicy"])["Statement"][0]["Condition"]["StringEquals"]
        assert condition["aws:RequestTag/kubernetes-service-account"] == account
        association = deployment.one(f"eks-extra-addons-{label}-association", ASSOCIATION)
        assert association.inputs["serviceAccount"] == account
        assert association.inputs["roleArn"] == f"arn:eks-extra-addons-{label}-role"


def test_charts_are_of_the_pinned_versions() -> None:
    releases = {each.inputs["chart"]: each.inputs for each in stack(**ALL).of(RELEASE)}
    for chart, version, repository in (
        (versions.METRICS_SERVER_CHART, versions.METRICS_SERVER, versions.METRICS_SERVER_REPOSITORY),
        (
            versions.LOAD_BALANCER_CONTROLLER_CHART,
            versions.LOAD_BALANCER_CONTROLLER,
            versions.LOAD_BALANCER_CONTROLLER_REPOSITORY,
        ),
    ):
        assert releases[chart]["version"] == version
        assert releases[chart]["repositoryOpts"] == {"repo": repository}


# What else the clusters have: Cilium's own choices, and what Prometheus is told.

MONITOR = "kubernetes:monitoring.coreos.com/v1:ServiceMonitor"
POLICY = "kubernetes:cilium.io/v2:CiliumClusterwideNetworkPolicy"


def deployed(**changes: Any) -> Deployment:
    def program() -> None:
        pulumi.runtime.set_all_config(example(nodePools={}, **changes))
        runpy.run_path(str(MAIN), run_name="__main__")

    return deploy(program)


def test_what_is_not_asked_for_is_as_the_chart_has_it() -> None:
    deployment = stack()
    assert not {"hubble", "encryption"} & set(deployment.one("eks-cilium-release", RELEASE).inputs["values"])
    assert not deployment.of(POLICY)
    assert not deployment.of(MONITOR)


def test_cilium_with_everything() -> None:
    deployment = deployed(cilium__hubble=True, cilium__encryption="wireguard", cilium__defaultDeny=True)
    values = deployment.one("eks-cilium-release", RELEASE).inputs["values"]
    assert values["encryption"] == {"enabled": True, "type": "wireguard"}
    assert values["hubble"]["relay"]["enabled"] is True
    (policy,) = deployment.of(POLICY)
    # Its definition is the operator's.
    assert deployment.needs(policy, deployment.one("eks-cilium-roll-out-operator"))


def test_default_deny_leaves_dns_and_kube_system(golden: Golden) -> None:
    made = manifests.default_deny()
    golden("default-deny", made)
    spec = made["spec"]
    assert spec["endpointSelector"]["matchExpressions"][0]["values"] == ["kube-system"]
    # A direction without a section would be left open.
    assert spec["ingress"] == [{}]
    (dns,) = spec["egress"]
    assert {port["protocol"] for port in dns["toPorts"][0]["ports"]} == {"UDP", "TCP"}


def test_ipsec_is_refused_with_the_reason() -> None:
    (problem,) = refused(cilium__encryption="ipsec")
    assert problem.key == "karpstack:cilium.encryption"
    assert "needs a Secret of keys" in problem.consequence
    assert "wireguard" in problem.fix


def test_prometheus_is_told_when_there_is_a_controller(golden: Golden) -> None:
    deployment = deployed(karpenter__serviceMonitor=True)
    (monitor,) = deployment.of(MONITOR)
    golden("service-monitor", monitor.inputs)
    assert deployment.needs(monitor, deployment.one("eks-karpenter-controller", RELEASE))
