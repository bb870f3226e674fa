"""Names that the stack would take and somebody else has: not the stack itself, by Pulumi's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from components.documents.events import EVENT_PATTERNS
from components.documents.iam import CONTROLLER_POLICIES
from components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES

from ..finding import Finding
from .subject import StackSubject, Subject

_NO_QUEUE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_OTHER_NAME: Final = "choose another karpstack:name"


def cluster(subject: Subject) -> Iterator[Finding]:
    """A cluster of the stack's name."""
    name = subject.names.cluster
    found = subject.aws.find("eks", "DescribeCluster", ("ResourceNotFoundException",), name=name)
    if found and not subject.state.has("aws:eks/cluster:Cluster", name):
        yield Finding(
            "error",
            f"the EKS cluster {name} is there already",
            "CreateCluster is refused: Cluster already exists with name",
            f"{_OTHER_NAME}, or choose the stack that made it",
            "eks:DescribeCluster",
        )


def log_group(subject: Subject) -> Iterator[Finding]:
    """The control plane's log group: EKS writes to it when the cluster is gone, and the next stack goes on with it."""
    name = subject.names.control_plane_log_group
    if _has_log_group(subject, name):
        yield Finding(
            "note",
            f"the log group {name} is there already, most likely of an earlier cluster of that name",
            "the stack takes it over, old lines and all; the second pulumi up sets its retention and tags",
            f"to begin with an empty one: {_deletes_log_group(subject, name)}",
            "logs:DescribeLogGroups",
        )


def flow_log_group(subject: Subject) -> Iterator[Finding]:
    """The log group of the VPC's flow logs."""
    name = subject.names.flow_log_group
    if subject.settings.network.flow_log_retention_days and _has_log_group(subject, name):
        yield Finding(
            "error",
            f"the log group {name} is there already",
            "CreateLogGroup is refused: The specified log group already exists",
            _deletes_log_group(subject, name),
            "logs:DescribeLogGroups",
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
            yield Finding(
                "error",
                f"the IAM role {name} is there already",
                "CreateRole is refused: EntityAlreadyExists; names of IAM hold for all regions of an account",
                f"{_OTHER_NAME}, or delete the role if nobody needs it",
                "iam:GetRole",
            )


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
            yield Finding(
                "error",
                f"the IAM policy {arn} is there already",
                "CreatePolicy is refused: EntityAlreadyExists",
                f"{_OTHER_NAME}, or aws iam delete-policy --policy-arn {arn} if nobody needs it",
                "iam:GetPolicy",
            )


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
        yield Finding(
            "error",
            f"the SQS queue {name} is there already",
            "CreateQueue is refused (QueueAlreadyExists), or takes it over where its attributes are the same",
            f"{_OTHER_NAME}, or aws sqs delete-queue --queue-url {found['QueueUrl']} if nobody needs it",
            "sqs:GetQueueUrl",
        )


def event_rules(subject: StackSubject) -> Iterator[Finding]:
    """EventBridge rules. PutRule changes a rule that is there, without a word."""
    if not subject.settings.karpenter.interruption_queue:
        return
    for event in EVENT_PATTERNS:
        name = subject.names.event_rule(event)
        if subject.aws.find(
            "events", "DescribeRule", ("ResourceNotFoundException",), Name=name
        ) and not subject.state.has("aws:cloudwatch/eventRule:EventRule", name):
            yield Finding(
                "error",
                f"the EventBridge rule {name} is there already",
                "PutRule would change it for its owner, and pulumi destroy would delete it",
                f"{_OTHER_NAME}, or delete the rule if nobody needs it",
                "events:DescribeRule",
            )


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
            yield Finding(
                "error",
                f"the launch template {name} is there already",
                "CreateLaunchTemplate is refused: InvalidLaunchTemplateName.AlreadyExistsException",
                f"{_OTHER_NAME}, or aws ec2 delete-launch-template --region {subject.aws.region} "
                f"--launch-template-id {one['LaunchTemplateId']} if nobody needs it",
                "ec2:DescribeLaunchTemplates",
            )


def key_alias(subject: Subject) -> Iterator[Finding]:
    """The alias of the key that encrypts Kubernetes secrets."""
    alias = subject.names.secrets_key_alias
    aliases = subject.aws.all("kms", "ListAliases", "Aliases")
    if any(one["AliasName"] == alias for one in aliases) and not subject.state.has("aws:kms/alias:Alias", alias):
        yield Finding(
            "error",
            f"the KMS alias {alias} is there already",
            "CreateAlias is refused: AlreadyExistsException",
            f"{_OTHER_NAME}, or aws kms delete-alias --region {subject.aws.region} --alias-name {alias} if nobody "
            "needs it",
            "kms:ListAliases",
        )
