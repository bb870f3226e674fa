"""Each case of the tables: one good input, one mutation for each clause, unknown values."""

import pytest
from judging import Case
from tables import load
from test_pack import RULES

CASES = load({rule.name: rule for rule in RULES})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_the_release_is_named() -> None:
    (case,) = (case for case in CASES if str(case) == "spot-interruption-queue: spot without a queue")
    assert isinstance(case.given, list)
    (violation,) = case.verdict().violations
    assert violation[1] == next(resource.urn for resource in case.given if resource.name == "controller")
