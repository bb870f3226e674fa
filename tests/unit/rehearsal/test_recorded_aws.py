"""The attached provider for AWS against what pulumi-aws was recorded to answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rehearsal.attachment.server import Servicer
from rehearsal.aws.eks.api import ADDONS
from rehearsal.aws.provider import PACKAGE, VERSION, configuration
from tests.unit.rehearsal.provider_aws_world import World, open_world
from tests.unit.rehearsal.recordings import Engine, changes, otherwise, records, replay

RECORDS = records("aws")
_PATTERN = '{"source": ["aws.ec2"]}'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def engine(world: World) -> Engine:
    servicer = Servicer(PACKAGE, VERSION, configuration(world.account, world.clusters))
    return Engine(servicer, region=world.account.region)


class Surroundings:
    """What the records name as `<...>`: made when it is first asked for, in one VPC unless a cluster brings its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, Any] = {"zone": "us-east-1a"}

    def __call__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._makers[name](self)
        return self._known[name]

    def _public_subnet(self) -> str:
        self("gateway")
        return str(self("subnet"))

    def _cluster(self) -> str:
        created = self._world.cluster()
        self._known["cluster subnet"], self._known["other cluster subnet"] = created.outputs["vpcConfig"]["subnetIds"]
        return created.id

    def _queue_arn(self) -> str:
        return str(self._world.create("aws:sqs/queue:Queue", name="interruption").outputs["arn"])

    def _rule(self) -> str:
        return self._world.create("aws:cloudwatch/eventRule:EventRule", name="spot", eventPattern=_PATTERN).id

    _makers: ClassVar[dict[str, Callable[[Surroundings], Any]]] = {
        "vpc": lambda self: self._world.vpc().id,
        "add-on version": lambda self: ADDONS["coredns"][0],
        "gateway": lambda self: self._world.gateway(self("vpc")).id,
        "address": lambda self: self._world.create("aws:ec2/eip:Eip", domain="vpc").id,
        "table": lambda self: self._world.table(self("vpc")).id,
        "group": lambda self: self._world.group(self("vpc")).id,
        "subnet": lambda self: self._world.subnet(self("vpc"), 1, "us-east-1a").id,
        "other subnet": lambda self: self._world.subnet(self("vpc"), 2, "us-east-1b").id,
        "public subnet": _public_subnet,
        "cluster": _cluster,
        "cluster role": lambda self: self._world.role("eks.amazonaws.com", "cluster").outputs["arn"],
        "node role": lambda self: self._world.node_role(),
        "role": lambda self: self._world.role("ec2.amazonaws.com", "nodes").id,
        "key": lambda self: self._world.create("aws:kms/key:Key").id,
        "queue arn": _queue_arn,
        "rule": _rule,
    }


@pytest.mark.parametrize("token", RECORDS)
def test_answers_are_the_recorded_ones(world: World, engine: Engine, token: str) -> None:
    record = RECORDS[token]
    assert replay(engine, record, Surroundings(world)) == record.differences.keys()


def test_changes_are_called_what_the_provider_calls_them(engine: Engine) -> None:
    assert otherwise(engine, changes("aws")) == [change for change in changes("aws") if "difference" in change]
