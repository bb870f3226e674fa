"""A way out that leads through a proxy, on EKS: who is told of it, and of what is reached without it."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import pytest
import yaml

from components import eks, settings
from components.documents import endpoints, partitions
from components.problems import SettingsError
from tests.conftest import Golden
from tests.unit import example_stack
from tests.unit.made_certificates import certificate
from tests.unit.mock_engine import Deployment, deploy

NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
URL = "http://proxy.corp.example:3128"
PROXY = {"https": URL, "noProxy": [".corp.example"]}
CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
VARIABLE = "spec: {instance: {environment: {default: {no_proxy: x}}}}"
ROOT = certificate()
MOUNT = {"name": "trusted-certificates", "mountPath": "/etc/karpstack/certificates", "readOnly": True}
ADDONS = {"ebsCsi": True, "metricsServer": True, "loadBalancerController": True}


def deployed(**changes: Any) -> Deployment:
    return deploy(lambda: eks.Environment("eks", example_stack.eks(**changes)))


@cache
def behind_a_proxy() -> Deployment:
    return deployed(
        proxy=PROXY,
        trustedCertificates=[ROOT],
        images={"nodeMirrors": {"docker.io": "mirror.corp.example/hub"}},
        network__endpoints=True,
        addons=ADDONS,
    )


def values(deployment: Deployment, chart: str) -> Any:
    releases = (one.inputs for one in deployment.of("kubernetes:helm.sh/v3:Release"))
    return next(one["values"] for one in releases if one["name"] == chart)


def variables(listed: list[dict[str, str]]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in listed}


def test_nodes_of_karpenter_are_told() -> None:
    by_name = {one.inputs["metadata"]["name"]: one.inputs["spec"] for one in behind_a_proxy().of(NODE_CLASS)}
    assert URL in by_name["default"]["userData"]
    assert ROOT in by_name["default"]["userData"]
    assert "certs.d/docker.io" in by_name["default"]["userData"]
    assert f'https-proxy = "{URL}"' in by_name["bottlerocket"]["userData"]


def test_system_nodes_are_told_the_same() -> None:
    (template,) = behind_a_proxy().of(LAUNCH_TEMPLATE)
    (spec,) = (one.inputs["spec"] for one in behind_a_proxy().of(NODE_CLASS) if one.name.endswith("-default"))
    assert base64.b64decode(template.inputs["userData"]).decode() == spec["userData"]


def test_what_is_inside_is_reached_directly() -> None:
    no_proxy = variables(values(behind_a_proxy(), "karpenter")["controller"]["env"])["NO_PROXY"].split(",")
    assert no_proxy[0] == ".corp.example"
    assert {
        *("localhost", "127.0.0.1", "169.254.169.254", "169.254.170.23", ".svc", ".cluster.local", ".internal"),
        *("10.0.0.0/16", "10.244.0.0/16", "172.20.0.0/16"),
        *(".us-east-1.eks.amazonaws.com", "ec2.us-east-1.amazonaws.com", "dkr.ecr.us-east-1.amazonaws.com"),
        *("s3.us-east-1.amazonaws.com", "eks-auth.us-east-1.api.aws", "elasticloadbalancing.us-east-1.amazonaws.com"),
    } <= set(no_proxy)
    without = variables(values(deployed(proxy=PROXY), "karpenter")["controller"]["env"])["NO_PROXY"].split(",")
    assert not [entry for entry in without if entry.startswith(("ec2.", "s3."))]


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


def test_controllers_that_call_aws_are_told_and_trust_the_certificates() -> None:
    (files,) = behind_a_proxy().of(CONFIG_MAP)
    assert list(files.inputs["data"].values()) == [ROOT]
    name = files.inputs["metadata"]["name"]
    (addon,) = (one for one in behind_a_proxy().of("aws:eks/addon:Addon") if one.name.endswith("csi-driver"))
    karpenter, balancers = (
        values(behind_a_proxy(), "karpenter"),
        values(behind_a_proxy(), "aws-load-balancer-controller"),
    )
    driver = json.loads(addon.inputs["configurationValues"])["controller"]
    told = [variables(karpenter["controller"]["env"]), balancers["env"], variables(driver["env"])]
    assert all(one["HTTPS_PROXY"] == URL and one["SSL_CERT_DIR"] == MOUNT["mountPath"] for one in told)
    assert karpenter["controller"]["extraVolumeMounts"] == balancers["extraVolumeMounts"] == driver["volumeMounts"]
    assert driver["volumeMounts"] == [MOUNT]
    assert karpenter["extraVolumes"] == balancers["extraVolumes"] == driver["volumes"]
    assert driver["volumes"] == [{"name": "trusted-certificates", "configMap": {"name": name}}]
    for each in (addon, behind_a_proxy().one("eks-karpenter-controller")):
        assert behind_a_proxy().needs(each, files)


def test_who_calls_nobody_outside_is_not_told() -> None:
    assert "PROXY" not in json.dumps(values(behind_a_proxy(), "cilium"))
    assert "PROXY" not in json.dumps(values(behind_a_proxy(), "metrics-server"))


def test_other_certificates_are_another_config_map_so_that_pods_are_made_anew() -> None:
    def name(deployment: Deployment) -> str:
        (files,) = deployment.of(CONFIG_MAP)
        return str(files.inputs["metadata"]["name"])

    other = deployed(trustedCertificates=[certificate()])
    assert name(other) != name(behind_a_proxy())
    assert variables(values(other, "karpenter")["controller"]["env"]).keys() == {"AWS_REGION", "SSL_CERT_DIR"}


def test_without_the_settings_nothing_is_added() -> None:
    plain = deployed(addons=ADDONS)
    assert not plain.of(CONFIG_MAP)
    (template,) = plain.of(LAUNCH_TEMPLATE)
    assert "userData" not in template.inputs
    said = json.dumps([values(plain, "karpenter"), values(plain, "aws-load-balancer-controller")])
    assert not [word for word in ("PROXY", "SSL_CERT_DIR", "xtraVolume") if word in said]


@pytest.mark.parametrize(
    "more", ["", "spec: {instance: {environment: {default: {TZ: UTC}, kubelet: {A: b}}}}", "spec: ["]
)
def test_a_node_config_that_says_something_else_is_taken(more: str) -> None:
    assert example_stack.eks(proxy=PROXY, nodeClasses__default__userData=CONFIG + more)


def test_with_a_proxy_images_need_no_mirror() -> None:
    assert deployed(network__natGateways="none", network__endpoints=True, proxy=PROXY)


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        (
            {"nodeClasses__default__userData": CONFIG + VARIABLE},
            "nodeClasses.default.userData",
            "sets no_proxy in a NodeConfig",
        ),
        (
            {"nodeClasses__bottlerocket__userData": "[settings.network]\nno-proxy = []\n"},
            "nodeClasses.bottlerocket.userData",
            "sets settings.network.no-proxy",
        ),
        ({"nodeClasses__default__userData": f"#!/bin/sh\n{'#' * 13_000}"}, "nodeClasses.default.userData", "EC2 takes"),
        (
            {"nodeClasses__default__amiSelectorTerms": [{"alias": "al2023@v20250920"}], "cluster__version": "1.33"},
            "nodeClasses.default.amiSelectorTerms[0].alias",
            "is older than v20251007",
        ),
        (
            {"systemNodes__releaseVersion": "1.33.5-20250920", "cluster__version": "1.33"},
            "systemNodes.releaseVersion",
            "is older than v20251007",
        ),
        ({"proxy": {"http": URL}}, "proxy.https", "is the only proxy that Bottlerocket has a setting for"),
        (
            {"network__natGateways": "none", "network__endpoints": True, "proxy": {"http": URL}},
            "images.mirrors",
            "has no mirror of public.ecr.aws",
        ),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load(example_stack.example(**{"proxy": PROXY, **changes}))
    found = {problem.key: problem for problem in refused.value.problems}
    assert said in found[f"karpstack:{key}"].consequence
    assert "#####" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        (
            {"nodeClasses__default": {"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}},
            "nodeClasses.default.amiFamily",
            "user data of which the stack knows nothing",
        ),
        ({"trustedCertificates": [ROOT]}, "proxy.https", "nodeadm on Amazon Linux 2023, pluto on Bottlerocket"),
    ],
)
def test_what_may_not_work_is_said(changes: dict[str, Any], key: str, said: str) -> None:
    warned: list[Any] = []
    settings.load(example_stack.example(proxy=PROXY, **changes), warn=warned.append)
    assert said in next(problem.consequence for problem in warned if problem.key == f"karpstack:{key}")
    if "trustedCertificates" in changes:
        direct = {**PROXY, "noProxy": ["ec2.us-east-1.amazonaws.com"]}
        for more in ({"network__endpoints": True}, {"network__endpoints": ["ec2"]}, {"proxy": direct}):
            quiet: list[Any] = []
            settings.load(example_stack.example(**{"proxy": PROXY, **changes, **more}), warn=quiet.append)
            assert key not in str(quiet)


def test_the_examples_documents(golden: Golden) -> None:
    config = yaml.safe_load((example_stack.ROOT / "examples" / "proxy" / "Pulumi.eks-proxy.yaml").read_text())
    loaded = settings.load(example_stack.raw(config["config"]))
    assert isinstance(loaded, settings.EksSettings)
    made = deploy(lambda: eks.Environment("eks", loaded))
    golden("proxy-node-class", made.of(NODE_CLASS)[0].inputs)
    golden("proxy-values-karpenter", made.one("eks-karpenter-controller").inputs["values"])
    golden("proxy-launch-template", made.of(LAUNCH_TEMPLATE)[0].inputs)
