"""The simulated AWS account for tests of its parts; who needs another overrides it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.account import Account
    from tests.unit.rehearsal.aws_world import Stack
    from tests.unit.rehearsal.azure_world import World


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Account]:
    """A prepared account."""
    from tests.unit.rehearsal.aws_world import account  # moto and boto3, for those tests only that want them

    with account(tmp_path) as made:
        yield made


@pytest.fixture
def stack(aws: Account) -> Stack:
    """A network, roles and a security group in it."""
    from tests.unit.rehearsal.aws_world import Stack

    return Stack(aws)


@pytest.fixture
def world() -> Iterator[World]:
    """A simulated subscription that answers."""
    from tests.unit.rehearsal.azure_world import World

    started = World()
    started.azure.start()
    yield started
    started.azure.stop()
