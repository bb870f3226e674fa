"""What the tests of the AWS provider stand-in share: an account in this process, recording clusters, short calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import yaml
from moto.iam.aws_managed_policies import aws_managed_policies_data

from karpstack.rehearsal.attachment.resource import Created, Properties, Resource
from karpstack.rehearsal.aws.eks.api import ADDONS
from karpstack.rehearsal.aws.provider import resources
from karpstack.rehearsal.cluster.charts import Chart
from tests.unit.rehearsal.aws_world import account, document, trust
from tests.unit.rehearsal.recordings import resolved
from tests.unit.rehearsal.resource_world import RecordingPlane, ResourceWorld

TAGS = {"owner": "platform", "cost-centre": "0000"}
_PATTERN = '{"source": ["aws.ec2"]}'


class FakeCluster(RecordingPlane):
    """A control plane that records what it is told, and answers what the test set."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.drained: list[str] = []
        self.name = name
        self.endpoint = "https://127.0.0.1:6443"
        self.certificate_authority = b"-----BEGIN CERTIFICATE-----"
        self.objects = self.manifests
        #: Why a workload does not become available.
        self.unavailable = ""
        #: As what Helm renders a chart, and with which values; the chart's folder has its schema.
        self.charts = self.releases = self
        self.chart = Chart("aws-ebs-csi-driver", "2.62.0", Path())
        self.rendered: list[Mapping[str, Any]] = []

    def find(self, *asked: str) -> Chart:
        assert asked[:2] == (self.chart.name, self.chart.version)
        return self.chart

    def render(self, name: str, namespace: str, chart: Chart, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.rendered.append(values)
        workloads = (("Deployment", "ebs-csi-controller"), ("DaemonSet", "ebs-csi-node"))
        return [{"kind": kind, "metadata": {"name": each, "namespace": namespace}} for kind, each in workloads]

    def wait_available(self, kind: str, namespace: str, name: str, timeout: float) -> str:
        assert namespace == "kube-system"
        return "there is no such workload" if (kind, name) not in self.objects else self.unavailable

    def drain(self, names: Iterable[str], within: float) -> None:
        self.drained += names


class FakeClusters:
    """Clusters that are started in name only; a cluster that was not started is refused."""

    def __init__(self) -> None:
        self.running: dict[str, FakeCluster] = {}
        self.started: list[dict[str, Any]] = []
        self.upgraded: list[tuple[str, str]] = []
        self.fails = False

    def start(self, name: str, **options: Any) -> FakeCluster:
        if self.fails:
            raise RuntimeError("kube-apiserver exited with code 1")
        assert set(options) == {"version", "service_cidr", "issuer", "cloud", "deployer_known", "deployer", "token"}
        assert name not in self.running
        self.started.append({"name": name, **options})
        self.running[name] = FakeCluster(name)
        return self.running[name]

    def get(self, name: str) -> FakeCluster | None:
        return self.running.get(name)

    def check_version(self, version: str) -> None:
        if version == "1.34":
            raise ValueError("the rehearsal's engines are 1.36 and 1.35")

    def upgrade(self, name: str, version: str) -> None:
        self.upgraded.append((name, version))

    def stop(self, name: str) -> None:
        self.running.pop(name, None)


class World(ResourceWorld):
    """The resource types over one account."""

    proposed_name = "thing-1234567"

    def __init__(self, account: Any, clusters: Any, default_tags: Mapping[str, str] | None = None) -> None:
        self.account = account
        self.clusters = clusters
        #: What the tables of tests name as `<...>`.
        self.surroundings = Surroundings(self)
        self._resources = {resource.token: resource for resource in resources(account, clusters, default_tags)}

    def type(self, token: str) -> Resource:
        return self._resources[token]

    def all(self) -> Iterable[Resource]:
        return self._resources.values()

    def client(self, service: str) -> Any:
        return self.account.client(service)

    # Things that many others need.

    def vpc(self, **inputs: Any) -> Created:
        return self.create("aws:ec2/vpc:Vpc", **{"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, **inputs})

    def subnet(self, vpc: str, number: int = 1, zone: str = "us-east-1a") -> Created:
        return self.create("aws:ec2/subnet:Subnet", vpcId=vpc, cidrBlock=f"10.0.{number}.0/24", availabilityZone=zone)

    def gateway(self, vpc: str) -> Created:
        return self.create("aws:ec2/internetGateway:InternetGateway", vpcId=vpc)

    def nat(self, subnet: str) -> Created:
        address = self.create("aws:ec2/eip:Eip", domain="vpc")
        return self.create("aws:ec2/natGateway:NatGateway", subnetId=subnet, allocationId=address.id)

    def table(self, vpc: str) -> Created:
        return self.create("aws:ec2/routeTable:RouteTable", vpcId=vpc)

    def group(self, vpc: str, name: str = "group") -> Created:
        return self.create("aws:ec2/securityGroup:SecurityGroup", vpcId=vpc, name=name)

    def role(self, service: str, name: str, *actions: str) -> Created:
        return self.create("aws:iam/role:Role", name=name, assumeRolePolicy=trust(service, *actions))

    def network(self) -> tuple[Created, list[str]]:
        """A VPC with two subnets in two zones that reach the internet."""
        vpc = self.vpc()
        gateway = self.gateway(vpc.id)
        table = self.table(vpc.id)
        self.create(
            "aws:ec2/route:Route", routeTableId=table.id, destinationCidrBlock="0.0.0.0/0", gatewayId=gateway.id
        )
        subnets = [self.subnet(vpc.id, number, zone).id for number, zone in ((1, "us-east-1a"), (2, "us-east-1b"))]
        for subnet in subnets:
            self.create("aws:ec2/routeTableAssociation:RouteTableAssociation", subnetId=subnet, routeTableId=table.id)
        return vpc, subnets

    def cluster_inputs(self, subnets: list[str], **inputs: Any) -> Properties:
        role = self.account.roles.by_name("cluster")
        arn = role.arn if role else self.role("eks.amazonaws.com", "cluster").outputs["arn"]
        return {
            "name": "rehearsed",
            "version": "1.36",
            "roleArn": arn,
            "bootstrapSelfManagedAddons": False,
            "vpcConfig": {"subnetIds": subnets, "publicAccessCidrs": ["1.1.1.0/24"]},
            "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
            **inputs,
        }

    def cluster(self, **inputs: Any) -> Created:
        _, subnets = self.network()
        return self.create("aws:eks/cluster:Cluster", **self.cluster_inputs(subnets, **inputs))

    def node_role(self, name: str = "nodes") -> str:
        role = self.role("ec2.amazonaws.com", name)
        for policy in ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"):
            self.create(
                "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
                role=role.id,
                policyArn=f"arn:aws:iam::aws:policy/{policy}",
            )
        return str(role.outputs["arn"])


def _sends(service: str) -> str:
    return document(Principal={"Service": f"{service}.amazonaws.com"}, Action="sqs:SendMessage", Resource="*")


class Surroundings:
    """What tables name as `<...>`: made when it is first asked for, in one VPC unless a cluster brings its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, Any] = {"zone": "us-east-1a"}

    def __call__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self.makers[name](self)
        return self._known[name]

    def _create(self, token: str, **inputs: Any) -> Created:
        return self._world.create(token, **inputs)

    def _public_subnet(self) -> str:
        self("gateway")
        return str(self("subnet"))

    def _cluster(self) -> str:
        created = self._world.cluster()
        self._known["cluster subnet"], self._known["other cluster subnet"] = created.outputs["vpcConfig"]["subnetIds"]
        return created.id

    def _entered(self) -> str:
        inputs = {"clusterName": self("cluster"), "principalArn": self("node role")}
        return str(self._create("aws:eks/accessEntry:AccessEntry", **inputs).outputs["principalArn"])

    def _pod_role(self, name: str) -> str:
        role = self._world.role("pods.eks.amazonaws.com", name, "sts:AssumeRole", "sts:TagSession")
        return str(role.outputs["arn"])

    makers: ClassVar[dict[str, Callable[[Surroundings], Any]]] = {
        "vpc": lambda self: self._world.vpc().id,
        "other vpc": lambda self: self._world.vpc(cidrBlock="10.1.0.0/16").id,
        "gateway": lambda self: self._world.gateway(self("vpc")).id,
        "address": lambda self: self._create("aws:ec2/eip:Eip", domain="vpc").id,
        "table": lambda self: self._world.table(self("vpc")).id,
        "group": lambda self: self._world.group(self("vpc")).id,
        "subnet": lambda self: self._world.subnet(self("vpc"), 1, "us-east-1a").id,
        "other subnet": lambda self: self._world.subnet(self("vpc"), 2, "us-east-1b").id,
        "public subnet": _public_subnet,
        "two subnets": lambda self: self._world.network()[1],
        "subnet in the same zone": lambda self: self._world.subnet(self("vpc"), 3, "us-east-1a").id,
        "VPC without enableDnsSupport": lambda self: self._world.vpc(enableDnsSupport=False).id,
        "VPC without enableDnsHostnames": lambda self: self._world.vpc(enableDnsHostnames=False).id,
        "group of another VPC": lambda self: self._world.group(self("other vpc")).id,
        "nat gateway": lambda self: self._world.nat(self("public subnet")).id,
        "log group arn": lambda self: self._create("aws:cloudwatch/logGroup:LogGroup", name="flow").outputs["arn"],
        "cluster": _cluster,
        "add-on version": lambda self: ADDONS["coredns"][0],
        "principal with an entry": _entered,
        "cluster role": lambda self: self._world.role("eks.amazonaws.com", "cluster").outputs["arn"],
        "node role": lambda self: self._world.node_role(),
        "pod role": lambda self: self._pod_role("controller"),
        "other pod role": lambda self: self._pod_role("other"),
        "flow log role": lambda self: self._world.role("vpc-flow-logs.amazonaws.com", "flow").outputs["arn"],
        "role": lambda self: self._world.role("ec2.amazonaws.com", "nodes").id,
        "other role": lambda self: self._world.role("ec2.amazonaws.com", "others").id,
        "trust of ec2": lambda self: trust("ec2.amazonaws.com"),
        "trust of eks": lambda self: trust("eks.amazonaws.com"),
        "long trust": lambda self: document(
            Principal={"Service": ["ec2.amazonaws.com"] * 120}, Action="sts:AssumeRole"
        ),
        "long policy": lambda self: document(Action=[f"ec2:Describe{'x' * 60}{n}" for n in range(90)], Resource="*"),
        "policy": lambda self: document(Action="ec2:RunInstances", Resource="*"),
        "other policy": lambda self: document(Action="ec2:CreateFleet", Resource="*"),
        "key": lambda self: self._create("aws:kms/key:Key").id,
        "other key": lambda self: self._create("aws:kms/key:Key").id,
        "key arn": lambda self: self._create("aws:kms/key:Key").outputs["arn"],
        "queue": lambda self: self._create("aws:sqs/queue:Queue", name="interruption").id,
        "queue arn": lambda self: self._create("aws:sqs/queue:Queue", name="interruption").outputs["arn"],
        "queue policy": lambda self: _sends("events"),
        "other queue policy": lambda self: _sends("sqs"),
        "rule": lambda self: self._create("aws:cloudwatch/eventRule:EventRule", name="spot", eventPattern=_PATTERN).id,
    }


@dataclass(frozen=True)
class Life:
    """A row of aws_types.yaml, see there."""

    token: str
    id: str
    given: Properties
    changed: Properties
    outputs: tuple[str, ...]

    def inputs(self, world: World) -> Properties:
        found: Properties = resolved(self.given, world.surroundings)
        return {**found, "tags": TAGS} if "tags" in world.type(self.token).accepts else found

    def change(self, world: World) -> Properties:
        changed: Properties = resolved(self.changed, world.surroundings)
        return changed


def _lives() -> Iterator[Life]:
    for token, row in yaml.safe_load(Path(__file__).with_name("aws_types.yaml").read_text()).items():
        yield Life(token, row["id"], row["inputs"], row.get("change", {}), tuple(row.get("outputs", ())))


#: The life of each resource type, by its token.
CASES = {life.token: life for life in _lives()}


@cache
def _policies() -> str:
    """AWS's managed policies that tests use: to parse all 1,500 of them takes longer than most tests."""
    known = json.loads(aws_managed_policies_data)
    return json.dumps(
        {
            name: policy
            for name, policy in known.items()
            if name.startswith(
                ("AdministratorAccess", "AmazonEBS", "AmazonEKS", "AmazonEC2ContainerRegistry", "AmazonSSM")
            )
        }
    )


@contextmanager
def open_world(folder: Path, **options: Any) -> Iterator[World]:
    """An empty account; its price table is written into `folder`. Options are those of `account`."""
    policies = mock.patch("moto.iam.aws_managed_policies.aws_managed_policies_data", _policies())
    with policies, account(folder, **options) as opened:
        yield World(opened, FakeClusters())
