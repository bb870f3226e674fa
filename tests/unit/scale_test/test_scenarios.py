"""Scenario files: what ships is what the stories say; what is wrong is refused with key, value and fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.scenarios.choosing import choose
from karpstack.scale_test.scenarios.pods import Deployment
from karpstack.scale_test.scenarios.scenario import Scenario, ScenarioError, load, parse
from tests.conftest import Golden
from tests.unit.scale_test.full_scenario import SMALL as GOOD
from tests.unit.scale_test.full_scenario import with_value


def deployment(scenario: Scenario) -> Deployment:
    assert scenario.workload.deployment
    return scenario.workload.deployment


def test_a_good_scenario_is_taken_with_its_defaults() -> None:
    scenario = parse(GOOD, "small.yml")
    assert deployment(scenario).requests == {"cpu": "1"}
    assert deployment(scenario).replicas == 0
    assert deployment(scenario).image.startswith("registry.k8s.io/pause:")


def test_a_scenario_may_make_nothing_but_pods_without_requests() -> None:
    data = with_value(GOOD, "nodePools", None) | {"existingNodePools": ["default"]}
    data["workload"] = {"namespace": "small", "deployment": {"name": "inflate"}}
    scenario = parse(data, "small.yml")
    assert deployment(scenario).requests == {}
    assert scenario.pools == ["default"]


def test_labels_may_still_be_called_tags() -> None:
    assert parse({**GOOD, "tags": ["nightly"]}, "small.yml").tags == ["nightly"]
    with pytest.raises(ScenarioError, match="tags: "):
        parse({**GOOD, "tags": ["nightly"], "labels": ["nightly"]}, "small.yml")


def test_what_is_parsed_can_be_parsed_again() -> None:
    """The modules hand scenarios to each other as plain data."""
    scenario = parse(GOOD, "small.yml")
    assert parse(scenario.model_dump(by_alias=True, mode="json", exclude_none=True), "again") == scenario


@pytest.mark.parametrize(
    ("action", "title", "faults"), yaml.safe_load(Path(__file__).with_name("actions.yaml").read_text())
)
def test_each_action_has_a_title_and_survives_a_round_trip(
    action: dict[str, Any], title: str, faults: list[str]
) -> None:
    scenario = parse(with_value(GOOD, "steps", [{**action, "expect": {"within": 60}}]), "small.yml")
    assert (scenario.steps[0].title, [fault.kind for fault in scenario.faults]) == (title, faults)
    plain = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    assert parse(plain, "again") == scenario
    # The role takes the keys that are there for what is to be done.
    assert plain["steps"][0].keys() == {*action, "expect"}


def test_zones_of_what_breaks_meanwhile_are_those_of_the_scenario() -> None:
    scenario = parse(
        with_value(GOOD, "steps.0.meanwhile", {"after": 1, "interrupt": {"zone": "us-east-1a"}}), "small.yml"
    )
    assert scenario.zones == ["us-east-1a"]


def test_replicas_are_those_of_the_last_step_that_set_them() -> None:
    steps: list[dict[str, Any]] = [
        {"observe": "a"},
        {"scale": 3},
        {"rebalance": {}},
        {"churn": {"replicas": [4, 0, 2], "every": 10, "for": 45}},
        {"observe": "b"},
    ]
    data = with_value(GOOD, "steps", [{**step, "expect": {"within": 60}} for step in steps])
    data["workload"]["deployment"]["replicas"] = 1
    scenario = parse(data, "small.yml")
    # Four changes fit into 45 s: 4, 0, 2, 4.
    assert [scenario.replicas_after(index) for index in range(-1, 5)] == [1, 1, 3, 3, 4, 4]


REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def two_clouds() -> dict[str, Any]:
    """GOOD with a NodePool that only becomes whole in an environment."""
    both = {"expireAfter": "Never", "terminationGracePeriod": "1h", "requirements": []}
    data = with_value(GOOD, "nodePools", {"small": {"weight": 5, "template": {"spec": both}}})
    data["stacks"] = ["eks", "aks-nap"]

    def part(**more: Any) -> dict[str, Any]:
        return {"nodePools": {"small": {"template": {"spec": {"nodeClassRef": REFERENCE, **more}}}}}

    return data | {"environments": {"eks": part(terminationGracePeriod=None), "aks-nap": part(expireAfter="90s")}}


def test_an_environment_completes_the_node_pools(outputs: dict[str, Any]) -> None:
    scenario = parse(two_clouds(), "small.yml")
    both = {"nodeClassRef": REFERENCE, "requirements": []}
    assert scenario.in_environment("eks").node_pools == {
        "small": {"weight": 5, "template": {"spec": {"expireAfter": "Never", **both}}}
    }
    assert scenario.in_environment("aks-nap").node_pools == {
        "small": {"weight": 5, "template": {"spec": {"expireAfter": "90s", "terminationGracePeriod": "1h", **both}}}
    }
    (chosen,) = choose([scenario], outputs).scenarios
    assert chosen == scenario.in_environment("eks")
    assert chosen.environments == {}


def test_an_environment_in_which_a_node_pool_stays_incomplete_is_refused() -> None:
    data = two_clouds()
    del data["environments"]["aks-nap"]
    with pytest.raises(ScenarioError, match=r"environments\.aks-nap\.nodePools\.small: .*nodeClassRef.name is missing"):
        parse(data, "small.yml")


def test_an_environment_may_need_other_node_pools() -> None:
    data = two_clouds()
    data["environments"]["aks-nap"]["existingNodePools"] = ["default"]
    scenario = parse(data, "small.yml")
    assert scenario.in_environment("eks").existing_node_pools == []
    assert scenario.in_environment("aks-nap").existing_node_pools == ["default"]
    data["environments"]["aks-nap"]["existingNodePools"] = ["small"]
    with pytest.raises(
        ScenarioError, match=r"environments\.aks-nap\.existingNodePools: \['small'\]: small is also a NodePool"
    ):
        parse(data, "small.yml")


def test_all_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    bad = with_value(GOOD, "steps.0.expect.nodez", 1)
    bad["stacks"] = ["gke"]
    (tmp_path / "small.yml").write_text(yaml.safe_dump(bad))
    (tmp_path / "other.yml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "broken.yml").write_text("a: [")
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path)
    text = str(refused.value)
    assert "small.yml: steps.0.expect.nodez" in text
    assert "small.yml: stacks" in text
    assert "other.yml: name: 'small' differs" in text
    assert "write name: other" in text
    assert "broken.yml: not YAML" in text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("other.yaml", r"other\.yaml: ends in \.yaml, so it would be neither checked nor run; call it other\.yml"),
        ("below/other.yml", r"below/other\.yml: is in a folder below, so it would be neither checked nor run; move it"),
        ("below/other.yaml", r"below/other\.yaml: is in a folder below"),
    ],
)
def test_what_would_be_passed_over_is_refused(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / ".git").mkdir()
    for good in ("small.yml", "small.yaml.orig", ".git/other.yml"):
        (tmp_path / good).write_text(yaml.safe_dump(GOOD))
    assert [scenario.name for scenario in load(tmp_path)] == ["small"]
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(yaml.safe_dump(GOOD))
    with pytest.raises(ScenarioError, match=f"^{said}"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("taint", "existing"), [("team.example/ready", []), ("karpenter.sh/unregistered", []), ("a/b", ["default"])]
)
def test_taints_that_a_node_may_have_can_be_expected_to_go(taint: str, existing: list[str]) -> None:
    parse({**with_value(GOOD, "steps.0.expect.taintsGone", [taint]), "existingNodePools": existing}, "small.yml")


@pytest.mark.parametrize("zone", ["us-east-1a", "us-east-1-bos-1a", "eu-x-1a"])
def test_a_zone_that_there_may_be_is_taken(zone: str) -> None:
    parse(with_value(GOOD, "steps.0.expect.zones", {zone: 0}), "small.yml")


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no scenario"):
        load(tmp_path)


def test_every_node_pool_carries_the_startup_taint_of_cilium(shipped: dict[str, Scenario]) -> None:
    """Undeclared, Karpenter would launch further nodes while the first ones wait for their agent."""
    for scenario in (found.in_environment(kind) for found in shipped.values() for kind in found.stacks):
        for spec in scenario.node_pools.values():
            assert {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"} in (
                spec["template"]["spec"]["startupTaints"]
            ), scenario.name


def test_the_walk_throughs_are_as_they_were_published(shipped: dict[str, Scenario], golden: Golden) -> None:
    published = [one for one in shipped.values() if "walk-through" in one.tags]
    golden("walk-throughs", [one.model_dump(by_alias=True, mode="json", exclude_defaults=True) for one in published])


def requirements_of(scenario: Scenario) -> dict[str, list[str]]:
    """Those of its only NodePool."""
    (spec,) = scenario.node_pools.values()
    return {item["key"]: item["values"] for item in spec["template"]["spec"]["requirements"]}


@pytest.mark.parametrize(
    ("name", "published", "capacity_type"),
    [("nap-weight", "Standard_D8_v4", "on-demand"), ("nap-node-selector", "Standard_E16as_v5", "spot")],
)
def test_the_pinned_stories_have_the_published_type(
    shipped: dict[str, Scenario], name: str, published: str, capacity_type: str
) -> None:
    free, pinned = shipped[name], shipped[f"{name}-pinned"]
    requirements = requirements_of(pinned)
    first, *others = requirements.pop("node.kubernetes.io/instance-type")
    assert (first, len(others)) == (published, 3)
    assert requirements == requirements_of(free) | {"karpenter.sh/capacity-type": [capacity_type]}
    assert pinned.workload.deployment == free.workload.deployment
    assert pinned.steps[0].expect.instance_types == [published]
    assert pinned.steps[0].expect.capacity_type == capacity_type


def test_the_name_of_a_file_stays_on_its_line(tmp_path: Path) -> None:
    (tmp_path / "a\nok: [localhost].yml").write_text("name: x")
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path)
    assert "\nok:" not in str(refused.value)
    assert str(refused.value).startswith("a\\nok: [localhost].yml: ")
