"""EC2's flow logs of a VPC. Nothing is ever logged; EC2 makes a flow log whether it can be delivered or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties
from rehearsal.aws.ec2.resources import Ec2Resource
from rehearsal.aws.resource import AwsRefusalError


class FlowLog(Ec2Resource):
    """The flow log of a VPC to a log group. Nothing of it but its tags can be changed."""

    token = "aws:ec2/flowLog:FlowLog"
    title, noun, kind = "EC2 Flow Log", "FlowLog", "vpc-flow-log"
    reported = frozenset({"trafficType", "logDestination", "logDestinationType", "maxAggregationInterval"})
    replace_on = reported | {"vpcId", "iamRoleArn"}
    accepts = replace_on | {"tags"}
    required = frozenset({"vpcId", "trafficType", "logDestination", "iamRoleArn"})
    computed = frozenset({"logDestination"})
    unset: ClassVar[Mapping[str, Any]] = {
        "logFormat": "${version} ${account-id} ${interface-id} ${srcaddr} ${dstaddr} ${srcport} ${dstport} ${protocol} "
        "${packets} ${bytes} ${start} ${end} ${action} ${log-status}"
    }
    defaults: ClassVar[Mapping[str, Any]] = {"logDestinationType": "cloud-watch-logs", "maxAggregationInterval": 600}

    def make(self, inputs: Properties) -> str:
        """create_flow_logs."""
        answer = self.client.create_flow_logs(
            ResourceType="VPC",
            ResourceIds=[inputs["vpcId"]],
            TrafficType=inputs["trafficType"],
            LogDestinationType=inputs["logDestinationType"],
            LogDestination=inputs["logDestination"],
            DeliverLogsPermissionArn=inputs["iamRoleArn"],
            MaxAggregationInterval=inputs["maxAggregationInterval"],
            **self.tagging(inputs),
        )
        for refused in answer.get("Unsuccessful", []):
            raise AwsRefusalError(refused["Error"]["Code"], refused["Error"]["Message"])
        return str(answer["FlowLogIds"][0])

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """The VPC and the role."""
        return {
            "arn": self.arn("ec2", f"vpc-flow-log/{id}"),
            "vpcId": described["ResourceId"],
            "iamRoleArn": described["DeliverLogsPermissionArn"],
        }

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_flow_logs."""
        self.client.delete_flow_logs(FlowLogIds=[id])
