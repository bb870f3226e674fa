"""Scenario files: what ships is what the stories say; what is wrong is refused with key, value and fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scale_test.scenarios.choosing import choose
from scale_test.scenarios.environments import StackError, environment_of
from scale_test.scenarios.pods import Deployment
from scale_test.scenarios.scenario import Scenario, ScenarioError, load, parse
from tests.unit.scale_test.full_scenario import SMALL as GOOD
from tests.unit.scale_test.full_scenario import with_value


def deployment(scenario: Scenario) -> Deployment:
    assert scenario.workload.deployment
    return scenario.workload.deployment


def test_a_scenario_of_another_regions_zones_is_skipped_or_refused(outputs: dict[str, Any]) -> None:
    here, there = (
        parse(with_value(GOOD, "steps.0.expect.zones", {f"{region}a": 1}), "a") for region in ("us-east-1", "eu-x-1")
    )
    assert choose([here], outputs).scenarios
    with pytest.raises(ScenarioError, match="eu-x-1a: not in the stack's region, us-east-1"):
        choose([there], outputs, ["small"])
    other = parse({**GOOD, "name": "other"}, "other.yml")
    (skipped,) = choose([there, other], outputs).skipped
    assert skipped.name == "small"


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
    with pytest.raises(ScenarioError, match=r"environments\.aks-nap\.existingNodePools: \['small'\]: small would be"):
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


def test_all_that_suit_the_stack_are_chosen(scenarios: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    choice = choose(list(scenarios.values()), outputs | {"interruptionQueue": "q"}, rehearsed=True)
    assert [scenario.name for scenario in choice.scenarios] == list(scenarios)
    assert choice.skipped == []


def test_named_ones_are_chosen_in_their_order(scenarios: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    names = ["eks-spot-consolidation", "eks-cheapest-fit"]
    assert [scenario.name for scenario in choose(list(scenarios.values()), outputs, names).scenarios] == names


@pytest.mark.parametrize(
    ("names", "output", "message"),
    [
        (["eks-cheapest-fitt"], {}, "'eks-cheapest-fitt' is not one, .* did you mean eks-cheapest-fit?"),
        (
            ["eks-cheapest-fit"],
            {"nodePools": ["default", "cheapest-fit"]},
            "nodePools.cheapest-fit: the stack has .* overwrite",
        ),
        (
            ["eks-spot-consolidation"],
            {"nodeClasses": ["default"]},
            "no node class 'bottlerocket', so no node could be launched; use of default",
        ),
    ],
)
def test_what_does_not_suit_the_stack_is_refused(
    scenarios: dict[str, Scenario],
    outputs: dict[str, Any],
    names: list[str],
    output: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ScenarioError, match=message):
        choose(list(scenarios.values()), outputs | output, names)


def test_tags_pick_those_that_suit_the_stack(shipped: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    chosen = choose(list(shipped.values()), outputs, labels=["walk-through"]).scenarios
    assert [scenario.name for scenario in chosen] == ["eks-cheapest-fit", "eks-spot-consolidation", "eks-spot-default"]
    both = choose(list(shipped.values()), outputs, labels=["walk-through", "disruption"]).scenarios
    assert {"eks-cheapest-fit", "drift"} <= {scenario.name for scenario in both}


@pytest.mark.parametrize(
    ("names", "labels", "message"),
    [
        ([], ["walk-trough"], "scenario_labels: 'walk-trough': no scenario has it, .* did you mean walk-through?"),
        (["drift"], ["fault"], "scenario_labels: fault: would have no effect beside scenarios, .* give one of both"),
    ],
)
def test_tags_that_pick_nothing_are_refused(
    shipped: dict[str, Scenario], outputs: dict[str, Any], names: list[str], labels: list[str], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        choose(list(shipped.values()), outputs, names, labels)


def short(shipped: dict[str, Scenario]) -> dict[str, Scenario]:
    """Return the scenarios that do not take days."""
    return {name: one for name, one in shipped.items() if "days" not in one.tags}


@pytest.mark.parametrize(
    ("kind", "rehearsed", "skipped"),
    [
        ("eks", True, {}),
        (
            "eks",
            False,
            {
                "api-server-restart": "the API server is the cloud's on a real cluster; only a rehearsal can",
                "capacity-shortage": "a shortage of capacity cannot be caused on a real cluster",
                "image-drift": "a new image of nodes cannot be published on a real cluster",
                "spot-fallback": "a shortage of capacity cannot be caused on a real cluster",
                "throttling": "throttling cannot be caused on a real cluster",
                "zone-short": "a shortage of capacity cannot be caused on a real cluster",
            },
        ),
    ],
)
def test_what_cannot_be_broken_is_skipped_with_the_reason_and_refused_by_name(
    shipped: dict[str, Scenario], outputs: dict[str, Any], kind: str, rehearsed: bool, skipped: dict[str, str]
) -> None:
    stack = outputs | {"interruptionQueue": "q"}
    shipped = short(shipped)
    choice = choose(list(shipped.values()), stack, rehearsed=rehearsed)
    assert dict(choice.skipped).keys() == skipped.keys()
    assert not skipped.keys() & {scenario.name for scenario in choice.scenarios}
    for name, reason in choice.skipped:
        assert skipped[name] in reason
        with pytest.raises(ScenarioError, match=f"{name}: .*choose another scenario"):
            choose(list(shipped.values()), stack, [name], rehearsed=rehearsed)


def test_what_takes_days_is_run_only_where_it_is_named(shipped: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    assert "takes 7 days" in dict(choose(list(shipped.values()), outputs).skipped)["week"]
    for names, labels in ((["week"], []), ([], ["days"])):
        chosen = choose(list(shipped.values()), outputs, names, labels).scenarios
        assert [one.name for one in chosen] == ["week"]


def test_without_a_queue_nothing_can_be_interrupted(shipped: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    skipped = dict(choose(list(short(shipped).values()), outputs, rehearsed=True).skipped)
    assert skipped.keys() == {"eks-interruption", "eks-rebalance"}
    assert "the stack has no interruption queue (karpstack:karpenter.interruptionQueue)" in skipped["eks-interruption"]


def test_where_the_cloud_runs_the_controller_it_cannot_be_killed(outputs: dict[str, Any]) -> None:
    kill = with_value(GOOD, "stacks", ["aks-nap", "aks-self-hosted"])
    kill["steps"] = [{"killController": {}, "expect": {"within": 60}}]
    scenario = parse(kill, "small.yml")
    with pytest.raises(
        ScenarioError, match=r"none can be run here.*small: kill-controller: the cloud runs the control"
    ):
        choose([scenario], azure(outputs, managed=True), rehearsed=True)
    assert choose([scenario], azure(outputs, managed=False)).scenarios == [scenario.in_environment("aks-self-hosted")]


def test_notices_of_interruption_are_aws_alone(outputs: dict[str, Any]) -> None:
    data = with_value(GOOD, "stacks", ["aks-self-hosted"])
    data["steps"] = [{"interrupt": {}, "expect": {"within": 60}}]
    with pytest.raises(ScenarioError, match=r"interruption: Karpenter hears of interruptions on AWS alone"):
        choose([parse(data, "small.yml")], azure(outputs, managed=False), ["small"], rehearsed=True)


def test_a_scenario_of_a_feature_gate_needs_it_to_be_on(outputs: dict[str, Any]) -> None:
    scenario = parse(GOOD | {"featureGates": ["staticCapacity"]}, "small.yml")
    assert choose([scenario], outputs).scenarios == [scenario.in_environment("eks")]
    others: list[list[str]] = [["nodeRepair"], []]
    for on in others:
        with pytest.raises(
            ScenarioError, match=r"none can be run.*staticCapacity: .*karpstack:karpenter.featureGates.staticCapacity"
        ):
            choose([scenario], outputs | {"featureGates": on})
    with pytest.raises(ScenarioError, match=r"small: staticCapacity: .*choose another scenario"):
        choose([scenario], {key: value for key, value in outputs.items() if key != "featureGates"}, ["small"])


def azure(outputs: dict[str, Any], *, managed: bool) -> dict[str, Any]:
    """Outputs of an AKS stack of either kind."""
    return outputs | {
        "cloud": "azure",
        "region": "westus2",
        "karpenterVersion": "managed" if managed else "1.14.0",
        "nodePools": ["batch"] if managed else ["general-purpose"],
        "nodeClasses": ["batch"] if managed else ["default"],
        "defaultNodePools": ["default", "system-surge"] if managed else [],
    }


@pytest.mark.parametrize(("managed", "kind"), [(True, "aks-nap"), (False, "aks-self-hosted")])
def test_who_runs_karpenter_decides_on_the_stories_for_aks(
    shipped: dict[str, Scenario], outputs: dict[str, Any], managed: bool, kind: str
) -> None:
    shipped = short(shipped)
    chosen, skipped = choose(list(shipped.values()), azure(outputs, managed=managed), rehearsed=True)
    chosen.sort(key=lambda scenario: list(shipped).index(scenario.name))  # those that take capacity come last
    assert chosen == [scenario.in_environment(kind) for scenario in shipped.values() if kind in scenario.stacks]
    assert skipped == []
    assert environment_of(azure(outputs, managed=managed)).kind == kind


def test_a_node_pool_that_a_story_needs_and_the_stack_has_not_is_refused(
    shipped: dict[str, Scenario], outputs: dict[str, Any]
) -> None:
    stack = azure(outputs, managed=False) | {"nodePools": ["general"]}
    with pytest.raises(ScenarioError, match=r"no NodePool 'general-purpose', .* did you mean general\?"):
        choose(list(shipped.values()), stack, ["self-hosted-inflate"])


def test_a_story_that_does_not_suit_the_stack_is_skipped_with_the_reason_unless_it_is_named(
    shipped: dict[str, Scenario], outputs: dict[str, Any]
) -> None:
    stack = azure(outputs, managed=False) | {"nodePools": ["general"]}
    chosen, skipped = choose(list(shipped.values()), stack, rehearsed=True)
    assert chosen
    assert dict(skipped)["self-hosted-inflate"].startswith("existingNodePools: the stack has no NodePool 'general-pur")
    with pytest.raises(ScenarioError, match=r"none can be run here, .*: self-hosted-inflate: existingNodePools: the"):
        choose([shipped["self-hosted-inflate"]], stack, rehearsed=True)


def test_what_aks_brings_may_be_used_and_not_overwritten(outputs: dict[str, Any]) -> None:
    stack = azure(outputs, managed=True)
    uses = with_value(GOOD, "stacks", ["aks-nap"]) | {"existingNodePools": ["default", "system-surge"]}
    assert choose([parse(uses, "small.yml")], stack).scenarios
    overwrites = with_value(GOOD, "stacks", ["aks-nap"])
    overwrites["nodePools"] = {"default": overwrites["nodePools"]["small"]}
    with pytest.raises(ScenarioError, match=r"nodePools\.default: the stack has .* overwrite"):
        choose([parse(overwrites, "small.yml")], stack)


@pytest.mark.parametrize(
    ("story", "message"),
    [
        ("nap-default", r"nap-default: existingNodePools: the stack has no NodePool 'default', so no node could be "),
        (
            "nap-weight",
            r"nap-weight: nodePools\.my-node\..*nodeClassRef\.name: the stack has no node class 'default', ",
        ),
    ],
)
def test_a_story_for_pools_that_aks_does_not_bring_is_refused(
    shipped: dict[str, Scenario], outputs: dict[str, Any], story: str, message: str
) -> None:
    stack = azure(outputs, managed=True) | {"defaultNodePools": []}
    with pytest.raises(ScenarioError, match=message) as refused:
        choose(list(shipped.values()), stack, [story])
    assert "use of batch; the stack output defaultNodePools is empty, so AKS brings none" in str(refused.value)
    # One that makes its own and uses a class of the stack's is taken.
    own = with_value(GOOD, "stacks", ["aks-nap"])
    own["nodePools"]["small"]["template"]["spec"]["nodeClassRef"]["name"] = "batch"
    assert choose([parse(own, "small.yml")], stack).scenarios


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"cloud": "azure", "karpenterVersion": "managed"}, "defaultNodePools missing.*finish `pulumi up`"),
        ({"cloud": "gcp"}, "cloud: 'gcp' has no scenarios, .* one of: eks, aks-nap, aks-self-hosted"),
        (
            {"karpenterVersion": "managed", "defaultNodePools": []},
            "cloud: 'aws' has no scenarios where it runs Karpenter itself, so",
        ),
        ({}, "nodeClasses, nodePools missing.*finish `pulumi up`"),
    ],
)
def test_a_stack_that_is_no_environment_is_refused(
    scenarios: dict[str, Scenario], outputs: dict[str, Any], output: dict[str, Any], message: str
) -> None:
    given = outputs | output if output else {"cloud": "aws", "karpenterVersion": "1.14.1"}
    with pytest.raises(StackError, match=message):
        choose(list(scenarios.values()), given)


def test_every_node_pool_carries_the_startup_taint_of_cilium(shipped: dict[str, Scenario]) -> None:
    """Undeclared, Karpenter would launch further nodes while the first ones wait for their agent."""
    for scenario in (found.in_environment(kind) for found in shipped.values() for kind in found.stacks):
        for spec in scenario.node_pools.values():
            assert {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"} in (
                spec["template"]["spec"]["startupTaints"]
            ), scenario.name


_LOOKED_AT = {
    "karpenter.azure.com/sku-name",
    "karpenter.azure.com/sku-family",
    "karpenter.azure.com/sku-cpu",
    "karpenter.azure.com/sku-memory",
    "karpenter.azure.com/sku-version",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
}


def requirements_of(scenario: Scenario) -> dict[str, list[str]]:
    """Those of its only NodePool."""
    (spec,) = scenario.node_pools.values()
    return {item["key"]: item["values"] for item in spec["template"]["spec"]["requirements"]}


def test_stories_for_aks_assert_what_people_look_at(shipped: dict[str, Scenario]) -> None:
    published = [scenario for scenario in shipped.values() if "walk-through" in scenario.tags]
    stories = [scenario for scenario in published if "eks" not in scenario.stacks]
    assert [scenario.name for scenario in stories] == [
        "nap-default",
        "nap-node-selector-pinned",
        "nap-node-selector",
        "nap-weight-pinned",
        "nap-weight",
        "self-hosted-inflate",
    ]
    for scenario in stories:
        up, down = scenario.steps
        assert (str(up.expect.nodes), down.scale, str(down.expect.nodes)) == ("1", 0, "0"), scenario.name
        assert up.expect.node_labels.keys() >= _LOOKED_AT, scenario.name
        assert up.expect.node_labels["karpenter.sh/nodepool"] == [up.expect.node_pool], scenario.name
        assert "node.cilium.io/agent-not-ready" in up.expect.taints_gone, scenario.name
        assert up.expect.events == {"Nominated": ["Pod"]}, scenario.name
        assert down.expect.events == {"DisruptionTerminating": ["Node", "NodeClaim"]}, scenario.name
        for spec in scenario.node_pools.values():
            assert spec["template"]["metadata"]["labels"] == {"kubernetes.azure.com/ebpf-dataplane": "cilium"}
            assert spec["template"]["spec"]["nodeClassRef"] == {
                "group": "karpenter.azure.com",
                "kind": "AKSNodeClass",
                "name": "default",
            }


def test_nap_weight_is_the_story(shipped: dict[str, Scenario]) -> None:
    scenario = shipped["nap-weight"]
    assert requirements_of(scenario) == {"karpenter.azure.com/sku-cpu": ["8"]}
    assert scenario.node_pools["my-node"]["weight"] == 10
    assert deployment(scenario).requests == deployment(scenario).node_selector == {}
    assert scenario.steps[0].expect.node_pool == "my-node"
    assert scenario.steps[0].expect.node_labels["karpenter.azure.com/sku-cpu"] == ["8"]


def test_nap_node_selector_is_the_story(shipped: dict[str, Scenario]) -> None:
    scenario = shipped["nap-node-selector"]
    assert requirements_of(scenario) == {"karpenter.azure.com/sku-memory": ["131072"]}
    assert deployment(scenario).node_selector == {"karpenter.azure.com/sku-memory": "131072"}
    assert scenario.steps[0].expect.node_pool == "my-node-comp"
    assert scenario.steps[0].expect.node_labels["karpenter.azure.com/sku-memory"] == ["131072"]
    assert scenario.steps[0].expect.node_labels["karpenter.azure.com/sku-cpu"] == ["16"]


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


def test_self_hosted_inflate_is_the_story(shipped: dict[str, Scenario]) -> None:
    scenario = shipped["self-hosted-inflate"]
    assert (scenario.node_pools, scenario.existing_node_pools) == ({}, ["general-purpose"])
    assert deployment(scenario).requests == {"cpu": "1"}
    assert [step.scale for step in scenario.steps] == [2, 0]
    assert scenario.steps[0].expect.capacity_type == "on-demand"
    assert scenario.steps[0].expect.node_labels["karpenter.azure.com/sku-family"] == ["D"]


def test_the_name_of_a_file_stays_on_its_line(tmp_path: Path) -> None:
    (tmp_path / "a\nok: [localhost].yml").write_text("name: x")
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path)
    assert "\nok:" not in str(refused.value)
    assert str(refused.value).startswith("a\\nok: [localhost].yml: ")
