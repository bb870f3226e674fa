"""The interruption queue: EventBridge tells it what is about to happen to instances, Karpenter reads it.

Rules match every instance of the account and region, as EventBridge offers nothing narrower; the controller
drops messages about instances that are not its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
from pulumi_aws import cloudwatch, sqs

from ..documents.events import EVENT_PATTERNS
from ..documents.iam import interruption_queue_policy
from .scope import Scope


@dataclass(frozen=True, kw_only=True)
class InterruptionArgs:
    """Arguments of `Interruption`: physical names, where they are, and tags."""

    scope: Scope


class Interruption(pulumi.ComponentResource):
    """Encrypted queue, its policy, five rules and their targets."""

    queue_name: pulumi.Output[str]
    queue_arn: pulumi.Output[str]

    def __init__(self, name: str, args: InterruptionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Interruption", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        queue = sqs.Queue(
            f"{name}-queue",
            name=args.scope.names.interruption_queue,
            # A warning is worth two minutes; what is older than five helps nobody.
            message_retention_seconds=300,
            sqs_managed_sse_enabled=True,
            tags=args.scope.tags,
            opts=child,
        )
        sqs.QueuePolicy(
            f"{name}-queue-policy",
            queue_url=queue.url,
            policy=pulumi.Output.all(args.scope.partition, args.scope.account_id).apply(
                lambda known: _policy(args, *known)
            ),
            opts=child,
        )
        for event, pattern in EVENT_PATTERNS.items():
            rule = cloudwatch.EventRule(
                f"{name}-{event}",
                name=args.scope.names.event_rule(event),
                description=f"Karpenter of the EKS cluster {args.scope.names.cluster}: {event}",
                event_pattern=json.dumps(pattern),
                tags=args.scope.tags,
                opts=child,
            )
            cloudwatch.EventTarget(
                f"{name}-{event}",
                rule=rule.name,
                arn=queue.arn,
                target_id="karpenter",
                opts=child,
            )
        self.queue_name = queue.name
        self.queue_arn = queue.arn
        self.register_outputs({"queueName": self.queue_name, "queueArn": self.queue_arn})


def _policy(args: InterruptionArgs, partition: str, account_id: str) -> str:
    """The queue's policy, of ARNs put together from names: so that it can be judged at the first preview already."""
    where = f"{args.scope.region}:{account_id}"
    rules = [f"arn:{partition}:events:{where}:rule/{args.scope.names.event_rule(event)}" for event in EVENT_PATTERNS]
    return json.dumps(
        interruption_queue_policy(f"arn:{partition}:sqs:{where}:{args.scope.names.interruption_queue}", rules)
    )
