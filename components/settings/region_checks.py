"""Whether the region and the zones of a stack exist."""

from __future__ import annotations

from collections.abc import Iterator

from karpenter.offers import Offers

from ..problems import Problem, did_you_mean, key_of, shown
from .requirement_checks import NEWER_FACTS


def region_checks(cloud: str, key: str, region: str) -> Iterator[Problem]:
    """Problems of a region, or location; `key` is where it stands."""
    offers = Offers.load(cloud)
    title = "region of AWS with EKS" if cloud == "aws" else "location of Azure"
    match offers.region(region):
        case "wrong":
            yield Problem(
                key,
                shown(region),
                f"is no {title}: nothing can be created there",
                (did_you_mean(region, offers.zones) or "write its short name; ")
                + f"for example {', '.join(_EXAMPLES[cloud])}",
            )
        case "newer":
            yield Problem(key, shown(region), f"is no {title} that the facts know", NEWER_FACTS, warning=True)


_EXAMPLES = {"aws": ("us-east-1", "eu-west-1"), "azure": ("westus2", "westeurope")}


def aws_zones(region: str, zones: int | list[str]) -> Iterator[Problem]:
    """Problems of the zones of a network on AWS."""
    offers = Offers.load("aws")
    known = offers.zones.get(region) or ()
    if isinstance(zones, int):
        if known and zones > len(known):
            yield Problem(
                key_of("network", "zones"),
                shown(zones),
                f"is more than the {len(known)} zones of {region}: the last subnet cannot be made",
                f"choose at most {len(known)}",
            )
        return
    for index, zone in enumerate(zones):
        place, verdict = key_of("network", "zones", index), offers.zone(zone, region)
        if verdict == "wrong":
            yield Problem(
                place,
                shown(zone),
                f"is no zone of the region {region}: its subnet cannot be made",
                did_you_mean(zone, known)
                + (f"choose {', '.join(known)}" if known else f"name zones like {region}a")
                + ", or give their number",
            )
        elif verdict == "newer":
            yield Problem(
                place,
                shown(zone),
                f"is a zone of {region} that not every account has, or that the facts do not know",
                f"look with `aws ec2 describe-availability-zones --region {region}`, or give their number",
                warning=True,
            )


def azure_zones(location: str, zones: list[int]) -> Iterator[Problem]:
    """Problems of the system nodes' zones on Azure."""
    if zones and Offers.load("azure").zones.get(location) == ():
        yield Problem(
            key_of("systemNodes", "zones"),
            shown(zones),
            f"asks for zones, and {location} has none: AKS refuses the cluster, after the network was created",
            "write [], or choose a location with zones",
        )
