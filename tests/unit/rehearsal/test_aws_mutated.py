"""Requests to the simulated AWS account that are broken somewhere: done or refused in AWS's words, never a traceback.

The seeds are what boto3 sends while a small stack is made and looked at.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, data, sampled_from

import karpstack.rehearsal
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.aws.server import Server
from tests.mutations import mutations, within_limits
from tests.unit.rehearsal.aws_world import CLUSTER, Answer, Stack, account, ask, signed

OURS = str(Path(karpstack.rehearsal.__file__).parent)
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}
FORM = "application/x-www-form-urlencoded"
PRICING = {
    "ServiceCode": "AmazonEC2",
    "Filters": [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"},
        {"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"},
    ],
}


@dataclass(frozen=True)
class Request:
    """A request without its signature; `body` is what `content` says, a form's fields or JSON."""

    service: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_form(self) -> bool:
        return self.headers.get("Content-Type", "").startswith(FORM)

    @property
    def content(self) -> Any:
        if self.is_form:
            return dict(parse_qsl(self.body.decode(), keep_blank_values=True))
        return json.loads(self.body or b"{}")

    def encoded(self, content: Any) -> bytes:
        if self.is_form and isinstance(content, dict):
            fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in content.items()}
            return urlencode(fields, errors="surrogatepass").encode()
        return json.dumps(content).encode()


def sentence(answer: Answer) -> str:
    """The message of an error, in whichever protocol."""
    if answer.body.lstrip().startswith(b"<"):
        tree = ElementTree.fromstring(answer.body)  # noqa: S314 - what our own server wrote
        return next((each.text or "" for each in tree.iter() if each.tag.endswith("Message")), "")
    told = json.loads(answer.body)
    return str(told.get("message") or told.get("Message") or "")


class Wire:
    """The account's WSGI application, asked by the administrator, and what it was asked while a stack was made."""

    def __init__(self, aws: Account) -> None:
        self.aws = aws
        self.seeds: list[Request] = []
        self.failures: list[logging.LogRecord] = []
        self.server = Server(aws._get_products, aws._identity.credentials, aws.roles.denial, aws.eks.has_zonal_shift)
        for service in ("ec2", "eks", "elb", "events", "iam", "kms", "logs", "sqs", "ssm", "sts"):
            events = aws.client(service).meta.events
            events.register_first(
                "before-send", partial(self._record, "elasticloadbalancing" if service == "elb" else service)
            )
        _make_and_look(aws)
        self.seeds.append(
            Request(
                "pricing",
                "POST",
                "/",
                {"X-Amz-Target": "AWSPriceListService.GetProducts", "Content-Type": "application/x-amz-json-1.1"},
                json.dumps(PRICING).encode(),
            )
        )

    def _record(self, service: str, request: Any, **_: Any) -> None:
        url = urlsplit(request.url)
        target = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
        kept = {"content-type", "x-amz-target"}
        headers = {
            name.title(): value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
            if name.lower() in kept
        }
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        self.seeds.append(Request(service, request.method, target, headers, body))

    def send(self, seed: Request, body: bytes | None = None, **environ: Any) -> Answer:
        sent = seed.body if body is None else body
        if target := seed.headers.get("X-Amz-Target"):
            environ["HTTP_X_AMZ_TARGET"] = target
        return ask(
            self.server,
            seed.target,
            sent,
            seed.method,
            CONTENT_TYPE=seed.headers.get("Content-Type", ""),
            HTTP_AUTHORIZATION=signed(seed.service, self.aws.roles.access_key_id),
            **environ,
        )

    def send_within_limits(self, seed: Request, body: bytes | None = None, **environ: Any) -> Answer:
        """The answer, which is AWS's, came within seconds and a hundred megabytes, and is no failure of ours."""
        self.failures.clear()
        with within_limits(seed):
            answer = self.send(seed, body, **environ)
        assert answer.code < 400 or sentence(answer), (seed, answer)
        assert "Traceback" not in answer.body.decode(), seed
        places = [_place(record) for record in self.failures]
        assert not [place for place in places if place.startswith(OURS)], (seed, places)
        assert (answer.code == 500) == bool(places), (seed, answer)
        return answer


def _place(record: logging.LogRecord) -> str:
    """File and line at which the logged error was raised."""
    assert record.exc_info
    trace = record.exc_info[2]
    assert trace
    while trace.tb_next:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _make_and_look(aws: Account) -> None:
    """What Pulumi's provider and Karpenter send, each once."""
    stack = Stack(aws)
    stack.add_way_out()
    stack.add_cluster()
    stack.add_node_group()
    stack.add_template()
    launched = stack.fleet("m5.large", "c5.large", capacity="spot")["Instances"][0]["InstanceIds"]
    instance = stack.run()
    ec2, eks, iam, sqs = (aws.client(service) for service in ("ec2", "eks", "iam", "sqs"))
    ec2.describe_instances(Filters=[{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}])
    ec2.describe_instances(InstanceIds=launched)
    ec2.describe_instance_types(Filters=[{"Name": "hypervisor", "Values": ["nitro"]}], MaxResults=5)
    ec2.describe_instance_type_offerings(LocationType="availability-zone")
    ec2.describe_spot_price_history(ProductDescriptions=["Linux/UNIX"], InstanceTypes=["m5.large"])
    ec2.describe_images(Owners=["amazon"])
    ec2.create_tags(Resources=[instance], Tags=[{"Key": "karpenter.sh/nodeclaim", "Value": "default-1"}])
    ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [stack.vpc]}])
    ec2.authorize_security_group_ingress(
        GroupId=stack.group,
        IpPermissions=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}],
    )
    ec2.terminate_instances(InstanceIds=[instance])
    eks.describe_cluster(name=CLUSTER)
    eks.create_access_entry(clusterName=CLUSTER, principalArn=stack.node_role, type="EC2_LINUX")
    eks.create_pod_identity_association(
        clusterName=CLUSTER, namespace="kube-system", serviceAccount="karpenter", roleArn=stack.pod_role
    )
    eks.create_addon(clusterName=CLUSTER, addonName="eks-pod-identity-agent")
    iam.put_role_policy(RoleName="controller", PolicyName="p", PolicyDocument=json.dumps(POLICY))
    iam.get_role(RoleName="controller")
    queue = sqs.create_queue(QueueName="queue", Attributes={"MessageRetentionPeriod": "300"})["QueueUrl"]
    sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=20)
    arn = f"arn:aws:sqs:us-east-1:{aws.account_id}:queue"
    events = aws.client("events")
    events.put_rule(Name="rule", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule="rule", Targets=[{"Id": "queue", "Arn": arn}])
    key = aws.client("kms").create_key(Description="secrets")["KeyMetadata"]["KeyId"]
    aws.client("kms").create_alias(AliasName="alias/secrets", TargetKeyId=key)
    aws.client("logs").create_log_group(logGroupName="/aws/eks/test/cluster")
    aws.client("sts").get_caller_identity()
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30080}
    elb = aws.client("elb")
    elb.create_load_balancer(
        LoadBalancerName="web", Listeners=[listener], Subnets=stack.subnets, SecurityGroups=[stack.group]
    )
    elb.describe_load_balancers(LoadBalancerNames=["web"])
    elb.describe_tags(LoadBalancerNames=["web"])


@contextmanager
def _failures_of(wire: Wire) -> Iterator[None]:
    """The errors that the server logs, and nothing on the terminal."""
    handler = logging.Handler()
    handler.emit = lambda record: wire.failures.append(record) if record.exc_info else None  # type: ignore[method-assign]
    log = logging.getLogger("karpstack.rehearsal.aws.server")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with account(tmp_path_factory.mktemp("account")) as aws:
        made = Wire(aws)
        for seed in made.seeds:  # moto loads much at a first request
            made.send(seed)
        with _failures_of(made):
            yield made


def test_the_requests_are_right_before_they_are_broken(wire: Wire) -> None:
    """They were answered once; the second time, what is there already is refused."""
    answers = [(seed, wire.send_within_limits(seed)) for seed in wire.seeds]
    assert {seed.service for seed, _ in answers} == {
        "ec2", "eks", "elasticloadbalancing", "events", "iam", "kms", "logs", "pricing", "sqs", "ssm", "sts",
    }  # fmt: skip
    assert sum(answer.code == 200 for _, answer in answers) > len(answers) / 2
    assert all(answer.code < 500 for _, answer in answers)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(draw=data())
def test_a_broken_body_is_taken_or_refused(wire: Wire, draw: DataObject) -> None:
    seed = draw.draw(sampled_from(wire.seeds))
    wire.send_within_limits(seed, seed.encoded(draw.draw(mutations(seed.content))))


@pytest.mark.parametrize("count", ["-1", "0", "1000000000"])
def test_more_instances_than_can_be_played_are_refused_at_once(wire: Wire, count: str) -> None:
    for action, name in (
        ("RunInstances", "MaxCount"),
        ("CreateFleet", "TargetCapacitySpecification.TotalTargetCapacity"),
    ):
        seed = next(seed for seed in wire.seeds if seed.is_form and seed.content["Action"] == action)
        fields = seed.content | {name: count} | ({"MinCount": count} if action == "RunInstances" else {})
        answer = wire.send_within_limits(seed, seed.encoded(fields))
        assert (answer.code, "1000" in sentence(answer)) == (400, True)


def test_a_node_group_has_no_more_nodes_than_eks_allows(wire: Wire) -> None:
    seed = next(seed for seed in wire.seeds if seed.target.endswith("/node-groups"))
    size = {"minSize": 0, "desiredSize": 10**6, "maxSize": 10**6}
    answer = wire.send_within_limits(seed, seed.encoded(seed.content | {"nodegroupName": "x", "scalingConfig": size}))
    assert (answer.code, "450" in sentence(answer)) == (400, True)


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b"[]", b"7", b"Action=%00", b"Version=%22"])
def test_what_is_no_request_is_refused(wire: Wire, body: bytes) -> None:
    for service in ("ec2", "iam", "sqs", "kms", "pricing"):
        seed = next(seed for seed in wire.seeds if seed.service == service)
        assert wire.send_within_limits(seed, body).code >= 400
