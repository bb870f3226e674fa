"""Two reports compared: each verdict by its rule, and what cannot be compared is said."""

from __future__ import annotations

import copy
import itertools
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.reports import comparison, comparison_page
from karpstack.scale_test.reports.comparison import Comparison, Rules, compare, refused, what_got_worse
from tests.unit.scale_test.example_report import Example

DATA = Path(__file__).resolve().parents[3] / "playbooks" / "vars" / "comparison.yml"
BEFORE = Example(pods=60, nodes=8)
BURST, INTERRUPTION = "eks-burst", "eks-interruption"


@pytest.fixture(scope="module")
def rules() -> Rules:
    """Those that ship."""
    return comparison.parse_rules(yaml.safe_load(DATA.read_text())["comparison_rules"])


@pytest.fixture
def before() -> dict[str, Any]:
    return BEFORE.report()


def values(found: Comparison, verdict: str) -> set[str]:
    return {one.name for story in found.stories for one in story.differences if one.verdict == verdict}


def test_the_same_report_is_the_same(before: dict[str, Any], rules: Rules) -> None:
    found = compare(before, copy.deepcopy(before), rules)
    assert (found.verdict, found.settings, found.not_compared, what_got_worse(found)) == ("the same", (), (), [])
    assert found.sentence.startswith("All ")
    assert values(found, "the same")


def test_a_story_that_fails_now_counts_whatever_it_did_before(before: dict[str, Any], rules: Rules) -> None:
    failed, more = copy.deepcopy(before), copy.deepcopy(before)
    failed["stories"][0]["passed"] = False
    more["stories"].append(failed["stories"][0] | {"name": "another"})
    name = failed["stories"][0]["name"]
    for pair, said in (
        ((before, failed), f"{name}: passed before and fails now"),
        ((failed, failed), f"{name}: fails now"),
        ((before, more), "another: fails now"),
    ):
        found = compare(*copy.deepcopy(pair), rules)
        assert said in what_got_worse(found)
        assert refused(found, "any-worse")


def test_runs_of_the_same_thing_are_called_the_same(rules: Rules) -> None:
    """Of the walk-through on an idle machine, each from nothing: `make bench NAME=spread` has written them."""
    runs = json.loads((Path(__file__).parent / "spread.json").read_text())
    assert len(runs) >= 5
    assert {compare(*pair, rules).verdict for pair in itertools.permutations(runs, 2)} == {"the same"}


def test_slower_is_worse_and_faster_is_better(before: dict[str, Any], rules: Rules) -> None:
    slow = BEFORE.but(slower=1.6).report()
    for report in (before, slow):  # what follows from time otherwise is another test's
        for story in report["stories"]:
            story["cost"] = before["stories"][0]["cost"]
    found = compare(before, slow, rules)
    assert found.verdict == "worse"
    assert {"pod pending to running, p50", "all pods after the request of step 1"} <= values(found, "worse")
    assert not values(found, "better")
    assert any(
        "interruption to replacement running 7.31 s before, 11.7 s after" in one for one in what_got_worse(found)
    )
    turned = compare(slow, before, rules)
    assert turned.verdict == "better"
    assert values(turned, "better") == values(found, "worse")


def test_dearer_is_worse_and_slower_but_cheaper_is_mixed(before: dict[str, Any], rules: Rules) -> None:
    found = compare(before, BEFORE.but(dearer=1.2).report(), rules)
    assert found.verdict == "worse"
    assert values(found, "worse") == {"cost", "cost against the bound"}
    assert compare(before, BEFORE.but(slower=1.6, dearer=0.3).report(), rules).verdict == "better and worse"


def test_a_pipeline_can_fail_on_the_verdict_or_on_any_value(before: dict[str, Any], rules: Rules) -> None:
    found = compare(before, BEFORE.but(slower=1.6, dearer=0.3).report(), rules)
    assert what_got_worse(found)
    assert (comparison.refused(found, "worse"), comparison.refused(found, "any-worse")) == (False, True)
    worse = compare(before, BEFORE.but(dearer=1.2).report(), rules)
    assert comparison.refused(worse, "worse")
    assert comparison.refused(worse, "any-worse")
    same = compare(before, before, rules)
    assert not comparison.refused(same, "any-worse")


def test_better_packing_is_better(before: dict[str, Any], rules: Rules) -> None:
    after = copy.deepcopy(before)
    after["stories"][0]["packing"]["cpu"] = 0.95
    found = compare(before, after, rules)
    assert (found.verdict, values(found, "better")) == ("better", {"packing of CPU"})


def test_what_is_within_a_margin_is_the_same(before: dict[str, Any], rules: Rules) -> None:
    """The absolute margin counts as well as the relative one."""
    after = copy.deepcopy(before)
    after["stories"][0]["cost"]["usd"] *= 1.04
    after["stories"][0]["durations"][0]["p50"] += 0.9  # by far more than 15 %
    assert compare(before, after, rules).verdict == "the same"
    strict = rules.model_copy(update={"time": comparison.Margin(relative=0.15, absolute=0)})
    assert values(compare(before, after, strict), "worse") == {"pod pending to nominated, p50"}


def test_a_story_that_fails_now_outweighs_all(before: dict[str, Any], rules: Rules) -> None:
    after = BEFORE.but(slower=0.5, dearer=0.5, failing=(BURST,)).report()
    found = compare(before, after, rules)
    assert (found.verdict, found.sentence) == ("worse", "Passed before and fails now: eks-burst.")
    assert what_got_worse(found)[0] == "eks-burst: passed before and fails now"
    assert "eks-burst: it failed after, so only that is compared" in found.not_compared
    back = compare(after, before, rules)
    assert back.sentence.startswith("Failed before and passes now: eks-burst.")
    assert back.stories[0].verdict == "better"


def test_a_story_that_failed_twice_has_no_verdict(rules: Rules) -> None:
    failing = BEFORE.but(failing=(BURST, INTERRUPTION)).report()
    found = compare(failing, failing, rules)
    assert all(story.verdict == "not comparable" for story in found.stories)
    assert "eks-burst: it failed before and after, so only that is compared" in found.not_compared


def test_different_stories_are_said(before: dict[str, Any], rules: Rules) -> None:
    found = compare(before, BEFORE.but(stories=(BURST, "eks-drift")).report(), rules)
    assert [story.name for story in found.stories] == [BURST]
    assert "eks-interruption: only in the report before" in found.not_compared
    assert "eks-drift: only in the report after" in found.not_compared
    assert all(one.verdict == "not judged" for one in found.controller)
    assert "eks-interruption: was not run now" in what_got_worse(found)
    assert (refused(found, "any-worse"), refused(found, "worse")) == (True, False)
    nothing = compare(before, BEFORE.but(stories=("eks-drift",)).report(), rules)
    assert (nothing.verdict, nothing.sentence) == ("not comparable", "The reports have no story in common.")


def test_simulated_times_are_not_judged_against_real_ones(before: dict[str, Any], rules: Rules) -> None:
    found = compare(before, BEFORE.but(simulated=False).report(), rules)
    assert found.verdict == "not comparable"
    assert found.not_compared == ("times and what follows from them: only the report after is from a real cluster",)
    assert {one.reason for story in found.stories for one in story.differences if one.phase} == {
        "one is simulated, the other is not"
    }
    assert ("environment.simulated", "true", "false") in found.settings


def test_another_workload_or_other_steps_are_not_judged(before: dict[str, Any], rules: Rules) -> None:
    after = copy.deepcopy(before)
    after["stories"][0]["configuration"]["workload"]["deployment"]["requests"]["cpu"] = "2"
    after["stories"][1]["steps"][0]["title"] = "step 1 (scale to 301)"
    found = compare(before, after, rules)
    assert found.verdict == "not comparable"
    assert "eks-burst: another workload, so values are shown and not judged" in found.not_compared
    assert any(
        "eks-interruption: other steps (step 1 (scale to 300), step 2 (scale to 0);" in text
        for text in found.not_compared
    )


def test_few_values_and_unknown_prices_are_not_judged(before: dict[str, Any], rules: Rules) -> None:
    few = BEFORE.but(nodes=3).report()
    found = {one.name: one for one in compare(few, few, rules).stories[0].differences}
    assert found["NodeClaim created to launched, p50"].reason == "fewer than 5 values"
    assert found["pod pending to running, p50"].verdict == "the same"
    assert found["pod pending to running, p99"].reason == "shown only"
    few["stories"][0]["cost"]["unknown"] = ["m5.large"]
    found = {one.name: one for one in compare(before, few, rules).stories[0].differences}
    assert (found["cost"].verdict, found["cost"].reason) == ("not judged", "a price is not known")


def test_settings_that_differ_are_told(before: dict[str, Any], rules: Rules) -> None:
    after = copy.deepcopy(before)
    after["versions"]["karpenter"] = "1.15.0"
    after["stories"][0]["configuration"]["nodePools"][BURST]["disruption"]["consolidateAfter"] = "30s"
    del after["stories"][0]["configuration"]["nodePools"][BURST]["disruption"]["consolidationPolicy"]
    found = compare(before, after, rules)
    assert found.settings == (("versions.karpenter", "1.14.1", "1.15.0"),)
    assert found.stories[0].settings == (
        (f"nodePools.{BURST}.disruption.consolidationPolicy", "WhenEmptyOrUnderutilized", "not set"),
        (f"nodePools.{BURST}.disruption.consolidateAfter", "5s", "30s"),
    )
    assert found.verdict == "the same", "another setting is what one compares for"


def test_a_controller_that_needs_more_memory_is_worse(before: dict[str, Any], rules: Rules) -> None:
    after = copy.deepcopy(before)
    after["controller"]["peak_memory_bytes"] *= 2
    found = compare(before, after, rules)
    assert found.verdict == "worse"
    assert what_got_worse(found) == ["Karpenter's controller: memory at most 135 MiB before, 269 MiB after"]
    after["controller"] = None
    assert compare(before, after, rules).verdict == "the same"


def test_kinds_of_nodes_are_counted(before: dict[str, Any], rules: Rules) -> None:
    after = copy.deepcopy(before)
    after["stories"][0]["nodeclaims"][0]["instance_type"] = "r7g.large"
    kinds = {kind: (old, new) for kind, old, new in compare(before, after, rules).stories[0].instance_types}
    assert kinds["r7g.large spot"] == (0, 1)
    assert sum(new for _, new in kinds.values()) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tmie": {}}, r"comparison_rules.tmie = {}: Extra inputs are not permitted; so nothing was compared"),
        ({"least_values": 0}, r"comparison_rules.least_values = 0: Input should be greater than or equal to 1"),
        ({"time": {"relative": -1, "absolute": 0}}, r"comparison_rules.time.relative = -1"),
        ({"percentiles": [95]}, r"comparison_rules.percentiles.0 = 95"),
    ],
)
def test_wrong_rules_are_refused(rules: Rules, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        comparison.parse_rules(rules.model_dump(mode="json") | change)


def test_another_schema_is_refused(before: dict[str, Any], rules: Rules) -> None:
    with pytest.raises(ValueError, match="before: the report has schema 1, only schema 2 can be compared"):
        compare(before | {"schema": 1}, before, rules)


def test_the_page_shows_it_all(before: dict[str, Any], rules: Rules) -> None:
    after = BEFORE.but(slower=1.6, failing=(INTERRUPTION,)).report()
    after["versions"]["karpenter"] = "<script>"
    html = comparison_page.render(compare(before, after, rules), before, after, rules)
    text = unescape(html)
    assert ">Worse</h1>" in html
    for part in (
        "Passed before and fails now: eks-interruption.",
        "eks-interruption: it failed after, so only that is compared",
        "passed → failed",
        "versions.karpenter",
        "least_values: 5",
    ):
        assert part in text, part
    assert "<script" not in html
    # Reasons are long: a column that cannot wrap would be cut on a page of 1200 pixels.
    assert '<td><span class="muted">not judged: ' in html
    assert html.count('data-series="before"') == html.count('data-series="after"') == 18
    assert "NodeClaim launched to registered" in html
    assert not re.search(r">\s*(None|True|False)\b", html)
    json.dumps(what_got_worse(compare(before, after, rules)))
