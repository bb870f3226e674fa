"""The simulated account, as the tests of the rehearsal have it, and small limits of answers."""

import pytest

from karpstack.text import answers
from tests.unit.rehearsal.conftest import aws as aws
from tests.unit.rehearsal.conftest import stack as stack
from tests.unit.rehearsal.conftest import world as world

_SMALL = {"BYTES": 2**20, "BYTES_IN_ALL": 1_500_000, "VALUES": 10_000, "SECONDS": 1, "PAGES": 3}


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of clouds and clusters end sooner than real ones may."""
    for name, value in _SMALL.items():
        monkeypatch.setattr(answers, name, value)
