"""The report's page: what it says, what it draws, and that it needs nothing but itself."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import charts, page, units
from karpstack.scale_test.reports.drawing import Drawing, quantiles, thin
from karpstack.scale_test.reports.report import make
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from karpstack.text.shown import visible
from tests.html_page import Page as HtmlPage
from tests.unit.scale_test.example_report import Example
from tests.unit.scale_test.example_report import timeline as made_up

SCRIPT = "<script>alert('$x_1$')</script>"


class Page(HtmlPage):
    """With drawings in it, whose elements may end where they begin."""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def drawings(html: str) -> Iterator[tuple[str, str, ElementTree.Element]]:
    """Title, description and root of each drawing."""
    for found in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        root = ElementTree.fromstring(found.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))  # noqa: S314
        yield root.findtext("title") or "", root.findtext("desc") or "", root


def series(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {name: element for element in root.iter() if (name := element.get("data-series"))}


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """A report; do not change it."""
    return Example().report()


@pytest.fixture(scope="module")
def html(example: dict[str, Any]) -> str:
    return page.render(example, made_up())


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No drawing is written, for those who look for the words beside them."""
    monkeypatch.setattr(Drawing, "svg", lambda *_: Markup())


@pytest.fixture
def report(example: dict[str, Any]) -> dict[str, Any]:
    """A report to change."""
    return copy.deepcopy(example)


def test_verdicts_come_first(html: str, example: dict[str, Any]) -> None:
    text = Page(html[html.index("<header") : html.index("</body>")]).text
    assert text.startswith("Scale test of eks Passed All 2 stories passed, with 10 assertions.")
    first_chart = html.index("<svg")
    for story in example["stories"]:
        assert html.index(story["description"]) < first_chart


def test_a_failure_says_expected_seen_and_where_to_look() -> None:
    html = page.render(Example(failing=("eks-interruption",)).report(), made_up())
    text = Page(html).text
    assert "Failed 1 of 2 stories failed: eks-interruption." in text
    before_charts = html[html.index("<main>") : html.index('<section class="story"')]
    assert "capacity type: expected spot; seen on-demand (2 of them)" in before_charts
    assert "Look at timeline.jsonl, evidence/eks-interruption/" in text
    assert html.count('<tr class="failed">') == 1


def test_the_page_needs_nothing_but_itself(html: str) -> None:
    found = Page(html)
    beside = {"timeline.jsonl", "report.json", "junit.xml"}
    for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
        for value in found.values(name):
            assert value.startswith("#") or value == "data:," or value in beside, value
    assert not {"script", "iframe", "img", "object", "embed", "base"} & {tag for tag, _ in found.elements}
    assert not re.search(r"@import|url\((?!#)", html)
    assert not re.search(r"(https?:)?//\w", html.replace("http://www.w3.org/", "")), "an address of elsewhere"
    (policy,) = [value for value in found.values("content") if "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


STEERING = "\x00\x1b[31m\u202e\x9b\u2066\r"


def test_everything_is_escaped(report: dict[str, Any]) -> None:
    """Whatever a report says is text: in tables, in drawings, in names and in lines of the timeline."""

    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: poisoned(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [poisoned(inner, key) for inner in value]
        fixed = {"started", "ended", "created", "launched", "registered", "initialized", "gone", "phase", "at"}
        return value + SCRIPT + STEERING if isinstance(value, str) and key not in fixed else value

    report["gaps"] = [{"kind": "Pod", "at": "now", "reason": "too old"}]
    html = page.render(poisoned(report), dict.fromkeys(range(1, 200), f"not JSON {SCRIPT}{STEERING}"))
    assert visible(html) == html
    assert html.count(r"\x1b[31m\u202e") > 50
    assert SCRIPT not in html
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 50
    drawn = [element.text or "" for _, _, root in drawings(html.replace("\x00", "")) for element in root.iter("text")]
    assert [text for text in drawn if "<script>alert('$x_1$')" in text], "as it is, and no formula"


def test_identifiers_are_unique_and_links_lead_somewhere(html: str) -> None:
    found = Page(html)
    identifiers = found.values("id")
    assert len(identifiers) == len(set(identifiers))
    wanted = {value[1:] for value in (*found.values("href"), *found.values("xlink:href")) if value.startswith("#")}
    wanted |= set(re.findall(r"url\(#([^)]+)\)", html))
    wanted |= {name for value in found.values("aria-labelledby") for name in value.split()}
    assert wanted <= set(identifiers)


def test_every_chart_is_named_described_and_has_its_data(html: str, example: dict[str, Any]) -> None:
    expected = {
        "Pods over time, in pods": {"wanted", "running", "pending", "area running"},
        "Nodes over time, in nodes": {"present", "ready"},
        "Cost per hour over time, in USD/h": {"cost", "lower bound"},
        "Step 1 (scale to 300): phases": {phase["phase"] for phase in example["stories"][0]["phases"][:8]},
        "Pods, share through": {
            "pending to running",
            "pending to nominated",
            "nominated to scheduled",
            "scheduled to running",
        },
        "Nodes coming, share through": {"created to launched", "launched to registered", "registered to initialized"},
        "Nodes going, share through": {"disrupted to drained", "drained to gone"},
        "nodes over time, in seconds": {
            "created to launched",
            "launched to initialized",
            "initialized",
            "disrupted to gone",
        },
    }
    found = list(drawings(html))
    for story in example["stories"]:
        mine = [one for one in found if one[0].startswith(story["name"])]
        for title, names in expected.items():
            matching = [one for one in mine if title in one[0]]
            assert matching, title
            for _, description, root in matching:
                assert description
                assert names <= set(series(root)), title
    for title in ("Memory of the controller over time, in MiB", "Processors used by the controller over time"):
        assert any(one[0].startswith(title) for one in found), title
    assert "at most 300 running, 300 pending" in {one[0]: one[1] for one in found}["eks-burst: Pods over time, in pods"]


def test_the_gantt_chart_has_a_bar_for_each_node_and_marks_faults(html: str, example: dict[str, Any]) -> None:
    charts_of = [one for one in drawings(html) if one[0].startswith("eks-interruption: nodes over time")]
    assert len(charts_of) == 2, "one for narrow pages, one for wide ones"
    for _, _, root in charts_of:
        found = series(root)
        nodes = len(example["stories"][1]["nodeclaims"])
        for stretch in ("created to launched", "launched to initialized", "initialized", "disrupted to gone"):
            assert len([one for one in found[stretch].iter() if one.tag in ("path", "use")]) >= nodes
        assert {"fault interruption", "fault kill-controller", "interruption"} <= set(found)
        text = "".join(root.itertext())
        assert "c6g.2xlarge spot us-east-1a" in text
        assert "Interrupted" in text


def test_many_nodes_are_grouped_by_their_make() -> None:
    chart = charts.gantt(Example(pods=400, nodes=120, stories=("eks-burst",)).report()["stories"][0])
    assert chart is not None
    ((_, description, root),) = drawings(str(chart.svg))
    assert description.startswith("120 nodes: ")
    assert re.search(r"c6g\.2xlarge spot {2}× {2}\d+", "".join(root.itertext()))  # noqa: RUF001


def test_what_is_simulated_is_hatched_and_said(html: str) -> None:
    shown = Page(html).text
    assert "A rehearsal: nodes and their boot times were played" in shown
    assert "launched to initialized, simulated" in shown
    for title, _, root in drawings(html):
        if "nodes over time, in seconds" in title:
            hatched = [
                one for one in series(root)["launched to initialized"].iter() if "url(#" in (one.get("style") or "")
            ]
            assert hatched, title
            assert not [one for one in series(root)["initialized"].iter() if "fill: url(#" in (one.get("style") or "")]
    real = page.render(Example(simulated=False).report())
    assert "simulated no" in Page(real).text
    assert "<pattern" not in real
    assert 'class="simulated"' not in real


def test_colours_are_the_stylesheets(html: str) -> None:
    for found in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        assert not re.search(r"(fill|stroke): ?#|fill=\"#", found)
    style = html[html.index("<style>") : html.index("</style>")]
    used = set(re.findall(r"var\((--[\w-]+)\)", html)) - {"--c", "--w"}
    for scheme in (style[: style.index("@media")], style[style.index("prefers-color-scheme") :]):
        assert used <= set(re.findall(r"(--[\w-]+):", scheme))


def test_a_line_of_the_timeline_is_there_once_a_story_and_assertions_lead_to_it(
    html: str, example: dict[str, Any], tmp_path: Path
) -> None:
    assert page.wanted_lines(example) == {3, 9, 27, 141}
    found = Page(html)
    for story in example["stories"]:
        for number in (3, 9, 27, 141):
            assert found.values("id").count(f"{story['name']}.{number}") == 1
            assert found.values("href").count(f"#{story['name']}.{number}") == len(story["assertions"])
    assert "03:54:27.120 MODIFIED NodeClaim burst-x27" in html
    without = page.render(example)
    assert '<a href="timeline.jsonl">27</a>' in without
    assert "Lines of the timeline" not in without
    path = tmp_path / "timeline.jsonl"
    path.write_text("one\ntwo\nthree\n")
    assert page.read_lines(path, {1, 3, 99}) == {1: "one", 3: "three"}
    assert page.read_lines(tmp_path / "none", {1}) == {}


@pytest.mark.usefixtures("undrawn")
def test_of_many_lines_the_first_and_the_last_are_shown_and_of_a_failure_all(report: dict[str, Any]) -> None:
    story = report["stories"][0]
    passed, failed = story["assertions"][:2]
    passed["lines"], failed["lines"] = list(range(10, 30)), list(range(50, 70))
    failed["passed"] = False
    assert page.wanted_lines(report) == {3, 9, 27, 141, 10, 11, 12, 28, 29, *range(50, 70)}
    text = Page(page.render(report, dict.fromkeys(range(1, 200), "{}"))).text
    assert "10 , 11 , 12 … 14 more … 27 , 28 , 29" in text
    assert " , ".join(map(str, range(50, 70))) in text


def test_the_page_of_two_recorded_stories_stays_small(
    scenarios: dict[str, Scenario], timeline: list[Line], outputs: dict[str, Any]
) -> None:
    report = make(list(scenarios.values()), timeline, Stack("eks", outputs))
    lines = {number: json.dumps(line) for number, line in enumerate(timeline, 1)}
    assert sum(len(found["lines"]) for story in report["stories"] for found in story["assertions"]) > 500
    html = page.render(report, lines)
    assert "MODIFIED NodeClaim" in html
    assert len(html) < 270_000


def test_a_story_that_did_not_run_has_a_place_and_no_chart(report: dict[str, Any]) -> None:
    report["stories"][0] |= {
        "passed": False,
        "started": None,
        "ended": None,
        "seconds": 0,
        "nodeclaims": [],
        "phases": [],
        "durations": [],
        "reached": [],
        "steps": [],
        "series": {"pods": [], "nodes": [], "cost": []},
        "cost": {"usd": None, "bound_usd": None, "ratio": None, "peak_usd_per_hour": None, "unknown": []},
        "packing": {"cpu": None, "memory": None},
        "pending_pod_seconds": None,
        "consolidation": None,
        "interruptions": [],
        "faults": [],
        "controller_restarts": None,
    }
    report["controller"] = None
    html = page.render(report | {"passed": False})
    assert not [title for title, _, _ in drawings(html) if title.startswith("eks-burst") or "controller" in title]
    assert 'id="eks-burst"' in html


@pytest.mark.usefixtures("undrawn")
def test_a_crash_of_the_controller_is_told_and_one_on_purpose_is_not(report: dict[str, Any], html: str) -> None:
    assert "ended unasked" not in Page(html).text
    report["stories"][0]["controller_restarts"] += 2
    assert "Karpenter ended unasked in eks-burst and was started again 2 times." in Page(page.render(report)).text


@pytest.mark.usefixtures("undrawn")
def test_nodes_that_never_came_and_unknown_prices_are_told(report: dict[str, Any]) -> None:
    story = report["stories"][0]
    unborn = story["nodeclaims"][0]
    unborn |= {"instance_type": None, "price_per_hour": None, "capacity_type": None, "zone": None, "vcpus": None}
    unborn["memory_bytes"] = None
    unborn["t"] = dict.fromkeys(unborn["t"]) | {"created": 3.0}
    unborn["disruption"] = None
    story["nodeclaims"][1]["price_per_hour"] = None
    story["cost"] |= {"ratio": None, "unknown": ["c6g.2xlarge"]}
    text = Page(page.render(report)).text
    assert "not launched" in text
    assert "without c6g.2xlarge: price not known" in text


def test_without_a_bound_the_cost_is_drawn_and_the_reason_said(report: dict[str, Any]) -> None:
    story = report["stories"][0]
    story["series"]["cost"] = [[t, usd, None] for t, usd, _ in story["series"]["cost"]]
    story["cost"] |= {"ratio": None, "bound_usd": None, "no_bound": "no facts about instance types"}
    html = page.render(report)
    ((_, _, root),) = [one for one in drawings(html) if one[0].startswith("eks-burst: Cost per hour")]
    assert "cost" in series(root)
    assert "lower bound" not in series(root)
    assert "no facts about instance types" in html


@pytest.mark.parametrize("judged", [False, True])
def test_figures_without_a_limit_say_that_they_are_not_judged(report: dict[str, Any], judged: bool) -> None:
    """A story that waits for empty nodes costs many times the bound, as it must."""
    for story in report["stories"]:
        kept = [one for one in story["assertions"] if not one["name"].startswith("threshold ")]
        limits = [dict(kept[0], name=f"threshold {name}", step=None) for name in ("cost_ratio", "packing.cpu")]
        story["assertions"] = [*kept, *(limits if judged else ())]
    said = Page(page.render(report)).text.count("not judged: nodes that wait to go count too")
    assert said == (0 if judged else 2 * len(report["stories"]))


def test_assertions_stand_under_their_steps(html: str) -> None:
    text = Page(html).text
    assert re.search(r"Step 1 \(scale to 300\) ✓ passed time at rest within 120 s", text)
    assert re.search(r"The story ✓ passed clean-up", text)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.usefixtures("undrawn")
def test_each_dollar_says_of_which_region_it_is_where_that_is_not_the_stacks(report: dict[str, Any]) -> None:
    assert "price of" not in Page(page.render(report)).text
    report["environment"] |= {"region": "eu-west-1", "prices_of": "us-east-1"}
    dollars = re.findall(r"\$[0-9][0-9.,]*(.{0,20})", Page(page.render(report)).text)
    assert len(dollars) > 3
    assert {rest.strip()[:18] for rest in dollars} == {"price of us-east-1"}


def test_images_that_are_assumed_are_said_in_the_first_lines(report: dict[str, Any]) -> None:
    replay, node_class = Replay(), {"metadata": {"name": "a", "uid": "u"}, "images": ["bottlerocket@v9.0.0"]}
    line = {"received": "2026-11-22T00:00:00+00:00"}
    begun = {"type": "START", "kubernetes": "v1.36.2"} | line
    replay.apply([begun, {"type": "ADDED", "kind": "EC2NodeClass", "object": node_class} | line])
    said = "Assumed to exist, because the facts do not know it: the image bottlerocket@v9.0.0."
    assert replay.assumed_images == said
    report["environment"]["assumed_images"] = said
    assert said in Page(page.render(report)).text
    assert said in table(report, 400)


def test_gaps_of_the_record_are_told(report: dict[str, Any]) -> None:
    report["gaps"] = [{"kind": "Pod", "at": "2026-11-21T03:55:00+00:00", "reason": "too old resource version"}]
    text = Page(page.render(report)).text
    assert "The record has 1 gap; what happened in it may be missing here." in text
    assert "too old resource version" in text


def test_the_same_report_gives_the_same_page(report: dict[str, Any], html: str) -> None:
    assert page.render(report, made_up()) == html


def test_another_schema_is_refused(report: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"schema 1, the page is drawn from schema 2: run the scale test again"):
        page.render(report | {"schema": 1})


def test_five_thousand_pods_are_drawn_in_under_ten_seconds() -> None:
    report = Example(pods=5000, nodes=400).report()
    started = time.process_time()
    html = page.render(report)
    assert time.process_time() - started < 5, "in this process; the rest is for a slower machine"
    assert len(html) < 3_000_000


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [
        (499, ["0:00", "2:00", "4:00", "6:00", "8:00"]),
        (151, ["0:00", "1:00", "2:00"]),
        (7 * 3600, ["0:00", "120:00", "240:00", "360:00"]),
    ],
)
def test_a_long_time_axis_has_ticks_as_a_clock_has(report: dict[str, Any], seconds: float, ticks: list[str]) -> None:
    story = report["stories"][0]
    story["seconds"] = seconds
    story["series"]["pods"] = [row for row in story["series"]["pods"] if row[0] < seconds]
    ((_, _, root),) = drawings(str(next(charts.over_time(story)).svg))
    assert [text for element in root.iter("text") if re.fullmatch(r"\d+:\d\d", text := element.text or "")] == ticks


def test_thinning_keeps_ends_and_extremes() -> None:
    rows = [[float(t), 0.0 if t != 777 else 9.0, float(t)] for t in range(5000)]
    kept = thin(rows)
    assert len(kept) <= 300
    assert (kept[0], kept[-1]) == (rows[0], rows[-1])
    assert rows[777] in kept
    points = quantiles([float(value) for value in range(10_000)])
    assert len(points) <= 300
    assert (points[0], points[-1]) == ((0.0, 0.0), (9999.0, 1.0))
    assert quantiles([3.0, 1.0]) == [(1.0, 0.0), (1.0, 0.5), (3.0, 1.0)]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (units.duration(0.424), "0.42 s"),
        (units.duration(34.21), "34.2 s"),
        (units.duration(112), "112.0 s"),
        (units.duration(125.4), "2 min 05 s"),
        (units.duration(7500), "2 h 05 min"),
        (units.duration(None), units.NONE),
        (units.dollars(0.0231), "$0.0231"),
        (units.dollars(0.096), "$0.0960"),
        (units.dollars(1.9), "$1.90"),
        (units.dollars(1204), "$1,204"),
        (units.dollars(0), "$0.00"),
        (units.dollars(0.000042), "$0.000042"),
        (units.share(0.871), "87 %"),
        (units.memory(148 * 2**20), "148 MiB"),
        (units.memory(16 * 2**30), "16 GiB"),
        (units.moment("2026-11-21T03:53:59+00:00"), "21 November 2026, 03:53 UTC"),
        (units.clock(67), "1:07"),
        (units.brief("5 there, 4 ready"), "5 there, 4 ready"),
        (units.brief(", ".join(["m5.large"] * 20 + ["r5.large"])), "m5.large × 20, r5.large"),  # noqa: RUF001
        (units.brief(", ".join("abcdefghijkl")), "a, b, c, d, e, f, … 4 more …, k, l"),
        (units.brief(", ".join("abcdefghi")), "a, b, c, d, e, f, g, h, i"),
    ],
)
def test_numbers_have_their_unit(written: str, text: str) -> None:
    assert written == text


def test_nothing_is_written_as_python_writes_it(html: str) -> None:
    assert not re.search(r"\b(None|True|False|nan|inf)\b", Page(html).text)
