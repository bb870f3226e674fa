"""What the tests of the simulated AWS account share: the account without its port, and a small stack in it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto import mock_aws

from karpstack.rehearsal.aws.account import ACCOUNT_ID, Account
from karpstack.rehearsal.aws.ec2.existing import Networks
from karpstack.rehearsal.aws.server import Server
from karpstack.rehearsal.timing import Timing

REGION = "us-east-1"
CLUSTER = "test"
PRICES = {
    "c5.large": 0.085,
    "m5.large": 0.096,
    "r5.large": 0.126,
    "m5.xlarge": 0.192,
    "m5.metal": 4.608,
    "m6g.large": 0.077,
}


@dataclass
class Answer:
    """What the account's WSGI application answers."""

    status: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def code(self) -> int:
        return int(self.status.split()[0])

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        self.status, self.headers = status, headers


def signed(service: str, key: str = "AKIAKNOWN") -> str:
    scope = f"{key}/20261122/us-east-1/{service}/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"


def ask(server: Server, target: str, body: bytes = b"", method: str = "POST", **environ: Any) -> Answer:
    """One request to the application, without a socket."""
    path, _, query = target.partition("?")
    request = {
        "REQUEST_METHOD": method,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
    }
    answer = Answer()
    answer.body = b"".join(server({**request, **environ}, answer.start))
    return answer


class InProcessAccount(Account):
    """moto answers boto3 in this process, so no socket is opened."""

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = client(service, self.roles.access_key_id, self.roles.secret_access_key)
        return self._clients[service]


def client(service: str, access_key: str, secret: str, token: str | None = None) -> Any:
    """A boto3 client with chosen credentials."""
    return _session().client(
        service,
        region_name=REGION,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}),
    )


@cache
def _session() -> Any:
    return boto3.session.Session()  # one for all: reading botocore's data takes longer than most tests


@contextmanager
def account(
    folder: Path,
    timing: Timing | None = None,
    *,
    used_spot: bool = False,
    account_id: str = ACCOUNT_ID,
    networks: Networks | None = None,
) -> Iterator[Account]:
    """A prepared account."""
    table = folder / "prices.json"
    table.write_text(json.dumps({REGION: PRICES}))
    with mock_aws():
        made = InProcessAccount(
            REGION, table, timing or Timing(), used_spot=used_spot, account_id=account_id, networks=networks
        )
        made.prepare()
        try:
            yield made
        finally:
            made.stop()


def trust(service: str, *actions: str, condition: dict[str, Any] | None = None) -> str:
    """A trust policy for one service."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": list(actions or ("sts:AssumeRole",)),
    }
    if condition:
        statement["Condition"] = condition
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def document(**statement: Any) -> str:
    """A policy that allows one thing."""
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


class Stack:
    """A network over two zones, roles and a launch template; and a cluster once `add_cluster` is called."""

    def __init__(self, account: Account) -> None:
        self.account = account
        #: Launches fleets; another one launches them as somebody else.
        self.ec2 = ec2 = account.client("ec2")
        iam = account.client("iam")
        self.vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"{REGION}{zone}")[
                "Subnet"
            ]["SubnetId"]
            for index, zone in enumerate("ab")
        ]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.vpc)["GroupId"]
        self.cluster_role = self.role("cluster", trust("eks.amazonaws.com"))
        self.node_role = self.role("node", trust("ec2.amazonaws.com"), "AmazonEKSWorkerNodePolicy")
        self.system_role = self.role("system", trust("ec2.amazonaws.com"), "AmazonEKSWorkerNodePolicy")
        self.pod_role = self.role("controller", trust("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession"))
        iam.create_instance_profile(InstanceProfileName="nodes")
        iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="node")
        iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")

    def role(self, name: str, document: str, *managed: str) -> str:
        iam = self.account.client("iam")
        arn: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        for policy in managed:
            iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
        return arn

    def add_cluster(self, **options: Any) -> dict[str, Any]:
        request = {
            "roleArn": self.cluster_role,
            "version": "1.36",
            "resourcesVpcConfig": {"subnetIds": self.subnets},
            "accessConfig": {"authenticationMode": "API"},
            **options,
        }
        made: dict[str, Any] = self.account.client("eks").create_cluster(name=CLUSTER, **request)["cluster"]
        return made

    def add_node_group(self, size: int = 2, **options: Any) -> dict[str, Any]:
        request = {
            "nodeRole": self.system_role,
            "subnets": self.subnets,
            "instanceTypes": ["m5.large"],
            "scalingConfig": {"minSize": 0, "desiredSize": size, "maxSize": 5},
            "nodegroupName": "system",
            **options,
        }
        made: dict[str, Any] = self.account.client("eks").create_nodegroup(clusterName=CLUSTER, **request)["nodegroup"]
        return made

    def add_way_out(self) -> str:
        """A NAT gateway and the main route table's route to it; its id."""
        ec2 = self.account.client("ec2")
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = ec2.create_nat_gateway(SubnetId=self.subnets[0], AllocationId=address)
        gateway: str = made["NatGateway"]["NatGatewayId"]
        table = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["RouteTables"][0]
        ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway)
        return gateway

    def image(self, architecture: str = "x86_64") -> str:
        """Id of the latest Amazon Linux image for Kubernetes 1.36."""
        name = f"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{architecture}/standard/recommended/image_id"
        value: str = self.account.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return value

    def run(self, **options: Any) -> str:
        """Run an m5.large where `options` say, in the first subnet and the group of nodes if they are empty; its id."""
        answer = self.account.client("ec2").run_instances(
            ImageId=self.image(),
            InstanceType="m5.large",
            MinCount=1,
            MaxCount=1,
            **(options or {"SubnetId": self.subnets[0], "SecurityGroupIds": [self.group]}),
        )
        instance: str = answer["Instances"][0]["InstanceId"]
        return instance

    def add_template(self, **data: Any) -> None:
        """The launch template `template`, shaped as Karpenter shapes its own."""
        self.account.client("ec2").create_launch_template(
            LaunchTemplateName="template",
            LaunchTemplateData={
                "ImageId": self.image(),
                "IamInstanceProfile": {"Name": "nodes"},
                "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [self.group]}],
                "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3"}}],
                "TagSpecifications": [
                    {"ResourceType": "network-interface", "Tags": [{"Key": "kind", "Value": "interface"}]}
                ],
                **data,
            },
        )

    def fleet(
        self, *types: str, capacity: str = "on-demand", count: int = 1, zones: str = "ab", **options: Any
    ) -> dict[str, Any]:
        """CreateFleet as Karpenter calls it, over every type in every zone."""
        overrides = [
            {
                "InstanceType": instance_type,
                "SubnetId": self.subnets["ab".index(zone)],
                "AvailabilityZone": f"{REGION}{zone}",
                "ImageId": self.image(),
            }
            for instance_type in types
            for zone in zones
        ]
        strategy = (
            {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
            if capacity == "spot"
            else {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}
        )
        answer: dict[str, Any] = self.ec2.create_fleet(
            **{
                "Type": "instant",
                "LaunchTemplateConfigs": [
                    {
                        "Overrides": overrides,
                        "LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Latest"},
                    }
                ],
                "TargetCapacitySpecification": {"TotalTargetCapacity": count, "DefaultTargetCapacityType": capacity},
                "TagSpecifications": [
                    {"ResourceType": kind, "Tags": [{"Key": "karpenter.sh/nodepool", "Value": "default"}]}
                    for kind in ("instance", "volume")
                ],
                **strategy,
                **options,
            }
        )
        return answer

    def instance(self, instance_id: str) -> dict[str, Any]:
        """DescribeInstances of one instance."""
        found: dict[str, Any] = self.account.client("ec2").describe_instances(InstanceIds=[instance_id])
        instance: dict[str, Any] = found["Reservations"][0]["Instances"][0]
        return instance
