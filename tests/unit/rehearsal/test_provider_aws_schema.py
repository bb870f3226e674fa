"""The stand-in against the SDK: a misspelt type or property cannot hide, neither in what it takes nor in answers."""

from __future__ import annotations

import ast
import importlib
import inspect
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi._types import input_type_py_to_pulumi_names

from karpstack.rehearsal.aws import errors
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.resource import ROWS, AwsRow
from tests.unit.rehearsal.provider_aws_world import CASES, World, open_world
from tests.unit.rehearsal.recordings import Record, records, unanswered

#: Required by the stand-in although the provider can do without: it knows only one way of making them.
_STRICTER = {
    "aws:ec2/vpc:Vpc": {"cidrBlock"},
    "aws:ec2/subnet:Subnet": {"cidrBlock"},
    "aws:ec2/natGateway:NatGateway": {"subnetId"},
    "aws:ec2/flowLog:FlowLog": {"vpcId", "trafficType", "logDestination", "iamRoleArn"},
    "aws:ec2/securityGroup:SecurityGroup": {"vpcId"},
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": {"vpcId"},
    "aws:ec2/routeTableAssociation:RouteTableAssociation": {"subnetId"},
    "aws:ec2/vpcEndpoint:VpcEndpoint": {"serviceName"},
    "aws:ec2/route:Route": {"destinationCidrBlock"},
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


def _sdk(token: str) -> Any:
    """The SDK's class of a token, `aws:ec2/vpc:Vpc` for example."""
    _, path, name = token.split(":")
    return getattr(importlib.import_module(f"pulumi_aws.{path.split('/')[0]}"), name)


def _names(token: str, kind: str) -> dict[str, str]:
    """Pulumi's names by Python's of a class's `Args` or `State`."""
    cls = _sdk(token)
    module = importlib.import_module(cls.__module__)
    names: dict[str, str] = input_type_py_to_pulumi_names(
        getattr(module, f"{cls.__name__}Args" if kind == "Args" else f"_{cls.__name__}State")
    )
    return names


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.token)
def test_type_and_inputs_are_the_sdks(row: AwsRow) -> None:
    assert _sdk(row.token).pulumi_type == row.token
    names = set(_names(row.token, "Args").values())
    paths = {path.split(".")[0] for path in row.replaces if "." in path}
    decided = Counter([*row.updates, *(row.replaces & names), *row.refused, *(row.usual.keys() & names) - row.accepts])
    wrong = {name: decided[name] for name in names | decided.keys() if decided[name] != (name in names)}
    assert not wrong, "each input is decided once (updates, replaces, refused, one value), and nothing else is"
    assert paths | row.replaces_when_gone <= row.updates
    assert row.required <= row.accepts
    assert {path.split(".")[0] for path in row.computed} <= row.accepts
    assert not row.defaults.keys() & row.unset.keys()
    assert row.name in row.accepts | {""}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.token)
def test_what_the_sdk_requires_is_required(row: AwsRow) -> None:
    cls = _sdk(row.token)
    arguments = getattr(importlib.import_module(cls.__module__), f"{cls.__name__}Args")
    names = _names(row.token, "Args")
    needed = {
        names[name]
        for name, parameter in inspect.signature(arguments.__init__).parameters.items()
        if name in names and parameter.default is inspect.Parameter.empty
    }
    assert needed | _STRICTER.get(row.token, set()) == row.required


#: What AWS chooses although the SDK calls it optional as output, too: of a rule's state the provider says that nothing
#: is no change (aws_cloudwatch_event_rule, DiffSuppressFunc); a cluster is told its zonal shift in either case.
_CHOSEN = {"aws:cloudwatch/eventRule:EventRule": {"state"}, "aws:eks/cluster:Cluster": {"zonalShiftConfig"}}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.token)
def test_what_aws_chooses_is_what_the_sdk_gives_where_the_program_gives_nothing(row: AwsRow) -> None:
    """An input that is optional, and an output that is not: Computed in Terraform, or with a default."""
    given = row.required - _STRICTER.get(row.token, set())
    filled = {*row.defaults, row.name, *given, "region"}
    chosen = (set(_promised(row.token)) & row.accepts) - filled
    assert chosen | _CHOSEN.get(row.token, set()) == {path for path in row.computed if "." not in path} - filled


@pytest.mark.parametrize("token", CASES)
def test_outputs_are_the_sdks(world: World, token: str) -> None:
    outputs = world.create(token, **CASES[token].inputs(world)).outputs
    assert outputs.keys() <= set(_names(token, "State").values()) | set(_names(token, "Args").values())
    missing = {name for name in _promised(token) if outputs.get(name) is None}
    assert missing == unanswered().get(token, {}).keys(), "promised by the SDK and not answered"


@pytest.mark.parametrize("record", records("aws").values(), ids=lambda record: record.token)
def test_what_was_recorded_and_is_no_more_is_not_in_the_sdk(record: Record) -> None:
    gone = {place for place, reason in record.differences.items() if reason == "not in pulumi-aws 7"}
    assert not gone & {f"outputs.{name}" for name in _names(record.token, "State").values()}


def _promised(token: str) -> Iterator[str]:
    """The outputs that the SDK's class has as `Output[...]`, not as `Output[Optional[...]]`."""
    names = _names(token, "State")
    for name, found in inspect.getmembers(_sdk(token), lambda member: isinstance(member, property)):
        if name in names and "Optional" not in str(found.fget.__annotations__["return"]):
            yield names[name]


FUNCTIONS: dict[str, dict[str, Any]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {},
    "aws:index/getPartition:getPartition": {},
    "aws:index/getRegion:getRegion": {},
    "aws:index/getAvailabilityZones:getAvailabilityZones": {},
    "aws:cloudwatch/getLogGroups:getLogGroups": {"logGroupNamePrefix": "/aws/eks/"},
    "aws:eks/getAddonVersion:getAddonVersion": {"addonName": "coredns", "kubernetesVersion": "1.36"},
    "aws:eks/getCluster:getCluster": {},  # its name is added
    "aws:eks/getClusterAuth:getClusterAuth": {"name": "any"},
    "aws:eks/getClusters:getClusters": {},
    # Of one that is created first.
    **{f"aws:eks/{name}:{name}": {} for name in ("getAddon", "getNodeGroup", "getNodeGroups")},
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": {},
    "aws:iam/getPolicyDocument:getPolicyDocument": {},
    "aws:ec2/getVpcs:getVpcs": {},
    "aws:ec2/getSubnets:getSubnets": {"filters": [{"name": "availability-zone", "values": ["us-east-1a"]}]},
    "aws:ec2/getNatGateways:getNatGateways": {},
    "aws:ec2/getRouteTables:getRouteTables": {},
    "aws:ec2/getSecurityGroups:getSecurityGroups": {},
    **{f"aws:ec2/{name}:{name}": {} for name in ("getVpc", "getSubnet", "getRouteTable", "getVpcEndpoint")},  # by id
    "aws:ssm/getParameter:getParameter": {
        "name": "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/release_version"
    },
}


def test_every_function_is_tried(world: World) -> None:
    assert set(FUNCTIONS) == set(invokes(world.account))


#: Functions about one resource: its type, and the outputs of it that they take.
OF_A_RESOURCE = {
    "getAddon": ("aws:eks/addon:Addon", "clusterName", "addonName"),
    "getNodeGroup": ("aws:eks/nodeGroup:NodeGroup", "clusterName", "nodeGroupName"),
    "getNodeGroups": ("aws:eks/nodeGroup:NodeGroup", "clusterName"),
    "getOpenIdConnectProvider": ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "url"),
}


@pytest.mark.parametrize("token", FUNCTIONS)
def test_results_of_functions_are_the_sdks(world: World, token: str) -> None:
    arguments = FUNCTIONS[token]
    if token == "aws:eks/getCluster:getCluster":
        created = world.create("aws:eks/cluster:Cluster", **CASES["aws:eks/cluster:Cluster"].inputs(world)).outputs
        arguments = {"name": created["name"]}
    if about := OF_A_RESOURCE.get(token.rpartition(":")[2]):
        kind, *keys = about
        outputs = world.create(kind, **CASES[kind].inputs(world)).outputs
        arguments = {key: outputs[key] for key in keys}
    if key := {"getVpc": "id", "getSubnet": "id", "getRouteTable": "routeTableId"}.get(token.rpartition(":")[2]):
        several = f"{token.rpartition(':')[0]}s:{token.rpartition(':')[2]}s"
        arguments = {key: invokes(world.account)[several]({})["ids"][0]}
    if token == "aws:ec2/getVpcEndpoint:getVpcEndpoint":
        vpc = invokes(world.account)["aws:ec2/getVpcs:getVpcs"]({})["ids"][0]
        world.account.client("ec2").create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.ec2")
    known = invokes(world.account)[token](arguments)
    name = token.rpartition(":")[2]
    module = token.split(":")[1].split("/")[0].replace("index", "")
    sdk = importlib.import_module(f"pulumi_aws.{module}".rstrip("."))
    result = getattr(sdk, f"{name[0].upper()}{name[1:]}Result")
    names = {_camel(name) for name in inspect.signature(result.__init__).parameters}
    assert known.keys() <= names


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def test_refusals_of_the_account_are_raised_with_the_words_of_their_texts() -> None:
    folder = Path(errors.__file__).parent
    table = yaml.safe_load((folder / "refusals.yaml").read_text())
    calls = [
        call
        for file in folder.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("refused", "errors.refused")
    ]
    raised = {ast.literal_eval(call.args[0]): [word.arg for word in call.keywords] for call in calls}
    assert raised.keys() == table.keys()
    for name, (_, text) in table.items():
        said = {word for _, word, _, _ in string.Formatter().parse(text) if word}
        assert None in raised[name] or said == set(raised[name]), name
