"""SQS: a standard queue and its policy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Failure, Properties
from rehearsal.aws.resource import AwsRefusalError, AwsResource, TagCalls

INVALID_POLICY = "Invalid value for the parameter Policy."


class Queue(AwsResource):
    """A standard queue. ID: its URL, which is the simulated account's endpoint."""

    token = "aws:sqs/queue:Queue"
    title, service = "SQS Queue", "sqs"
    tag_calls = TagCalls("QueueUrl", noun="queue")
    #: Property and attribute of the API, with the provider's default and AWS's limits.
    attributes: ClassVar[Mapping[str, tuple[str, int, int, int]]] = {
        "delaySeconds": ("DelaySeconds", 0, 0, 900),
        "maxMessageSize": ("MaximumMessageSize", 262144, 1024, 1048576),
        "messageRetentionSeconds": ("MessageRetentionPeriod", 345600, 60, 1209600),
        "receiveWaitTimeSeconds": ("ReceiveMessageWaitTimeSeconds", 0, 0, 20),
        "visibilityTimeoutSeconds": ("VisibilityTimeout", 30, 0, 43200),
    }
    accepts = frozenset(attributes) | {"name", "sqsManagedSseEnabled", "tags"}
    replace_on = frozenset({"name"})
    computed = frozenset({"sqsManagedSseEnabled"})
    name_property, name_limit = "name", 80
    defaults: ClassVar[Mapping[str, Any]] = {
        **{name: limits[1] for name, limits in attributes.items()},
        "contentBasedDeduplication": False,
        "fifoQueue": False,
    }
    # Its policy is a resource of its own; shown here, it would be a change of the queue.
    unset: ClassVar[Mapping[str, Any]] = {
        "deduplicationScope": "",
        "fifoThroughputLimit": "",
        "kmsDataKeyReusePeriodSeconds": 300,
        "kmsMasterKeyId": "",
        "namePrefix": "",
        "policy": "",
        "redriveAllowPolicy": "",
        "redrivePolicy": "",
    }

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Limits of the attributes."""
        for name, (_, _, least, most) in self.attributes.items():
            value = inputs.get(name)
            if isinstance(value, int) and not least <= value <= most:
                yield Failure(name, f"expected {name} to be in the range ({least} - {most}), got {value}")

    def make(self, inputs: Properties) -> str:
        """create_queue with its attributes."""
        taken = self.client.list_queues(QueueNamePrefix=inputs["name"]).get("QueueUrls", [])
        if any(url.rpartition("/")[2] == inputs["name"] for url in taken):
            raise AwsRefusalError("QueueNameExists", f"A queue already exists with the name {inputs['name']}")
        return str(
            self.client.create_queue(
                QueueName=inputs["name"], Attributes=self._attributes(inputs), tags=self.tags(inputs)
            )["QueueUrl"]
        )

    def look(self, id: str, state: Properties) -> Properties | None:
        """All attributes as numbers and flags."""
        seen = self.client.get_queue_attributes(QueueUrl=id, AttributeNames=["All"])["Attributes"]
        numbers = {name: int(seen[attribute]) for name, (attribute, *_) in self.attributes.items()}
        return {
            **numbers,
            "sqsManagedSseEnabled": seen.get("SqsManagedSseEnabled", "false") == "true",
            "name": id.rpartition("/")[2],
            "arn": seen["QueueArn"],
            "url": id,
            "tags": self.client.list_queue_tags(QueueUrl=id).get("Tags", {}),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """set_queue_attributes."""
        self.client.set_queue_attributes(QueueUrl=id, Attributes=self._attributes(new))

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_queue."""
        self.client.delete_queue(QueueUrl=id)

    def _attributes(self, inputs: Properties) -> dict[str, str]:
        texts = {attribute: str(inputs[name]) for name, (attribute, *_) in self.attributes.items() if name in inputs}
        # A new queue of AWS is encrypted with SQS's own keys unless one says otherwise.
        return {**texts, "SqsManagedSseEnabled": str(inputs.get("sqsManagedSseEnabled", True)).lower()}


class QueuePolicy(AwsResource):
    """The policy of a queue. ID: the queue's URL."""

    token = "aws:sqs/queuePolicy:QueuePolicy"
    title, service = "SQS Queue Policy", "sqs"
    accepts = required = frozenset({"queueUrl", "policy"})
    replace_on = frozenset({"queueUrl"})

    def make(self, inputs: Properties) -> str:
        """Set the attribute; SQS refuses what is no policy."""
        self._set(inputs["queueUrl"], inputs["policy"])
        return str(inputs["queueUrl"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """Gone when the queue has no policy."""
        seen = self.client.get_queue_attributes(QueueUrl=id, AttributeNames=["Policy"]).get("Attributes", {})
        return {"queueUrl": id, "policy": seen["Policy"]} if seen.get("Policy") else None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Set the attribute again."""
        self._set(id, new["policy"])

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """An empty policy is none."""
        self.client.set_queue_attributes(QueueUrl=id, Attributes={"Policy": ""})

    def _set(self, url: str, policy: str) -> None:
        try:
            needed = {"Effect", "Principal", "Action", "Resource"}
            complete = all(needed <= statement.keys() for statement in json.loads(policy)["Statement"])
        except (ValueError, KeyError, TypeError, AttributeError):
            complete = False
        if not complete:
            raise AwsRefusalError("InvalidAttributeValue", INVALID_POLICY)
        self.client.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
