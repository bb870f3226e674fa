"""Find what is left of a stack in its account after `pulumi destroy`. Read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from karpstack.components.settings import AksSettings, EksSettings
from karpstack.preflight.aws import names as aws_names
from karpstack.preflight.aws.account import connect
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.subject import Subject as AwsSubject
from karpstack.preflight.aws.subject import cluster_tag, identify_caller
from karpstack.preflight.aws.subject import subject as aws_subject
from karpstack.preflight.azure import names as azure_names
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import login
from karpstack.preflight.azure.subject import Subject as AzureSubject
from karpstack.preflight.azure.subject import subject as azure_subject
from karpstack.preflight.finding import Checked, Finding, InputError, NotAskedError, finding
from karpstack.preflight.finding import run as run_checks
from karpstack.preflight.stack import Configuration, State

#: The tag of a run, which each resource of the stack has (karpstack:tags).
TAG: Final = "karpstack-run"
_TAGS: Final = "ec2:DescribeTags"
#: Requests, not things: EC2 keeps them for a while, and they cost nothing.
_REQUESTS: Final = frozenset({"fleet", "sir"})
#: Beginning of an ID -> what describes it, under which key, by which parameter, and the error if there is none.
_DESCRIBED: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "eipalloc": ("DescribeAddresses", "Addresses", "AllocationIds", "InvalidAllocationID.NotFound"),
    "eni": (
        "DescribeNetworkInterfaces",
        "NetworkInterfaces",
        "NetworkInterfaceIds",
        "InvalidNetworkInterfaceID.NotFound",
    ),
    "i": ("DescribeInstances", "Reservations", "InstanceIds", "InvalidInstanceID.NotFound"),
    "igw": ("DescribeInternetGateways", "InternetGateways", "InternetGatewayIds", "InvalidInternetGatewayID.NotFound"),
    "lt": ("DescribeLaunchTemplates", "LaunchTemplates", "LaunchTemplateIds", "InvalidLaunchTemplateId.NotFound"),
    "nat": ("DescribeNatGateways", "NatGateways", "NatGatewayIds", "NatGatewayNotFound"),
    "rtb": ("DescribeRouteTables", "RouteTables", "RouteTableIds", "InvalidRouteTableID.NotFound"),
    "sg": ("DescribeSecurityGroups", "SecurityGroups", "GroupIds", "InvalidGroup.NotFound"),
    "subnet": ("DescribeSubnets", "Subnets", "SubnetIds", "InvalidSubnetID.NotFound"),
    "vol": ("DescribeVolumes", "Volumes", "VolumeIds", "InvalidVolume.NotFound"),
    "vpc": ("DescribeVpcs", "Vpcs", "VpcIds", "InvalidVpcID.NotFound"),
    "vpce": ("DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointIds", "InvalidVpcEndpointId.NotFound"),
}
_ENDED: Final = ("terminated", "deleted", "deleting")
_OUTLIVES: Final = "it outlives the stack, and may cost money"


class Kind(NamedTuple):
    """A kind of things outside EC2 that carry tags of their own.

    Attributes:
        what: Its name for people.
        service: Who has them.
        listing: The operation that lists them.
        result: Where they are in its answer.
        key: What names one of them there.
        asked: The operation that tells the tags of one.
        parameter: Which one it is, there.
    """

    what: str
    service: str
    listing: str
    result: str
    key: str
    asked: str
    parameter: str


#: Kinds whose names a stack does not choose, or chooses in a second step, as a key's alias.
BY_TAG: Final = (
    Kind("key", "kms", "ListKeys", "Keys", "KeyId", "ListResourceTags", "KeyId"),
    Kind(
        "instance profile",
        "iam",
        "ListInstanceProfiles",
        "InstanceProfiles",
        "InstanceProfileName",
        "GetInstanceProfile",
        "InstanceProfileName",
    ),
    Kind(
        "OIDC provider",
        "iam",
        "ListOpenIDConnectProviders",
        "OpenIDConnectProviderList",
        "Arn",
        "ListOpenIDConnectProviderTags",
        "OpenIDConnectProviderArn",
    ),
)
#: Of one that has gone meanwhile.
_ABSENT: Final = ("NoSuchEntity", "NotFoundException")


class Stays(str):
    """The line of a removal about something that stays."""


def find_leftovers(configured: Configuration) -> tuple[str, list[Checked]]:
    """Return where was looked, for people, and the checks with what is left of a stack that was destroyed.

    Raises:
        UnknowableError: Nothing can be asked, or the stack is on an existing cluster.
    """
    settings, raw = configured.settings, configured.raw
    if isinstance(settings, EksSettings):
        looked_at = aws_subject(connect(settings.region, raw), settings, raw, State())
        return where(looked_at.aws), find_aws_leftovers(looked_at)
    if isinstance(settings, AksSettings):
        azure = azure_subject(Azure(settings.subscription_id, login(raw)), settings, State())
        return f"the subscription {settings.subscription_id}", find_azure_leftovers(azure)
    raise InputError(
        "the stack is on an existing cluster, so what is left cannot be told from what was there; look with "
        "`karpstack preflight destroy` before"
    )


def where(aws: Aws) -> str:
    """Return which account is asked, and as whom: only the caller knows whether it is the stack's.

    Raises:
        UnknowableError: It does not answer.
    """
    caller = identify_caller(aws)
    return f"the account {caller.account}, region {aws.region}, as {caller.arn}"


def find_aws_leftovers(subject: AwsSubject) -> list[Checked]:
    """Return what an account has of the stack's names and tags."""
    return run_checks(_AWS, subject)


def find_azure_leftovers(subject: AzureSubject) -> list[Checked]:
    """Return what a subscription has of the stack's resource groups, which hold all else."""
    return run_checks(_AZURE, subject)


def _tagged(subject: AwsSubject) -> Iterator[Finding]:
    """Whatever EC2 has with the tag of the cluster: instances, volumes, interfaces, groups, networks."""
    wanted = [[{"Name": "key", "Values": [cluster_tag(subject.names.cluster)]}]]
    if run := subject.settings.tags.get(TAG):
        wanted.append([{"Name": "key", "Values": [TAG]}, {"Name": "value", "Values": [run]}])
    for kind, identifier in sorted({one for filters in wanted for one in tagged(subject.aws, filters)}):
        if not is_gone(subject.aws, kind, identifier):
            yield finding("left-after-destroy", _TAGS, identifier=identifier)


def _tagged_outside(kind: Kind, subject: AwsSubject) -> Iterator[Finding]:
    """What a kind of things has with the tag of the run."""
    if run := subject.settings.tags.get(TAG):
        for name in tagged_outside(subject.aws, kind, run):
            yield finding("left-after-destroy", f"{kind.service}:{kind.asked}", identifier=f"{kind.what} {name}")


def tagged(aws: Aws, filters: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what EC2 has by filters of `DescribeTags`: what its ID begins with, `i` or `vpc`, and its ID."""
    found = {one["ResourceId"] for one in aws.all("ec2", "DescribeTags", "Tags", Filters=filters)}
    return sorted((kind, name) for name in found if (kind := name.rpartition("-")[0]) not in _REQUESTS)


def tagged_outside(aws: Aws, kind: Kind, run: str) -> Iterator[str]:
    """Yield what names each thing of a kind that has the tag of a run; no key whose deletion has begun.

    Raises:
        NotAskedError: The tags of all of them are refused, or another question is. If the tags of some are refused,
            those belong to others, because a stack's key does not restrict who reads its tags.
    """
    listed = [one[kind.key] for one in aws.all(kind.service, kind.listing, kind.result)]
    refused: list[NotAskedError] = []
    for name in listed:
        try:
            answer = aws.find(kind.service, kind.asked, _ABSENT, **{kind.parameter: name}) or {}
        except NotAskedError as error:
            if not error.refused:
                raise
            refused.append(error)
            continue
        listed_tags = answer.get("InstanceProfile", answer).get("Tags", ())
        # KMS has names of its own for both.
        tags = {one.get("Key", one.get("TagKey")): one.get("Value", one.get("TagValue")) for one in listed_tags}
        if tags.get(TAG) == run and not (kind.service == "kms" and _is_going(aws, name)):
            yield name
    if refused and len(refused) == len(listed):
        raise refused[0]


def _is_going(aws: Aws, key: str) -> bool:
    answer = aws.find("kms", "DescribeKey", _ABSENT, KeyId=key) or {}
    return bool(answer.get("KeyMetadata", {}).get("KeyState", "PendingDeletion") == "PendingDeletion")


def is_gone(aws: Aws, kind: str, identifier: str) -> bool:
    """Whether EC2 lists a resource, or its tags, for a while after its end."""
    if kind not in _DESCRIBED:
        return False
    operation, result, parameter, absent = _DESCRIBED[kind]
    listed = (aws.find("ec2", operation, (absent,), **{parameter: [identifier]}) or {}).get(result, [])
    if kind == "i":
        listed = [{"State": one["State"]["Name"]} for each in listed for one in each["Instances"]]
    return all(str(one.get("State", "")).lower() in _ENDED for one in listed)


def _as_leftover(check: Callable[[Any], Iterable[Finding]]) -> Callable[[Any], Iterator[Finding]]:
    """A check of names before `up`, whose finding is now something that is left."""

    def with_consequence(subject: Any) -> Iterator[Finding]:
        for one in check(subject):
            yield replace(one, consequence=_OUTLIVES)

    return with_consequence


_AWS: Final[Mapping[str, Callable[[AwsSubject], Iterable[Finding]]]] = {
    "tagged in EC2": _tagged,
    **{
        name: _as_leftover(check)
        for name, check in {
            "cluster": aws_names.cluster,
            "log group": aws_names.log_group,
            "flow logs": aws_names.flow_log_group,
            "roles": aws_names.roles,
            "policies": aws_names.policies,
            "queue": aws_names.queue,
            "event rules": aws_names.event_rules,
            "launch template": aws_names.launch_template,
            "key alias": aws_names.key_alias,
        }.items()
    },
    # Last, because they ask of each one there is.
    **{f"tagged {kind.what}s": partial(_tagged_outside, kind) for kind in BY_TAG},
}
_AZURE: Final[Mapping[str, Callable[[AzureSubject], Iterable[Finding]]]] = {
    "resource group": _as_leftover(azure_names.resource_group),
    "node resource group": _as_leftover(azure_names.node_resource_group),
    "deleted workspace": _as_leftover(azure_names.deleted_workspace),
}
