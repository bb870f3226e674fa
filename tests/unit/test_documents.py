"""karpstack.components.documents: goldens, and the properties that a golden does not explain."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from karpstack.components.documents import charts, events, iam, kubeconfig, manifests, subnets
from tests.conftest import Golden
from tests.unit.example_stack import eks

SCOPE = iam.ControllerScope(
    partition="aws",
    region="us-east-1",
    account_id="123456789012",
    cluster_name="demo",
    node_role_arn="arn:aws:iam::123456789012:role/demo-karpenter-nodes",
    interruption_queue_arn="arn:aws:sqs:us-east-1:123456789012:demo-interruption",
)
DISCOVERY = {"karpenter.sh/discovery": "demo"}


@pytest.mark.parametrize("subject", iam.CONTROLLER_POLICIES)
def test_controller_policy(subject: str, golden: Golden) -> None:
    document = iam.CONTROLLER_POLICIES[subject](SCOPE)
    golden(f"policy-{subject}", document)
    assert len(json.dumps(document)) < 6144


def statements() -> list[dict[str, Any]]:
    return [statement for make in iam.CONTROLLER_POLICIES.values() for statement in make(SCOPE)["Statement"]]


def test_upstreams_18_statements() -> None:
    ours = {"AllowSpotServiceLinkedRole"}
    assert len({statement["Sid"] for statement in statements()} - ours) == 18


def test_nothing_but_reading_is_unscoped() -> None:
    unscoped = {
        statement["Sid"] for statement in statements() if statement["Resource"] == "*" and "Condition" not in statement
    }
    assert unscoped == {"AllowPricingReadActions", "AllowUnscopedInstanceProfileListAction"}


def test_two_clusters_may_not_touch_each_other() -> None:
    other = replace(SCOPE, cluster_name="other")
    for subject in ("node-lifecycle", "iam-integration", "eks-integration", "zonal-shift"):
        assert "demo" not in json.dumps(iam.CONTROLLER_POLICIES[subject](other)).replace("demo-karpenter-nodes", "")


def test_trusts(golden: Golden) -> None:
    golden(
        "trusts",
        {
            "nodes": iam.service_trust("ec2.amazonaws.com"),
            "pod-identity": iam.pod_identity_trust(
                account_id="123456789012",
                cluster_arn="arn:aws:eks:us-east-1:123456789012:cluster/demo",
                namespace="kube-system",
                service_account="karpenter",
            ),
            "flow-logs": iam.flow_log_trust(partition="aws", region="us-east-1", account_id="123456789012"),
            "irsa": iam.irsa_trust(
                provider_arn="arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABC",
                issuer="https://oidc.eks.us-east-1.amazonaws.com/id/ABC",
                namespace="kube-system",
                service_account="karpenter",
            ),
        },
    )


def test_flow_logs_are_delivered_to_a_group_and_make_none(golden: Golden) -> None:
    document = iam.flow_log_delivery(partition="aws", region="us-east-1", account_id="123456789012", group="/vpc")
    golden("policy-flow-logs", document)
    assert "logs:CreateLogGroup" not in document["Statement"][0]["Action"]


def test_interruption(golden: Golden) -> None:
    golden(
        "interruption",
        {
            "queue-policy": iam.interruption_queue_policy(SCOPE.interruption_queue_arn, ["arn:a", "arn:b"]),
            "event-patterns": dict(events.EVENT_PATTERNS),
        },
    )
    assert len(events.EVENT_PATTERNS) == 5


@pytest.mark.parametrize("name", ["default", "bottlerocket"])
def test_example_node_class(name: str, golden: Golden) -> None:
    stack = eks()
    golden(
        f"node-class-{name}",
        manifests.ec2_node_class(
            name,
            stack.node_classes[name],
            role="demo-karpenter-nodes",
            subnets=[{"tags": DISCOVERY}],
            security_groups=[{"tags": DISCOVERY}],
            tags=stack.tags,
        ),
    )


def test_example_node_pool(golden: Golden) -> None:
    golden("node-pool-default", node_pool(eks().node_pools["default"]))


def node_class(spec: dict[str, Any]) -> Any:
    terms = [{"tags": DISCOVERY}]
    return manifests.ec2_node_class(
        "x", spec, role="nodes", subnets=terms, security_groups=terms, tags={"owner": "us"}
    )["spec"]


def node_pool(spec: dict[str, Any]) -> dict[str, Any]:
    return manifests.node_pool("default", spec, node_class=manifests.EC2_NODE_CLASS)


def node(spec: dict[str, Any]) -> Any:
    return node_pool({"template": {"spec": spec}})["spec"]["template"]["spec"]


def test_what_a_node_class_says_itself_stays() -> None:
    own = {
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "kubelet": {"maxPods": 30, "podsPerCore": 4},
        "tags": {"owner": "me"},
    }
    assert node_class(own) == {**own, "role": "nodes"}


def test_a_node_class_gets_what_it_does_not_say() -> None:
    spec = node_class({"kubelet": None, "tags": {"Name": "x"}})
    assert spec["subnetSelectorTerms"] == spec["securityGroupSelectorTerms"] == [{"tags": DISCOVERY}]
    assert spec["kubelet"] == {"maxPods": 110}
    assert spec["tags"] == {"owner": "us", "Name": "x"}


def test_null_leaves_the_number_of_pods_to_karpenter() -> None:
    assert node_class({"kubelet": {"maxPods": None, "podsPerCore": 4}})["kubelet"] == {"podsPerCore": 4}
    # Where `maxPods` was the only field, one that is empty would become null in the API server, which refuses that.
    assert "kubelet" not in node_class({"kubelet": {"maxPods": None}})


def test_a_node_pool_gets_reference_and_taint() -> None:
    empties: list[dict[str, Any]] = [{}, {"template": {}}, {"template": {"spec": {"startupTaints": None}}}]
    for empty in empties:
        made = node_pool(empty)["spec"]["template"]["spec"]
        assert made["nodeClassRef"] == {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        assert made["startupTaints"] == [
            {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
        ]


def test_a_node_pool_keeps_its_own_reference_and_taints() -> None:
    assert node({"nodeClassRef": {"name": "gpu"}})["nodeClassRef"]["name"] == "gpu"
    own = {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}
    assert node({"startupTaints": [own]})["startupTaints"] == [own]
    other = {"key": "example.com/wait", "effect": "NoExecute"}
    assert node({"startupTaints": [other]})["startupTaints"] == [other, manifests.CILIUM_STARTUP_TAINT]


def test_specs_are_not_changed_in_place() -> None:
    spec: dict[str, Any] = {"template": {"spec": {"startupTaints": []}}}
    node_pool(spec)
    assert spec == {"template": {"spec": {"startupTaints": []}}}
    spec = {"kubelet": {}, "tags": {}}
    node_class(spec)
    assert spec == {"kubelet": {}, "tags": {}}


def cilium(endpoint: str) -> dict[str, Any]:
    host, port = charts.api_server_address(endpoint)
    return charts.cilium(host=host, port=port, pod_cidr="10.244.0.0/16", pod_cidr_mask_size=24, operator_replicas=2)


def test_cilium_values(golden: Golden) -> None:
    golden("values-cilium", cilium("https://ABC.gr7.us-east-1.eks.amazonaws.com"))


def test_cilium_leaves_pod_identity_its_address() -> None:
    values = cilium("https://example.com")
    assert "egressMasqueradeInterfaces" not in values
    assert values["bpf"] == {"masquerade": False}


@pytest.mark.parametrize(
    ("endpoint", "host", "port"),
    [
        ("https://abc.eks.amazonaws.com", "abc.eks.amazonaws.com", 443),
        ("https://127.0.0.1:6443", "127.0.0.1", 6443),
        ("https://[::1]:6443/", "::1", 6443),
    ],
)
def test_api_server_address(endpoint: str, host: str, port: int) -> None:
    assert charts.api_server_address(endpoint) == (host, port)
    assert cilium(endpoint)["k8sServicePort"] == port


@pytest.mark.parametrize("endpoint", ["http://example.com", "example.com:443", ""])
def test_api_server_address_must_be_https(endpoint: str) -> None:
    with pytest.raises(ValueError, match="is not an https URL"):
        charts.api_server_address(endpoint)


def karpenter(**changes: Any) -> dict[str, Any]:
    stack = eks().karpenter
    return charts.karpenter_aws(
        **{
            "cluster_name": "demo",
            "region": "us-east-1",
            "endpoint": "https://abc.eks.amazonaws.com",
            "interruption_queue": "demo-interruption",
            "service_account": "karpenter",
            "replicas": stack.replicas,
            "feature_gates": stack.feature_gates.model_dump(by_alias=True),
            "settings": stack.settings,
            "resources": stack.resources.model_dump(),
            **changes,
        }
    )


def test_karpenter_values(golden: Golden) -> None:
    golden("values-karpenter", karpenter())


def test_irsa_annotates_the_service_account() -> None:
    assert karpenter()["serviceAccount"]["annotations"] == {}
    assert karpenter(role_arn="arn:role")["serviceAccount"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:role"}


def test_another_identity_makes_other_pods_of_the_controller() -> None:
    """A pod keeps the kind of credentials that it was admitted with."""
    assert karpenter().get("podAnnotations") != karpenter(role_arn="arn:role")["podAnnotations"]


def test_no_setting_passed_through_can_replace_the_environments() -> None:
    assert karpenter(settings={"clusterName": "x"})["settings"]["clusterName"] == "demo"


def test_kubeconfig_holds_no_credentials() -> None:
    config = json.loads(
        kubeconfig.eks(cluster_name="demo", region="us-east-1", endpoint="https://abc", certificate_authority="Q0E=")
    )
    assert config["clusters"][0]["cluster"] == {"server": "https://abc", "certificate-authority-data": "Q0E="}
    user = config["users"][0]["user"]
    assert list(user) == ["exec"]
    assert [user["exec"]["command"], *user["exec"]["args"]] == [
        "aws",
        "eks",
        "get-token",
        "--region",
        "us-east-1",
        "--cluster-name",
        "demo",
        "--output",
        "json",
    ]


def test_a_kubeconfig_asks_as_whom_the_stack_is_deployed() -> None:
    config = json.loads(
        kubeconfig.eks(
            cluster_name="demo",
            region="us-east-1",
            endpoint="https://abc",
            certificate_authority="Q0E=",
            profile="platform",
            role_arn="arn:aws:iam::123456789012:role/deployer",
        )
    )
    arguments = config["users"][0]["user"]["exec"]["args"]
    assert arguments[-4:] == ["--profile", "platform", "--role-arn", "arn:aws:iam::123456789012:role/deployer"]


@pytest.mark.parametrize("prefix", [16, 22])
def test_subnets_fit_and_do_not_overlap(prefix: int) -> None:
    vpc = IPv4Network(f"10.0.0.0/{prefix}")
    planned = [IPv4Network(cidr) for zone in subnets.plan(str(vpc), 6) for cidr in (zone.private, zone.public)]
    assert len(planned) == 12
    assert all(subnet.subnet_of(vpc) and subnet.prefixlen <= 28 for subnet in planned)
    assert not any(one.overlaps(other) for one in planned for other in planned if one is not other)


def test_a_further_zone_moves_no_subnet() -> None:
    assert subnets.plan("10.0.0.0/16", 4)[:3] == subnets.plan("10.0.0.0/16", 3)


@pytest.mark.parametrize(
    ("cidr", "zones"), [("10.0.0.0/23", 3), ("10.0.0.0/15", 3), ("10.0.0.0/16", 7), ("10.0.0.0/16", 0)]
)
def test_subnets_that_do_not_fit(cidr: str, zones: int) -> None:
    with pytest.raises(ValueError, match="the plan"):
        subnets.plan(cidr, zones)
