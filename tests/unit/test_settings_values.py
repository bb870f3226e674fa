"""components.settings: what exists is taken, what does not is refused before anything is created; two tables of stacks.

Each row of tests/unit/stacks is a shipped stack, what is changed in it, and what is said of it.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi import log
from pulumi.runtime import config as runtime_config

from karpstack.components import settings
from karpstack.components.problems import SettingsError
from karpstack.karpenter.findings import Finding
from tests.unit.example_stack import eks, example, loaded

TODAY = date(2026, 11, 22)
HERE = Path(__file__).parent / "stacks"


def rows(name: str, width: int) -> list[Any]:
    """Rows of a table: with the text that stands in the fix where it is computed, otherwise an empty one."""
    found: list[list[Any]] = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    return [pytest.param(*row, *[""] * (width - len(row)), id=f"{row[0]} {row[1]}"[:100]) for row in found]


REFUSED, TAKEN = rows("refused.yaml", 5), rows("warned.yaml", 4)


def judged(stack: str, changes: dict[str, Any]) -> tuple[list[Finding], list[Finding]]:
    """What is refused, and what is warned of."""
    warnings: list[Finding] = []
    try:
        loaded(stack, changes, today=TODAY, warn=warnings.append)
    except SettingsError as error:
        return list(error.problems), []
    return [], warnings


@pytest.mark.parametrize(("stack", "changes", "key", "code", "fix"), REFUSED)
def test_refused(stack: str, changes: dict[str, Any], key: str | list[str], code: str | list[str], fix: str) -> None:
    refused, _ = judged(stack, changes)
    keys, codes = ([one] if isinstance(one, str) else one for one in (key, code))
    assert [one.code for one in refused] == codes  # each fault is said, and said once
    for problem, end in zip(refused, keys, strict=True):
        assert problem.key.endswith(end)
        assert problem.fix
        assert fix in problem.fix
        assert not re.search(r"\^|hunter2|PRIVATE|####", str(problem))  # no regular expressions, no secrets, no scripts


@pytest.mark.parametrize(("stack", "changes", "key", "code"), TAKEN)
def test_taken(stack: str, changes: dict[str, Any], key: str, code: str) -> None:
    refused, warnings = judged(stack, changes)
    assert not refused, [str(problem) for problem in refused]
    assert bool(warnings) is bool(code)
    assert all(problem.key.endswith(key) and problem.code == code for problem in warnings)
    assert all(problem.warning and problem.fix for problem in warnings)


def test_a_kubernetes_beyond_the_facts_is_beyond_what_cilium_is_tested_with() -> None:
    refused, warnings = judged("eks", {"cluster.version": "1.37"})
    assert not refused
    said = {problem.key: problem.consequence for problem in warnings}
    assert said.keys() == {"karpstack:cluster.version", "karpstack:cilium.chartVersion"}
    assert said["karpstack:cluster.version"].startswith("was not offered by EKS when our data was last updated")


def test_the_tables_are_long_enough_to_mean_something() -> None:
    assert len(REFUSED) >= 120
    assert len(TAKEN) >= 30


def test_a_warning_goes_to_the_engine_and_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    given = example(systemNodes__instanceType="m10i.large")
    said: list[str] = []
    monkeypatch.setattr(log, "warn", said.append)
    monkeypatch.setattr(runtime_config, "get_config_env", lambda: given)
    monkeypatch.setattr(runtime_config, "get_config_secret_keys_env", lambda: ["karpstack:systemNodes"])
    settings.read()
    (warning,) = said
    assert "karpstack:systemNodes.instanceType = (secret)" in warning
    assert "m10i" not in warning
    assert "karpstack facts" in warning


def test_settings_of_a_program_are_judged_as_well_and_may_be_newer_than_the_facts() -> None:
    shipped = eks()
    newer, misspelt = (
        shipped.model_copy(update={"system_nodes": shipped.system_nodes.model_copy(update={"instance_type": name})})
        for name in ("m10i.large", "m5.lage")
    )
    settings.refuse_contradictions(newer)
    with pytest.raises(SettingsError, match="is not a known instance type"):
        settings.refuse_contradictions(misspelt)
