"""rules/exceptions.py and rules/exception_rules.py: what is excepted, until when, and that it is said."""

from datetime import date

import pytest
from judging import UNKNOWN, Case, Resource, judge
from pulumi_policy import StackValidationArgs, StackValidationPolicy
from rules import tokens
from rules.exception_rules import EXCEPTIONS_IN_FORCE, exceptions
from rules.exceptions import GRANTED
from rules.node_pools import NODE_POOL_LIMITS

EXCEPTIONS = exceptions([NODE_POOL_LIMITS.name])
STACK = Resource(tokens.STACK, {})
POOL = Resource(tokens.NODE_POOL, {"spec": {}}, "eks-pool-default")

GRANT = {
    "rule": NODE_POOL_LIMITS.name,
    "resource": "*-pool-default",
    "reason": "the account's quota bounds it",
    "until": "2999-12-31",
}
OVER = GRANT | {"until": "2020-01-31"}

CASES = [
    Case(name="none", rule=EXCEPTIONS, given=STACK),
    Case(name="in force", rule=EXCEPTIONS, given=STACK, settings={"granted": [GRANT]}),
    Case(
        name="over",
        rule=EXCEPTIONS,
        given=STACK,
        settings={"granted": [GRANT, OVER]},
        violations=(
            "not applied to *-pool-default until 2020-01-31: the account's quota bounds it. That day is over.",
        ),
    ),
    Case(name="said once, of the stack", rule=EXCEPTIONS, given=POOL, settings={"granted": [OVER]}),
    Case(name="none", rule=EXCEPTIONS_IN_FORCE, given=[POOL]),
    Case(
        name="one that excused nothing",
        rule=EXCEPTIONS_IN_FORCE,
        given=[POOL],
        granted=(GRANT,),
        violations=("node-pool-limits is not applied to *-pool-default until 2999-12-31",),
    ),
    Case(
        name="one about another stack",
        rule=EXCEPTIONS_IN_FORCE,
        given=[POOL],
        granted=(GRANT | {"resource": "urn:pulumi:other::*"},),
    ),
    Case(name="one that is over", rule=EXCEPTIONS_IN_FORCE, given=[POOL], granted=(OVER,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("resource", ["*-pool-default", POOL.urn, "urn:*::eks-pool-default", "eks-pool-*"])
def test_excuses_by_name_and_by_urn(resource: str) -> None:
    assert judge(NODE_POOL_LIMITS, POOL, granted=[GRANT | {"resource": resource}]).violations == []
    ((exception, excused),) = GRANTED.excused.items()
    assert exception.reason == GRANT["reason"]
    ((urn, finding),) = excused
    assert urn == POOL.urn
    assert "spec.limits sets nothing" in finding


def test_what_was_excused_is_reported_where_it_is() -> None:
    judge(NODE_POOL_LIMITS, POOL, granted=[GRANT])
    reported: list[tuple[str, str | None]] = []
    policy = EXCEPTIONS_IN_FORCE.policy()
    assert isinstance(policy, StackValidationPolicy)

    def report(message: str, urn: str | None = None) -> None:
        reported.append((message, urn))

    policy.validate(StackValidationArgs([]), report)
    ((message, urn),) = reported
    assert "Excused: spec.limits sets nothing" in message
    assert urn == POOL.urn


@pytest.mark.parametrize("changed", [{"resource": "default"}, {"rule": "node-imdsv2"}, {"until": "2020-01-31"}])
def test_excuses_nothing_else(changed: dict[str, str]) -> None:
    assert len(judge(NODE_POOL_LIMITS, POOL, granted=[GRANT | changed]).violations) == 1


def test_excuses_on_its_last_day() -> None:
    assert judge(NODE_POOL_LIMITS, POOL, granted=[GRANT | {"until": date.today().isoformat()}]).violations == []


def test_an_unknown_value_is_still_said() -> None:
    pool = POOL.change("spec", to=UNKNOWN)
    assert judge(NODE_POOL_LIMITS, pool, granted=[GRANT]).unknown == "spec"


def test_refuses_a_rule_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="'node-pool-limit', which is no rule of this pack"):
        judge(EXCEPTIONS, STACK, {"granted": [GRANT | {"rule": "node-pool-limit"}]})


def test_refuses_a_day_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="until '2026-02-30', which is no day"):
        judge(EXCEPTIONS, STACK, {"granted": [GRANT | {"until": "2026-02-30"}]})
