"""A VPC that is there: what the program makes of it, and what it refuses before anything is made."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml

from components import eks, settings
from components.eks import existing_network
from components.eks.asking import looking
from components.kubernetes import reach
from components.problems import SettingsError
from components.settings.eks import ImagesSettings
from components.settings.existing_network import FoundNetwork, problems, way_out
from components.settings.proxy import ProxySettings
from tests.conftest import Golden
from tests.unit.example_stack import ROOT, raw
from tests.unit.found_network import found_network
from tests.unit.made_certificates import certificate
from tests.unit.mock_engine import Deployment, deploy

FOLDER = ROOT / "examples" / "existing-vpc"
STACK = FOLDER / "Pulumi.eks-existing-vpc.yaml"
VPC, OTHER_VPC = "vpc-00000001", "vpc-00000002"
A, B, C, D = (f"subnet-0000000{letter}" for letter in "abcd")
NAME = "karpstack-existing"
CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
TAG = "aws:ec2/tag:Tag"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
#: Those that the example reaches by endpoints where nothing leads out.
SERVICES = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts")
PROXY = ProxySettings(https="http://proxy.corp.example:3128")
#: What the example says of its network, in short.
NETWORK: dict[str, Any] = {
    "vpcId": VPC,
    "vpcCidr": "10.0.0.0/16",
    "podCidr": "10.244.0.0/16",
    "serviceCidr": "172.20.0.0/16",
    "subnetIds": [A, B],
}


def example(network: dict[str, Any] | None = None, **changes: Any) -> settings.EksSettings:
    """The example in a network that the mocks have; without `network`, in its own."""
    config = yaml.safe_load(STACK.read_text())["config"]
    if network is not None:
        config["karpstack:network"] = {**network, **changes}
    loaded = settings.load(raw(config))
    assert isinstance(loaded, settings.EksSettings)
    return loaded


def deployed(preview: bool = False, **changes: Any) -> Deployment:
    return deploy(lambda: eks.Environment("eks", example(NETWORK, **changes)), preview)


@cache
def stack() -> Deployment:
    return deployed()


def one(deployment: Deployment, kind: str) -> dict[str, Any]:
    (only,) = deployment.of(kind)
    return only.inputs


def test_nothing_of_a_network_is_made() -> None:
    made = {each.type for each in stack().resources.values() if each.type.startswith("aws:ec2/")}
    assert made == {TEMPLATE, TAG, GROUP}
    (tag,) = stack().of(TAG)
    assert tag.inputs["resourceId"] == "sg-cluster"


def test_subnets_are_those_that_are_named() -> None:
    assert one(stack(), CLUSTER)["vpcConfig"]["subnetIds"] == [A, B]
    assert one(stack(), NODE_GROUP)["subnetIds"] == [A, B]
    assert "vpcSecurityGroupIds" not in one(stack(), TEMPLATE)
    spec = one(stack(), NODE_CLASS)["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": A}, {"id": B}]
    assert spec["securityGroupSelectorTerms"] == [{"tags": {"karpenter.sh/discovery": NAME}}]


def test_all_of_it_is_known_at_the_first_preview() -> None:
    previewed = deployed(preview=True)
    assert one(previewed, NODE_CLASS)["spec"]["subnetSelectorTerms"] == [{"id": A}, {"id": B}]


def test_the_control_plane_may_have_subnets_of_its_own() -> None:
    made = deployed(controlPlaneSubnetIds=[C, D])
    assert one(made, CLUSTER)["vpcConfig"]["subnetIds"] == [C, D]
    assert one(made, NODE_GROUP)["subnetIds"] == [A, B]


def test_all_nodes_carry_further_groups_beside_the_clusters_own() -> None:
    made = deployed(nodeSecurityGroupIds=["sg-00000001"])
    assert one(made, TEMPLATE)["vpcSecurityGroupIds"] == ["sg-cluster", "sg-00000001"]
    terms = one(made, NODE_CLASS)["spec"]["securityGroupSelectorTerms"]
    assert terms == [{"tags": {"karpenter.sh/discovery": NAME}}, {"id": "sg-00000001"}]


def test_subnets_that_are_found_by_tags_are_found_so_by_karpenter() -> None:
    made = deployed(subnetIds=[], subnetTags={"tier": "private"})
    assert one(made, NODE_GROUP)["subnetIds"] == [A, B]
    assert one(made, NODE_CLASS)["spec"]["subnetSelectorTerms"] == [{"tags": {"tier": "private"}}]


def test_subnets_are_tagged_where_the_settings_say_so_alone() -> None:
    made = deployed(tagSubnets=True)
    tagged = {tag.inputs["resourceId"]: tag.inputs["value"] for tag in made.of(TAG)}
    assert tagged == {A: NAME, B: NAME, "sg-cluster": NAME}
    terms = one(made, NODE_CLASS)["spec"]["subnetSelectorTerms"]
    assert terms == [{"tags": {"karpenter.sh/discovery": NAME}}]


def test_ranges_reach_the_api_server_before_it_is_there() -> None:
    """The group that EKS makes with the cluster would come too late for whoever makes it."""
    cluster = stack().of(CLUSTER)[0]
    (group,) = stack().of(GROUP)
    assert group.inputs["vpcId"] == VPC
    assert cluster.inputs["vpcConfig"]["securityGroupIds"] == [f"{group.name}-id"]
    rules = stack().of(RULE)
    assert {rule.inputs["cidrIpv4"] for rule in rules} == {"10.20.0.0/16", "10.99.0.0/16"}
    for rule in rules:
        assert (rule.inputs["ipProtocol"], rule.inputs["fromPort"], rule.inputs["toPort"]) == ("tcp", 443, 443)
        assert stack().needs(cluster, rule)


def test_without_a_way_to_the_api_server_nothing_is_made() -> None:
    config = yaml.safe_load(STACK.read_text())["config"]
    config["karpstack:cluster"]["privateAccessCidrs"] = []
    with pytest.raises(SettingsError, match=r"cluster.privateAccessCidrs = \[\]\n.*admits nobody but nodes"):
        settings.load(raw(config))
    config["karpstack:cluster"]["publicAccessCidrs"] = ["1.1.1.1/32"]
    assert settings.load(raw(config))


def test_everybody_is_no_range_of_ones_own() -> None:
    config = yaml.safe_load(STACK.read_text())["config"]
    config["karpstack:cluster"]["privateAccessCidrs"] = ["0.0.0.0/0"]
    with pytest.raises(SettingsError, match=r"privateAccessCidrs\[0\] = "):
        settings.load(raw(config))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (IPv4Address("10.99.3.4"), ""),
        (IPv4Address("192.168.1.5"), "would go to its network from 192.168.1.5, which is not admitted"),
        (None, "would go to its network by no route at all"),
    ],
)
def test_whoever_comes_from_elsewhere_is_warned(
    monkeypatch: pytest.MonkeyPatch, source: IPv4Address | None, said: str
) -> None:
    assert "eks-cluster-another-way" in stack().of(CLUSTER)[0].request.hooks.before_create
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)
    monkeypatch.setattr(reach, "_source", lambda destination: source)
    hook = reach.warns_of_another_way(
        "way", networks=[IPv4Network("10.99.0.0/16")], destination=IPv4Address("10.20.0.1")
    )
    warn: Any = hook.callback
    warn(pulumi.ResourceHookArgs("urn", "", "eks-cluster-control-plane", CLUSTER))
    assert len(warnings) == (1 if said else 0)
    assert all(said in warning for warning in warnings)


def test_a_wrong_network_is_refused_before_anything_is_made() -> None:
    made: list[Deployment] = []
    with pytest.raises(SettingsError, match=r"network.subnetIds.* = .*\n.*lies in another VPC, vpc-00000001"):
        made.append(deployed(vpcId=OTHER_VPC))
    assert not made


def found(**changes: Any) -> FoundNetwork:
    """A network in which the example works, with changes."""
    return found_network("abcd", **changes)


def with_subnets(**changes: dict[str, Any]) -> FoundNetwork:
    """The same with changes of single subnets, by their letter."""
    subnets = dict(found().subnets)
    for letter, change in changes.items():
        subnets[f"subnet-0000000{letter}"] = replace(subnets[f"subnet-0000000{letter}"], **change)
    return found(subnets=subnets)


def isolated(*endpoints: str) -> FoundNetwork:
    """One out of which nothing leads, with endpoints; without any that are named, with all that are needed."""
    return replace(with_subnets(a={"way_out": "none"}), endpoints=endpoints or SERVICES)


def said(network: FoundNetwork, **changes: Any) -> list[tuple[str, str, bool]]:
    """Key, consequence, and whether it is a warning."""
    return [
        (problem.key.removeprefix("karpstack:network."), problem.consequence, problem.warning)
        for problem in problems(example(NETWORK, **changes), network)
    ]


OWNED = {"kubernetes.io/cluster/legacy": "owned"}
FOREIGN = {"karpenter.sh/discovery": "legacy"}
BY_TAGS = {"subnetIds": [], "subnetTags": {"tier": "private"}}
WRONG: list[Any] = [
    (found(cidrs=[]), {}, "vpcId", "is not in this account and region"),
    (found(cidrs=["10.1.0.0/16"]), {}, "vpcCidr", "is no range of vpc-00000001, which has 10.1.0.0/16"),
    (found(cidrs=["10.0.0.0/16", "10.244.0.0/20"]), {}, "podCidr", "overlaps 10.244.0.0/20"),
    (found(cidrs=["10.0.0.0/16", "172.20.4.0/24"]), {}, "serviceCidr", "overlaps 172.20.4.0/24"),
    (found(dns_support=False), {}, "vpcId", "has enableDnsSupport off"),
    (found(dns_hostnames=False), {}, "vpcId", "has enableDnsHostnames off"),
    (found(), {"subnetIds": [A, B, "subnet-00000009"]}, "subnetIds[2]", "is not in this account and region"),
    (with_subnets(b={"vpc_id": OTHER_VPC}), {"subnetIds": [A, B, C]}, "subnetIds[1]", "lies in another VPC"),
    (
        with_subnets(d={"vpc_id": OTHER_VPC}),
        {"controlPlaneSubnetIds": [A, C, D]},
        "controlPlaneSubnetIds[2]",
        "another",
    ),
    (found(), BY_TAGS, "subnetTags", "are carried by no subnet of vpc-00000001"),
    (
        replace(with_subnets(c={"vpc_id": OTHER_VPC}), selected=[A, B, C]),
        BY_TAGS,
        "subnetTags",
        "are carried by subnet-0000000c too, of another VPC",
    ),
    (with_subnets(b={"zone": "us-east-1a"}), {}, "subnetIds", "is in one zone, us-east-1a"),
    (found(), {"controlPlaneSubnetIds": [A]}, "controlPlaneSubnetIds", "is in one zone, us-east-1a"),
    (with_subnets(b={"zone_id": "use1-az3"}), {"subnetIds": [A, B, C]}, "subnetIds", "places no control plane"),
    (with_subnets(b={"zone": "us-east-1-bos-1a"}), {"subnetIds": [A, B, C]}, "subnetIds", "places no control plane"),
    (with_subnets(a={"free": 5}), {}, "subnetIds", "has subnet-0000000a with 5 free addresses, and EKS demands 6"),
    (with_subnets(a={"way_out": "public"}), {}, "subnetIds", "has subnet-0000000a, a public subnet"),
    (with_subnets(a={"way_out": "none"}), {}, "subnetIds", "has subnet-0000000a without a default route: nodes there"),
    (with_subnets(a={"way_out": "blackhole"}), {}, "subnetIds", "is a blackhole (what it led to is gone): nodes there"),
    (with_subnets(a={"tags": OWNED}), {}, "subnetIds", "which the cluster legacy owns"),
    (with_subnets(c={"tags": OWNED}), {"controlPlaneSubnetIds": [C, D]}, "controlPlaneSubnetIds", "legacy owns"),
    (with_subnets(a={"tags": FOREIGN}), {"tagSubnets": True}, "tagSubnets", "the Karpenter of legacy would no longer"),
    (found(), {"nodeSecurityGroupIds": ["sg-00000002"]}, "nodeSecurityGroupIds[0]", "is not in this account"),
    (
        found(groups={"sg-00000001": OTHER_VPC}),
        {"nodeSecurityGroupIds": ["sg-00000001"]},
        "nodeSecurityGroupIds[0]",
        "belongs to another VPC, vpc-00000002",
    ),
]


@pytest.mark.parametrize(("network", "changes", "key", "consequence"), WRONG, ids=lambda one: str(one)[:40])
def test_what_is_wrong_is_told_with_its_key(
    network: FoundNetwork, changes: dict[str, Any], key: str, consequence: str
) -> None:
    ((told, text, warning),) = said(network, **changes)
    assert told == key
    assert consequence in text
    assert not warning


@pytest.mark.parametrize(
    ("network", "changes"),
    [
        (found(), {}),
        (found(), {"controlPlaneSubnetIds": [C, D], "nodeSecurityGroupIds": ["sg-00000001"], "tagSubnets": True}),
        (found(selected=[A, B]), BY_TAGS),
        # Nodes may be in one zone, the control plane in none without a route out.
        (with_subnets(c={"way_out": "none"}), {"subnetIds": [A], "controlPlaneSubnetIds": [B, C]}),
        (with_subnets(a={"tags": {"kubernetes.io/cluster/legacy": "shared", **FOREIGN}}), {}),
        (with_subnets(a={"tags": {f"kubernetes.io/cluster/{NAME}": "owned"}}), {"tagSubnets": True}),
        (replace(with_subnets(a={"free": 1}, b={"free": 1}), has_cluster=True), {}),
    ],
)
def test_what_is_right_is_taken(network: FoundNetwork, changes: dict[str, Any]) -> None:
    assert said(network, **changes) == []


def test_few_addresses_are_a_warning_and_too_few_for_nodes_are_not() -> None:
    ((key, text, warning),) = said(with_subnets(a={"free": 8}))
    assert (key, "recommends 16" in text, warning) == ("subnetIds", True, True)
    full = with_subnets(a={"free": 1}, b={"free": 1})
    ((key, text, warning),) = said(full, controlPlaneSubnetIds=[C, D])
    assert (key, "have 2 free addresses in all" in text, warning) == ("subnetIds", True, False)


def endpoints(answers: dict[str, str]) -> frozenset[str]:
    """Services with an endpoint, where the provider answers for some with an error."""

    def ask(service_name: str, **asked: Any) -> object:
        if text := answers.get(service_name.removeprefix("com.amazonaws.us-east-1.")):
            raise Exception(f"invoke of aws:ec2/getVpcEndpoint:getVpcEndpoint failed: {text}")
        return object()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_network, "ec2", SimpleNamespace(get_vpc_endpoint=ask))
        vpc: Any = SimpleNamespace(id=VPC, region="us-east-1")
        return existing_network._endpoints(vpc, pulumi.InvokeOptions())


def test_several_endpoints_of_a_service_are_there_and_none_is_not() -> None:
    several = "multiple EC2 VPC Endpoints matched; use additional constraints to reduce matches to a single one"
    there = endpoints({"s3": several, "ssm": "no matching EC2 VPC Endpoint found"})
    assert "s3" in there
    assert "ec2" in there
    assert "ssm" not in there


def test_an_endpoint_that_may_not_be_asked_for_is_not_missing() -> None:
    text = "operation error EC2: DescribeVpcEndpoints, api error UnauthorizedOperation: You are not authorized."
    with (
        pytest.raises(SettingsError) as refused,
        looking("network", "vpcId", VPC, "whether the cluster can work in it"),
    ):
        endpoints({"sqs": text})
    (problem,) = refused.value.problems
    assert "may not call ec2:DescribeVpcEndpoints" in problem.consequence
    assert f"nobody knows whether {VPC} has an endpoint of sqs" in problem.consequence


def test_a_vpc_that_may_not_be_looked_at_is_told_with_the_right() -> None:
    text = "operation error EC2: DescribeVpcs, api error UnauthorizedOperation: You are not authorized."
    with pytest.raises(SettingsError, match=r"network\.vpcId = .*\n.*may not call ec2:DescribeVpcs, and without it"):
        deploy(lambda: eks.Environment("eks", example(NETWORK)), errors={"getVpcs": text})


def test_endpoints_instead_of_a_way_out_are_a_warning() -> None:
    ((_, text, warning),) = said(isolated())
    assert "only services with an endpoint in the VPC, and images of public.ecr.aws, quay.io only by" in text
    assert warning
    mirrors = ImagesSettings(mirrors=dict.fromkeys(("public.ecr.aws", "quay.io"), "registry.example.com"))
    for reached in ({"images": mirrors}, {"proxy": PROXY}):
        assert not list(problems(example(NETWORK).model_copy(update=reached), isolated()))
    by_http = example(NETWORK).model_copy(update={"proxy": ProxySettings(http=PROXY.https)})
    assert [problem.warning for problem in problems(by_http, isolated())] == [True]


@pytest.mark.parametrize(
    ("network", "direct", "warned"),
    [
        # With a way out the proxy is asked for whatever noProxy does not name, whether there are endpoints or not.
        (found(), [], True),
        (found(endpoints=()), ["ec2.us-east-1.amazonaws.com"], False),
        (found(), [".amazonaws.com"], False),
        # Without, noProxy gets the names of endpoints.
        (isolated(), [], False),
    ],
)
def test_a_proxy_that_may_open_tls_is_asked_for_ec2_before_it_is_trusted(
    network: FoundNetwork, direct: list[str], warned: bool
) -> None:
    through = {"proxy": PROXY.model_copy(update={"no_proxy": direct}), "trusted_certificates": [certificate()]}
    told = list(problems(example(NETWORK).model_copy(update=through), network))
    assert [problem.key for problem in told] == (["karpstack:proxy.https"] if warned else [])
    assert all(problem.warning and "before a node has karpstack:trusted" in problem.consequence for problem in told)
    trusting_nothing_else = example(NETWORK).model_copy(update={"proxy": PROXY})
    assert not list(problems(trusting_nothing_else, network))


def test_up_warns_of_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda said, *more: warned.append(said))
    through = {"proxy": PROXY, "trusted_certificates": [certificate()]}
    deploy(lambda: eks.Environment("eks", example(NETWORK).model_copy(update=through)))
    assert [said for said in warned if said.startswith("karpstack:proxy.https = ")]


def test_a_missing_endpoint_is_named_with_the_command_that_makes_it() -> None:
    (problem,) = problems(example(NETWORK), isolated(*(one for one in SERVICES if one not in ("ecr.api", "s3"))))
    assert "without an endpoint of ecr.api, s3: " in problem.consequence
    assert not problem.warning
    command = f"aws ec2 create-vpc-endpoint --vpc-id {VPC} --service-name com.amazonaws.us-east-1"
    assert f"{command}.ecr.api --vpc-endpoint-type Interface --private-dns-enabled" in problem.fix
    assert f"{command}.s3 --vpc-endpoint-type Gateway --route-table-ids" in problem.fix


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


REFUSED: list[Any] = [
    ({"vpcId": "company"}, "network.vpcId", "is no ID of a VPC"),
    ({"subnetIds": ["private-a"]}, "network.subnetIds[0]", "is no ID of a subnet"),
    ({"nodeSecurityGroupIds": ["default"]}, "network.nodeSecurityGroupIds[0]", "is no ID of a security group"),
    ({"subnetIds": [A, A]}, "network.subnetIds", "twice"),
    ({"vpcId": None}, "network.subnetIds", "network.vpcId names none"),
    ({"vpcId": None, "subnetIds": [], "tagSubnets": True}, "network.tagSubnets", "network.vpcId names none"),
    ({"zones": 2}, "network.zones", "is about a VPC that the stack makes"),
    ({"natGateways": "per-zone"}, "network.natGateways", "is about a VPC that the stack makes"),
    ({"flowLogRetentionDays": 7}, "network.flowLogRetentionDays", "is about a VPC that the stack makes"),
    ({"subnetIds": []}, "network.subnetIds", "leaves open in which subnets"),
    ({"subnetTags": {"tier": "private"}}, "network.subnetIds", "leaves open in which subnets"),
    ({**BY_TAGS, "tagSubnets": True}, "network.tagSubnets", "found by tags already"),
]


@pytest.mark.parametrize(("changes", "key", "consequence"), REFUSED)
def test_settings_that_contradict_themselves_are_refused(changes: dict[str, Any], key: str, consequence: str) -> None:
    network = {name: value for name, value in {**NETWORK, **changes}.items() if value is not None}
    with pytest.raises(SettingsError) as refused:
        example(network)
    told = [(problem.key.removeprefix("karpstack:"), problem.consequence) for problem in refused.value.problems]
    assert [where for where, _ in told] == [key]
    assert consequence in told[0][1]


def test_an_existing_vpc_may_be_smaller_than_one_that_is_cut_up() -> None:
    assert str(example(NETWORK, vpcCidr="10.0.0.0/26").network.vpc_cidr) == "10.0.0.0/26"


def test_the_example_names_what_its_network_file_has() -> None:
    network = example().network
    file = json.loads(Path(STACK.with_name("Pulumi.eks-existing-vpc.network.json")).read_text())
    subnets = {one["SubnetId"] for one in file["Subnets"]}
    assert {*network.subnet_ids, *network.control_plane_subnet_ids} <= subnets
    assert network.vpc_id == file["Vpcs"][0]["VpcId"]
    assert set(network.node_security_group_ids) <= {one["GroupId"] for one in file["SecurityGroups"]}


def test_the_examples_documents(golden: Golden) -> None:
    made = deployed(controlPlaneSubnetIds=[C, D], nodeSecurityGroupIds=["sg-00000001"])
    golden("existing-vpc-node-class", one(made, NODE_CLASS))
    golden("existing-vpc-cluster-network", one(made, CLUSTER)["vpcConfig"])
    golden("existing-vpc-launch-template", one(made, TEMPLATE))


def test_without_a_way_out_karpenter_asks_nothing_that_has_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "role" in one(stack(), NODE_CLASS)["spec"]  # which is kept, so that it must not be made below
    monkeypatch.setattr(existing_network, "find", lambda *asked: isolated())
    made = deployed()
    assert one(made, NODE_CLASS)["spec"]["instanceProfile"] == f"{NAME}-karpenter-nodes"
    assert made.one("eks-karpenter-controller").inputs["values"]["settings"]["isolatedVPC"] is True
    through = {"proxy": PROXY}
    behind = deploy(lambda: eks.Environment("eks", example(NETWORK).model_copy(update=through)))
    told = str(behind.one("eks-karpenter-controller").inputs["values"]["controller"]["env"])
    assert "sqs.us-east-1.amazonaws.com" in told
    assert "elasticloadbalancing" not in told
