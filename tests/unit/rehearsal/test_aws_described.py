"""Networks and clusters that the account has already, as aws_described.yaml lists them, seen by program and checks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml

from karpstack.components.eks import existing_network as program
from karpstack.preflight.aws import instance_types, network, quotas
from karpstack.preflight.aws.checks import CHECKS
from karpstack.preflight.finding import blockers, run
from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.aws.ec2.existing import NetworkFileError, Networks
from karpstack.rehearsal.aws.eks.existing import ClusterFileError, Description, make
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.resource import Session
from karpstack.rehearsal.host.processes import wait_until
from tests.unit.example_stack import as_shipped, stack_file
from tests.unit.preflight.preflight_world import found, looked_at
from tests.unit.rehearsal.aws_world import account as account_with
from tests.unit.rehearsal.provider_aws_world import FakeCluster, World, open_world
from tests.unit.rehearsal.recordings import resolved
from tests.unit.rehearsal.resource_world import Change, changed
from tests.unit.rehearsal.steps import unlike

TABLE = yaml.safe_load(Path(__file__).with_name("aws_described.yaml").read_text())
STACK, CLUSTER_STACK = stack_file("eks-existing-vpc"), stack_file("eks-existing-cluster")
FILE: dict[str, Any] = json.loads(STACK.with_name("Pulumi.eks-existing-vpc.network.json").read_text())
CLUSTER: dict[str, Any] = json.loads(CLUSTER_STACK.with_name("Pulumi.eks-existing-cluster.cluster.json").read_text())
CLUSTERS_NETWORK = Networks.load(CLUSTER_STACK.with_name("Pulumi.eks-existing-cluster.network.json"))
NAME = CLUSTER["cluster"]["name"]
VPC = FILE["Vpcs"][0]["VpcId"]
NETWORK = as_shipped("eks-existing-vpc")["karpstack:network"]
Row = Mapping[str, Any]


def _endpoints(*services: str) -> list[dict[str, str]]:
    return [
        {"VpcEndpointId": f"vpce-{index}", "VpcId": VPC, "ServiceName": f"com.amazonaws.us-east-1.{service}"}
        for index, service in enumerate(services)
    ]


NAMED = {
    **{subnet["Tags"][0]["Value"].replace("-", " "): subnet["SubnetId"] for subnet in FILE["Subnets"]},
    "public": FILE["Subnets"][5]["SubnetId"],
    "control a": FILE["Subnets"][3]["SubnetId"],
    "all endpoints": _endpoints("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts"),
    "an endpoint of ec2": _endpoints("ec2"),
}


def rows(section: str) -> list[Any]:
    found = [resolved(row, NAMED.__getitem__) for row in TABLE[section]]
    return [
        pytest.param(row, id=str(row.get("finds") or row.get("refused") or row.get("ask") or n))
        for n, row in enumerate(found)
    ]


def written(folder: Path, file: dict[str, Any], row: Row | Change) -> Path:
    path = folder / "described.json"
    text = row.get("text") if isinstance(row, Mapping) else None
    path.write_text(text or json.dumps(changed(file, row)))
    return path


# Networks.


@contextmanager
def account(folder: Path, row: Row) -> Iterator[Account]:
    """An account with the example's network, changed in its file."""
    with account_with(folder, networks=Networks.load(written(folder, FILE, row))) as made:
        yield made


def _snake(value: Any) -> Any:
    """A result as the SDK has it."""
    if isinstance(value, list):
        return [_snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(
        **{re.sub(r"[A-Z]", lambda one: f"_{one[0].lower()}", key): _snake(one) for key, one in value.items()}
    )


class _Sdk:
    """Functions of a module of the SDK, answered by the rehearsal's provider."""

    def __init__(self, account: Account, module: str) -> None:
        self._known, self._module = invokes(account), module

    def __getattr__(self, function: str) -> Callable[..., Any]:
        first, *rest = function.split("_")
        name = first + "".join(map(str.capitalize, rest))

        def ask(opts: object = None, **given: Any) -> Any:
            arguments = {re.sub(r"_([a-z])", lambda one: one[1].upper(), key): one for key, one in given.items()}
            answer = self._known[f"aws:{self._module}/{name}:{name}"](arguments)
            tags = answer.pop("tags", {})
            result = _snake(answer)
            result.tags = tags
            return result

        return ask


@pytest.mark.parametrize("row", rows("networks"))
def test_program_and_check_see_what_is_wrong_with_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    wanted = {key: value for key, value in {**NETWORK, **row.get("network", {})}.items() if value}
    with account(tmp_path, row) as made:
        seen = looked_at(made, network=wanted)
        told = found(network.existing, seen)
        if "finds" in row:
            assert [what for severity, what in told if severity == "error" and row["finds"] in what]
        else:
            assert {severity for severity, _ in told} == ({"warning"} if row.get("warns") else set())
        # The program asks Pulumi's SDK.
        for module in ("ec2", "eks"):
            monkeypatch.setattr(program, module, _Sdk(made, module))
        settings: Any = seen.settings
        asked = program.find(str(settings.network.vpc_id), settings.network, settings.name, pulumi.InvokeOptions())
        assert asked.cidrs == seen.existing_network().cidrs
        assert settings.network.vpc_id != VPC or asked == seen.existing_network()


@pytest.mark.parametrize("row", rows("no networks"))
def test_a_network_that_cannot_be_is_refused(tmp_path: Path, row: Row) -> None:
    with pytest.raises(NetworkFileError, match=re.escape(row["refused"])), account(tmp_path, row):
        pass


def test_a_network_is_there_as_the_file_says(tmp_path: Path) -> None:
    with account(tmp_path, {}) as made:
        ec2, filters = made.client("ec2"), [{"Name": "vpc-id", "Values": [VPC]}]
        (vpc,) = ec2.describe_vpcs(VpcIds=[VPC])["Vpcs"]
        assert (vpc["CidrBlock"], {"Key": "Name", "Value": "company"} in vpc["Tags"]) == ("10.20.0.0/16", True)
        subnets = ec2.describe_subnets(Filters=filters)["Subnets"]
        assert {one["SubnetId"] for one in subnets} == {one["SubnetId"] for one in FILE["Subnets"]}
        assert {one["SubnetId"] for one in subnets if one["MapPublicIpOnLaunch"]} == {NAMED["public"]}
        tables = ec2.describe_route_tables(Filters=filters)["RouteTables"]
        main = [one["RouteTableId"] for one in tables if any(each["Main"] for each in one["Associations"])]
        assert main == ["rtb-0aaaaaaaaaaaaaaaa"]
        assert ec2.describe_security_groups(GroupIds=["sg-0123456789abcdef0"])["SecurityGroups"][0]["VpcId"] == VPC
        # What is made after it has an ID of its own.
        assert ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"] != VPC
        # Nothing is in the way of the example, and it takes no quota.
        for service, code in (("vpc", "L-F678F1CE"), ("ec2", "L-0263D0A3"), ("vpc", "L-FE5A380F")):
            made.quotas.set(service, code, 0)
        seen = looked_at(made, network=NETWORK)
        for check in (quotas.vpcs, quotas.addresses, quotas.gateways, instance_types.zones):
            assert not found(check, seen)
        assert blockers(run(CHECKS, seen)) == []
        assert seen.zones() == ["us-east-1a", "us-east-1b", "us-east-1c"]
        assert not found(network.existing, looked_at(made))


def test_a_route_table_is_found_by_one_of_its_subnets_beside_others(tmp_path: Path) -> None:
    a, b, control = (FILE["Subnets"][number]["SubnetId"] for number in (0, 1, 3))
    with account(tmp_path, {"add": {"RouteTables.2.Associations": {"SubnetId": a}}}) as made:
        find, last = made.client("ec2").describe_route_tables, FILE["RouteTables"][-1]["RouteTableId"]
        for subnets in ([a], [a, b], [b, control]):
            tables = find(Filters=[{"Name": "association.subnet-id", "Values": subnets}])["RouteTables"]
            assert last in [one["RouteTableId"] for one in tables], subnets


def test_a_route_that_leads_nowhere_is_no_way_out_and_others_do_not_matter(tmp_path: Path) -> None:
    for number, missing in ((4, True), (6, False)):
        with account(tmp_path, TABLE["networks"][number]) as made:
            assert bool(made._view.missing_route(FILE["Subnets"][0]["SubnetId"])) is missing


# Clusters.


@contextmanager
def cluster(folder: Path, row: Row | Change, start: Callable[[FakeCluster], object] = bool) -> Iterator[World]:
    """An account with the example's cluster, changed in its file; `start` changes its control plane."""
    with open_world(folder, networks=CLUSTERS_NETWORK) as world:
        original = world.clusters.start

        def started(name: str, **options: Any) -> FakeCluster:
            made: FakeCluster = original(name, **options)
            start(made)
            return made

        world.clusters.start = started
        make(Description.load(written(folder, CLUSTER, row)), Session(world.account, world.clusters))
        yield world


def plane(world: World) -> FakeCluster:
    running: FakeCluster = world.clusters.running[NAME]
    return running


@pytest.mark.parametrize("row", rows("clusters"))
def test_the_program_is_told_what_the_file_says(tmp_path: Path, row: Row) -> None:
    module, function = row["ask"].split(".")
    own = {} if module == "iam" else {"name" if function == "getCluster" else "clusterName": NAME}
    with cluster(tmp_path, row) as world:
        ask = invokes(world.account)[f"aws:{module}/{function}:{function}"]
        issuer = world.account.eks.issuer(NAME)
        given = {**own, **{key: issuer if one == "its issuer" else one for key, one in row.get("of", {}).items()}}
        if "refused" in row:
            with pytest.raises(RefusedError, match=row["refused"]):
                ask(given)
            return
        assert not unlike(ask(given), row["gives"])
        for object, annotations in row.get("objects", {}).items():
            kind, name = object.split("/")
            assert plane(world).objects[kind, name]["metadata"]["annotations"] == annotations


@pytest.mark.parametrize("row", rows("no clusters"))
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, row: Row) -> None:
    with pytest.raises(ClusterFileError, match=re.escape(row["refused"])), cluster(tmp_path, row):
        pass


def test_a_cluster_is_there_as_the_file_says(tmp_path: Path) -> None:
    printed = {"uid": "1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata = CLUSTER["items"][0]["metadata"] | printed
    with cluster(
        tmp_path, {"set": {"items.0.metadata": metadata, "items.0.status": {"replicas": 1}, "kind": "List"}}
    ) as world:
        (started,) = world.clusters.started
        assert (started["version"], started["service_cidr"], started["deployer_known"]) == ("1.36", "172.20.0.0/16", 0)
        labels = [node["labels"] for node in plane(world).nodes.values()]
        assert len(labels) == 6
        assert sum(one["eks.amazonaws.com/nodegroup"] == "batch" and one["team"] == "batch" for one in labels) == 2
        assert ("DaemonSet", "aws-node") in plane(world).objects
        # Without what the API server wrote.
        applied = plane(world).objects["Deployment", "cluster-autoscaler"]
        assert (applied["metadata"].keys(), "status" in applied) == ({"name", "namespace", "labels"}, False)
        assert [world.account.eks.addon_status(NAME, one["addonName"]) for one in CLUSTER["addons"]] == ["ACTIVE"] * 4
        world.client("eks").update_nodegroup_config(
            clusterName=NAME, nodegroupName="batch", scalingConfig={"minSize": 0, "desiredSize": 4, "maxSize": 10}
        )
        wait_until(lambda: len(plane(world).nodes) == 8, "the new nodes", 5)


def test_access_is_as_the_file_says(tmp_path: Path) -> None:
    other = f"{CLUSTER['OpenIDConnectProviderList'][0]['Arn']}0"
    nobody = {"cluster.accessConfig.bootstrapClusterCreatorAdminPermissions": False}
    with cluster(tmp_path, {"set": {**nobody, "OpenIDConnectProviderList.0.Arn": other}}) as world:
        assert world.clusters.started[0]["deployer_known"] is None
        # A provider of another issuer is not its own.
        assert not world.client("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"]
    with cluster(tmp_path, {"set": {"cluster.accessConfig": {"authenticationMode": "CONFIG_MAP"}}}) as world:
        eks, role = world.client("eks"), "arn:aws:iam::123456789012:role/shop-nodes"
        with pytest.raises(eks.exceptions.InvalidRequestException, match="authentication mode must be set to one of"):
            eks.create_access_entry(clusterName=NAME, principalArn=role, type="EC2_LINUX")


def test_nodes_that_find_no_network_are_there_and_not_ready(tmp_path: Path) -> None:
    """As in a cluster that waits for Cilium: its node groups are not waited for."""

    def never_ready(started: FakeCluster) -> None:
        started.never_ready, started.unavailable = True, "0 of 2 pods are ready"

    with cluster(tmp_path, {"set": {"addons": CLUSTER["addons"][2:]}}, never_ready) as world:
        assert len(plane(world).nodes) == 6
        assert world.account.eks.addon_status(NAME, "coredns") == "DEGRADED"


def test_add_ons_of_a_cluster_without_nodes_are_not_waited_for_long(tmp_path: Path) -> None:
    waited: list[float] = []

    def without_nodes(started: FakeCluster) -> None:
        def wait_available(kind: str, namespace: str, name: str, timeout: float) -> str:
            waited.append(timeout)
            return "0 of 2 pods are ready"

        started.wait_available = wait_available  # type: ignore[method-assign]

    with cluster(tmp_path, {"set": {"nodegroups": []}}, without_nodes) as world:
        assert world.account.eks.addon_status(NAME, "coredns") == "DEGRADED"
    assert max(waited) < 5
