"""What is left of a run is found, and the kill switch removes what has its tag and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from karpstack.components.documents.events import EVENT_PATTERNS
from karpstack.components.naming import EksNames
from karpstack.preflight.aws.account import connect, ensure_account_has_cluster
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.sessions import session
from karpstack.preflight.finding import NotAskedError, UnknowableError, blockers
from karpstack.preflight.stack import State
from karpstack.real_run import commands, removal_aws, removal_azure
from karpstack.real_run.leftovers import TAG, Stays, find_aws_leftovers, find_azure_leftovers
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.azure.identity.entra import MANAGEMENT
from karpstack.text.answers import PAGES
from karpstack.text.codes import Code
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.preflight.preflight_azure_world import Token, asked
from tests.unit.preflight.preflight_azure_world import looked_at as azure_stack
from tests.unit.preflight.preflight_world import looked_at
from tests.unit.preflight.test_asking_azure import Token as NoToken
from tests.unit.preflight.test_asking_azure import azure
from tests.unit.rehearsal.aws_world import CLUSTER, Stack, account, document, trust
from tests.unit.rehearsal.azure_world import GROUPS, World

ROOT = Path(__file__).parents[3]
RUN = {TAG: "first-run"}
TAGS = [{"Key": TAG, "Value": "first-run"}]


@pytest.fixture
def logged_in(aws: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment has the login of the account."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", aws.roles.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.roles.secret_access_key)


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Account]:
    with account(tmp_path) as made:
        yield made


def stack_file(folder: Path, stack: str = "eks", setting: str = "") -> Path:
    """The example's, with the tag of a run and perhaps a setting more."""
    text = (ROOT / f"Pulumi.{stack}.yaml").read_text()
    more = f"  {setting}\n" if setting else ""
    written = folder / f"Pulumi.{stack}.yaml"
    written.write_text(text.replace("  karpstack:tags:\n", f"{more}  karpstack:tags:\n    {TAG}: first-run\n", 1))
    return written


#: What asks an account, by its name.
ACTS: dict[str, Callable[[Path], int]] = {
    "remove": lambda file: commands.remove("eks", config_file=file, yes=True),
    "left": lambda file: commands.list_leftovers("eks", config_file=file),
}


def what_is_left(aws: Account) -> list[str]:
    checked = find_aws_leftovers(looked_at(aws, name=CLUSTER, tags=RUN))
    assert len(checked) == 13
    return [finding.what for finding in blockers(checked)]


def remove(aws: Account) -> list[str]:
    return list(
        removal_aws.remove(Aws(aws.region, aws.client), aws.client, EksNames(CLUSTER), "first-run", between=0.01)
    )


def make_key(aws: Account, *aliases: str, tags: list[dict[str, str]] | None = None) -> str:
    kms = aws.client("kms")
    made = kms.create_key(Tags=[{"TagKey": one["Key"], "TagValue": one["Value"]} for one in TAGS if tags is None])
    for alias in aliases:
        kms.create_alias(AliasName=alias, TargetKeyId=made["KeyMetadata"]["KeyId"])
    return str(made["KeyMetadata"]["KeyId"])


def state(aws: Account, key: str) -> str:
    return str(aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"])


def test_a_key_is_found_by_its_tag(aws: Account) -> None:
    """Pulumi makes its alias after it, and deletes it before; a key that was alone then stayed, and nobody told it."""
    alone, named, other = make_key(aws), make_key(aws, EksNames(CLUSTER).secrets_key_alias), make_key(aws, tags=[])
    left = what_is_left(aws)
    assert [key for key in (alone, named, other) if any(f"key {key}" in one for one in left)] == [alone, named]
    assert not [line for line in remove(aws) if isinstance(line, Stays)]
    assert [state(aws, key) for key in (alone, named, other)] == ["PendingDeletion", "PendingDeletion", "Enabled"]
    assert what_is_left(aws) == []
    assert remove(aws) == []


@pytest.mark.parametrize(
    ("operation", "refusal"), [("delete_instance_profile", "Throttling"), ("schedule_key_deletion", "Throttling")]
)
def test_what_is_refused_once_goes_with_the_next_removal(operation: str, refusal: str, aws: Account) -> None:
    """A profile was found by its role alone, a key by its alias alone, and both had gone before the refusal."""
    iam, key = aws.client("iam"), make_key(aws, EksNames(CLUSTER).secrets_key_alias)
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"), Tags=TAGS)
    iam.create_instance_profile(InstanceProfileName="p", Tags=TAGS)
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName="r")

    class Refusing:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            return refuse if name == operation else getattr(self._client, name)

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": refusal, "Message": "Rate exceeded"}}, operation)

    first = removal_aws.remove(
        Aws(aws.region, aws.client),
        lambda service: Refusing(aws.client(service)),
        EksNames(CLUSTER),
        "first-run",
        between=0.01,
    )
    assert any("Rate exceeded" in line for line in first)
    assert what_is_left(aws)
    remove(aws)
    assert what_is_left(aws) == []
    assert state(aws, key) == "PendingDeletion"
    assert iam.list_instance_profiles()["InstanceProfiles"] == []


def test_a_provider_of_identities_goes(aws: Account) -> None:
    iam = aws.client("iam")
    urls = [f"https://oidc.eks.us-east-1.amazonaws.com/id/{name}" for name in ("A", "B")]
    for url, tags in zip(urls, (TAGS, []), strict=True):
        iam.create_open_id_connect_provider(Url=url, ClientIDList=["sts.amazonaws.com"], Tags=tags)
    assert any("OIDC provider" in one for one in what_is_left(aws))
    assert any(line.startswith("OIDC provider") for line in remove(aws))
    (kept,) = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
    assert kept["Arn"].endswith("/B")


@pytest.mark.parametrize("all_of_them", [True, False])
def test_the_tags_of_others_keys_may_be_refused(all_of_them: bool, aws: Account) -> None:
    """A key may let nobody but its owner read them; if nobody's can be read, a right is missing."""
    own, other = make_key(aws), make_key(aws, tags=[])

    class Refusing(Aws):
        def find(self, service: str, operation: str, absent: tuple[str, ...], **given: Any) -> dict[str, Any] | None:
            if operation == "ListResourceTags" and (all_of_them or given["KeyId"] == other):
                raise NotAskedError("kms:ListResourceTags", "access denied", refused=True)
            return super().find(service, operation, absent, **given)

    subject = replace(looked_at(aws, name=CLUSTER, tags=RUN), aws=Refusing(aws.region, aws.client))
    found = [one for check in find_aws_leftovers(subject) for one in check.findings]
    assert [one.code for one in found] == ["check-not-permitted" if all_of_them else "left-after-destroy"]
    assert own in str(found[0].what) or all_of_them


@pytest.mark.usefixtures("logged_in")
def test_it_is_said_which_account_was_asked(aws: Account, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = stack_file(tmp_path)
    place = f"the account {aws.account_id}, region us-east-1, as arn:aws:"
    assert commands.list_leftovers("eks", config_file=file) == Code.GOOD
    assert f"After pulumi destroy of eks, in {place}" in capsys.readouterr().out
    assert commands.list_leftovers("eks", config_file=file, form="json") == Code.GOOD
    assert place in capsys.readouterr().err
    assert commands.remove("eks", config_file=file, yes=True) == Code.GOOD
    said = capsys.readouterr().out
    assert said.startswith(f"In {place}")
    assert f"Nothing there has the tag {TAG}=first-run." in said


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("account", ["123456789012", "999999999999"])
def test_the_account_of_the_stacks_resources_is_the_one_to_ask(account: str, aws: Account) -> None:
    policy = f"arn:aws:iam::{account}:policy/karpstack"
    made = State(frozenset({("aws:iam/policy:Policy", policy), ("aws:ec2/vpc:Vpc", "vpc-1")}))
    if account == aws.account_id:
        assert connect("us-east-1", {}, made)
    else:
        with pytest.raises(UnknowableError, match=f"are in the account {account}, and arn:aws:.* is of another one"):
            connect("us-east-1", {}, made)


def test_an_empty_account_has_nothing_left(aws: Account) -> None:
    assert what_is_left(aws) == []
    assert remove(aws) == []


def test_the_kill_switch_removes_what_has_the_tag(aws: Account) -> None:
    names, stack = EksNames(CLUSTER), Stack(aws)
    ec2, iam, sqs, events, logs = map(aws.client, ("ec2", "iam", "sqs", "events", "logs"))
    before = len(ec2.describe_vpcs()["Vpcs"])
    mine = stack.run()
    gateway = stack.add_way_out()
    internet = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=stack.vpc)
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=10)["VolumeId"]
    address = ec2.describe_addresses()["Addresses"][0]["AllocationId"]
    made = [stack.vpc, *stack.subnets, stack.group, mine, gateway, internet, volume, address]
    ec2.create_tags(Resources=made, Tags=TAGS)
    stack.add_cluster(tags=RUN)
    stack.add_node_group(1)
    iam.create_role(RoleName=names.controller_role, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"), Tags=TAGS)
    iam.put_role_policy(
        RoleName=names.controller_role, PolicyName="p", PolicyDocument=document(Action="s3:*", Resource="*")
    )
    url = sqs.create_queue(QueueName=names.interruption_queue, tags=RUN)["QueueUrl"]
    rule = names.event_rule(next(iter(EVENT_PATTERNS)))
    events.put_rule(Name=rule, EventPattern=json.dumps({"source": ["aws.ec2"]}), Tags=TAGS)
    logs.create_log_group(logGroupName=names.control_plane_log_group)
    # Somebody else's.
    others = Stack.role(stack, "others", trust("ec2.amazonaws.com"))
    other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[other], Tags=[{"Key": TAG, "Value": "another-run"}])

    found = what_is_left(aws)
    for part in ("vpc-", "nat-", "eipalloc-", "igw-", "EKS cluster", "SQS queue", "IAM role", f"rule {rule}"):
        assert any(part in each for each in found), part
    lines = remove(aws)
    assert not [line for line in lines if " stays" in line]
    assert what_is_left(aws) == []
    assert [vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]].count(other) == 1
    assert len(ec2.describe_vpcs()["Vpcs"]) == before - 1 + 1
    assert others in {role["Arn"] for role in iam.list_roles()["Roles"]}
    assert url not in sqs.list_queues().get("QueueUrls", [])


def test_a_cluster_of_another_run_stays(aws: Account) -> None:
    Stack(aws).add_cluster(tags={TAG: "another-run"})
    assert remove(aws) == [f"cluster {CLUSTER} stays: its tag {TAG} is not first-run"]
    assert aws.client("eks").list_clusters()["clusters"] == [CLUSTER]


def test_logs_of_a_cluster_of_another_run_stay(aws: Account) -> None:
    names, logs = EksNames(CLUSTER), aws.client("logs")
    Stack(aws).add_cluster(tags={TAG: "another-run"})
    groups = [names.control_plane_log_group, names.flow_log_group]
    for group in groups:
        logs.create_log_group(logGroupName=group, tags={TAG: "another-run"})
    remove(aws)
    assert {one["logGroupName"] for one in logs.describe_log_groups()["logGroups"]} == set(groups)


@pytest.mark.parametrize("tags", [{TAG: "last-year"}, {"owner": "audit"}])
def test_logs_of_an_earlier_cluster_stay_if_they_have_tags(aws: Account, tags: dict[str, str]) -> None:
    """EKS itself makes the group without any, so one with tags is kept on purpose."""
    group, logs = EksNames(CLUSTER).control_plane_log_group, aws.client("logs")
    logs.create_log_group(logGroupName=group, tags=tags)
    assert remove(aws) == []
    logs.untag_log_group(logGroupName=group, tags=list(tags))
    assert remove(aws) == [f"log group {group} goes"]


def test_flow_logs_with_the_tag_go(aws: Account) -> None:
    logs = aws.client("logs")
    logs.create_log_group(logGroupName=EksNames(CLUSTER).flow_log_group, tags=RUN)
    assert remove(aws) == [f"log group {EksNames(CLUSTER).flow_log_group} goes"]


def test_what_is_refused_is_said(aws: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_aws, "_wait", lambda done, between, patience=0: done())
    stack = Stack(aws)
    aws.client("ec2").create_tags(Resources=[stack.vpc], Tags=TAGS)
    (line,) = remove(aws)
    assert line.startswith(f"{stack.vpc} stays: ")


def test_a_refusal_does_not_keep_the_rest(aws: Account) -> None:
    """An absent right for one service; the queue's own absence is nothing to tell."""
    logs = aws.client("logs")
    logs.create_log_group(logGroupName=EksNames(CLUSTER).flow_log_group, tags=RUN)
    with FakeServer() as server:
        server.otherwise = (403, json.dumps({"__type": "AccessDeniedException", "message": "not you"}))
        refused = session("", aws.region).client("events", endpoint_url=f"http://127.0.0.1:{server.port}")
        client = {"events": refused}
        lines = removal_aws.remove(
            Aws(aws.region, aws.client),
            lambda service: client.get(service) or aws.client(service),
            EksNames(CLUSTER),
            "first-run",
            between=0.01,
        )
        found = list(lines)
    rules = [line for line in found if line.startswith("rule ")]
    assert len(rules) == len(EVENT_PATTERNS)
    assert all(line.endswith("stays, if there is one: not you") for line in rules)
    assert found[-1] == f"log group {EksNames(CLUSTER).flow_log_group} goes"


def test_a_policy_that_stays_does_not_keep_the_others(aws: Account) -> None:
    iam = aws.client("iam")
    for name in ("a", "b", "c"):
        iam.create_policy(PolicyName=name, PolicyDocument=document(Action="s3:*", Resource="*"), Tags=TAGS)

    def refuse(params: dict[str, Any], **_: object) -> None:
        if params["PolicyArn"].endswith("/b"):
            raise ClientError({"Error": {"Code": "DeleteConflict", "Message": "attached"}}, "DeletePolicy")

    iam.meta.events.register("provide-client-params.iam.DeletePolicy", refuse)
    assert list(removal_aws._iam(iam, "first-run")) == [
        "policy a goes",
        "policy b stays, if there is one: attached",
        "policy c goes",
    ]


def test_all_node_groups_go_and_a_cluster_that_does_not_end_is_said(aws: Account) -> None:
    stack, eks = Stack(aws), aws.client("eks")
    stack.add_cluster(tags=RUN)
    for number in range(101):  # a page has 100
        stack.add_node_group(0, nodegroupName=f"n{number}")
    eks.meta.events.register("before-call.eks.DeleteCluster", lambda **_: (AWSResponse("", 200, {}, None), {}))
    lines = list(removal_aws._cluster(eks, CLUSTER, "first-run", 0.01, patience=0))
    assert len([line for line in lines if line.startswith("node group ")]) == 101
    assert lines[-1] == f"cluster {CLUSTER} stays: it is still there 0 minutes after its deletion began"


def test_an_instance_that_is_protected_does_not_keep_the_rest(aws: Account) -> None:
    """EC2 refuses to terminate all of a call if it refuses one, or does not find one."""
    stack, ec2 = Stack(aws), aws.client("ec2")
    stays, goes = stack.run(), stack.run()
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=10)["VolumeId"]
    ec2.create_tags(Resources=[stays, goes, volume], Tags=TAGS)
    ec2.modify_instance_attribute(InstanceId=stays, DisableApiTermination={"Value": True})
    refused, *others = remove(aws)
    assert isinstance(refused, Stays)
    assert refused.startswith(f"{stays} stays: The instance '{stays}' may not be terminated")
    assert others == ["1 instances go", f"{volume} goes"]
    assert removal_aws._not_terminated(ec2, [stays, goes]) == [stays]


def test_an_instance_that_is_not_there_does_not_keep_the_others(aws: Account) -> None:
    there, ec2 = Stack(aws).run(), aws.client("ec2")
    assert list(removal_aws._instances(ec2, ["i-0123456789abcdef0", there], 0.01)) == ["1 instances go"]
    assert removal_aws._not_terminated(ec2, [there]) == []


def test_instances_that_do_not_end_are_named(aws: Account) -> None:
    ec2 = aws.client("ec2")
    instance = Stack(aws).run()
    ec2.meta.events.register("before-call.ec2.TerminateInstances", lambda **_: (AWSResponse("", 200, {}, None), {}))
    line, stays = removal_aws._instances(ec2, [instance], 0.01, patience=0)
    assert line == "1 instances go"
    assert isinstance(stays, Stays)
    assert stays == f"{instance} stays: it is still there 0 minutes after its termination began"


@pytest.mark.parametrize("result", ["Roles", "Policies"])
def test_a_list_without_an_end_is_an_error(result: str, aws: Account) -> None:
    """A server behind a proxy that always has one more page held the removal up for ever."""
    iam, markers = aws.client("iam"), map(str, count())

    def more(**_: object) -> tuple[AWSResponse, dict[str, Any]]:
        return AWSResponse("", 200, {}, None), {result: [], "IsTruncated": True, "Marker": next(markers)}

    iam.meta.events.register(f"before-call.iam.List{result}", more)
    with pytest.raises(NotAskedError, match="there are more than 1000 pages") as error:
        list(removal_aws._iam(iam, "first-run"))
    assert error.value.call == f"iam:List{result}"
    assert int(next(markers)) == PAGES + 1


@pytest.mark.parametrize("stack", ["eks", "aks-nap"])
@pytest.mark.parametrize("answer", [(403, "{}"), (401, ""), (200, "<html>"), (200, "{}"), (200, "[]"), (500, "no")])
def test_a_removal_that_is_refused_is_an_error(
    answer: tuple[int, str],
    stack: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    written = stack_file(tmp_path, stack)
    with FakeServer() as server:
        server.otherwise = answer
        for name in ("AWS_ENDPOINT_URL", "ARM_RESOURCE_MANAGER_ENDPOINT", "IDENTITY_ENDPOINT"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "IDENTITY_HEADER"):
            monkeypatch.setenv(name, "a")
        monkeypatch.setenv("ARM_USE_MSI", "true")
        assert commands.remove(stack, config_file=written, yes=True) == Code.UNKNOWN
    said = capsys.readouterr().err
    assert "error: " in said
    assert stack != "aks-nap" or "so the rest stays and costs" in said


def test_a_role_whose_tags_cannot_be_read_does_not_keep_the_others(aws: Account) -> None:
    """Somebody else deletes it meanwhile, or a policy denies it."""
    iam = aws.client("iam")
    for role in ("a", "b", "c"):
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"), Tags=TAGS)
    own = type(iam).list_role_tags

    def list_role_tags(self: Any, RoleName: str) -> Any:  # noqa: N803 - as boto3
        code = {"a": "AccessDenied", "b": "NoSuchEntity"}.get(RoleName)
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListRoleTags")
        return own(self, RoleName=RoleName)

    iam.list_role_tags = partial(list_role_tags, iam)
    # What it has is taken from it by somebody else, too.
    iam.put_role_policy(RoleName="c", PolicyName="p", PolicyDocument=document(Action="s3:*", Resource="*"))
    iam.delete_role_policy = partial(deny, iam, iam.delete_role_policy)
    lines = sorted(removal_aws._iam(iam, "first-run"))
    assert lines == ["role a stays, if there is one: no", "role c goes"]


def deny(iam: Any, delete: Callable[..., Any], **given: str) -> None:
    """Delete it, and say that it was not there."""
    delete(**given)
    raise iam.exceptions.NoSuchEntityException({"Error": {"Code": "NoSuchEntity", "Message": "no"}}, "DeleteRolePolicy")


class Denied(NoToken):
    """A login whose token cannot be had for a while, as where `az` has no network."""

    def __init__(self, *fails: int) -> None:
        self._fails, self.asked = fails, 0

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        self.asked += 1
        if self.asked in self._fails:
            raise ClientAuthenticationError("no network")
        return AccessToken("x", 0)  # it has ended, so it is asked for again


@pytest.mark.parametrize("fails", [(1, 2), (2, 3)], ids=["before it begins", "while it is waited for"])
def test_a_login_that_fails_for_a_moment_does_not_end_the_removal(fails: tuple[int, ...]) -> None:
    path = "/subscriptions/a/resourceGroups/mine"
    with FakeServer() as server:
        group = {"id": path, "name": "mine", "tags": RUN}
        server.said = Turns(path, json.dumps({"value": [group]}), GOES, LEAVES)
        asked = azure(server)
        login = replace(asked._login, credential=(credential := Denied(*fails)))
        lines = list(removal_azure.remove(asked, login, "first-run", between=0))
    assert lines == ["resource group mine goes"]
    assert credential.asked > 3


def test_a_cluster_that_takes_long_to_go_does_not_keep_the_rest(aws: Account) -> None:
    """Of all questions together, time is limited, and a cluster has half an hour."""
    stack = Stack(aws)
    aws.client("ec2").create_tags(Resources=[stack.run()], Tags=TAGS)
    asked = Aws(aws.region, aws.client)
    asked._until = 0.0
    lines = list(removal_aws.remove(asked, aws.client, EksNames(CLUSTER), "first-run", between=0.01))
    assert lines == ["1 instances go"]


@pytest.mark.parametrize(
    ("name", "endpoint", "is_own"),
    [
        (CLUSTER, "its own", True),
        (CLUSTER, "", True),
        ("", "", True),
        (CLUSTER, "https://other.example", False),
        ("other", "https://other.example", False),
    ],
)
def test_without_pulumis_state_the_account_must_have_the_cluster(
    aws: Account, name: str, endpoint: str, is_own: bool
) -> None:
    """In another one, no load balancer or instance of the stack would be found before it is destroyed."""
    Stack(aws).add_cluster(tags=RUN)
    own = aws.client("eks").describe_cluster(name=CLUSTER)["cluster"]["endpoint"]
    outputs = {"clusterName": name, "clusterEndpoint": own if endpoint == "its own" else endpoint}
    with nullcontext() if is_own else pytest.raises(UnknowableError, match="so it is not the stack's"):
        ensure_account_has_cluster(Aws(aws.region, aws.client), outputs)


def test_a_removal_after_which_something_stays_is_not_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = stack_file(tmp_path, "aks-nap")
    with FakeServer() as server:
        for name in ("ARM_RESOURCE_MANAGER_ENDPOINT", "IDENTITY_ENDPOINT"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("IDENTITY_HEADER", "a")
        monkeypatch.setenv("ARM_USE_MSI", "true")
        group = {
            "id": "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/mine",
            "name": "mine",
            "tags": RUN,
        }
        server.said["/"] = 200, json.dumps({"access_token": "a", "expires_on": "9999999999", "resource": "x"})
        server.said["/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/mine"] = 403, "ScopeLocked"
        server.otherwise = 200, json.dumps({"value": [group]})
        assert commands.remove("aks-nap", config_file=written, yes=True) == Code.NO
    assert "resource group mine stays: 403 ScopeLocked" in capsys.readouterr().out


@pytest.mark.parametrize("written", ['["999999999999"]', "'[\"999999999999\"]'", '"999999999999"'])
@pytest.mark.parametrize("act", ACTS)
def test_nothing_is_done_in_an_account_that_the_stack_excludes(
    act: str,
    written: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = stack_file(tmp_path, setting=f"aws:allowedAccountIds: {written}")
    caller = "<Arn>arn:aws:iam::123456789012:user/mona</Arn><Account>123456789012</Account>"
    with FakeServer() as server:
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        server.headers["x-amzn-RequestId"] = "a"
        server.otherwise = (
            200,
            (
                f"<GetCallerIdentityResponse><GetCallerIdentityResult>{caller}</GetCallerIdentityResult>"
                "<ResponseMetadata><RequestId>a</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
            ),
        )
        assert ACTS[act](file) == Code.UNKNOWN
        assert len(server.sent) == 1
    assert "the account 123456789012 of arn:aws:iam::123456789012:user/mona is excluded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (
            "aws:forbiddenAccountIds: {secure: v1:a}",
            "a secret that only the stack's own key opens, which is no account",
        ),
        ("aws:allowedAccountIds: {secure: v1:a}", "a secret that only the stack's own key opens, which is no account"),
        ("aws:forbiddenAccountIds: [012345670123]", "which is no account, so it is not known which ones are excluded"),
        ("aws:endpoints: [{sts: 'http://127.0.0.1:1'}]", "aws:endpoints is not followed here"),
        ("aws:endpoints: {secure: v1:a}", "aws:endpoints is not followed here"),
    ],
)
@pytest.mark.parametrize("act", ACTS)
def test_an_account_that_is_not_known_to_be_the_stacks_is_not_asked(
    act: str,
    setting: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = stack_file(tmp_path, setting=setting)
    with FakeServer() as server:
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        assert ACTS[act](file) in (Code.UNKNOWN, Code.WRONG)
    assert why in capsys.readouterr().err


def azure_is_left(world: World) -> list[str]:
    return [finding.what for finding in blockers(find_azure_leftovers(azure_stack(world, "aks-nap")))]


class Turns(dict[str, tuple[int, str]]):
    """Answers about a group, one after another, and at last that it is not there."""

    def __init__(self, group: str, listed: str, *turns: tuple[int, str]) -> None:
        super().__init__({"/subscriptions/a/resourcegroups": (200, listed)})
        self._group, self._turns = group, iter(turns)

    def get(self, path: str, default: Any = None) -> Any:
        return next(self._turns, GONE) if path == self._group else super().get(path, default)


GONE = (404, '{"error": {"code": "ResourceGroupNotFound"}}')
GOES, THERE = (202, ""), (200, '{"properties": {"provisioningState": "Succeeded"}}')
LEAVES = (200, '{"properties": {"provisioningState": "Deleting"}}')


@pytest.mark.parametrize(
    ("turns", "stays"),
    [
        ([GOES, LEAVES], ""),
        ([GOES, *[THERE] * 10, *[LEAVES] * 30], ""),
        ([GOES, LEAVES, *[(501, "wait")] * 30], ""),
        ([GONE], ""),
        ([GOES, *[(404, "<html>")] * 30], "was not seen to go (404)"),
        ([GOES, *[(404, '{"error": {"code": "SubscriptionNotFound"}}')] * 30], "was not seen to go (404)"),
        ([GOES, *[(409, "no")] * 30], "was not seen to go (409)"),
        ([GOES, LEAVES, *[THERE] * 30], "was not seen to go (200)"),
        ([GOES, (403, "no")], "was not seen to go (403)"),
        ([(409, "locked")], "stays: 409 locked"),
    ],
)
def test_a_group_is_waited_for_while_azure_may_be_deleting_it(turns: list[tuple[int, str]], stays: str) -> None:
    """An outage is no answer; a deletion that failed leaves the group as it was; a proxy's 404 is none of Azure's."""
    path = "/subscriptions/a/resourceGroups/mine"
    group = {"id": path, "name": "mine", "tags": RUN}
    with FakeServer() as server:
        server.said = Turns(path, json.dumps({"value": [group]}), *turns)
        asked = azure(server)
        lines = list(removal_azure.remove(asked, asked._login, "first-run", between=0))
    goes = ["resource group mine goes"] if turns[0] == GOES else []
    left = [line for line in lines if isinstance(line, Stays)]
    assert [line for line in lines if line not in left] == goes
    assert len(left) == bool(stays)
    assert all(stays in line for line in left)


@pytest.mark.parametrize(
    "identifier",
    [
        "@evil.example/",
        "0/subscriptions/a/resourceGroups/mine",
        "/subscriptions/other/resourceGroups/mine",
        "/subscriptions/a/resourceGroups/mine/providers/Microsoft.Compute/disks/theirs",
        "/subscriptions/a/resourceGroups/..",
    ],
)
def test_nothing_but_a_group_of_the_subscription_is_deleted(identifier: str) -> None:
    with FakeServer() as server:
        group = {"id": identifier, "name": "mine", "tags": RUN}
        server.said = {"/subscriptions/a/resourcegroups": (200, json.dumps({"value": [group]}))}
        asked = azure(server)
        (line,) = removal_azure.remove(asked, asked._login, "first-run", between=0)
        assert isinstance(line, Stays)
        assert len(server.asked) == 1


def test_a_group_that_is_not_answered_for_leaves_the_others_to_go() -> None:
    with FakeServer() as server:
        ids = [f"/subscriptions/a/resourceGroups/{name}" for name in ("one", "two")]
        groups = [{"id": one, "name": one.rpartition("/")[2], "tags": RUN} for one in ids]
        server.said = Turns(ids[1], json.dumps({"value": groups}), GOES)
        server.said[ids[0]] = (200, "short")
        server.lengths[ids[0]] = 100
        asked = azure(server)
        lines = list(removal_azure.remove(asked, asked._login, "first-run", between=0))
    assert [isinstance(line, Stays) for line in lines] == [True, False]
    assert "resource group one stays: ('Connection broken" in lines[0]
    assert lines[0].endswith("; mend that, and run the command again")


def test_groups_with_the_tag_go_from_a_subscription(world: World) -> None:
    from karpstack.preflight.azure.credentials import Login

    scope = f"/subscriptions/{world.azure.subscription_id}/resourceGroups"
    assert azure_is_left(world) == []
    world.arm.put(f"{scope}/karpstack-aks-nap", GROUPS, {"location": "westus2", "tags": RUN})
    world.arm.put(f"{scope}/others", GROUPS, {"location": "westus2", "tags": {TAG: "another-run"}})
    assert azure_is_left(world) == ["the resource group karpstack-aks-nap already exists"]
    login = Login(Token(world), "a test", world.azure.proxy, f"{MANAGEMENT}/.default")
    lines = list(removal_azure.remove(asked(world), login, "first-run", between=0.01))
    assert lines == ["resource group karpstack-aks-nap goes"]
    assert azure_is_left(world) == []
    assert world.arm.get(f"{scope}/others", GROUPS)
