"""Whether the region and the zones of a stack exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.offers import Offers

from ..problems import Judge, did_you_mean, finding, key_of

if TYPE_CHECKING:
    from .aks import SystemNodesSettings
    from .eks import NetworkSettings


def region_checks(cloud: str, region: str) -> Iterator[Finding]:
    """Problems of a region, or location."""
    key = "aws:region" if cloud == "aws" else "azure-native:location"
    offers = Offers.load(cloud)
    title = "AWS region with EKS" if cloud == "aws" else "Azure location"
    match offers.region(region):
        case "wrong":
            yield finding(
                "region-wrong",
                key,
                region,
                title=title,
                meant=did_you_mean(region, offers.zones) or "write its short name; ",
                examples=_EXAMPLES[cloud],
            )
        case "newer":
            yield finding("region-unknown", key, region, title=title)


_EXAMPLES = {"aws": ("us-east-1", "eu-west-1"), "azure": ("westus2", "westeurope")}


def aws_zones(known_region: str, network: NetworkSettings) -> Iterator[Finding]:
    """Problems of the zones of a network on AWS."""
    offers, region, zones = Offers.load("aws"), known_region, network.zones
    known = offers.zones.get(region) or ()
    if isinstance(zones, int):
        if known and zones > len(known):
            yield finding("too-many-zones", ("network", "zones"), zones, known=len(known), region=region)
        return
    for index, zone in enumerate(zones):
        place, verdict = key_of("network", "zones", index), offers.zone(zone, region)
        if verdict == "wrong":
            yield finding(
                "zone-wrong",
                place,
                zone,
                region=region,
                meant=did_you_mean(zone, known),
                zones=f"choose {', '.join(known)}" if known else f"name zones like {region}a",
            )
        elif verdict == "newer":
            yield finding("zone-unknown", place, zone, region=region)


def azure_zones(say: Judge, known_region: str, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    """Problems of the system nodes' zones on Azure."""
    if system_nodes.zones and Offers.load("azure").zones.get(known_region) == ():
        yield say("location-without-zones", "systemNodes.zones", location=known_region)
