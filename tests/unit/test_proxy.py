"""A way out that leads through a proxy, on both clouds: documents, what is taken, who is told; the tables have more."""

from __future__ import annotations

import base64
import json

import pytest

from karpstack.components import settings
from karpstack.components.documents import aks_proxy, endpoints, partitions, proxy
from karpstack.components.problems import SettingsError, shown
from tests.conftest import Golden
from tests.unit.example_stack import WORDS, eks, loaded
from tests.unit.made_certificates import certificate, private_key
from tests.unit.mock_engine import Deployment
from tests.unit.programs import made, matching, only

URL, ROOT = WORDS["<proxy>"], WORDS["<certificate>"]
ADDONS = {"ebsCsi": True, "metricsServer": True, "loadBalancerController": True}
BEHIND = {"proxy": {"https": URL}, "trustedCertificates": [ROOT], "addons": ADDONS}


def values(deployment: Deployment, chart: str) -> str:
    (release,) = (one.inputs for one in matching(deployment, "Release") if one.inputs["name"] == chart)
    return json.dumps(release["values"])


def test_what_people_write_is_taken() -> None:
    said = eks(
        proxy={"http": URL, "https": "https://10.1.2.3:8443", "noProxy": [".corp.example", "10.20.0.0/16", "git:8080"]},
        trustedCertificates=[ROOT, f"subject=CN = Another\n{certificate('Another')}"],
        images={
            "nodeMirrors": {"docker.io": "mirror.corp.example/hub", "registry.corp:5000": "mirror.corp.example:80"}
        },
    )
    assert said.proxy is not None
    assert said.proxy.https == "https://10.1.2.3:8443"
    assert said.trusted_certificates[0] == ROOT
    assert said.trusted_certificates[1].startswith("-----BEGIN CERTIFICATE-----")
    assert eks().proxy is None


def test_no_message_shows_a_private_key_or_a_password() -> None:
    assert shown(private_key()) == "(secret)"
    assert shown(["https://me:hunter2@proxy:1"]) == '["https://(secret)@proxy:1"]'


def test_what_is_reached_directly() -> None:
    entries = proxy.direct([".corp.example", "localhost"], "10.0.0.0/16")
    assert entries == [
        ".corp.example",
        "localhost",
        "127.0.0.1",
        "169.254.169.254",
        ".svc",
        ".cluster.local",
        "10.0.0.0/16",
    ]
    assert proxy.variables(http=None, https=URL, no_proxy=["a", "b"]) == {"HTTPS_PROXY": URL, "NO_PROXY": "a,b"}


def test_names_of_endpoints() -> None:
    assert endpoints.host_names(["ecr.api", "eks-auth"], "us-west-2") == [
        "api.ecr.us-west-2.amazonaws.com",
        "eks-auth.us-west-2.api.aws",
    ]
    assert endpoints.host_names(["s3"], "cn-north-1") == ["s3.cn-north-1.amazonaws.com.cn"]
    assert endpoints.api_servers("cn-north-1") == ".cn-north-1.eks.amazonaws.com.cn"
    assert endpoints.host_names(["eks-auth", "sts"], "eusc-de-east-1") == [
        "eks-auth.eusc-de-east-1.api.amazonwebservices.eu",
        "sts.eusc-de-east-1.amazonaws.eu",
    ]
    assert partitions.endpoint_services("sts", "us-gov-west-1") == ["com.amazonaws.us-gov-west-1.sts"]
    assert partitions.endpoint_services("sts", "eusc-de-east-1") == [
        "com.amazonaws.eusc-de-east-1.sts",
        "eu.amazonaws.eusc-de-east-1.sts",
    ]


@pytest.mark.parametrize("changes", [{"trustedCertificates": ROOT}, {"proxy": {"https": URL, "noProxy": ".a.b,.c.d"}}])
def test_a_text_in_place_of_a_list_is_told_what_to_write(changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="fix: write a list, of one entry too; give "):
        loaded("eks", changes)


def test_system_nodes_are_told_the_same_as_karpenters() -> None:
    behind = made("eks", BEHIND)
    told = base64.b64decode(only(behind, "LaunchTemplate").inputs["userData"]).decode()
    assert told == only(behind, "eks-nodes-class-default").inputs["spec"]["userData"]


def test_pods_that_call_aws_find_the_certificates_and_others_are_not_told() -> None:
    behind = made("eks", BEHIND)
    volume = {
        "name": "trusted-certificates",
        "configMap": {"name": only(behind, "ConfigMap").inputs["metadata"]["name"]},
    }
    driver = json.loads(only(behind, "eks-extra-addons-aws-ebs-csi-driver").inputs["configurationValues"])
    assert driver["controller"]["volumes"] == [volume]
    for chart in ("karpenter", "aws-load-balancer-controller"):
        assert json.loads(values(behind, chart))["extraVolumes"] == [volume]
    assert "PROXY" not in values(behind, "cilium") + values(behind, "metrics-server")
    plain = made("eks", {"addons": ADDONS})
    said = values(plain, "karpenter") + values(plain, "aws-load-balancer-controller")
    assert not [word for word in ("PROXY", "SSL_CERT_DIR", "xtraVolume") if word in said]


def test_other_certificates_are_another_config_map_so_that_pods_are_made_anew() -> None:
    one, other = (
        only(made("eks", changes), "ConfigMap").inputs["metadata"]["name"]
        for changes in (BEHIND, {**BEHIND, "trustedCertificates": ["<another-certificate>"]})
    )
    assert one != other


@pytest.mark.parametrize(
    "more", ["", "spec: {instance: {environment: {default: {TZ: UTC}, kubelet: {A: b}}}}", "spec: ["]
)
def test_a_node_config_that_says_something_else_is_taken(more: str) -> None:
    assert loaded("eks", {"proxy": {"https": URL}, "nodeClasses.default.userData": f"<node-config>{more}"})


def test_a_node_config_of_aliases_that_would_fill_the_memory_is_taken() -> None:
    merged = [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 9)]
    for more in ("\n".join(["a0: &a0 {x: 1}", *merged]), "spec: " + "[" * 5_000):
        assert loaded("eks", {"proxy": {"https": URL}, "nodeClasses.default.userData": f"<node-config>{more}"})


def test_what_aks_takes_is_taken() -> None:
    entries = [".corp.example", "git.corp.example", "192.168.0.0/16", "10.9.8.7"]
    said = {"http": URL, "https": "https://10.9.9.9:8443", "noProxy": entries}
    loaded("aks-nap", {"proxy": said, "trustedCertificates": WORDS["<eleven-certificates>"][:10]})


def test_the_examples_documents(golden: Golden) -> None:
    there = made("eks-proxy")
    golden("proxy-node-class", matching(there, "EC2NodeClass")[0].inputs)
    golden("proxy-values-karpenter", only(there, "eks-karpenter-controller Release").inputs["values"])
    golden("proxy-launch-template", only(there, "LaunchTemplate").inputs)
    asked = loaded("aks-proxy", {})
    assert isinstance(asked, settings.AksSettings)
    assert asked.proxy is not None
    said = aks_proxy.http_proxy_config(
        http=asked.proxy.http or "",
        https=asked.proxy.https or "",
        no_proxy=asked.proxy.no_proxy,
        ranges=[str(asked.network.vnet_cidr)],
        certificates=asked.trusted_certificates,
    )
    golden("aks-http-proxy-config", said)
