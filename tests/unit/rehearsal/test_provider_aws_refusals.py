"""What the stand-in refuses: inputs before any call, requests as AWS does, and a wrong configuration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.attachment.resource import UNKNOWN, RefusedError
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.provider import configuration
from karpstack.rehearsal.aws.resource import ROWS, AwsResource
from tests.unit.rehearsal.provider_aws_world import World, open_world
from tests.unit.rehearsal.recordings import resolved

TABLE = yaml.safe_load(Path(__file__).with_name("aws_refusals.yaml").read_text())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


class _NoAccount:
    """An account that no check may touch."""

    region, account_id = "us-east-1", "123456789012"

    def client(self, service: str) -> Any:
        raise AssertionError(f"a check called {service}")


@pytest.fixture
def checks() -> World:
    return World(_NoAccount(), None)


def _named(row: dict[str, Any]) -> str:
    return f"{row['type'].rpartition(':')[2]}-{row.get('reason') or row['refused']}"


@pytest.mark.parametrize("row", TABLE["checks"], ids=_named)
def test_inputs_are_refused_without_a_call(checks: World, row: dict[str, Any]) -> None:
    failures = checks.failures(row["type"], **row["given"])
    assert list(failures) == [row["property"]]
    assert row["reason"] in failures[row["property"]]


@pytest.mark.parametrize("row", TABLE["lengths"], ids=_named)
def test_long_texts_are_refused_without_a_call(checks: World, row: dict[str, Any]) -> None:
    tags = {
        f"{'x' * row.get('key', 1)}{number or ''}": "y" * row.get("value", 1) for number in range(row.get("count", 1))
    }
    wrong = tags if row["property"] == "tags" else "x" * row["length"]
    failures = checks.failures(row["type"], **{**row["given"], row["property"]: wrong})
    assert list(failures) == [row["property"]]
    assert row["reason"] in failures[row["property"]]


@pytest.mark.parametrize("token", ROWS)
def test_unknown_inputs_are_let_through(checks: World, token: str) -> None:
    resource = checks.type(token)
    checked, failures = resource.check(dict.fromkeys(resource.accepts, UNKNOWN), name="thing")
    assert failures == []
    assert resource.preview(checked, id="", state={}).keys() >= checked.keys()


@pytest.mark.parametrize("row", TABLE["creations"], ids=_named)
def test_creation_is_refused_as_aws_refuses_it(world: World, row: dict[str, Any]) -> None:
    given = resolved(row["given"], world.surroundings)
    if row.get("twice"):
        world.create(row["type"], **given)
    before = list(world.clusters.started)
    _refuses(lambda: world.create(row["type"], **given), row["refused"])
    assert world.clusters.started == before


def test_unknown_properties_are_found(checks: World) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "ipv6CidrBlock": "x"}
    assert checks.type("aws:ec2/vpc:Vpc").unknown(inputs) == ["ipv6CidrBlock"]


def test_missing_names_are_made_up_with_the_types_prefix(checks: World) -> None:
    assert checks.type("aws:kms/alias:Alias").autoname({}, {}, "secrets-1a2b3c4")["name"] == "alias/secrets-1a2b3c4"
    assert checks.type("aws:eks/nodeGroup:NodeGroup").autoname({}, {}, "x-1a2b3c4")["nodeGroupName"] == "x-1a2b3c4"


def _refuses(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        call()


def test_an_account_that_has_used_spot_has_its_role(tmp_path: Path) -> None:
    with open_world(tmp_path, used_spot=True) as world:
        _refuses(
            lambda: world.create("aws:iam/serviceLinkedRole:ServiceLinkedRole", awsServiceName="spot.amazonaws.com"),
            "InvalidInput: Service role name AWSServiceRoleForEC2Spot has been taken in this account, please try a "
            "different suffix.",
        )


# The provider's configuration and functions.


def test_a_cluster_is_told_as_whom_it_is_made(world: World) -> None:
    given = {"region": "us-east-1", "profile": "platform", "assumeRoles": '[{"roleArn": "arn:a"}]'}
    provider = configuration(world.account, world.clusters).configure(given, threading.Event())
    kind = provider.resource("aws:eks/cluster:Cluster")
    assert isinstance(kind, AwsResource)
    assert kind.session.deployer == {"--profile": "platform", "--role-arn": "arn:a"}


def test_region_is_required_and_must_be_the_accounts(world: World) -> None:
    settings = configuration(world.account, world.clusters)
    _refuses(lambda: settings.configure({}, threading.Event()), "pulumi config set aws:region us-east-1")
    _refuses(
        lambda: settings.configure({"region": "eu-west-1"}, threading.Event()),
        "'eu-west-1', but the simulated account is in us-east-1",
    )
    assert settings.replaces({"region": "eu-west-1"}, {"region": "us-east-1"}) == ["region"]
    assert settings.replaces({"region": "us-east-1"}, {"region": "us-east-1"}) == []


@pytest.mark.parametrize("given", [["123456789012"], '["123456789012"]', "[123456789012]", [], None])
def test_the_rehearsed_account_is_allowed_where_the_stack_names_it(world: World, given: Any) -> None:
    settings = configuration(world.account, world.clusters)
    assert "allowedAccountIds" in settings.names
    settings.configure({"region": "us-east-1", "allowedAccountIds": given}, threading.Event())
    _refuses(
        lambda: settings.configure({"region": "us-east-1", "allowedAccountIds": ["1"]}, threading.Event()),
        "AWS account ID not allowed: 123456789012",
    )


@pytest.mark.parametrize("given", [{"tags": {"team": "platform"}}, '{"tags": {"team": "platform"}}'])
def test_default_tags_come_as_a_block_or_as_json(world: World, given: Any) -> None:
    settings = configuration(world.account, world.clusters)
    provider = settings.configure({"region": "us-east-1", "defaultTags": given}, threading.Event())
    queue = provider.resource("aws:sqs/queue:Queue")
    inputs, _ = queue.check({"name": "queue"}, name="queue")
    assert queue.create(inputs, timeout=5.0).outputs["tagsAll"] == {"team": "platform"}
    with pytest.raises(RefusedError, match="no stand-in for aws:s3/bucket:Bucket"):
        provider.resource("aws:s3/bucket:Bucket")


def test_functions(world: World) -> None:
    known = {token.rpartition(":")[2]: call for token, call in invokes(world.account).items()}
    assert known["getCallerIdentity"]({"id": None})["accountId"] == "123456789012"
    assert known["getPartition"]({})["partition"] == "aws"
    assert known["getRegion"]({})["name"] == "us-east-1"
    zones = known["getAvailabilityZones"](
        {
            "state": "available",
            "excludeZoneIds": ["use1-az3"],
            "filters": [{"name": "opt-in-status", "values": ["opt-in-not-required"]}],
        }
    )
    assert zones["names"] == sorted(zones["names"])
    assert len(zones["names"]) >= 3
    assert "use1-az3" not in zones["zoneIds"]
    _refuses(
        lambda: known["getCluster"]({"name": "none", "tags": None}), r"reading EKS Cluster \(none\): couldn't find"
    )
    _refuses(lambda: known["getRegion"]({"region": "eu-west-1"}), "in us-east-1 alone")
    _refuses(lambda: known["getAvailabilityZones"]({"region": "eu-west-1"}), "does not know the argument region")
