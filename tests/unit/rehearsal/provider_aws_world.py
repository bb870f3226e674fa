"""What the tests of the AWS provider stand-in share: an account in this process, recording clusters, short calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from moto.iam.aws_managed_policies import aws_managed_policies_data

from rehearsal.attachment.resource import Created, Properties, Resource
from rehearsal.aws.provider import resources
from rehearsal.cluster.charts import Chart
from tests.unit.rehearsal.aws_world import account, trust
from tests.unit.rehearsal.resource_world import ResourceWorld


class FakeCluster:
    """A control plane that records what it is told, and answers what the test set."""

    def __init__(self, name: str) -> None:
        self.drained: list[str] = []
        self.name = name
        self.endpoint = "https://127.0.0.1:6443"
        self.certificate_authority = b"-----BEGIN CERTIFICATE-----"
        self.nodes: dict[str, dict[str, Any]] = {}
        self.objects: dict[tuple[str, str], Mapping[str, Any]] = {}
        #: Names of nodes that do not become Ready, and why a workload does not become available.
        self.never_ready = False
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

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        for manifest in manifests:
            self.objects[manifest["kind"], manifest["metadata"]["name"]] = manifest

    def delete(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        for manifest in manifests:
            self.objects.pop((manifest["kind"], manifest["metadata"]["name"]), None)

    def wait_available(self, kind: str, namespace: str, name: str, timeout: float) -> str:
        assert namespace == "kube-system"
        return "there is no such workload" if (kind, name) not in self.objects else self.unavailable

    def join(
        self,
        machines: Iterable[Any],
        *,
        taints: Iterable[Mapping[str, str]] = (),
        labels: Mapping[str, str] | None = None,
        timeout: float,
    ) -> list[str]:
        names = []
        for machine in machines:
            self.nodes[machine.node_name] = {"taints": list(taints), "labels": dict(labels or {})}
            names.append(machine.node_name)
        return names if self.never_ready else []

    def drain(self, names: Iterable[str], within: float) -> None:
        self.drained += names

    def remove_nodes(self, names: Iterable[str]) -> None:
        for name in names:
            del self.nodes[name]


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
        assert set(options) == {"version", "service_cidr", "issuer", "cloud", "deployer_known", "deployer"}
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
        self._resources = {resource.token: resource for resource in resources(account, clusters, default_tags)}

    def type(self, token: str) -> Resource:
        return self._resources[token]

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

    def node_group_inputs(self, cluster: Created, **inputs: Any) -> Properties:
        return {
            "clusterName": cluster.id,
            "nodeGroupName": "system",
            "nodeRoleArn": self.node_role(),
            "subnetIds": cluster.outputs["vpcConfig"]["subnetIds"],
            "instanceTypes": ["m5.large"],
            "amiType": "AL2023_x86_64_STANDARD",
            "scalingConfig": {"minSize": 2, "desiredSize": 2, "maxSize": 10},
            "taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}],
            **inputs,
        }


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
