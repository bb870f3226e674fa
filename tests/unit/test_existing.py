"""Existing clusters and networks: what is found of them, by stacks/existing.yaml, and what the program makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml

from karpstack.components import aks, settings
from karpstack.components.aks import existing_network as azure_network
from karpstack.components.eks import existing_network as aws_network
from karpstack.components.eks.lookups import name_missing_permission
from karpstack.components.kubernetes import api_access
from karpstack.components.problems import SettingsError, warnings_only
from karpstack.components.settings import existing_aks_cluster, existing_cluster, existing_network, existing_vnet
from karpstack.components.settings.existing_network import way_out
from tests.conftest import Golden
from tests.unit import found
from tests.unit.example_stack import ROOT, as_shipped, loaded, raw, stack_file, written
from tests.unit.mock_engine import deploy
from tests.unit.programs import made, matching, only

TABLE = yaml.safe_load((ROOT / "tests" / "unit" / "stacks" / "existing.yaml").read_text(encoding="utf-8"))
#: By the table's names: what is found, the stack, and the judges, of which the second raises what is refused.
KINDS: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "eks-cluster": (found.eks_cluster, "eks-existing-cluster", existing_cluster),
    "aks-cluster": (found.aks_cluster, "aks-existing-cluster", existing_aks_cluster),
    "vpc": (lambda: found.found_network("abcd"), "eks-existing-vpc", existing_network),
    "vnet": (found.vnet, "aks-nap", existing_vnet),
}
#: Those that the example reaches by endpoints where nothing leads out.
SERVICES = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts")
GROUPS = {
    "network.controlPlaneSubnetIds": ["subnet-0000000c", "subnet-0000000d"],
    "network.nodeSecurityGroupIds": ["sg-00000001"],
}
IN_THE_HUB = {"network.subnetCidr": None, "network.subnetId": "<subnets>/one"}
ROWS = [
    pytest.param(kind, sort, *row[:3], row[3:], id=f"{kind} {index} {' '.join(row[2]) or 'taken'}")
    for kind in KINDS
    for sort, rows in TABLE[kind].items()
    for index, row in enumerate(rows)
]


def ranges(value: Any) -> Any:
    """The same with networks for texts like them, in lists."""
    if isinstance(value, dict):
        return {key: ranges(entry) for key, entry in value.items()}
    return (
        [IPv4Network(one) if "/" in one and one[0].isdigit() else one for one in value]
        if isinstance(value, list)
        else value
    )


@pytest.mark.parametrize(("kind", "sort", "facts", "changes", "wanted", "words"), ROWS)
def test_what_is_found(
    kind: str, sort: str, facts: dict[str, Any], changes: dict[str, Any], wanted: dict[str, Any], words: list[str]
) -> None:
    made, stack, judge = KINDS[kind]
    said = loaded(stack, {**(IN_THE_HUB if kind == "vnet" else {}), **changes})
    there = found.changed(made(), ranges(written(facts)) if kind == "vnet" else written(facts))
    problems = list(judge.problems(said, there))
    keys: dict[str, list[str]] = {}
    for problem in problems:
        keys.setdefault(problem.code, []).append(problem.key.removeprefix("karpstack:"))
    assert keys == {code: key if isinstance(key, list) else [key] for code, key in wanted.items()}
    assert {problem.warning for problem in problems} <= {sort == "warned"}
    assert all(problem.fix for problem in problems)
    assert all(each in " ".join(problem.fix for problem in problems) for each in written(words))
    if sort == "refused":
        with pytest.raises(SettingsError, match="nothing was created"):
            warnings_only(judge.problems(said, there))
    else:
        assert warnings_only(judge.problems(said, there)) == problems


@pytest.mark.parametrize(
    ("routes", "way"),
    [
        ({"10.0.0.0/16": "local"}, "none"),
        ({"0.0.0.0/0": "igw-1"}, "public"),
        ({"0.0.0.0/0": "nat-1"}, "private"),
        ({"0.0.0.0/0": "tgw-1"}, "private"),
        ({"0.0.0.0/0": ""}, "none"),
    ],
)
def test_where_a_default_route_leads(routes: dict[str, str], way: str) -> None:
    assert way_out(routes) == way


def test_machines_of_ones_own_karpenter_come_from_outside() -> None:
    changes = {
        **IN_THE_HUB,
        "cluster.publicAccessCidrs": ["1.1.1.0/24"],
        "cluster.apiServerSubnetId": "<subnets>/api-server",
    }
    warned: list[Any] = []
    (problem,) = existing_vnet.problems(loaded("aks-self-hosted", changes, warn=warned.append), found.vnet())
    assert [one.key for one in warned] == ["karpstack:cluster.apiServerSubnetId"]
    assert problem.key == "karpstack:cluster.publicAccessCidrs"


# What the program does with what it finds.


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: texts.append(text))
    return texts


PROXIED = {
    "nodeProvisioningProfile": {"mode": "Manual"},
    "httpProxyConfig": {"httpProxy": "http://p:1/"},
    "securityProfile": {"workloadIdentity": {"enabled": True}, "customCATrustCertificates": ["x"]},
}
OWN = {"mode": "self-hosted", "karpenter": {"sshPublicKey": "<ssh-key>"}}
UNLESS = "an HTTP proxy (unless `az aks show --query httpProxyConfig.enabled` says false), which"


@pytest.mark.parametrize(
    ("stack", "changes", "given", "said"),
    [
        (
            "eks-existing-cluster",
            {},
            {"runs": replace(found.EKS_WORKLOADS, autoscalers=["kube-system/ca"])},
            ["docs/how-to/eks/move-from-cluster-autoscaler.md"],
        ),
        (
            "aks-existing-cluster",
            {},
            {"runs": replace(found.AKS_WORKLOADS, autoscalers=["kube-system/ca"])},
            ["docs/how-to/aks/move-to-nap.md"],
        ),
        # The SDK's version of the API does not say whether it is switched off.
        ("aks-existing-cluster", OWN, {"told": PROXIED}, [UNLESS, "has certificate authorities of its own"]),
        (
            "eks-existing-vpc",
            {"proxy": {"https": "<proxy>"}, "trustedCertificates": ["<certificate>"]},
            {},
            ["karpstack:proxy.https = "],
        ),
    ],
)
def test_up_warns_of_what_may_be_meant(
    warned: list[str], stack: str, changes: dict[str, Any], given: dict[str, Any], said: list[str]
) -> None:
    made(stack, {"tags.warned": "yes", **changes}, **given)
    assert all(any(each in text for text in warned) for each in said)


def test_a_cluster_is_not_asked_whom_it_does_not_let_in() -> None:
    for changes, told, said in (
        ({"cluster.localAccounts": True}, {}, "has local accounts disabled"),
        ({}, {"powerState": {"code": "Stopped"}}, "is stopped"),
    ):
        settings: Any = loaded("aks-existing-cluster", changes)
        with pytest.raises(SettingsError, match=said):
            deploy(partial(aks.ExistingEnvironment, "aks", settings), clusters=["Shop_1"], told=told)


def denied(service: str, operation: str) -> str:
    """What the provider says of a call that AWS refuses."""
    right = f"{service.lower()}:{operation}"
    return (
        f"reading Shop_1: operation error {service}: {operation}, https response error StatusCode: 403, RequestID: 1, "
        "api error AccessDeniedException: User: arn:aws:sts::123456789012:assumed-role/deployer/me is not authorized "
        f"to perform: {right} on resource: * because no identity-based policy allows the {right} action"
    )


@pytest.mark.parametrize(
    ("stack", "function", "service", "operation", "unknown"),
    [
        ("eks-existing-cluster", "getAddon", "EKS", "DescribeAddon", "whether its VPC CNI has a role of its own"),
        (
            "eks-existing-cluster",
            "getOpenIdConnectProvider",
            "IAM",
            "ListOpenIDConnectProviders",
            "whether the account has an OIDC provider for its issuer",
        ),
        ("eks-existing-cluster", "getCluster", "EKS", "DescribeCluster", "whether Karpenter can work on it"),
        ("eks-existing-cluster", "getRouteTable", "EC2", "DescribeRouteTables", "whether Karpenter can work on it"),
        ("eks-existing-vpc", "getVpcs", "EC2", "DescribeVpcs", "whether the cluster can work in it"),
    ],
)
def test_a_right_that_is_missing_is_told_with_what_nobody_knows_without_it(
    stack: str, function: str, service: str, operation: str, unknown: str
) -> None:
    changes = {"karpenter.identity": "irsa"} if service == "IAM" else {}
    with pytest.raises(SettingsError) as refused:
        made(stack, changes, errors={function: denied(service, operation)})
    (problem,) = refused.value.problems
    right = f"{service.lower()}:{operation}"
    assert problem.code == "not-allowed-to-ask"
    assert problem.key == f"karpstack:{'network.vpcId' if stack.endswith('vpc') else 'cluster.existing'}"
    assert f"no permission for {right}: it is unknown {unknown}" in problem.consequence
    assert f"grant {right}" in problem.fix


def test_what_fails_otherwise_is_no_answer_and_what_is_not_there_has_no_role() -> None:
    with pytest.raises(Exception, match="ThrottlingException"):
        made(
            "eks-existing-cluster",
            errors={"getAddon": "operation error EKS: DescribeAddon, ThrottlingException: Rate exceeded"},
        )
    absent = {"getAddon": "reading EKS Add-On (Shop_1:vpc-cni): couldn't find resource"}
    links = matching(made("eks-existing-cluster", errors=absent), "RolePolicyAttachment")
    assert any("AmazonEKS_CNI_Policy" in link.inputs["policyArn"] for link in links)


def endpoints(answers: dict[str, str]) -> frozenset[str]:
    """Services with an endpoint, where the provider answers for some with an error."""

    def ask(service_name: str, **asked: Any) -> object:
        if text := answers.get(service_name.removeprefix("com.amazonaws.us-east-1.")):
            raise Exception(f"invoke of aws:ec2/getVpcEndpoint:getVpcEndpoint failed: {text}")
        return object()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aws_network, "ec2", SimpleNamespace(get_vpc_endpoint=ask))
        vpc: Any = SimpleNamespace(id=found.VPC, region="us-east-1")
        return aws_network._endpoints(vpc, pulumi.InvokeOptions())


def test_several_endpoints_of_a_service_are_there_and_none_is_not() -> None:
    several = "multiple EC2 VPC Endpoints matched; use additional constraints to reduce matches to a single one"
    there = endpoints({"s3": several, "ssm": "no matching EC2 VPC Endpoint found"})
    assert {"s3", "ec2"} <= there
    assert "ssm" not in there


def test_an_endpoint_that_may_not_be_asked_for_is_not_missing() -> None:
    text = "operation error EC2: DescribeVpcEndpoints, api error UnauthorizedOperation: You are not authorized."
    with (
        pytest.raises(SettingsError, match=f"it is unknown whether {found.VPC} has an endpoint of sqs"),
        name_missing_permission("network", "vpcId", found.VPC, "whether the cluster can work in it"),
    ):
        endpoints({"sqs": text})


def test_without_a_way_out_karpenter_asks_nothing_that_has_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    there = found.changed(found.found_network("ab"), {"subnets.a.way_out": "none", "endpoints": SERVICES})
    monkeypatch.setattr(aws_network, "find", lambda *_: there)
    alone = made("eks-existing-vpc", {"tags.isolated": "yes"})
    assert only(alone, "EC2NodeClass").inputs["spec"]["instanceProfile"] == "karpstack-existing-karpenter-nodes"
    assert only(alone, "eks-karpenter-controller Release").inputs["values"]["settings"]["isolatedVPC"] is True
    behind = made("eks-existing-vpc", {"tags.isolated": "yes", "proxy": {"https": "<proxy>"}})
    told = str(only(behind, "eks-karpenter-controller Release").inputs["values"]["controller"]["env"])
    assert "sqs.us-east-1.amazonaws.com" in told
    assert "elasticloadbalancing" not in told


@pytest.mark.parametrize(
    ("servers", "changes", "tied"),
    [
        (["10.0.0.4"], {}, True),
        ([], {}, False),
        (["10.0.0.4"], {"cluster.privateDnsZone": "none"}, False),
        (["10.0.0.4"], {"cluster.publicAccessCidrs": ["1.1.1.0/24"]}, False),
    ],
)
def test_a_zone_of_akss_own_beside_other_dns_servers(
    monkeypatch: pytest.MonkeyPatch, servers: list[str], changes: dict[str, Any], tied: bool
) -> None:
    """AKS ties it to the network in the name of the cluster's identity."""
    monkeypatch.setattr(azure_network, "find", lambda *_: replace(found.vnet(), dns_servers=servers))
    roles = matching(made("aks-nap", {**IN_THE_HUB, "tags.servers": str(servers), **changes}), "RoleAssignment")
    assert (written("<vnet>") in {one.inputs["scope"] for one in roles}) is tied


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (IPv4Address("10.99.3.4"), ""),
        (IPv4Address("192.168.1.5"), "would go to its network from 192.168.1.5, which is not admitted"),
        (None, "would go to its network by no route at all"),
    ],
)
def test_whoever_comes_from_elsewhere_is_warned(
    monkeypatch: pytest.MonkeyPatch, warned: list[str], source: IPv4Address | None, said: str
) -> None:
    monkeypatch.setattr(api_access, "_source", lambda destination: source)
    hook = api_access.private_access_warning(
        "way", networks=[IPv4Network("10.99.0.0/16")], destination=IPv4Address("10.20.0.1")
    )
    warn: Any = hook.callback
    warn(pulumi.ResourceHookArgs("urn", "", "eks-cluster-control-plane", "aws:eks/cluster:Cluster"))
    assert len(warned) == bool(said)
    assert all(said in warning for warning in warned)


def test_an_existing_vpc_may_be_smaller_than_one_that_is_cut_up() -> None:
    assert loaded("eks-existing-vpc", {"network.vpcCidr": "10.0.0.0/26"})


def test_a_node_class_of_windows_is_taken_where_the_vpc_cni_is() -> None:
    assert loaded("eks-existing-cluster", {"nodeClasses.default.amiSelectorTerms": [{"alias": "windows2022@latest"}]})


# The examples.


def described(stack: str, part: str) -> Any:
    return json.loads(stack_file(stack).with_suffix(f".{part}.json").read_text(encoding="utf-8"))


def test_the_examples_name_what_their_files_have() -> None:
    vpc: Any = settings.load(raw(as_shipped("eks-existing-vpc")))
    file = described("eks-existing-vpc", "network")
    assert {*vpc.network.subnet_ids, *vpc.network.control_plane_subnet_ids} <= {
        one["SubnetId"] for one in file["Subnets"]
    }
    assert vpc.network.vpc_id == file["Vpcs"][0]["VpcId"]
    assert set(vpc.network.node_security_group_ids) <= {one["GroupId"] for one in file["SecurityGroups"]}
    eks: Any = settings.load(raw(as_shipped("eks-existing-cluster")))
    cluster, network = (described("eks-existing-cluster", part) for part in ("cluster", "network"))
    assert eks.cluster.existing == cluster["cluster"]["name"]
    of_groups = {subnet for group in cluster["nodegroups"] for subnet in group["subnets"]}
    named = {*eks.network.subnet_ids, *of_groups, *cluster["cluster"]["resourcesVpcConfig"]["subnetIds"]}
    assert named <= {one["SubnetId"] for one in network["Subnets"]}
    on_aks: Any = settings.load(raw(as_shipped("aks-existing-cluster")))
    cluster, network = (described("aks-existing-cluster", part) for part in ("cluster", "network"))
    assert on_aks.cluster.existing == cluster["cluster"]["name"]
    assert on_aks.cluster.resource_group == cluster["cluster"]["resourceGroup"]
    subnets = {f"{network[0]['id']}/subnets/{one['name']}" for one in network[0]["properties"]["subnets"]}
    assert {pool["vnetSubnetId"] for pool in cluster["cluster"]["agentPoolProfiles"]} <= subnets


def test_the_examples_documents(golden: Golden) -> None:
    there = made("eks-existing-cluster")
    golden("existing-cluster-node-class", only(there, "EC2NodeClass").inputs["spec"])
    golden("existing-cluster-node-pool", only(there, "NodePool").inputs["spec"])
    golden("existing-cluster-values", only(there, "eks-karpenter-controller Release").inputs["values"])
    vpc = made("eks-existing-vpc", GROUPS)
    golden("existing-vpc-node-class", only(vpc, "EC2NodeClass").inputs)
    golden("existing-vpc-cluster-network", only(vpc, "Cluster").inputs["vpcConfig"])
    golden("existing-vpc-launch-template", only(vpc, "LaunchTemplate").inputs)
