"""The event bus: events reach the queue through the stack's rules and the queue's policy only."""

from __future__ import annotations

import json
from typing import Any

from rehearsal.aws.account import Account
from tests.unit.rehearsal.aws_world import Stack

INTERRUPTION = "EC2 Spot Instance Interruption Warning"


class Queue:
    """A queue with a rule for interruptions, as a stack makes them."""

    def __init__(self, aws: Account, policy: bool = True) -> None:
        self.sqs, self.events = aws.client("sqs"), aws.client("events")
        self.url = self.sqs.create_queue(QueueName="queue")["QueueUrl"]
        self.arn = "arn:aws:sqs:us-east-1:123456789012:queue"
        if policy:
            statement = {
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com"]},
                "Action": "sqs:SendMessage",
                "Resource": self.arn,
            }
            self.sqs.set_queue_attributes(
                QueueUrl=self.url,
                Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})},
            )
        pattern = {"source": ["aws.ec2"], "detail-type": [INTERRUPTION]}
        self.events.put_rule(Name="rule", EventPattern=json.dumps(pattern))
        self.events.put_targets(Rule="rule", Targets=[{"Id": "queue", "Arn": self.arn}])

    def messages(self) -> list[dict[str, Any]]:
        found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in found]


def test_an_interruption_arrives_as_aws_sends_it(aws: Account) -> None:
    queue = Queue(aws)
    deliveries = aws.events.interrupt("i-0123456789abcdef0")
    assert [delivery.problem for delivery in deliveries] == [""]
    message = queue.messages()[0]
    assert message.pop("id")
    assert message.pop("time").endswith("Z")
    assert message == {
        "version": "0",
        "account": "123456789012",
        "region": "us-east-1",
        "source": "aws.ec2",
        "detail-type": INTERRUPTION,
        "resources": ["arn:aws:ec2:us-east-1:123456789012:instance/i-0123456789abcdef0"],
        "detail": {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"},
    }


def test_without_a_rule_nothing_arrives(aws: Account) -> None:
    queue = Queue(aws)
    assert aws.events.rebalance("i-0123456789abcdef0") == []
    queue.events.disable_rule(Name="rule")
    assert aws.events.interrupt("i-0123456789abcdef0") == []
    assert queue.messages() == []


def test_without_the_policy_the_event_is_lost(aws: Account) -> None:
    queue = Queue(aws, policy=False)
    aws.events.interrupt("i-0123456789abcdef0")
    assert queue.messages() == []
    assert "does not let events.amazonaws.com" in aws.events.failed[0].problem


def test_a_target_that_is_gone_is_a_failed_delivery(aws: Account) -> None:
    queue = Queue(aws)
    queue.sqs.delete_queue(QueueUrl=queue.url)
    aws.events.interrupt("i-0123456789abcdef0")
    assert "does not exist" in aws.events.failed[0].problem


def test_ec2_tells_of_state_changes(aws: Account) -> None:
    queue = Queue(aws)
    pattern = {"detail-type": ["EC2 Instance State-change Notification"]}
    queue.events.put_rule(Name="rule", EventPattern=json.dumps(pattern))
    stack = Stack(aws)
    stack.add_template()
    instance = stack.fleet("m5.large")["Instances"][0]["InstanceIds"][0]
    aws.client("ec2").terminate_instances(InstanceIds=[instance])
    assert [message["detail"] for message in queue.messages()] == [
        {"instance-id": instance, "state": state} for state in ("running", "shutting-down", "terminated")
    ]
