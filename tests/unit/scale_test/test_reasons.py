"""Why nodes are what they are, in sentences: on the page, and as Markdown."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.reports import page
from karpstack.scale_test.reports.reasons import markdown, reasons
from tests.html_page import Page
from tests.unit.command_line import karpstack
from tests.unit.scale_test.example_report import Example

main = karpstack()

SPOT_ON_AWS = "Among spot offerings AWS chooses by capacity and price (price-capacity-optimized)"
NOT_RECORDED = "Why no cheaper one was launched is not recorded."


def pool(name: str = "default", verdict: str = "taken", **more: Any) -> dict[str, Any]:
    return {"name": name, "weight": 0, "verdict": verdict, "about": [], "limit": None, **more}


def price(rank: int = 1, own: float = 0.1, least: float = 0.1, **more: Any) -> dict[str, Any]:
    found = {"rank": rank, "of": 3, "unpriced": 0, "usd_per_hour": own, "least_usd_per_hour": least}
    cheaper = ["m6g.large"] if rank > 1 else []
    return {**found, "cheapest": "m6g.large", "cheaper": cheaper, "source": "facts", **more}


def shortage(source: str, t: float = 4.0, **more: Any) -> dict[str, Any]:
    names = ["m6g.large"]
    return {"source": source, "t": t, "offerings": 2, "instance_types": names, "more": 0, "message": None, **more}


def left_out(**counts: int) -> dict[str, Any]:
    return {"left_out": {"too_small": 0, "beyond_limit": 0, "unavailable": 0, "others": 0} | counts}


OFFERED: dict[str, Any] = {
    "instance_types": 3,
    "capacity_types": ["on-demand"],
    "zones": ["us-east-1a"],
    "min_values": {},
    "min_values_relaxed": False,
    "offerings": 3,
    "unavailable": 0,
    **left_out(),
}
WHY: dict[str, Any] = {
    "pods": 5,
    "pods_known_by": "nominated",
    "replaces": None,
    "pools": [pool()],
    "offered": OFFERED,
    "price": price(),
    "no_price": None,
    "availability": "recorded",
    "shortages": [],
}


DEFAULTS = {"pools": pool(), "shortages": shortage("")}


def recorded(given: dict[str, Any]) -> dict[str, Any]:
    """A row of `reasons.yaml` with all that it leaves out."""
    found: dict[str, Any] = {
        key: [DEFAULTS[key] | one for one in value] if key in DEFAULTS else value for key, value in given.items()
    }
    for key in ("offered", "price"):
        if found.get(key):
            more = found[key] | (left_out(**found[key]["left_out"]) if "left_out" in found[key] else {})
            found[key] = WHY[key] | more
    return found


@pytest.mark.parametrize(("given", "said"), yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text()))
def test_what_is_said(given: dict[str, Any], said: str) -> None:
    assert said in "\n".join(sentences(recorded(given)))


def story(*answers: dict[str, Any], kind: str = "on-demand") -> dict[str, Any]:
    claim = {"instance_type": "m5.large", "capacity_type": kind, "nodepool": "default"}
    return {
        "nodeclaims": [
            claim | {"name": f"node-{number}", "zone": f"us-east-1{'ab'[number % 2]}", "why": WHY | answer}
            for number, answer in enumerate(answers)
        ]
    }


def sentences(answer: dict[str, Any], cloud: str = "aws", kind: str = "on-demand") -> list[str]:
    (group,) = reasons(story(answer, kind=kind), cloud)
    return list(group.sentences)


def test_nodes_of_which_the_same_is_said_are_one_group() -> None:
    first, second = reasons(story({}, {"pods": 7}, {"price": price(2, 0.12)}, {"pods": 6}), "aws")
    assert first.nodes == ("node-0", "node-1", "node-3")
    assert first.what == "m5.large on-demand in us-east-1a, us-east-1b, NodePool default"
    assert first.short == "the cheapest of 3 offered"
    assert first.sentences[0].startswith("NodePools are judged by 5 to 7 pods each: those that")
    assert (second.nodes, second.short) == (("node-2",), "no. 2 by price of 3 offered")


@pytest.mark.parametrize(
    ("cloud", "kind", "said", "unexplained"),
    [
        ("aws", "spot", SPOT_ON_AWS, False),
        (
            "aws",
            "on-demand",
            "Of on-demand offerings AWS launches the cheapest that it has (lowest-price; where a NodeOverlay",
            True,
        ),
        ("azure", "spot", "On Azure the controller itself asks for the cheapest that it takes for available.", True),
    ],
)
def test_how_the_cloud_chooses_explains_a_dearer_one_only_for_spot_on_aws(
    cloud: str, kind: str, said: str, *, unexplained: bool
) -> None:
    found = sentences({"price": price(2, 0.12)}, cloud, kind)
    assert any(sentence.startswith(said) for sentence in found)
    assert (NOT_RECORDED in found) is unexplained
    assert NOT_RECORDED not in sentences({"price": price(2, 0.12), "shortages": [shortage("fault")]}, cloud, kind)
    assert NOT_RECORDED not in sentences({}, cloud, kind)


@pytest.fixture
def report() -> dict[str, Any]:
    made = Example(nodes=20).report()
    for one in made["stories"]:
        for claim in one["nodeclaims"]:
            claim["why"] = copy.deepcopy(WHY)
    return made


def test_the_page_has_them_folded_and_nothing_of_them_for_an_older_report(report: dict[str, Any]) -> None:
    html = page.render(report)
    assert html.count("<h3>Why these nodes</h3>") == len(report["stories"])
    kinds = {(claim["instance_type"], claim["capacity_type"]) for claim in report["stories"][0]["nodeclaims"]}
    section = html[html.index("<h3>Why these nodes") : html.index("<h3>Assertions</h3>")]
    assert section.count('<details class="fold">') == len(kinds)
    assert "the cheapest of 3 offered" in Page(section).text
    assert "Why these nodes" not in page.render(Example().report())


def test_what_events_say_is_text(report: dict[str, Any]) -> None:
    told = shortage("own event", message="<b>no\nroom</b> \x1b[31m[here](http://x)")
    report["stories"][0]["nodeclaims"][0]["why"]["shortages"] = [told]
    assert "<b>no" not in page.render(report)
    (line,) = [line for line in markdown(report).splitlines() if "room" in line]
    assert line.endswith(r"\<b\>no room\</b\> \\x1b\[31m\[here\](http<!-- -->://x)")


def test_the_page_of_three_hundred_nodes_takes_no_longer(report: dict[str, Any]) -> None:
    many = Example(pods=3000, nodes=300, stories=("eks-burst",)).report()
    for number, claim in enumerate(many["stories"][0]["nodeclaims"]):
        claim["why"] = WHY | {"pods": number % 13}
    began = time.process_time()
    groups = reasons(many["stories"][0], "aws")
    assert time.process_time() - began < 0.5
    assert sum(len(group.nodes) for group in groups) == 300
    assert len(groups) < 10


def test_the_command_line_prints_them(
    report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert main(["why", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Why these nodes: eks\n\n## eks-burst\n\n- **")
    assert "\n  - It is the cheapest of 3 by price: $0.100 an hour.\n" in text
    (tmp_path / "report.json").write_text(json.dumps(Example().report()))
    assert main(["why", str(tmp_path)]) == 0
    assert "The report does not tell; make it again from its timeline." in capsys.readouterr().out
    (tmp_path / "report.json").write_text("{}")
    assert main(["why", str(tmp_path)]) == 2
    assert "so it is not a report" in capsys.readouterr().err


def test_prices_of_another_region_are_called_so() -> None:
    found = story({"price": price(source="controller")})
    (own,), (other,) = reasons(found, "aws"), reasons(found, "aws", "us-east-1")
    said = "Dollars are at the prices of us-east-1, which a rehearsed controller has."
    assert said in other.sentences
    assert said not in own.sentences
    assert not [text for text in other.sentences if "in the cheapest zone of the region" in text]
