"""The days that a changed cluster lives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from karpstack.karpenter.instance_types import Facts
from karpstack.whatif import answer, markdown, page, wording
from karpstack.whatif.answer import Answer, SimulatedPeriod
from karpstack.whatif.candidates import AnswersError, candidates
from karpstack.whatif.judge import answer as judge
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import NotJudgedError, read, read_life
from tests.unit.whatif.made import ENDS, Made, at
from tests.unit.whatif.told import judged

HOUR = 3600.0
BEGINS = ENDS + 1
#: Nights alone are open: from 20 h on, for ten hours; days are closed by the first.
NIGHTS: dict[str, Any] = {
    "disruption": {
        "consolidateAfter": "30s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "0", "schedule": "0 6 * * *", "duration": "14h"}, {"nodes": "1"}],
    }
}
WORDS = "the budgets of NodePool default allow none for Drifted"


def lived(made: Made, seconds: float = 48 * HOUR, **begins: Any) -> Answer:
    made.add(BEGINS, "PHASE", phase="life-begins", **begins)
    made.add(BEGINS + seconds, "PHASE", phase="life-ends", realSeconds=300.0, skippedSeconds=170000, skips=99)
    lines = made.lines()
    told = read(lines)
    return judge(told, facts=Facts.load("aws"), limits=Limits(), lived=read_life(told, lines))


@pytest.fixture
def made() -> Made:
    """Two nodes of 0.10 USD an hour; one drifts and goes in the first night, the other one never."""
    made = Made()
    made.pool(**NIGHTS)
    made.node("old", price=0.10, disrupted=11 * HOUR, deleting=11 * HOUR + 20, gone=12 * HOUR + BEGINS)
    made.node("kept", price=0.10, conditions={"Drifted": "NodeClassDrift"})
    made.node("new", seconds=11 * HOUR, price=0.10)
    made.node("changed", price=0.10, disrupted=200, deleting=210, gone=250)  # the change, and not the days after it
    made.pod("one", "kept")
    made.pod("two", "old", leaving=11 * HOUR + 20)
    made.pod("three", "new", 11 * HOUR + 20, unschedulable=11 * HOUR + 21, scheduled=11 * HOUR + 110)
    made.event(13 * HOUR, "NodePool", "default", "DisruptionBlocked", WORDS)
    made.add(20 * HOUR, "PHASE", phase="image-published", images=["al2023@v2"])
    return made


def test_dollars_are_those_of_the_nodes_in_their_time(made: Made) -> None:
    life = of(lived(made))
    # Two nodes for 48 hours, and one of them twice for the hour and more in which the other came already.
    both = 12 * HOUR + BEGINS - 11 * HOUR
    assert life.usd == pytest.approx((2 * 48 * HOUR + both) / HOUR * 0.10, rel=1e-5)
    assert life.usd_per_day == pytest.approx((life.usd or 0) / 2, rel=1e-5)
    assert sum(day.usd for day in life.days) == pytest.approx(life.usd)
    assert sum(hour.usd for hour in life.hours) == pytest.approx(life.usd)


def test_what_goes_is_counted_by_its_hour(made: Made) -> None:
    life = of(lived(made))
    assert life.disruptions == {"Drifted": 1}
    assert [day.disruptions for day in life.days] == [{"Drifted": 1}, {}]
    (hour,) = [hour for hour in life.hours if hour.disruptions]
    assert hour.since == "2026-11-23T20:00:00+00:00"  # 9:30 and eleven hours
    assert [index for index, number in enumerate(life.disruptions_by_hour["Drifted"]) if number] == [20]


def test_hours_say_when_budgets_are_closed(made: Made) -> None:
    hours = of(lived(made)).hours
    closed = {hour.since[11:13] for hour in hours if hour.blocked_reasons}
    assert closed == {f"{hour:02d}" for hour in range(6, 20)}
    assert not {hour.since[11:13] for hour in hours[1:] if not hour.blocked_reasons} & closed


def test_pods_without_a_home_are_counted(made: Made) -> None:
    life = of(lived(made))
    assert (life.pods_without_node, life.longest_without_node, life.pods_moved) == (1, 90.0, 1)
    assert [(day.pods_without_node, day.longest_without_node) for day in life.days] == [(1, 90.0), (0, 0.0)]
    assert max(hour.pods for hour in life.hours) == 2


def test_drifted_nodes_that_stay_are_named_with_their_cause(made: Made) -> None:
    (one,) = of(lived(made)).drifted_nodes
    assert (one.node_claim, one.why, one.details) == ("kept", "disruption budget", WORDS)


def test_images_are_told(made: Made) -> None:
    assert of(lived(made)).images == [at(20 * HOUR)]


def test_the_change_is_judged_as_without_days(made: Made) -> None:
    after = lived(made)
    assert after.blast_radius
    assert [one.node_claim for one in after.blast_radius.replaced] == ["changed"]
    assert after.model_copy(update={"simulated_period": None}) == judged(read(made.lines()))


def test_costs_are_unknown_where_a_price_is(made: Made) -> None:
    made.node("dear", seconds=30 * HOUR, type_="m5.huge", price=None)
    answer = lived(made)
    life = of(answer)
    assert (life.usd, life.usd_per_day) == (None, None)
    assert "not known;" in wording.life(life, answer.before)


def test_costs_stand_beside_those_before_the_change(made: Made) -> None:
    answer = lived(made)
    life = of(answer).model_copy(update={"usd_per_day": 12.0, "curve": None})
    before = answer.before.model_copy(update={"usd_per_hour": 0.25})
    assert "$12.00 a day ($6.00 before the change); " in wording.life(life, before)
    with_curve = life.model_copy(update={"curve": {"*": {0: 0.5}}})
    assert "$12.00 a day; " in wording.life(with_curve, before)


def test_how_long_pods_wait_in_these_days_is_of_simulated_boot_times(made: Made) -> None:
    answer = lived(made)
    life = of(answer).model_copy(update={"pods_without_node": 2, "longest_without_node": 9.0})
    assert "2 pods unschedulable for a while, 9.00 s at most with simulated boot times" in wording.life(
        life, answer.before
    )


def test_a_record_that_ends_meanwhile_is_refused(made: Made) -> None:
    made.add(BEGINS, "PHASE", phase="life-begins", curve=None)
    told = read(made.lines())
    with pytest.raises(NotJudgedError, match="ends while the changed cluster lives"):
        read_life(told, made.lines())


def test_the_answer_is_of_the_schema(made: Made) -> None:
    data = lived(made, curve={"*": {"8": 1.0}}).model_dump(mode="json", by_alias=True)
    schema = json.loads(Path(answer.__file__).with_name("schema.json").read_text())
    Draft202012Validator(schema).validate(data)


def test_documents_tell_it(made: Made) -> None:
    told = lived(made)
    for text in (markdown.render(told), page.render(told)):
        assert [words for words in ("2 days", "Drifted", "ip-kept", "1 node to go") if words not in text] == []


@pytest.mark.parametrize("hours", [1, 30, 168])
def test_the_chart_draws_each_figure(made: Made, hours: int) -> None:
    made_page = page.render(lived(made, hours * HOUR))
    series = set(re.findall(r'data-series="([^"]+)"', made_page))
    gone = {"Drifted", "closed"} if hours > 1 else {"closed"}
    assert {"pods", "nodes", "USD/h", *gone} <= series


def test_what_did_not_live_has_no_section() -> None:
    made = Made()
    made.pool()
    made.node("one")
    told = read(made.lines())
    assert read_life(told, made.lines()) is None
    assert "Day by day" not in page.render(judged(told))


def of(told: Answer) -> SimulatedPeriod:
    assert told.simulated_period
    return told.simulated_period


def test_two_configurations_are_compared_over_the_same_days(made: Made) -> None:
    told = lived(made)
    life = of(told)
    dearer_days = life.model_copy(update={"usd_per_day": 9.5, "drifted_nodes": []})
    dearer = told.model_copy(update={"candidate": "dearer", "simulated_period": dearer_days})
    lines = candidates([told, dearer]).splitlines()
    names = [cell.strip() for cell in lines[0].strip("|").split("|")]
    rows = [dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines[2:4]]
    assert [(row["dollars a day"], row["drifted at their end"]) for row in rows] == [("\\$4.86", "1"), ("\\$9.50", "0")]
    shorter = told.model_copy(update={"simulated_period": None})
    with pytest.raises(AnswersError, match="differ in days that they lived"):
        candidates([told, shorter])
