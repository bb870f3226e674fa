"""The simulated AWS account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.aws.account import Account
from tests.unit.rehearsal.aws_world import account


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Account]:
    """A prepared account."""
    with account(tmp_path) as made:
        yield made
