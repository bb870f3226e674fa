"""CloudWatch Logs: the group that takes a cluster's control plane logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Failure, Properties
from rehearsal.aws.resource import AwsResource, TagCalls

#: What PutRetentionPolicy takes; 0 keeps logs for ever.
RETENTION_DAYS = (
    0,
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)


class LogGroup(AwsResource):
    """A log group. ID: its name."""

    token = "aws:cloudwatch/logGroup:LogGroup"
    title, service = "CloudWatch Logs Log Group", "logs"
    tag_calls = TagCalls("resourceArn", named_by="arn")
    accepts = frozenset({"name", "retentionInDays", "kmsKeyId", "tags"})
    replace_on = frozenset({"name"})
    name_property, name_limit = "name", 512
    defaults: ClassVar[Mapping[str, Any]] = {"retentionInDays": 0, "skipDestroy": False}
    unset: ClassVar[Mapping[str, Any]] = {
        "deletionProtectionEnabled": False,
        "kmsKeyId": "",
        "logGroupClass": "STANDARD",
        "namePrefix": "",
    }

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Only some numbers of days exist."""
        days = inputs.get("retentionInDays")
        if isinstance(days, int) and days not in RETENTION_DAYS:
            yield Failure("retentionInDays", f"expected one of {list(RETENTION_DAYS)} days, got {days}")

    def make(self, inputs: Properties) -> str:
        """create_log_group."""
        key = {"kmsKeyId": inputs["kmsKeyId"]} if inputs.get("kmsKeyId") else {}
        self.client.create_log_group(logGroupName=inputs["name"], tags=self.tags(inputs), **key)
        return str(inputs["name"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """The retention is a policy of its own."""
        if inputs["retentionInDays"]:
            self.client.put_retention_policy(logGroupName=id, retentionInDays=inputs["retentionInDays"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find the group of exactly this name."""
        for group in self.client.describe_log_groups(logGroupNamePrefix=id)["logGroups"]:
            if group["logGroupName"] == id:
                return {
                    "name": id,
                    "arn": self._arn(id),
                    "retentionInDays": group.get("retentionInDays", 0),
                    "kmsKeyId": group.get("kmsKeyId"),
                    "tags": self.client.list_tags_for_resource(resourceArn=self._arn(id)).get("tags", {}),
                }
        return None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Retention and key."""
        if new.get("retentionInDays"):
            self.client.put_retention_policy(logGroupName=id, retentionInDays=new["retentionInDays"])
        else:
            self.client.delete_retention_policy(logGroupName=id)
        if new.get("kmsKeyId"):
            self.client.associate_kms_key(logGroupName=id, kmsKeyId=new["kmsKeyId"])
        elif old.get("kmsKeyId"):
            self.client.disassociate_kms_key(logGroupName=id)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_log_group."""
        self.client.delete_log_group(logGroupName=id)

    def _arn(self, name: str) -> str:
        return self.arn("logs", f"log-group:{name}")
