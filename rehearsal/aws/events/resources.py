"""EventBridge: rules on the default bus and their targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties
from rehearsal.aws.resource import AwsRefusalError, AwsResource, TagCalls, api, halves, properties
from rehearsal.aws.tags import unpaired

NO_SCHEDULE_OR_PATTERN = "Parameter(s) EventPattern or ScheduleExpression must be specified."
HAS_TARGETS = "Rule can't be deleted since it has targets."


class EventRule(AwsResource):
    """A rule with an event pattern. ID: its name."""

    token = "aws:cloudwatch/eventRule:EventRule"
    title, service = "EventBridge Rule", "events"
    tag_calls = TagCalls("ResourceARN", named_by="arn", pair=("Key", "Value"))
    written = frozenset({"name", "description", "eventPattern", "state"})
    accepts = written | {"tags"}
    replace_on = frozenset({"name"})
    name_property, name_limit = "name", 64
    computed = frozenset({"state"})
    defaults: ClassVar[Mapping[str, Any]] = {"eventBusName": "default"}
    unset: ClassVar[Mapping[str, Any]] = {"description": "", "namePrefix": "", "roleArn": "", "scheduleExpression": ""}

    def make(self, inputs: Properties) -> str:
        """put_rule, which would overwrite one of the same name: the provider does, too, so it is not refused."""
        self._put(inputs)
        return str(inputs["name"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """The tags."""
        if self.tags(inputs):
            self.retag(id, {"arn": self.arn("events", f"rule/{id}")}, self.tags(inputs), [])

    def look(self, id: str, state: Properties) -> Properties | None:
        """describe_rule and its tags."""
        described = self.client.describe_rule(Name=id)
        tags = self.client.list_tags_for_resource(ResourceARN=described["Arn"])["Tags"]
        return {
            **properties(described, self.written | {"arn"}),
            "tags": unpaired(tags),
            "isEnabled": described["State"] != "DISABLED",
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """put_rule again."""
        self._put(new)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it, unless it has targets."""
        if self.client.list_targets_by_rule(Rule=id)["Targets"]:
            raise AwsRefusalError("ValidationException", HAS_TARGETS)
        self.client.delete_rule(Name=id)

    def _put(self, inputs: Properties) -> None:
        if not inputs.get("eventPattern"):
            raise AwsRefusalError("ValidationException", NO_SCHEDULE_OR_PATTERN)
        self.client.put_rule(**api(inputs, self.written))


class EventTarget(AwsResource):
    """Where a rule sends its events. ID: `<rule>-<target>`. The target's ID is not made up: it must be given."""

    token = "aws:cloudwatch/eventTarget:EventTarget"
    title, service = "EventBridge Target", "events"
    accepts = frozenset({"rule", "arn", "targetId"})
    replace_on = frozenset({"rule", "targetId"})
    computed = frozenset({"targetId"})
    required = accepts
    defaults: ClassVar[Mapping[str, Any]] = {"eventBusName": "default"}
    unset: ClassVar[Mapping[str, Any]] = {"input": "", "inputPath": "", "roleArn": ""}

    def make(self, inputs: Properties) -> str:
        """put_targets."""
        self._put(inputs)
        return f"{inputs['rule']}-{inputs['targetId']}"

    def imported(self, id: str) -> tuple[str, Properties]:
        """By rule and target: `rule-name/target-id`."""
        rule, target = halves(id, "/", "RULENAME/TARGETID")
        return f"{rule}-{target}", {"rule": rule, "targetId": target, **self.defaults}

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find it among the targets of its rule."""
        for target in self.client.list_targets_by_rule(Rule=state["rule"])["Targets"]:
            if target["Id"] == state["targetId"]:
                return {"rule": state["rule"], "targetId": target["Id"], "arn": target["Arn"]}
        return None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """put_targets again."""
        self._put(new)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """remove_targets."""
        self.client.remove_targets(Rule=state["rule"], Ids=[state["targetId"]])

    def _put(self, inputs: Properties) -> None:
        target = {"Id": inputs["targetId"], "Arn": inputs["arn"]}
        answer = self.client.put_targets(Rule=inputs["rule"], Targets=[target])
        for entry in answer.get("FailedEntries", []):
            raise AwsRefusalError(entry.get("ErrorCode", "FailedEntry"), entry.get("ErrorMessage", ""))
