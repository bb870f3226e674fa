"""Prices of one's own, other regions, commitments."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.whatif import markdown, page
from karpstack.whatif.accuracy import RealNode
from karpstack.whatif.answer import Answer
from karpstack.whatif.phases import read
from karpstack.whatif.prices import PriceFile, PricesError, load
from tests.html_page import Page
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import STACK, judged, told

AWS = Facts.load("aws")


def answer(given: PriceFile) -> Answer:
    """Of a base of an m5.large on demand and a c5.large on spot."""
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", type_="c5.large", capacity="spot", price=0.03)
    made.pod("web-1", "one")
    return judged(read(made.lines()), given=given)


def usd(given: PriceFile) -> dict[str, float | None]:
    return {group.name: group.usd_per_hour for group in answer(given).before.by_type}


def test_without_a_file_the_timeline_says_the_prices() -> None:
    assert usd(PriceFile()) == {"m5.large": 0.096, "c5.large": 0.03}
    # No fake played these machines, so the spot price is the market's.
    assert answer(PriceFile()).before.spot_simulated is False


def test_given_prices_go_before() -> None:
    assert usd(PriceFile(on_demand={"m5.large": 0.5}, spot={"c5.large": 0.01})) == {"m5.large": 0.5, "c5.large": 0.01}


def test_spot_prices_by_zone() -> None:
    assert usd(PriceFile(spot={"c5.large": {"us-east-1a": 0.02}}))["c5.large"] == 0.02
    assert usd(PriceFile(spot={"c5.large": {"us-east-1b": 0.02}}))["c5.large"] == 0.03


def test_a_commitment_takes_off_the_on_demand_price_of_its_family_alone() -> None:
    found = answer(PriceFile(discounts={"m5": 0.25, "c5": 0.5}))
    assert {group.name: group.usd_per_hour for group in found.before.by_type} == {"m5.large": 0.072, "c5.large": 0.03}
    assert any("c5 50%, m5 25%" in text for text in found.prices)


def test_the_lower_bound_has_the_same_prices() -> None:
    whole, half = answer(PriceFile()).before, answer(PriceFile(discounts={"m5": 0.5})).before
    assert whole.lower_bound_usd_per_hour is not None
    assert half.lower_bound_usd_per_hour == pytest.approx(whole.lower_bound_usd_per_hour / 2)


def test_another_region_has_no_prices_of_this_one() -> None:
    found = answer(PriceFile(region="eu-west-3", on_demand={"m5.large": 0.112}))
    assert {group.name: group.usd_per_hour for group in found.before.by_type} == {"m5.large": 0.112, "c5.large": None}
    assert any("as if they were in eu-west-3" in text for text in found.prices)
    assert (
        answer(PriceFile(region="eu-west-3", spot={"c5.large": {"eu-west-3a": 0.04}})).before.spot_usd_per_hour == 0.04
    )


def in_paris(
    given: PriceFile,
    region: str = "eu-west-3",
    *,
    simulated: bool = True,
    real: list[RealNode] | None = None,
    sold_at: str | None = None,
) -> Answer:
    made = Made()
    made.pool()
    made.node("one", simulated=simulated)
    made.node("two", type_="c5.large", capacity="spot", price=0.03)
    made.pod("web-1", "one")
    lines = made.lines()
    lines[0] = {**lines[0], "stack": {**STACK, "outputs": {"cloud": "aws", "region": region}}}
    found = read(lines)
    return judged(replace(found, settings={**found.settings, "soldAt": sold_at}), given=given, real=real)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (PriceFile(), "dollars an hour (at prices of us-east-1): 0.126"),
        (PriceFile(region="eu-west-3", on_demand={"m5.large": 0.112}), "dollars an hour without spot: 0.112"),
        (PriceFile(on_demand={"m5.large": 0.1}, spot={"c5.large": 0.02}), "dollars an hour: 0.12 where"),
        (PriceFile(on_demand={"m5.large": 0.1}), "dollars an hour (at prices of us-east-1): 0.13 where"),
    ],
)
def test_the_comparison_with_the_real_cluster_names_the_region_of_its_prices(given: PriceFile, said: str) -> None:
    real = [RealNode("m5.large", "eu-west-3a", "on-demand", "default", 0.1)]
    real.append(RealNode("c5.large", "eu-west-3a", "spot", "default", 0.03))
    assert said in in_paris(given, real=real).accuracy.sentence


def test_dollars_of_another_region_are_called_so_beside_them() -> None:
    said = "Dollars are at the prices of us-east-1, not of eu-west-3: compare them with each other, or give yours"
    found = in_paris(PriceFile())
    assert (found.prices_note or "").startswith(said)
    assert said in markdown.render(found).partition("<details>")[0]
    assert said in Page(page.render(found)).text
    assert found.prices_region == "us-east-1"
    assert ", at prices of us-east-1" in found.sentence
    for text in (markdown.render(found), Page(page.render(found)).text):
        assert "Dollars an hour (prices of us-east-1)" in html.unescape(text)
        assert "dollars an hour before" not in text
    # Prices of one type's are none of the others'.
    assert in_paris(PriceFile(on_demand={"m5.large": 0.1})).prices_note is not None


def test_dollars_of_the_stacks_region_are_not() -> None:
    own = PriceFile(on_demand={"m5.large": 0.1}, spot={"c5.large": 0.02})
    for found in (
        in_paris(PriceFile(), "us-east-1"),
        in_paris(own),
        in_paris(PriceFile(region="us-east-1")),
        in_paris(PriceFile(), simulated=False),
    ):
        assert found.prices_note is found.prices_region is None
        assert "prices of" not in found.sentence
        assert "Dollars are at the prices of" not in markdown.render(found)


FETCHED = PriceFile(
    kind="karpstack-prices",
    version=1,
    cloud="aws",
    fetched=datetime(2026, 11, 26, tzinfo=UTC),
    region="eu-west-3",
    on_demand={"m5.large": 0.112},
    spot={"c5.large": {"eu-west-3a": 0.05, "us-east-1a": 0.04, "eu-west-3c": 0.01}},
)


def test_prices_that_were_fetched_for_the_stacks_region_are_those_of_each_zone() -> None:
    found = in_paris(FETCHED)
    # The node on spot is in us-east-1a: the zone counts, and not the cheapest.
    assert {group.name: group.usd_per_hour for group in found.before.by_type} == {"m5.large": 0.112, "c5.large": 0.04}
    assert found.prices_note is found.prices_region is None
    assert found.before.spot_simulated is False
    assert any("Prices are those of eu-west-3 of 2026-11-26" in text for text in found.prices)
    assert not any("as if they were" in text for text in found.prices)
    # The whole list would be most of the answer.
    assert found.price_file == {
        "kind": "karpstack-prices",
        "version": 1,
        "cloud": "aws",
        "fetched": "2026-11-26T00:00:00Z",
        "region": "eu-west-3",
        "sha256": FETCHED.shown()["sha256"],
    }


def test_dollars_of_a_cloud_that_sold_at_the_regions_prices_are_not_marked() -> None:
    found = in_paris(PriceFile(), sold_at="eu-west-3")
    assert found.prices_note is found.prices_region is None
    assert found.before.spot_simulated is False
    assert any("sold at the prices of eu-west-3" in text for text in found.prices)
    assert any("by its own prices" in text for text in in_paris(FETCHED).prices)
    assert any("by the same prices" in text for text in in_paris(FETCHED, sold_at="eu-west-3").prices)


def test_the_lower_bound_has_the_prices_that_were_fetched() -> None:
    dearer = FETCHED.model_copy(update={"on_demand": {"m5.large": 0.224}})
    bounds = [in_paris(given).before.lower_bound_usd_per_hour for given in (FETCHED, dearer)]
    assert bounds[0]
    assert bounds[1] == pytest.approx(2 * bounds[0])


def test_prices_that_were_fetched_for_another_region_are_said_to_be_elsewheres() -> None:
    found = in_paris(FETCHED, "eu-central-1")
    assert any("as if they were in eu-west-3" in text for text in found.prices)
    assert found.before.spot_usd_per_hour == 0.01


def test_what_to_fetch_is_said() -> None:
    assert "give yours with --prices: karpstack prices fetch aws eu-west-3." in (
        in_paris(PriceFile()).prices_note or ""
    )


def test_a_region_that_the_facts_have() -> None:
    assert usd(PriceFile(region="us-east-1"))["m5.large"] == 0.096


def test_real_spot_prices_are_not_marked_as_simulated() -> None:
    found = told("eks.eks-spot-default", 0)
    given = judged(found, given=PriceFile(spot={"m6a.xlarge": 0.07}))
    assert given.after is not None
    assert (given.after.spot_usd_per_hour, given.after.spot_simulated) == (0.07, False)
    assert not any("no market's" in text for text in given.prices)
    assert given.price_file == {"spot": {"m6a.xlarge": 0.07}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("onDemand: {m5.larg: 1}", "onDemand.m5.larg: no such instance type at aws"),
        ("spot: {m5.larg: 1}", "spot.m5.larg: no such instance type at aws"),
        ("discounts: {m55: 0.1}", "discounts.m55: no such family at aws"),
        ("discounts: {m5: 28}", "discounts.m5: 28: Input should be less than 1"),
        ("onDemand: {m5.large: 0}", "onDemand.m5.large: 0: Input should be greater than 0"),
        ("onDemand: {m5.large: yes}", "onDemand.m5.large: True: Input should be a valid number"),
        ("onDemnd: {m5.large: 1}", "onDemnd: {'m5.large': 1}: Extra inputs are not permitted"),
        ("region: mars-1", "region: 'mars-1': facts/ has no prices of it and the file has no onDemand"),
        ("currency: EUR", "currency: 'EUR': Input should be 'USD'"),
        ("version: 2", "version: 2: Input should be 1"),
        ("kind: karpstack-prices", "a file that was fetched has version, cloud, fetched, region and onDemand"),
        ("cloud: azure", "cloud: azure: the cluster is at aws, so no node would have a price; fetch its prices"),
        ("[1]", "prices.yml"),
        ("a: [", "not YAML"),
        ("spot: {m5.large: !!python/name:os.system 1}", "makes something else than data"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.yml"
    path.write_text(text)
    with pytest.raises(PricesError) as error:
        load(path, AWS)
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PricesError, match="cannot be read"):
        load(tmp_path / "prices.yml", AWS)


def test_the_example_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.yml"
    document = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "whatif.md"
    text = document.read_text().partition("<!-- prices -->")[2].partition("```yaml")[2].partition("```")[0]
    path.write_text(text)
    found = load(path, AWS)
    assert found.discounts
    assert found.spot
    assert found.on_demand


def with_overlays(region: str, *nodes: tuple[str, str, float]) -> Answer:
    """The answer for nodes with prices that NodeOverlays changed."""
    made = Made()
    made.pool()
    for number, (type_, capacity, price) in enumerate(nodes):
        made.node(f"n{number}", type_=type_, capacity=capacity, price=price, simulated=True)
    made.pod("web-1", "n0")
    lines = made.lines()
    lines[0] = {**lines[0], "stack": {**STACK, "outputs": {"cloud": "aws", "region": region}}}
    found = read(lines)
    return judged(replace(found, settings={**found.settings, "nodeOverlays": True}))


def test_prices_of_overlays_are_on_nobodys_bill() -> None:
    found = with_overlays("us-east-1", ("m5.large", "on-demand", 0.01), ("c5.large", "spot", 0.001))
    spot = AWS.price("c5.large", "spot", "us-east-1", "us-east-1a", simulated=True)
    assert {group.name: group.usd_per_hour for group in found.before.by_type} == {"m5.large": 0.096, "c5.large": spot}
    assert found.before.lower_bound_usd_per_hour
    assert any("not the bill, so dollars do not include them" in text for text in found.prices)
    assert not any("the controller reckons with" in text for text in found.prices)


def test_with_overlays_dollars_of_another_region_are_still_called_so() -> None:
    found = with_overlays("eu-west-3", ("m5.large", "on-demand", 0.01))
    assert found.before.usd_per_hour == 0.096
    assert found.prices_region == "us-east-1"
