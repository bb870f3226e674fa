"""Each fault of a scenario file is refused by its code and at its key: the cases are rows of `refused.yaml`."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.scenarios.problems import CATALOGUE
from karpstack.scale_test.scenarios.scenario import ScenarioError, parse
from tests.unit.scale_test.full_scenario import FULL, OBSERVING, SMALL, with_value

ROWS = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))
WITHIN = {"within": 60}
#: Full, with steps that patch its NodePool, its node class, and its NodePool again.
PATCHES = [
    {"patchNodePool": {"name": "full", "spec": {"weight": 5}}, "expect": WITHIN},
    {"patchNodeClass": {"name": "full", "spec": {"tags": {"a": "b"}}}, "expect": WITHIN},
    {"patchNodePool": {"name": "full", "spec": {"weight": 5}}, "expect": WITHIN},
]


def broken(base: str, *given: Any) -> tuple[dict[str, Any], str]:
    """Return the scenario of a row, and the key of what was set in it."""
    match base:
        case "act":
            return with_value(SMALL, "steps", [*SMALL["steps"], given[0] | {"expect": WITHIN}]), "steps.1"
        case "observe":
            return with_value(FULL | OBSERVING, "steps.0.expect", WITHIN | given[0]), "steps.0.expect"
        case "patched":
            data = with_value(FULL | {"steps": PATCHES}, *given)
            if "nodeClass" in given[0].lower() or "nodeclass" in given[0].lower():
                data["stacks"] = ["eks"] if "aks" not in given[0] else ["eks", "aks-self-hosted"]
            return data, given[0]
    return with_value(SMALL if base == "small" else FULL, *given), given[0]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_broken_scenario_is_refused(row: list[Any]) -> None:
    count = 2 if row[0] in ("act", "observe") else 3
    data, where = broken(*copy.deepcopy(row[:count]))
    code, key, *said = row[count:]
    if row[0] in ("act", "observe"):
        key = where if key == "." else f"{where}.{key}"
    with pytest.raises(ScenarioError) as refused:
        parse(data, "broken.yml")
    found = {(one.code, one.key.partition(".list[")[0]): one for one in refused.value.findings}
    assert (code, where if key == "=" else key) in found, str(refused.value)
    one = found[code, where if key == "=" else key]
    assert all(part in f"{one.consequence}; {one.fix}" for part in said)


def test_each_code_is_refused_once() -> None:
    refused = {word for row in ROWS for word in row if isinstance(word, str)}
    assert CATALOGUE.entries.keys() - refused == {"no-workload"}  # which needs two changes, below


def test_a_story_without_pods_is_refused() -> None:
    step = {"observe": "nothing", "expect": WITHIN}
    with pytest.raises(ScenarioError) as refused:
        parse(FULL | {"workloads": {}, "manifests": [], "steps": [step]}, "full.yml")
    assert ("no-workload", "workload") in {(one.code, one.key) for one in refused.value.findings}


def test_a_finding_is_one_line_with_file_key_value_and_fix() -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(with_value(SMALL, "steps.0", {"scal": 1, "expect": {"hold": 1}}), "small.yml")
    assert str(refused.value).splitlines() == [
        "small.yml: steps.0.expect.within: missing key, so the scenario cannot run; add it (this is step 1)",
        "small.yml: steps.0.scal: 1: unknown key, so it would have no effect; did you mean scale? (this is step 1)",
    ]
    with pytest.raises(ScenarioError) as refused:
        parse(with_value(SMALL, "steps.0.expect", 60), "small.yml")
    assert str(refused.value) == (
        "small.yml: steps.0.expect: 60: this is not a mapping; write {within: ..., nodePools: ..., zones: ..., "
        "capacityTypes: ..., zoneCount: ..., hold: ..., ...}; the scenario cannot run until this is fixed "
        "(this is step 1)"
    )


def test_half_a_character_is_refused() -> None:
    step = {"live": {"for": "1s", "curve": {"\ud800": {"25h": 1}}}, "expect": WITHIN}
    with pytest.raises(ScenarioError, match=r"\\ud800.* half of a character"):
        parse(with_value(SMALL, "steps", [step]), "small.yml")


def test_a_patch_is_not_to_blame_for_its_node_pool_and_all_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(with_value(FULL | {"steps": PATCHES}, "nodePools.full.disuption", {}), "full.yml")
    assert [one.key for one in refused.value.findings] == ["nodePools.full.disuption"]
    data = with_value(FULL | {"steps": PATCHES}, "steps.0.patchNodePool.spec", {"wieght": 1})
    data["steps"][2]["patchNodePool"]["name"] = "fool"
    data["nodePools"]["other"] = {"wieght": 2}
    with pytest.raises(ScenarioError) as refused:
        parse(data, "full.yml")
    assert {one.key for one in refused.value.findings} == {
        "environments.eks.nodePools.other",
        "environments.aks-self-hosted.nodePools.other",
        "steps.2.patchNodePool.name",
        "steps.0.patchNodePool.spec.wieght",
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("steps.0.patchNodePool.spec", {"limits": None, "disruption": {"budgets": [{"nodes": "1"}]}}),
        # Of a node class only the cluster knows what a patch is merged with.
        ("nodeClasses.full.spec", {"metadataOptions": {"httpTokens": "required"}, "amiFamily": "AL2023"}),
        (
            "nodeClasses.full.spec",
            {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": True, "volumeSize": "20Gi"}}]},
        ),
    ],
)
def test_what_may_be_right_is_taken(path: str, value: object) -> None:
    parse(with_value(FULL | {"steps": PATCHES}, path, value) | {"stacks": ["eks"], "environments": {}}, "full.yml")
