"""What nodes cost: by the timeline, or by a file with prices of one's own, for the nodes and for the lower bound alike.

The file, YAML; all of it may be left out:

    region: eu-west-3              # reckon as if the nodes were there; by facts/, or by `onDemand` and `spot` below
    onDemand: {m5.large: 0.107}    # USD an hour
    spot:                          # USD an hour, of all zones or by zone
      m5.large: 0.041
      c6g.large: {us-east-1a: 0.0231, us-east-1b: 0.0240}
    discounts: {m5: 0.28}          # of the on-demand price: a Savings Plan or a reservation, by family

`karpstack prices fetch` writes such a file, with a head that says of which cloud and of when its prices are. With a
region, only the prices of the file and of facts/ count: those of another region say nothing of this one.

A discount is given to all nodes of its family that are not on spot: whether the commitment is large enough for them is
not known here. Families are those of the cloud's label, such as m5 on AWS and D on Azure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from karpstack.karpenter import price_file
from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.judging.replay import NodeClaim, Replay
from karpstack.scale_test.market.prices import Offering
from karpstack.scale_test.market.requirements import Allowed
from karpstack.scale_test.numbers.cost import Market
from karpstack.text import shown
from karpstack.text.yaml_file import YamlError, read

_FAMILIES = ("karpenter.k8s.aws/instance-family", "karpenter.azure.com/sku-family")
_ON_DEMAND, _SPOT = "on-demand", "spot"
_DIGITS = 12  # of a file's SHA-256
Usd = Annotated[float, Field(gt=0, le=price_file.HIGHEST, strict=True)]
Discount = Annotated[float, Field(ge=0, lt=1, strict=True)]


class PricesError(ValueError):
    """Prices that cannot be used; the text has a line for each thing to mend."""


class PriceFile(BaseModel):
    """A file of prices.

    Attributes:
        kind: The kind of a fetched file; None for a file that a person wrote.
        version: Version of the format, of a file that was fetched.
        cloud: The cloud whose prices they are.
        fetched: Time of the prices.
        currency: Of all prices.
        region: Where the nodes are thought to be; None for where they are.
        on_demand: Instance type -> USD an hour.
        spot: Instance type -> USD an hour, or zone -> USD an hour.
        discounts: Family -> what a commitment takes off the on-demand price, 0 to 1.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    kind: Literal["karpstack-prices"] | None = None
    version: Literal[1] | None = None
    cloud: Literal["aws", "azure"] | None = None
    fetched: datetime | None = None
    currency: Literal["USD"] = "USD"
    region: str | None = None
    on_demand: dict[str, Usd] = {}
    spot: dict[str, Usd | dict[str, Usd]] = {}
    discounts: dict[str, Discount] = {}

    @model_validator(mode="after")
    def _check_head(self) -> PriceFile:
        if self.kind and not (self.version and self.cloud and self.fetched and self.region and self.on_demand):
            raise ValueError("a file that was fetched has version, cloud, fetched, region and onDemand: fetch it again")
        return self

    def spot_price(self, instance_type: str, zone: str | None) -> float | None:
        """USD an hour in a zone, or without one in the cheapest; None where the file does not say."""
        return price_file.spot_price(self.spot.get(instance_type), zone)

    def shown(self) -> dict[str, Any]:
        """The content of the file for an answer; of a file with the prices of a whole region, what tells it apart."""
        content = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if not self.kind:
            return content
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        return {key: content[key] for key in content if key not in ("onDemand", "spot")} | {"sha256": digest}


def load(path: Path, facts: Facts | None) -> PriceFile:
    """Read a file.

    Args:
        path: The file.
        facts: What is known of instance types; names that it does not have are refused.

    Raises:
        PricesError: It cannot be read, or is wrong; all that is wrong is named at once.
    """
    try:
        given = PriceFile.model_validate(read(path) or {})
    except YamlError as error:
        raise PricesError(f"{path}: {error}: no price could be taken from it; mend it, or leave it out") from error
    except ValidationError as error:
        raise PricesError(
            shown.message(
                [
                    f"{path.name}: {shown.key(details['loc'])}: {shown.value(details['input'])}: {details['msg']}, so "
                    "no price is taken from the file; known are region, onDemand, spot and discounts (a discount is a "
                    "share: 0.28 takes 28 % off; all prices are USD an hour)"
                    for details in error.errors(include_url=False)[: shown.LINES]
                ]
            )
        ) from error
    if facts:
        _check(given, path.name, facts)
    return given


def _check(given: PriceFile, source: str, facts: Facts) -> None:
    if given.cloud and given.cloud != facts.cloud:
        raise PricesError(
            f"{source}: cloud: {given.cloud}: the cluster is at {facts.cloud}, so no node would have a price; fetch "
            f"its prices: karpstack prices fetch {facts.cloud} REGION"
        )
    families = {family for type_ in facts.types.values() if (family := _family(facts, type_.name))}
    problems = [
        f"{source}: {section}.{name}: no such instance type at {facts.cloud}, so the price would be nobody's; "
        "correct the name"
        for section, names in (("onDemand", given.on_demand), ("spot", given.spot))
        for name in names
        # A region may sell what the facts do not have.
        if name not in facts.types and not given.kind
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
        sold_at: The region at whose given prices the simulated cloud sold; None where it sold at its own.
        reads_overlays: Whether the controller may publish prices of NodeOverlays. The cloud does not charge these.
    """

    replay: Replay = field(default_factory=Replay)
    given: PriceFile = field(default_factory=PriceFile)
    sold_at: str | None = None
    reads_overlays: bool = False

    @property
    def prices_of(self) -> str | None:
        """The regions whose prices a rehearsed controller has where it has none of the stack's; None where it has."""
        return None if self.sold_at else super().prices_of

    def usd(self, claim: NodeClaim) -> float | None:
        """USD an hour of a NodeClaim; None where it is not known."""
        return self.of(claim.offering)

    def of(self, offering: Offering | None) -> float | None:
        """USD an hour of what was bought; None where it is not known."""
        if not offering:
            return None
        listed = self.replay.prices.get(offering)
        if self.reads_overlays and offering.capacity_type in (_ON_DEMAND, _SPOT):
            listed = self._listed(*offering)
        return self.overlaid(offering, listed)

    def _listed(self, instance_type: str, capacity_type: str, zone: str) -> float | None:
        """USD an hour by the facts; in a region that they lack, a rehearsed cloud sells at the prices of the first."""
        elsewhere = self.simulated and self.region not in self.facts.regions
        region = self.facts.regions[0] if elsewhere else self.region
        return self.facts.price(instance_type, capacity_type, region, zone, simulated=self.simulated)

    def overlaid(self, offering: Offering, usd: float | None) -> float | None:
        """The same for what has a price of its own; None where neither it nor the file says one."""
        own = None if self.given.region else usd
        if offering.capacity_type == _SPOT:
            zone = None if self.is_moved else offering.zone
            price = self.given.spot_price(offering.instance_type, zone)
            return own if price is None else price
        price = self._on_demand(offering.instance_type)
        return self._discounted(offering.instance_type, own if price is None else price)

    @property
    def is_moved(self) -> bool:
        """Whether nodes are priced as if they were in another region than they are."""
        return self.given.region not in (None, self.region)

    def is_simulated(self, offering: Offering) -> bool:
        """Whether the price of what was bought is the rehearsal's rule for spot."""
        if offering.capacity_type != _SPOT or not self.simulated or self.given.region or self.sold_at:
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
            # Zones of a choice are not known in a region that the facts do not have: the cheapest of all is a bound.
            zones = (None,) if self.is_moved or (self.given.region and not choice.zones) else choice.zones
            found = [usd for zone in zones if (usd := self.given.spot_price(name, zone)) is not None]
            price = min(found, default=None)
            return price if price is not None or self.given.region else self._cheapest(choice, capacity_type)
        own = self._on_demand(name)
        if own is None and not self.given.region:
            own = self._cheapest(choice, capacity_type)
        return self._discounted(name, own)

    def _cheapest(self, choice: Allowed, capacity_type: str) -> float | None:
        if not self.reads_overlays:
            return super().price(choice, capacity_type)
        zones = choice.zones or (() if capacity_type == _SPOT else ("",))
        found = (self._listed(choice.type.name, capacity_type, zone) for zone in zones)
        return min((usd for usd in found if usd is not None), default=None)

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


def other_region_note(market: Priced, bought: set[Offering]) -> str | None:
    """Return that prices are those of another region, and what to do; None if they are the stack's."""
    if not (where := prices_of(market, bought)):
        return None
    return (
        f"Dollars are at the prices of {where}, not of {market.region}: compare them with each other, or give yours "
        f"with --prices: {_fetch(market)}."
    )


def sentences(market: Priced, bought: set[Offering]) -> list[str]:
    """Where the prices of what was bought are from."""
    said: list[str] = []
    sources = {source for one in bought if (source := market.replay.price_sources.get(one))}
    if sources and market.reads_overlays:
        sources = {"table"}
    given = market.given
    if sources and not given.region:
        where = " and ".join(
            {"controller": "those that the controller reckons with", "table": "those of karpstack/karpenter/facts"}[
                source
            ]
            for source in sorted(sources)
        )
        said.append(f"Prices are {where}.")
    if market.reads_overlays:
        said.append(
            "NodeOverlays change the prices by which Karpenter chooses nodes, not the bill, so dollars do not include "
            "them. Enter your discounts with --prices."
        )
    if market.sold_at and not given.region:
        said.append(f"The simulated cloud sold at the prices of {market.sold_at} that it was given.")
    if any(market.is_simulated(one) for one in bought):
        said.append(
            "Spot prices are the rehearsal's own rule and no market's: dollars of spot nodes compare one rehearsal "
            "with another, and are no forecast. Real ones can be given with --prices"
            f"{f': {_fetch(market)}' if market.region else ''}."
        )
    when = f" of {given.fetched:%Y-%m-%d}" if given.fetched else ""
    if given.region == market.region:
        said.append(
            f"Prices are those of {given.region}{when}, from the file that was given; an instance type that it lacks "
            f"has no price. Karpenter chose nodes by {'the same' if market.sold_at else 'its own'} prices."
        )
    elif given.spot or given.on_demand:
        said.append(f"Prices of the file that was given{when} go before others.")
    if market.is_moved:
        said.append(f"Nodes are priced as if they were in {given.region}; Karpenter chose them by its own prices.")
    if given.discounts:
        taken = ", ".join(f"{family} {discount:.0%}" for family, discount in sorted(given.discounts.items()))
        said.append(
            f"Commitments take off the on-demand price: {taken}; whether they are large enough for all nodes of the "
            "family is not known, and Karpenter chose without them."
        )
    return said


def _fetch(market: Priced) -> str:
    """The command that gets the prices of the stack's region."""
    return f"karpstack prices fetch {market.facts.cloud} {market.region}"


def _family(facts: Facts, instance_type: str) -> str | None:
    known = facts.types.get(instance_type)
    return next((known.labels[label] for label in _FAMILIES if label in known.labels), None) if known else None
