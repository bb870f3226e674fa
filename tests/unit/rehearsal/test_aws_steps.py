"""The simulated AWS account, call by call, as aws_steps.yaml lists it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import yaml
from botocore.exceptions import ClientError

from karpstack.components.documents.iam import CONTROLLER_POLICIES, ControllerScope
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.aws.control import AwsControl
from karpstack.rehearsal.aws.ec2.fleet import Shortage
from karpstack.rehearsal.aws.iam import questions
from karpstack.rehearsal.aws.iam.pod_credentials import PodIdentity
from karpstack.rehearsal.aws.load_balancers import ClassicLoadBalancers
from karpstack.rehearsal.cluster.cloud import LoadBalancerError
from karpstack.rehearsal.recorded_rights import Question
from karpstack.rehearsal.timing import Timing
from tests.unit.rehearsal.aws_world import CLUSTER, REGION, Stack, account, client, document, trust
from tests.unit.rehearsal.steps import Row, Steps, cases

ACCOUNT = "123456789012"
SUBJECT = "system:serviceaccount:kube-system:karpenter"
POD, BOTH = "pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession")
SCOPE = ControllerScope(
    partition="aws",
    region=REGION,
    account_id=ACCOUNT,
    cluster_name=CLUSTER,
    node_role_arn=f"arn:aws:iam::{ACCOUNT}:role/node",
    interruption_queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue",
)
OWNED = {"kubernetes.io/cluster/test": "owned", "eks:eks-cluster-name": "test", "karpenter.sh/nodepool": "default"}
PROFILE = OWNED | {"topology.kubernetes.io/region": REGION, "karpenter.k8s.aws/ec2nodeclass": "default"}


def tags(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def tagged(*kinds: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tags(OWNED)} for kind in kinds]


def token(issuer: str, *audiences: str) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"iss": issuer, "aud": audiences}).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


class Somebody:
    """Clients of the services, by name, with somebody's keys."""

    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def __getattr__(self, service: str) -> Any:
        return client(service, *self._keys)


class Place:
    """An account with a small stack, and what the rows call beside AWS's services."""

    def __init__(self, aws: Account, folder: Path) -> None:
        self.account, self.folder = aws, folder
        aws._view.endpoint = "http://127.0.0.1:1"
        self.stack = Stack(aws)
        self.control, self.later_control = AwsControl(aws), AwsControl(aws)
        self.balancers = ClassicLoadBalancers(CLUSTER, aws.client)
        self.tokens = {
            ("good", POD): SUBJECT,
            ("of another", POD): "system:serviceaccount:default:karpenter",
            ("for sts", "sts.amazonaws.com"): SUBJECT,
        }
        self.identity = PodIdentity(aws.eks, aws.roles, REGION, lambda name: self if name == CLUSTER else None)
        self.cloud = aws.cloud(CLUSTER)
        self.cloud.bind(self)  # type: ignore[arg-type]  # it is asked for tokens alone
        self.stranger = Somebody("AKIASTRANGER0000000", "x")
        self.karpenter = self.stranger
        self.key = ""

    def root(self, name: str) -> Any:
        """What the first part of a call names: something of this place, or a service."""
        return getattr(self, name) if hasattr(self, name) else self.account.client(name)

    def known(self) -> dict[str, Any]:
        """What the rows name as `<...>`."""
        stack, pods = self.stack, {"aws:RequestTag/kubernetes-namespace": "elsewhere"}
        roles = ("node", "cluster", "system", "absent")
        return {
            **{f"{name} role": f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in roles},
            **{"vpc": stack.vpc, "subnets": stack.subnets, "group": stack.group, "pod role": stack.pod_role},
            **{"subnet": stack.subnets[0], "other subnet": stack.subnets[1], "image": stack.image},
            "issuer": self.issuer,
            "thumbprint": "a" * 40,
            "administrator": self.account.roles.access_key_id,
            "trust of machines": trust("ec2.amazonaws.com"),
            "trust of pods": trust(POD, *BOTH),
            "half the trust of pods": trust(POD, "sts:AssumeRole"),
            "trust of pods elsewhere": trust(POD, *BOTH, condition={"StringEquals": pods}),
            "trust of a web identity": self.web_trust,
            "trust of another service account": lambda: self.web_trust("system:serviceaccount:a:b"),
            "trust of another audience": lambda: self.web_trust(audience="other"),
            "token": self.web_token,
            "token for others": lambda: token(self.issuer(), "other"),
            "token of nobody": lambda: token(self.issuer(), "sts.amazonaws.com", "nobody's"),
            "queue policy": document(
                Principal={"Service": ["events.amazonaws.com"]}, Action="sqs:SendMessage", Resource="*"
            ),
            "longest user data": base64.b64encode(b"#" * 16_384).decode(),
            "too long user data": base64.b64encode(b"#" * 16_385).decode(),
            "tags of profiles": tags(PROFILE),
        }

    # A cluster that knows its tokens.

    def review_token(self, token: str, audience: str) -> str | None:
        return self.tokens.get((token, audience))

    def create_token(self, namespace: str, service_account: str, audience: str) -> str:
        return f"{namespace}/{service_account}/{audience}"

    def issuer(self) -> str:
        return self.account.eks.issuer(CLUSTER)

    def web_token(self) -> str:
        made = token(self.issuer(), "sts.amazonaws.com")
        self.tokens[made, "sts.amazonaws.com"] = SUBJECT
        return made

    def web_trust(self, subject: str = SUBJECT, audience: str = "sts.amazonaws.com") -> str:
        name = self.issuer().removeprefix("https://")
        return document(
            Principal={"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{name}"},
            Action="sts:AssumeRoleWithWebIdentity",
            Condition={"StringEquals": {f"{name}:sub": subject, f"{name}:aud": audience}},
        )

    # Verbs.

    def value(self, value: Any) -> Any:
        return value

    def whoami(self, issued: Mapping[str, str]) -> str:
        keys = issued["AccessKeyId"], issued["SecretAccessKey"], issued["Token"]
        return str(client("sts", *keys).get_caller_identity()["Arn"])

    def node_refusal(self) -> str:
        return self.account.eks.node_refusal(CLUSTER, self.account.roles.by_arn(self.stack.node_role))

    def fleet(self, types: str, **options: Any) -> Any:
        return self.stack.fleet(*types.split(), **options)

    def launch_as(self, *actions: str) -> None:
        """Launch fleets as a role with these rights from now on."""
        self.become(Action=actions, Resource="*")
        self.stack.ec2 = self.karpenter.ec2

    def shortage(self, **options: Any) -> None:
        self.account.fleet.inject(Shortage(**options))

    def calls(self) -> list[Any]:
        return [[call.candidates, call.instance_types] for call in self.account.fleet.calls]

    def override(self, count: int = 1, **override: str) -> Any:
        specification = {"LaunchTemplateName": "template", "Version": "$Latest"}
        usual = {"InstanceType": "m5.large", "SubnetId": self.stack.subnets[0], "ImageId": self.stack.image()}
        overrides = [{**usual, "AvailabilityZone": f"{REGION}a", **override}]
        return self.stack.fleet(
            count=count,
            LaunchTemplateConfigs=[{"LaunchTemplateSpecification": specification, "Overrides": overrides}],
        )

    def image_day(self, path: str) -> str:
        """On which day the image of a parameter was made; the parameter names the same one each time."""
        ssm, ec2 = self.account.client("ssm"), self.account.client("ec2")
        (name, again) = (ssm.get_parameter(Name=f"/aws/service{path}/image_id")["Parameter"]["Value"] for _ in range(2))
        assert name == again
        return str(ec2.describe_images(ImageIds=[name])["Images"][0]["CreationDate"])[:10]

    # Load balancers.

    def service(self, spec: Mapping[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
        metadata = {"namespace": "shop", "name": "web", "uid": "01234567-89ab-cdef-0123-456789abcdef"}
        said = {f"service.beta.kubernetes.io/{key}": value for key, value in annotations.items()}
        ports = [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]
        usual = {"type": "LoadBalancer", "sessionAffinity": "None", "ports": ports}
        return {"metadata": {**metadata, "annotations": said}, "spec": {**usual, **(spec or {})}}

    def ensure(self, **annotations: str) -> str:
        return self.balancers.ensure(self.service(None, **annotations))

    def ensure_with(self, **spec: Any) -> str:
        return self.balancers.ensure(self.service(spec))

    def remove(self) -> None:
        self.balancers.remove(self.service())

    def chosen(self) -> Any:
        """The subnets of a Service's load balancer, which goes again."""
        self.ensure()
        (made,) = self.account.client("elb").describe_load_balancers()["LoadBalancerDescriptions"]
        self.remove()
        return made["Subnets"]

    def tag(self, resource: str, key: str) -> None:
        self.account.client("ec2").create_tags(Resources=[resource], Tags=tags({key: "1"}))

    def make_public(self, *subnets: str) -> None:
        """A route table of their own, with a route to a new internet gateway."""
        ec2 = self.account.client("ec2")
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.stack.vpc)
        table = ec2.create_route_table(VpcId=self.stack.vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        for subnet in subnets:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)

    def alike(self) -> list[str]:
        """Six more public subnets in the first one's zone; their IDs and its own, sorted."""
        ec2, found = self.account.client("ec2"), [self.stack.subnets[0]]
        filters = [{"Name": "association.subnet-id", "Values": found}]
        (table,) = ec2.describe_route_tables(Filters=filters)["RouteTables"]
        for number in range(10, 16):
            made = ec2.create_subnet(
                VpcId=self.stack.vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"{REGION}a"
            )
            found.append(made["Subnet"]["SubnetId"])
            ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=found[-1])
            self.tag(found[-1], "kubernetes.io/role/elb")
        return sorted(found)

    # Events.

    def event(self, kind: str, instance: str) -> list[str]:
        """What went wrong at each delivery."""
        return [delivery.problem for delivery in getattr(self.account.events, kind)(instance)]

    def lost(self) -> list[str]:
        return [delivery.problem for delivery in self.account.events.failed]

    def messages(self) -> list[Any]:
        sqs = self.account.client("sqs")
        url = sqs.get_queue_url(QueueName="queue")["QueueUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in found]

    # The account as a cluster sees it.

    def machine(self, instance: str) -> dict[str, Any] | None:
        provider_id = f"aws:///us-east-1b/{instance}"
        found = self.cloud.machine(provider_id)
        assert self.cloud.has_machine(provider_id) == (found is not None)
        return None if found is None else asdict(found)

    def join(self) -> str:
        """Why a node that is launched now does not join."""
        launched = self.stack.fleet("m5.large", zones="b")["Instances"][0]["InstanceIds"][0]
        return str((self.machine(launched) or {})["refusal"])

    def map_node(self, mode: str, group: str, user: str = "system:node:{{EC2PrivateDNSName}}") -> None:
        """Write aws-auth, in a cluster of an authentication mode."""
        self.account.eks.cluster(CLUSTER).access_config["authenticationMode"] = mode
        name = self.stack.node_role.rpartition("/")[2]
        entry = {"rolearn": f"arn:aws:iam::{ACCOUNT}:role/{name}", "username": user, "groups": [group]}
        written = yaml.safe_dump([entry])
        objects = {"/api/v1/namespaces/kube-system/configmaps/aws-auth": {"data": {"mapRoles": written}}}
        vars(self.cloud)["bound"] = SimpleNamespace(objects=objects)

    def cni(self, instance: str, role: str = "") -> str:
        annotations = {"eks.amazonaws.com/role-arn": role} if role else {}
        return self.cloud.network_refusal(f"aws:///us-east-1b/{instance}", "kube-system", "aws-node", annotations)

    def environment(self, role: str = "", admitted: float | None = None) -> dict[str, str]:
        """The controller's, with what is in its token file and that file's mode."""
        annotations = {"eks.amazonaws.com/role-arn": role} if role else {}
        moment = None if admitted is None else datetime.now(UTC) + timedelta(seconds=admitted)
        given = self.cloud.controller_environment("kube-system", "karpenter", annotations, self.folder, {}, moment)
        for name, path in [*given.items()]:
            if name.endswith("TOKEN_FILE"):
                given |= {name: Path(path).read_text(), "mode": oct(Path(path).stat().st_mode & 0o777)}
        return given

    # The controller's rights.

    def become(self, **allowed: Any) -> None:
        """Give a role what is allowed, or the controller's policies, and be it from now on."""
        iam, roles = self.account.client("iam"), self.account.roles
        documents = {"one": document(**allowed)} if allowed else {}
        documents = documents or {key: json.dumps(make(SCOPE)) for key, make in CONTROLLER_POLICIES.items()}
        if not roles.by_name("karpenter"):
            self.stack.role("karpenter", trust(POD))
        for name, text in documents.items():
            iam.put_role_policy(RoleName="karpenter", PolicyName=name, PolicyDocument=text)
        keys = roles.assume(roles.by_name("karpenter"), "test", REGION)
        self.key = keys.access_key_id
        self.karpenter = Somebody(keys.access_key_id, keys.secret_access_key, keys.session_token)

    def their_template(self, **data: Any) -> None:
        """A launch template that Karpenter makes."""
        usual = {"IamInstanceProfile": {"Name": "nodes"}, "SecurityGroupIds": [self.stack.group]}
        tagging = {"TagSpecifications": tagged("network-interface", "spot-instances-request")}
        self.karpenter.ec2.create_launch_template(
            LaunchTemplateName="template",
            LaunchTemplateData={"ImageId": self.stack.image(), **usual, **tagging, **data},
            TagSpecifications=tagged("launch-template"),
        )

    def their_fleet(self, **options: Any) -> Any:
        self.stack.ec2 = self.karpenter.ec2
        return self.stack.fleet(
            "m5.large", zones="a", TagSpecifications=tagged("instance", "volume", "fleet"), **options
        )

    def dry_run(self) -> None:
        """RunInstances as Karpenter tries its rights."""
        self.karpenter.ec2.run_instances(
            DryRun=True,
            MinCount=1,
            MaxCount=1,
            LaunchTemplate={"LaunchTemplateName": "template", "Version": "$Latest"},
            InstanceType="m5.large",
            NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": self.stack.subnets[0]}],
            TagSpecifications=tagged("instance", "volume", "network-interface"),
        )

    def _questions(self, action: str) -> list[Question]:
        found = self.account.roles.uses.recording.principals
        asked = [use.question for principal in found for use in principal.uses]
        return [question for question in asked if question.action == action]

    def asked(self, action: str) -> list[str]:
        """The ends of the patterns of the resources that IAM was asked about."""
        return sorted({question.pattern.split(":", 5)[-1] for question in self._questions(action)})

    def asked_of(self, action: str) -> list[str]:
        return sorted({question.resource for question in self._questions(action)})

    def asked_with(self, action: str, resource: str) -> Mapping[str, Any]:
        """The context of a question."""
        found = {question.pattern.split(":", 5)[-1]: question for question in self._questions(action)}
        return found[resource].context

    def denial(self, shifted: str, key: str = "") -> Any:
        """Why somebody may not ask about a zonal shift; without one, about prices."""
        question = questions.get_managed_resource(shifted) if shifted else questions.get_products()
        return self.account.roles.denial(key or self.key, question)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with account(tmp_path, Timing(spot_notice=0.1)) as aws:
        made = Place(aws, tmp_path)
        yield made
        for control in (made.control, made.later_control):
            control.stop()


@pytest.mark.parametrize("rows", cases("aws_steps.yaml"))
def test_each_call_is_answered_as_aws_answers_it(place: Place, rows: list[Row]) -> None:
    Steps(place.root, place.known()).run(rows)


def test_a_load_balancer_that_was_refused_midway_is_taken_up(place: Place) -> None:
    place.stack.add_cluster()
    place.make_public(place.stack.subnets[0])
    refused = ClientError({"Error": {"Code": "TooManyLoadBalancers", "Message": "no more"}}, "CreateLoadBalancer")
    with mock.patch.object(place.account.client("elb"), "create_load_balancer", side_effect=refused):
        for _ in range(2):
            with pytest.raises(LoadBalancerError, match=r"\(TooManyLoadBalancers\).*: no more"):
                place.ensure()
    place.ensure()
    filters = [{"Name": "description", "Values": ["ELB a0123456789abcdef0123456789abcde"]}]
    assert len(place.account.client("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]) == 1
