"""Removes what an AWS account has with the tag of a run, when `pulumi destroy` cannot: the kill switch.

Nothing goes that does not carry the tag with the run's own value, but the control plane's log group, which EKS makes
again without tags, by its name, once no cluster of that name is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import ClientError

from karpstack.components.documents.events import EVENT_PATTERNS
from karpstack.components.naming import EksNames
from karpstack.karpenter import clock
from karpstack.preflight.aws.asking import Aws, call
from karpstack.preflight.finding import NotAskedError
from karpstack.text.answers import PAGES

from .leftovers import BY_TAG, TAG, Stays, is_gone, tagged, tagged_outside

#: Gives boto3's client of a service.
Client = Callable[[str], Any]
_PATIENCE, _BETWEEN = 1800.0, 15.0
#: What EC2 deletes, by the beginning of its ID and in this order: operation and parameter.
_EC2: Final = (
    ("nat", "delete_nat_gateway", "NatGatewayId"),
    ("vpce", "delete_vpc_endpoints", "VpcEndpointIds"),
    ("eipalloc", "release_address", "AllocationId"),
    ("lt", "delete_launch_template", "LaunchTemplateId"),
    ("vol", "delete_volume", "VolumeId"),
    ("eni", "delete_network_interface", "NetworkInterfaceId"),
    ("sg", "delete_security_group", "GroupId"),
    ("subnet", "delete_subnet", "SubnetId"),
    ("rtb", "delete_route_table", "RouteTableId"),
    ("igw", "delete_internet_gateway", "InternetGatewayId"),
    ("vpc", "delete_vpc", "VpcId"),
)
_ABSENT: Final = re.compile("NotFound|NonExistent|DoesNotExist|NoSuch")  # in the error codes of the services below
_OF_AN_INSTANCE: Final = re.compile("InvalidInstanceID|OperationNotPermitted|UnauthorizedOperation|IncorrectState")
_ORDER: Final = {kind: number for number, (kind, _, _) in enumerate(_EC2)}


def remove(aws: Aws, client: Client, names: EksNames, run: str, *, between: float = _BETWEEN) -> Iterator[str]:
    """Remove everything of a run, and yield a line for each thing that goes or does not.

    Args:
        aws: The account, for questions; each is asked once.
        client: Gives clients, for changes.
        names: Physical names of the stack.
        run: Value of the tag.
        between: Seconds until it is seen again whether something is gone.

    Raises:
        NotAskedError: A question is refused, or a list has no end.
    """
    yield from _or_stays(f"cluster {names.cluster}", _cluster(client("eks"), names.cluster, run, between))
    # The cluster may have taken longer to go than all answers to one who asks may take.
    yield from _ec2(aws.fresh(), client("ec2"), run, between)
    yield from _others(client, names, run)
    fresh = aws.fresh()
    for kind, delete in zip(BY_TAG, (_key, _profile, _provider), strict=True):
        try:
            for name in tagged_outside(fresh, kind, run):
                yield from _or_stays(f"{kind.what} {name}", delete(client(kind.service), name))
        except NotAskedError as error:
            yield Stays(f"each {kind.what} of the run stays, if there is one: {error.call}: {error}")


def _cluster(eks: Any, name: str, run: str, between: float, patience: float = _PATIENCE) -> Iterator[str]:
    """The node groups with the controller first: it would launch again what is terminated."""
    try:
        cluster = eks.describe_cluster(name=name)["cluster"]
    except eks.exceptions.ResourceNotFoundException:
        return
    if cluster.get("tags", {}).get(TAG) != run:
        yield Stays(f"cluster {name} stays: its tag {TAG} is not {run}")
        return
    for group in _node_groups(eks, name):
        eks.delete_nodegroup(clusterName=name, nodegroupName=group)
        yield f"node group {group} goes"
    _wait(lambda: not _node_groups(eks, name), between, patience=patience)
    if cluster.get("deletionProtection"):
        eks.update_cluster_config(name=name, deletionProtection=False)
        # Until then, its deletion would be refused.
        _wait(lambda: eks.describe_cluster(name=name)["cluster"]["status"] == "ACTIVE", between, patience=patience)
    eks.delete_cluster(name=name)
    yield f"cluster {name} goes"
    if not _wait(lambda: not _has_cluster(eks, name), between, patience=patience):
        yield Stays(f"cluster {name} stays: it is still there {patience / 60:.0f} minutes after its deletion began")


def _node_groups(eks: Any, cluster: str) -> list[str]:
    pages = _pages(eks, "eks", "ListNodegroups", clusterName=cluster)
    return [group for page in pages for group in page["nodegroups"]]


def _pages(client: Any, service: str, operation: str, **given: Any) -> Iterator[Any]:
    """The pages of a list, which does not end if a server behind a proxy always has one more.

    Raises:
        NotAskedError: There are more than `PAGES`.
    """
    for number, page in enumerate(client.get_paginator(xform_name(operation)).paginate(**given)):
        if number == PAGES:
            raise NotAskedError(call(service, operation), f"there are more than {PAGES} pages", refused=False)
        yield page


def _ec2(aws: Aws, ec2: Any, run: str, between: float) -> Iterator[str]:
    listed = tagged(aws, [{"Name": "key", "Values": [TAG]}, {"Name": "value", "Values": [run]}])
    there = [(kind, name) for kind, name in listed if not is_gone(aws, kind, name)]
    if instances := [name for kind, name in there if kind == "i"]:
        yield from _instances(ec2, instances, between)
    for kind, name in sorted(there, key=lambda one: _ORDER.get(one[0], -1)):
        if kind in _ORDER:
            yield _delete(ec2, kind, name, between)


def _instances(ec2: Any, names: list[str], between: float, patience: float = _PATIENCE) -> Iterator[str]:
    """EC2 refuses to terminate several if it refuses one, so each is asked for by itself then."""
    going = list(names)
    try:
        ec2.terminate_instances(InstanceIds=names)
    except ClientError as refusal:
        if not _OF_AN_INSTANCE.match(refusal.response["Error"]["Code"]):
            raise
        for name in names:
            try:
                ec2.terminate_instances(InstanceIds=[name])
            except ClientError as error:
                going.remove(name)
                if not _ABSENT.search(error.response["Error"]["Code"]):
                    yield Stays(f"{name} stays: {error.response['Error']['Message']}")
    if not going:
        return
    yield f"{len(going)} instances go"
    if not _wait(lambda: not _not_terminated(ec2, going), between, patience=patience):
        for name in _not_terminated(ec2, going):
            yield Stays(f"{name} stays: it is still there {patience / 60:.0f} minutes after its termination began")


def _delete(ec2: Any, kind: str, name: str, between: float) -> str:
    _, operation, parameter = _EC2[_ORDER[kind]]
    refusal = ""

    def deleted() -> bool:
        nonlocal refusal
        try:
            _loosen(ec2, kind, name)
            answer = getattr(ec2, operation)(**{parameter: [name] if parameter.endswith("Ids") else name})
            # Of endpoints it says so, although the call succeeds.
            for one in (answer or {}).get("Unsuccessful") or ():
                raise ClientError(one, operation)
        except ClientError as error:
            refusal = error.response["Error"]["Message"]
            # Still in use by what goes, such as a NAT gateway; what is not found went with something else.
            return ".NotFound" in error.response["Error"]["Code"]
        return True

    if _wait(deleted, between, patience=600):
        return f"{name} goes"
    return Stays(f"{name} stays: {refusal}")


def _loosen(ec2: Any, kind: str, name: str) -> None:
    """Take away what keeps something from being deleted: rules between groups, associations, attachments."""
    if kind == "sg":
        group = ec2.describe_security_groups(GroupIds=[name])["SecurityGroups"][0]
        if rules := group["IpPermissions"]:
            ec2.revoke_security_group_ingress(GroupId=name, IpPermissions=rules)
    elif kind == "rtb":
        for one in ec2.describe_route_tables(RouteTableIds=[name])["RouteTables"][0]["Associations"]:
            if not one.get("Main"):
                ec2.disassociate_route_table(AssociationId=one["RouteTableAssociationId"])
    elif kind == "igw":
        for one in ec2.describe_internet_gateways(InternetGatewayIds=[name])["InternetGateways"][0]["Attachments"]:
            ec2.detach_internet_gateway(InternetGatewayId=name, VpcId=one["VpcId"])


def _not_terminated(ec2: Any, instances: list[str]) -> list[str]:
    # By a filter, which passes over those that AWS has forgotten.
    answer = ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": instances}])
    found = [one for each in answer["Reservations"] for one in each["Instances"]]
    return [one["InstanceId"] for one in found if one["State"]["Name"] != "terminated"]


def _others(client: Client, names: EksNames, run: str) -> Iterator[str]:
    """Roles, policies, the queue, rules and log groups."""
    events, logs = client("events"), client("logs")
    yield from _or_stays("each role and policy", _iam(client("iam"), run))
    yield from _or_stays(f"queue {names.interruption_queue}", _queue(client("sqs"), names.interruption_queue, run))
    for rule in map(names.event_rule, EVENT_PATTERNS):
        yield from _or_stays(f"rule {rule}", _rule(events, rule, run))
    for group in (names.control_plane_log_group, names.flow_log_group):
        yield from _or_stays(f"log group {group}", _log_group(logs, client("eks"), names, group, run))


def _or_stays(what: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a removal; where it is refused, say so, and let the next one begin."""
    try:
        yield from lines
    except ClientError as error:
        if not _ABSENT.search(str(error.response["Error"]["Code"])):
            yield Stays(f"{what} stays, if there is one: {error.response['Error']['Message']}")


def _queue(sqs: Any, name: str, run: str) -> Iterator[str]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    if sqs.list_queue_tags(QueueUrl=url).get("Tags", {}).get(TAG) == run:
        sqs.delete_queue(QueueUrl=url)
        yield f"queue {name} goes"


def _rule(events: Any, name: str, run: str) -> Iterator[str]:
    arn = events.describe_rule(Name=name)["Arn"]
    if _pairs(events.list_tags_for_resource(ResourceARN=arn)["Tags"]).get(TAG) == run:
        if targets := [one["Id"] for one in events.list_targets_by_rule(Rule=name)["Targets"]]:
            events.remove_targets(Rule=name, Ids=targets)
        events.delete_rule(Name=name)
        yield f"rule {name} goes"


def _key(kms: Any, key: str) -> Iterator[str]:
    # Before the key: one that goes is not found again.
    yield from _or_stays(f"each alias of the key {key}", _aliases(kms, key))
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    yield f"key {key} goes in 7 days"


def _aliases(kms: Any, key: str) -> Iterator[str]:
    for alias in kms.list_aliases(KeyId=key)["Aliases"]:
        kms.delete_alias(AliasName=alias["AliasName"])
        yield f"{alias['AliasName']} goes"


def _profile(iam: Any, name: str) -> Iterator[str]:
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)
    yield f"instance profile {name} goes"


def _provider(iam: Any, arn: str) -> Iterator[str]:
    iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    yield f"OIDC provider {arn} goes"


def _log_group(logs: Any, eks: Any, names: EksNames, name: str, run: str) -> Iterator[str]:
    for found in logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]:
        if found["logGroupName"] != name:
            continue
        tags = logs.list_tags_for_resource(resourceArn=found["arn"].removesuffix(":*"))["tags"]
        # EKS itself makes it without tags.
        orphan = not tags and name == names.control_plane_log_group and not _has_cluster(eks, names.cluster)
        if orphan or tags.get(TAG) == run:
            logs.delete_log_group(logGroupName=name)
            yield f"log group {name} goes"


def _has_cluster(eks: Any, name: str) -> bool:
    try:
        eks.describe_cluster(name=name)
    except eks.exceptions.ResourceNotFoundException:
        return False
    return True


def _iam(iam: Any, run: str) -> Iterator[str]:
    for role in [one["RoleName"] for page in _pages(iam, "iam", "ListRoles") for one in page["Roles"]]:
        yield from _or_stays(f"role {role}", _role(iam, role, run))
    for page in _pages(iam, "iam", "ListPolicies", Scope="Local"):
        for policy in page["Policies"]:
            yield from _or_stays(f"policy {policy['PolicyName']}", _policy(iam, policy, run))


def _role(iam: Any, role: str, run: str) -> Iterator[str]:
    if _pairs(iam.list_role_tags(RoleName=role)["Tags"]).get(TAG) != run:
        return
    absent = partial(suppress, iam.exceptions.NoSuchEntityException)  # what somebody else takes away meanwhile
    for profile in iam.list_instance_profiles_for_role(RoleName=role)["InstanceProfiles"]:
        with absent():
            iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=role)
        with absent():
            iam.delete_instance_profile(InstanceProfileName=profile["InstanceProfileName"])
    for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        with absent():
            iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        with absent():
            iam.delete_role_policy(RoleName=role, PolicyName=policy)
    iam.delete_role(RoleName=role)
    yield f"role {role} goes"


def _policy(iam: Any, policy: Mapping[str, str], run: str) -> Iterator[str]:
    if _pairs(iam.list_policy_tags(PolicyArn=policy["Arn"])["Tags"]).get(TAG) != run:
        return
    iam.delete_policy(PolicyArn=policy["Arn"])
    yield f"policy {policy['PolicyName']} goes"


def _pairs(tags: list[dict[str, str]]) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in tags}


def _wait(done: Callable[[], bool], between: float, *, patience: float = _PATIENCE) -> bool:
    until = clock.monotonic() + patience
    while not done():
        if clock.monotonic() > until:
            return False
        clock.sleep(between)
    return True
