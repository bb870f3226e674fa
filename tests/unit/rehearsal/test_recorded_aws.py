"""The attached provider for AWS against what pulumi-aws was recorded to answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpstack.rehearsal.attachment.server import Servicer
from karpstack.rehearsal.aws.provider import PACKAGE, VERSION, configuration
from tests.unit.rehearsal.provider_aws_world import World, open_world
from tests.unit.rehearsal.recordings import Engine, changes, otherwise, records, replay

RECORDS = records("aws")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def engine(world: World) -> Engine:
    servicer = Servicer(PACKAGE, VERSION, configuration(world.account, world.clusters))
    return Engine(servicer, region=world.account.region)


@pytest.mark.parametrize("token", RECORDS)
def test_answers_are_the_recorded_ones(world: World, engine: Engine, token: str) -> None:
    record = RECORDS[token]
    assert replay(engine, record, world.surroundings) == record.differences.keys()


def test_changes_are_called_what_the_provider_calls_them(engine: Engine) -> None:
    assert otherwise(engine, changes("aws")) == [change for change in changes("aws") if "difference" in change]
