"""Each case of the tables: one good input, one mutation for each clause, unknown values."""

import pytest
from judging import Case
from tables import load
from test_pack import RULES

CASES = load({rule.name: rule for rule in RULES})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
