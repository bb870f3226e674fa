"""What nodes cost: by the timeline, or by a file with prices of one's own, for the nodes and for the lower bound alike.

The file, YAML; all of it may be left out:

    region: eu-west-3              # reckon as if the nodes were there; by facts/, or by `onDemand` and `spot` below
    onDemand: {m5.large: 0.107}    # USD an hour
    spot:                          # USD an hour, of all zones or by zone
      m5.large: 0.041
      c6g.large: {us-east-1a: 0.0231, us-east-1b: 0.0240}
    discounts: {m5: 0.28}          # of the on-demand price: a Savings Plan or a reservation, by family

A discount is given to all nodes of its family that are not on spot: whether the commitment is large enough for them is
not known here. Families are those of the cloud's label, such as m5 on AWS and D on Azure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.judging.replay import NodeClaim, Replay
from karpstack.scale_test.market.prices import Offering
from karpstack.scale_test.market.requirements import Allowed
from karpstack.scale_test.numbers.cost import Market
from karpstack.text import shown
from karpstack.text.yaml_file import YamlError, read

_FAMILIES = ("karpenter.k8s.aws/instance-family", "karpenter.azure.com/sku-family")
_SPOT = "spot"
Usd = Annotated[float, Field(gt=0, le=100_000)]
Discount = Annotated[float, Field(ge=0, lt=1)]


class PricesError(ValueError):
    """Prices that cannot be used; the text has a line for each thing to mend."""


class Given(BaseModel):
    """A file of prices.

    Attributes:
        region: Where the nodes are thought to be; None for where they are.
        on_demand: Instance type -> USD an hour.
        spot: Instance type -> USD an hour, or zone -> USD an hour.
        discounts: Family -> what a commitment takes off the on-demand price, 0 to 1.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    region: str | None = None
    on_demand: dict[str, Usd] = {}
    spot: dict[str, Usd | dict[str, Usd]] = {}
    discounts: dict[str, Discount] = {}

    def spot_price(self, instance_type: str, zone: str | None) -> float | None:
        """USD an hour in a zone, or without one in the cheapest; None where the file does not say."""
        found = self.spot.get(instance_type)
        if isinstance(found, Mapping):
            return found.get(zone) if zone else min(found.values(), default=None)
        return found


def load(path: Path, facts: Facts | None) -> Given:
    """Read a file.

    Args:
        path: The file.
        facts: What is known of instance types; names that it does not have are refused.

    Raises:
        PricesError: It cannot be read, or is wrong; all that is wrong is named at once.
    """
    try:
        given = Given.model_validate(read(path) or {})
    except YamlError as error:
        raise PricesError(f"{path}: {error}: no price could be taken from it; mend it, or leave it out") from error
    except ValidationError as error:
        raise PricesError(
            shown.message(
                [
                    f"{path.name}: {shown.key(details['loc'])}: {shown.value(details['input'])}: {details['msg']}, so "
                    "no price is taken from the file; known are region, onDemand, spot and discounts (a discount is a "
                    "share: 0.28 takes 28 % off)"
                    for details in error.errors(include_url=False)[: shown.LINES]
                ]
            )
        ) from error
    if facts:
        _check(given, path.name, facts)
    return given


def _check(given: Given, source: str, facts: Facts) -> None:
    families = {family for type_ in facts.types.values() if (family := _family(facts, type_.name))}
    problems = [
        f"{source}: {section}.{name}: no such instance type at {facts.cloud}, so the price would be nobody's; "
        "correct the name"
        for section, names in (("onDemand", given.on_demand), ("spot", given.spot))
        for name in names
        if name not in facts.types
    ]
    problems += [
        f"{source}: discounts.{name}: no such family at {facts.cloud}, so the discount would be nobody's; write one "
        f"such as {sorted(families)[0]}"
        for name in given.discounts
        if name not in families
    ]
    if given.region and given.region not in facts.regions and not given.on_demand:
        problems.append(
            f"{source}: region: {given.region!r}: facts/ has no prices of it and the file has no onDemand, so that no "
            f"node would have a price; add them, or take {', '.join(facts.regions[:5])}"
        )
    if problems:
        raise PricesError(shown.message(problems))


@dataclass(frozen=True)
class Priced(Market):
    """The market of a what-if: the timeline's prices, overlaid with given ones.

    Attributes:
        replay: The whole timeline.
        given: Prices of one's own.
    """

    replay: Replay = field(default_factory=Replay)
    given: Given = field(default_factory=Given)

    def usd(self, claim: NodeClaim) -> float | None:
        """USD an hour of a NodeClaim; None where it is not known."""
        return self.of(claim.offering)

    def of(self, offering: Offering | None) -> float | None:
        """USD an hour of what was bought; None where it is not known."""
        return self.overlaid(offering, self.replay.prices.get(offering)) if offering else None

    def overlaid(self, offering: Offering, usd: float | None) -> float | None:
        """The same for what has a price of its own; None where neither it nor the file says one."""
        own = None if self.given.region else usd
        if offering.capacity_type == _SPOT:
            zone = None if self.given.region else offering.zone
            price = self.given.spot_price(offering.instance_type, zone)
            return own if price is None else price
        price = self._on_demand(offering.instance_type)
        return self._discounted(offering.instance_type, own if price is None else price)

    def is_simulated(self, offering: Offering) -> bool:
        """Whether the price of what was bought is the rehearsal's rule for spot."""
        if offering.capacity_type != _SPOT or not self.simulated or self.given.region:
            return False
        return self.given.spot_price(offering.instance_type, offering.zone) is None

    def is_elsewhere(self, offering: Offering) -> bool:
        """Whether the price of what was bought is another region's: a rehearsed controller has no other prices."""
        if self.given.region or not self.prices_of:
            return False
        if offering.capacity_type == _SPOT:
            own = self.given.spot_price(offering.instance_type, offering.zone)
        else:
            own = self._on_demand(offering.instance_type)
        return own is None and self.replay.price_sources.get(offering) == "controller"

    def price(self, choice: Allowed, capacity_type: str) -> float | None:
        """USD an hour of what may be bought, in the cheapest zone."""
        name = choice.type.name
        if capacity_type == _SPOT:
            found = [
                price
                for zone in (choice.zones if not self.given.region else ())
                if (price := self.given.spot_price(name, zone)) is not None
            ]
            price = min(found, default=self.given.spot_price(name, None) if self.given.region else None)
            return price if price is not None or self.given.region else super().price(choice, capacity_type)
        own = self._on_demand(name)
        if own is None and not self.given.region:
            own = super().price(choice, capacity_type)
        return self._discounted(name, own)

    def _on_demand(self, instance_type: str) -> float | None:
        price = self.given.on_demand.get(instance_type)
        if price is None and self.given.region:
            known = self.facts.types.get(instance_type)
            price = known.on_demand.get(self.given.region) if known else None
        return price

    def _discounted(self, instance_type: str, price: float | None) -> float | None:
        discount = self.given.discounts.get(_family(self.facts, instance_type) or "", 0.0)
        return None if price is None else round(price * (1 - discount), 6)


def prices_of(market: Priced, bought: set[Offering]) -> str | None:
    """The region whose prices dollars are at, where that is not the stack's; None where it is."""
    return market.prices_of if any(map(market.is_elsewhere, bought)) else None


def elsewhere(market: Priced, bought: set[Offering]) -> str | None:
    """That dollars are another region's than the stack's, and what to do; None where they are not."""
    if not (where := prices_of(market, bought)):
        return None
    return (
        f"Dollars are at the prices of {where}, not of {market.region}: compare them with each other, or give yours "
        "with --prices."
    )


def sentences(market: Priced, bought: set[Offering]) -> list[str]:
    """Where the prices of what was bought are from."""
    said: list[str] = []
    sources = {source for one in bought if (source := market.replay.price_sources.get(one))}
    given = market.given
    if sources and not given.region:
        where = " and ".join(
            {"controller": "those that the controller reckons with", "table": "those of karpstack/karpenter/facts"}[
                source
            ]
            for source in sorted(sources)
        )
        said.append(f"Prices are {where}.")
    if any(market.is_simulated(one) for one in bought):
        said.append(
            "Spot prices are the rehearsal's own rule and no market's: dollars of spot nodes compare one rehearsal "
            "with another, and are no forecast. Real ones can be given with --prices."
        )
    if given.spot or given.on_demand:
        said.append("Prices of the file that was given go before others.")
    if given.region:
        said.append(f"Nodes are priced as if they were in {given.region}; Karpenter chose them by its own prices.")
    if given.discounts:
        taken = ", ".join(f"{family} {discount:.0%}" for family, discount in sorted(given.discounts.items()))
        said.append(
            f"Commitments take off the on-demand price: {taken}; whether they are large enough for all nodes of the "
            "family is not known, and Karpenter chose without them."
        )
    return said


def _family(facts: Facts, instance_type: str) -> str | None:
    known = facts.types.get(instance_type)
    return next((known.labels[label] for label in _FAMILIES if label in known.labels), None) if known else None
