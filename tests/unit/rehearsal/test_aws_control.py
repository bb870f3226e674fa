"""What the control endpoint does to the simulated AWS account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws.account import Account
from rehearsal.aws.control import AwsControl
from rehearsal.host.processes import wait_until
from rehearsal.session.control import ControlError
from rehearsal.timing import Timing
from tests.unit.rehearsal.aws_world import Stack, account

QUEUE = "arn:aws:sqs:us-east-1:123456789012:queue"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Account]:
    with account(tmp_path, Timing(spot_notice=0.1)) as made:
        yield made


@pytest.fixture
def stack(aws: Account) -> Stack:
    made = Stack(aws)
    made.add_template()
    return made


@pytest.fixture
def control(aws: Account) -> Iterator[AwsControl]:
    made = AwsControl(aws)
    yield made
    made.stop()


def test_the_next_images_are_published(aws: Account, control: AwsControl) -> None:
    before = len(aws.images.known)
    assert control.publish_image() == ["al2023@v20260814", "bottlerocket@1.63.0"]
    assert len(aws.images.known) == before + before // 2  # of each kind there were two releases


def launch(stack: Stack, *types: str, capacity: str = "spot") -> str:
    instance: str = stack.fleet(*(types or ("m5.large",)), capacity=capacity)["Instances"][0]["InstanceIds"][0]
    return instance


def state(stack: Stack, instance: str) -> str:
    return str(stack.instance(instance)["State"]["Name"])


def add_rules(aws: Account) -> None:
    """A queue with a rule for all events of EC2."""
    sqs, events = aws.client("sqs"), aws.client("events")
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.create_queue(QueueName="queue", Attributes={"Policy": policy})
    events.put_rule(Name="rule", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule="rule", Targets=[{"Id": "queue", "Arn": QUEUE}])


def test_what_is_sold(control: AwsControl) -> None:
    assert {"m5.large", "c5.large"} <= set(control.instance_types())
    assert "us-east-1a" in control.zones()


def test_a_shortage_is_met_and_counted(stack: Stack, control: AwsControl) -> None:
    hits = control.out_of_capacity("c5.large", "on-demand", "")
    answer = stack.fleet("c5.large", "m5.large")
    assert answer["Instances"][0]["InstanceType"] == "m5.large"
    assert hits() == 2  # a pool in each of two zones
    stack.fleet("c5.large", capacity="spot")
    assert hits() == 2
    control.end_faults()
    assert stack.fleet("c5.large", "m5.large")["Instances"][0]["InstanceType"] == "c5.large"


def test_throttles_follow_one_another_and_are_counted(stack: Stack, control: AwsControl) -> None:
    first, second = control.throttle(1), control.throttle(2)
    for expected in ((1, 0), (1, 1), (1, 2)):
        with pytest.raises(ClientError, match="RequestLimitExceeded"):
            stack.fleet("m5.large")
        assert (first(), second()) == expected
    stack.fleet("m5.large")
    control.throttle(1)
    control.end_faults()
    stack.fleet("m5.large")


def test_an_interrupted_instance_ends_when_the_notice_is_over(aws: Account, stack: Stack, control: AwsControl) -> None:
    add_rules(aws)
    instance = launch(stack)
    assert control.interrupt("interruption", f"aws:///us-east-1a/{instance}") == [{"queue": QUEUE, "problem": ""}]
    assert state(stack, instance) == "running"
    wait_until(lambda: state(stack, instance) == "terminated", "the end of the notice", 10)
    assert [delivery.detail_type for delivery in aws.events.deliveries] == [
        "EC2 Instance State-change Notification",
        "EC2 Spot Instance Interruption Warning",
        *["EC2 Instance State-change Notification"] * 2,
    ]
    with pytest.raises(ControlError, match="the instance is terminated"):
        control.interrupt("interruption", instance)


def test_a_rebalance_recommendation_ends_nothing(aws: Account, stack: Stack, control: AwsControl) -> None:
    add_rules(aws)
    recommended, interrupted = launch(stack), launch(stack)
    assert control.interrupt("rebalance", recommended) == [{"queue": QUEUE, "problem": ""}]
    control.interrupt("interruption", interrupted)
    wait_until(lambda: state(stack, interrupted) == "terminated", "the end of the notice", 10)
    assert state(stack, recommended) == "running"


def test_events_that_do_not_arrive_say_why(aws: Account, stack: Stack, control: AwsControl) -> None:
    instance = launch(stack)
    assert control.interrupt("rebalance", instance) == []  # no rule
    add_rules(aws)
    url = aws.client("sqs").get_queue_url(QueueName="queue")["QueueUrl"]
    aws.client("sqs").delete_queue(QueueUrl=url)
    assert "does not exist" in control.interrupt("rebalance", instance)[0]["problem"]


def test_what_ec2_would_not_interrupt_is_refused(aws: Account, stack: Stack, control: AwsControl) -> None:
    instance = launch(stack, capacity="on-demand")
    with pytest.raises(ControlError, match="this one is on demand") as caught:
        control.interrupt("interruption", instance)
    assert caught.value.status == 400
    for absent in ("i-0123456789abcdef0", "aws:///us-east-1a/nonsense"):
        with pytest.raises(ControlError, match="does not exist") as caught:
            control.interrupt("rebalance", absent)
        assert caught.value.status == 404
    assert aws.events.deliveries == []


def test_stopping_lets_the_interrupted_live(aws: Account, stack: Stack) -> None:
    control = AwsControl(aws)
    spared, ended = launch(stack), launch(stack)
    control.interrupt("interruption", spared)
    control.stop()
    later = AwsControl(aws)
    later.interrupt("interruption", ended)
    wait_until(lambda: state(stack, ended) == "terminated", "the end of the notice", 10)
    assert state(stack, spared) == "running"


def test_resources_are_what_karpenter_tagged(aws: Account, stack: Stack, control: AwsControl) -> None:
    ec2 = aws.client("ec2")
    assert control.resources() == {"instances": [], "launchTemplates": [], "networkInterfaces": []}
    tags = [{"Key": "karpenter.sh/nodepool", "Value": "default"}]
    ec2.create_launch_template(
        LaunchTemplateName="ours",
        LaunchTemplateData={"ImageId": stack.image()},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )
    ec2.delete_launch_template(LaunchTemplateName="template")
    stack.add_template(TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}])
    instance = launch(stack)
    ec2.run_instances(ImageId=stack.image(), MinCount=1, MaxCount=1, SubnetId=stack.subnets[0])  # somebody else's
    interface = stack.instance(instance)["NetworkInterfaces"][0]["NetworkInterfaceId"]
    found = {"launchTemplates": ["ours"], "networkInterfaces": [interface]}
    assert control.resources() == {**found, "instances": [{"id": instance, "nodeclaim": ""}]}
    ec2.create_tags(Resources=[instance], Tags=[{"Key": "karpenter.sh/nodeclaim", "Value": "default-1"}])
    assert control.resources() == {**found, "instances": [{"id": instance, "nodeclaim": "default-1"}]}
    ec2.terminate_instances(InstanceIds=[instance])
    assert control.resources() == {"instances": [], "launchTemplates": ["ours"], "networkInterfaces": []}
