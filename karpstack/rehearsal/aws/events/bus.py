"""The default event bus, as AWS services use it: events reach a queue through the stack's own rules only.

Changes in moto: a rule that is disabled delivers nothing; a queue gets an event only if its policy lets
events.amazonaws.com send to it; an event names its account. A delivery that fails is kept in `EventBus.failed`, as
AWS counts it in the rule's FailedInvocations; nothing is raised, for nobody waits for an answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.aws.patching import Patches

_SPOT_INTERRUPTION = "EC2 Spot Instance Interruption Warning"
_REBALANCE = "EC2 Instance Rebalance Recommendation"
_STATE_CHANGE = "EC2 Instance State-change Notification"
_TARGET_MISSING = "the target {arn} does not exist"
_NOT_ALLOWED = (
    "the policy of {arn} does not let events.amazonaws.com do sqs:SendMessage, so the event is lost; "
    "allow it in the queue's policy"
)


@dataclass(frozen=True)
class Delivery:
    """One event that a rule sent, or tried to send, to a queue.

    Attributes:
        rule: ARN of the rule.
        queue: ARN of the queue.
        detail_type: Of the event.
        problem: Why it did not arrive; empty when it did.
    """

    rule: str
    queue: str
    detail_type: str
    problem: str = ""


class EventBus:
    """The account's default event bus in one region."""

    def __init__(self, account_id: str, region: str, turn: threading.RLock) -> None:
        """`turn` is held while moto's models are read and changed; see `dispatch`."""
        self._account_id = account_id
        self._region = region
        self._turn = turn
        self.deliveries: list[Delivery] = []

    @property
    def failed(self) -> list[Delivery]:
        """Deliveries that did not arrive."""
        return [delivery for delivery in self.deliveries if delivery.problem]

    def put(
        self, detail_type: str, detail: Mapping[str, Any], source: str = "aws.ec2", resources: Sequence[str] = ()
    ) -> list[Delivery]:
        """Let an AWS service emit an event.

        Returns:
            What the matching rules made of it; empty when no rule of the account matches.
        """
        from moto.events.models import events_backends

        event = {
            "Source": source,
            "DetailType": detail_type,
            "Detail": json.dumps(dict(detail)),
            "Resources": list(resources),
        }
        with self._turn:
            before = len(self.deliveries)
            backend: Any = events_backends[self._account_id][self._region]
            backend.put_events([event])
            return self.deliveries[before:]

    def interrupt(self, instance_id: str) -> list[Delivery]:
        """EC2 announces that it takes a spot instance back. It is not this bus that ends the instance then."""
        return self.put(
            _SPOT_INTERRUPTION,
            {"instance-id": instance_id, "instance-action": "terminate"},
            resources=[self._instance_arn(instance_id)],
        )

    def rebalance(self, instance_id: str) -> list[Delivery]:
        """EC2 announces a raised risk of interruption."""
        return self.put(_REBALANCE, {"instance-id": instance_id}, resources=[self._instance_arn(instance_id)])

    def state_change(self, instance_id: str, state: str) -> list[Delivery]:
        """EC2 tells of an instance's new state, for example `shutting-down`."""
        return self.put(
            _STATE_CHANGE, {"instance-id": instance_id, "state": state}, resources=[self._instance_arn(instance_id)]
        )

    def _instance_arn(self, instance_id: str) -> str:
        return f"arn:aws:ec2:{self._region}:{self._account_id}:instance/{instance_id}"

    def patch(self, patches: Patches) -> None:
        """Make moto's rules ask for their state and for the queue's policy."""
        from moto.events.models import Rule
        from moto.events.utils import EventTemplateParser

        def send_to_targets(original: Any) -> Any:
            def send(rule: Any, event: Any, *arguments: Any, **options: Any) -> None:
                if rule.state == "ENABLED":
                    original(rule, event, *arguments, **options)

            return send

        def send_to_queue(original: Any) -> Any:
            def send(rule: Any, queue_name: str, event: Any, group_id: str | None = None) -> None:
                problem = self._problem(rule.arn, queue_name)
                queue = f"arn:aws:sqs:{self._region}:{self._account_id}:{queue_name}"
                if not problem:
                    original(rule, queue_name, event, group_id)
                self.deliveries.append(Delivery(rule.arn, queue, event.get("detail-type", ""), problem))

            return send

        template = EventTemplateParser.DEFAULT_EVENT_INPUT_TEMPLATE
        if '"account"' not in template:
            template = '{"account": "<account>", ' + template.removeprefix("{")
        patches.set(EventTemplateParser, "DEFAULT_EVENT_INPUT_TEMPLATE", template)
        patches.wrap(Rule, "send_to_targets", send_to_targets)
        patches.wrap(Rule, "_send_to_sqs_queue", send_to_queue)

    def _problem(self, rule: str, queue_name: str) -> str:
        from moto.sqs.models import sqs_backends

        queue: Any = sqs_backends[self._account_id][self._region].queues.get(queue_name)
        if queue is None:
            return _TARGET_MISSING.format(arn=queue_name)
        context = {"aws:SourceArn": rule, "aws:SourceAccount": self._account_id}
        if policies.allows_service(
            queue._policy_json, "events.amazonaws.com", "sqs:SendMessage", queue.queue_arn, context
        ):
            return ""
        return _NOT_ALLOWED.format(arn=queue.queue_arn)
