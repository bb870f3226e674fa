"""What runs beside Karpenter on EKS: documents; the tables in stacks/ have checks and program."""

from __future__ import annotations

import json

from karpstack.components import settings, versions
from karpstack.components.documents import addons, iam, manifests
from karpstack.components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES, LoadBalancerScope
from tests.conftest import Golden
from tests.unit.example_stack import loaded
from tests.unit.programs import made, only

ALL = {"ebsCsi": True, "metricsServer": True, "loadBalancerController": True}
RELEASE = "kubernetes:helm.sh/v3:Release"
TAGS = {"owner": "platform"}
#: What listens on every node already: the kubelet, Cilium's health, its agent's and operator's metrics.
TAKEN = {10250, 4240, 4244, 9234, 9962, 9963}


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
    assert not TAKEN & {addons.METRICS_SERVER_PORT}
    # Two pods with a port of the host never share a node: one more than nodes would wait for ever.
    assert metrics["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


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


def test_the_example_asks_for_everything() -> None:
    asked = loaded("eks-addons", {})
    assert isinstance(asked, settings.EksSettings)
    assert {*asked.addons.model_dump(by_alias=True).items()} == {*ALL.items()}
    assert (asked.cilium.hubble, asked.cilium.encryption, asked.cilium.default_deny) == (True, "wireguard", True)


def test_charts_are_of_the_pinned_versions() -> None:
    releases = {each.inputs["chart"]: each.inputs for each in made("eks", {"addons": ALL}).of(RELEASE)}
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


def test_default_deny_leaves_dns_and_kube_system(golden: Golden) -> None:
    made = manifests.default_deny()
    golden("default-deny", made)
    spec = made["spec"]
    assert spec["endpointSelector"]["matchExpressions"][0]["values"] == ["kube-system"]
    # A direction without a section would be left open.
    assert spec["ingress"] == [{}]
    (dns,) = spec["egress"]
    assert {port["protocol"] for port in dns["toPorts"][0]["ports"]} == {"UDP", "TCP"}


def test_prometheus_is_told_when_there_is_a_controller(golden: Golden) -> None:
    monitor = only(made("eks", {"karpenter.serviceMonitor": True, "nodePools": {}}), "ServiceMonitor")
    golden("service-monitor", monitor.inputs)
