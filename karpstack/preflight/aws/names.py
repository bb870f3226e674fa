"""Names that the stack would take and somebody else has: not the stack itself, by Pulumi's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpstack.components.documents.events import EVENT_PATTERNS
from karpstack.components.documents.iam import CONTROLLER_POLICIES
from karpstack.components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES

from ..finding import Finding, finding
from .subject import StackSubject, Subject

_NO_QUEUE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_OTHER_NAME: Final = "choose another karpstack:name"


def cluster(subject: Subject) -> Iterator[Finding]:
    """A cluster of the stack's name."""
    name = subject.names.cluster
    found = subject.aws.find("eks", "DescribeCluster", ("ResourceNotFoundException",), name=name)
    if found and not subject.state.has("aws:eks/cluster:Cluster", name):
        yield finding("eks-cluster-exists", "eks:DescribeCluster", name=name)


def log_group(subject: Subject) -> Iterator[Finding]:
    """The control plane's log group: EKS writes to it when the cluster is gone, and the next stack goes on with it."""
    name = subject.names.control_plane_log_group
    if _has_log_group(subject, name):
        yield finding(
            "log-group-is-taken-over", "logs:DescribeLogGroups", name=name, delete=_deletes_log_group(subject, name)
        )


def flow_log_group(subject: Subject) -> Iterator[Finding]:
    """The log group of the VPC's flow logs."""
    name = subject.names.flow_log_group
    if subject.settings.network.flow_log_retention_days and _has_log_group(subject, name):
        yield finding(
            "flow-log-group-exists", "logs:DescribeLogGroups", name=name, delete=_deletes_log_group(subject, name)
        )


def _has_log_group(subject: Subject, name: str) -> bool:
    """Whether there is a log group that the stack has not made."""
    groups = subject.aws.all("logs", "DescribeLogGroups", "logGroups", logGroupNamePrefix=name)
    return any(group["logGroupName"] == name for group in groups) and not subject.state.has(
        "aws:cloudwatch/logGroup:LogGroup", name
    )


def _deletes_log_group(subject: Subject, name: str) -> str:
    return f"aws logs delete-log-group --region {subject.aws.region} --log-group-name {name}"


def roles(subject: StackSubject) -> Iterator[Finding]:
    """IAM roles, whose names hold in the whole account, whatever the region."""
    for name in _roles(subject):
        if subject.aws.find("iam", "GetRole", ("NoSuchEntity",), RoleName=name) and not subject.state.has(
            "aws:iam/role:Role", name
        ):
            yield finding("iam-role-exists", "iam:GetRole", name=name)


def _roles(subject: StackSubject) -> Iterator[str]:
    names = subject.names
    yield from (names.node_role, names.controller_role)
    if isinstance(subject, Subject):
        yield from (names.cluster_role, names.system_node_role)
        for name, wanted in (
            (names.flow_log_role, subject.settings.network.flow_log_retention_days),
            (names.ebs_csi_role, subject.settings.addons.ebs_csi),
            (names.load_balancer_role, subject.settings.addons.load_balancer_controller),
        ):
            if wanted:
                yield name


def policies(subject: StackSubject) -> Iterator[Finding]:
    """IAM policies: the controller's, that of the flow logs, and those of the load balancer controller."""
    for name in _policies(subject):
        arn = subject.arn("iam", f"policy/{name}", region="")
        if subject.aws.find("iam", "GetPolicy", ("NoSuchEntity",), PolicyArn=arn) and not subject.state.has(
            "aws:iam/policy:Policy", arn
        ):
            yield finding("iam-policy-exists", "iam:GetPolicy", arn=arn)


def _policies(subject: StackSubject) -> Iterator[str]:
    names = subject.names
    yield from map(names.controller_policy, CONTROLLER_POLICIES)
    if isinstance(subject, Subject):
        if subject.settings.network.flow_log_retention_days:
            yield names.flow_log_role
        if subject.settings.addons.load_balancer_controller:
            yield from map(names.load_balancer_policy, LOAD_BALANCER_POLICIES)


def queue(subject: StackSubject) -> Iterator[Finding]:
    """The interruption queue."""
    if not subject.settings.karpenter.interruption_queue:
        return
    name = subject.names.interruption_queue
    found = subject.aws.find("sqs", "GetQueueUrl", _NO_QUEUE, QueueName=name)
    if found and not subject.state.has("aws:sqs/queue:Queue", found["QueueUrl"]):
        yield finding("queue-exists", "sqs:GetQueueUrl", name=name, queue_url=found["QueueUrl"])


def event_rules(subject: StackSubject) -> Iterator[Finding]:
    """EventBridge rules. PutRule changes a rule that is there, without a word."""
    if not subject.settings.karpenter.interruption_queue:
        return
    for event in EVENT_PATTERNS:
        name = subject.names.event_rule(event)
        if subject.aws.find(
            "events", "DescribeRule", ("ResourceNotFoundException",), Name=name
        ) and not subject.state.has("aws:cloudwatch/eventRule:EventRule", name):
            yield finding("event-rule-exists", "events:DescribeRule", name=name)


def launch_template(subject: Subject) -> Iterator[Finding]:
    """The system nodes' launch template."""
    name = subject.names.system_launch_template
    found = subject.aws.all(
        "ec2",
        "DescribeLaunchTemplates",
        "LaunchTemplates",
        Filters=[{"Name": "launch-template-name", "Values": [name]}],
    )
    for one in found:
        if not subject.state.has("aws:ec2/launchTemplate:LaunchTemplate", one["LaunchTemplateId"]):
            yield finding(
                "launch-template-exists",
                "ec2:DescribeLaunchTemplates",
                name=name,
                region=subject.aws.region,
                launch_template_id=one["LaunchTemplateId"],
            )


def key_alias(subject: Subject) -> Iterator[Finding]:
    """The alias of the key that encrypts Kubernetes secrets."""
    alias = subject.names.secrets_key_alias
    aliases = subject.aws.all("kms", "ListAliases", "Aliases")
    if any(one["AliasName"] == alias for one in aliases) and not subject.state.has("aws:kms/alias:Alias", alias):
        yield finding("key-alias-exists", "kms:ListAliases", alias=alias, region=subject.aws.region)
