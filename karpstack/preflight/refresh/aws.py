"""The facts of AWS as an account tells them: instance types, prices, Kubernetes versions and images."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

from karpstack.karpenter.fact_files import offers_document, types_document
from karpstack.karpenter.releases import number
from karpstack.karpenter.type_facts import ec2_type

from ..answers import parse
from ..aws.asking import Aws
from ..finding import NotAskedError

#: Gives the account in a region.
Ask = Callable[[str], Aws]
Document = dict[str, Any]

#: The price list has no endpoint in most regions.
_PRICES_IN: Final = "us-east-1"
_PRICES: Final = "pricing:GetProducts"
_TYPES: Final = "ec2:DescribeInstanceTypes"
#: What Karpenter's own price table is made of (pkg/providers/pricing): shared tenancy, and dedicated for bare metal.
_PRODUCTS: Final = (("Shared", "Compute Instance"), ("Dedicated", "Compute Instance (bare metal)"))
_PRODUCT: Final = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
#: What Karpenter asks for (`UpdateSpotPricing` in pkg/providers/pricing/pricing.go of its provider 1.15).
_SPOT_PRODUCTS: Final = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_SPOT: Final = "ec2:DescribeSpotPriceHistory"
_VERSIONS: Final = "eks:DescribeClusterVersions"
_IMAGES: Final = "ec2:DescribeImages"
_NAMES: Final = {
    "al2": re.compile(r"amazon-eks-node-(?P<kubernetes>1\.\d+)-(?P<release>v\d{8})"),
    "al2023": re.compile(r"amazon-eks-node-al2023-x86_64-standard-(?P<kubernetes>1\.\d+)-(?P<release>v\d{8})"),
    "bottlerocket": re.compile(r"bottlerocket-aws-k8s-(?P<kubernetes>1\.\d+)-x86_64-(?P<release>v\d+\.\d+\.\d+)-.*"),
}
_PATTERNS: Final = (
    "amazon-eks-node-1.*",
    "amazon-eks-node-al2023-x86_64-standard-*",
    "bottlerocket-aws-k8s-*-x86_64-*",
)


def types(ask: Ask, region: str, head: Mapping[str, Any]) -> Document:
    """Return the instance types of a region with their prices; `head` is that of the file.

    Raises:
        NotAskedError: A call is refused or fails, or no price or no type is listed.
    """
    zones, prices = _zones(ask(region)), on_demand(ask, region)
    described = ask(region).all("ec2", "DescribeInstanceTypes", "InstanceTypes")
    here = [one for one in described if one["InstanceType"] in zones and one["InstanceType"] in prices]
    made = (ec2_type(one, {region: zones[one["InstanceType"]]}, {region: prices[one["InstanceType"]]}) for one in here)
    entries = list(filter(None, made))
    if not entries:
        raise NotAskedError(_TYPES, f"it lists no type of {region} with a price", refused=False)
    return types_document({**head, "regions": [region]}, entries)


def offers(ask: Ask, region: str, head: Mapping[str, Any]) -> Document:
    """Return the zones of a region and the names of the instance types that it sells.

    Raises:
        NotAskedError: A call is refused or fails.
    """
    zones = _zones(ask(region))
    return offers_document(
        head, {region: sorted({zone for names in zones.values() for zone in names})}, {name: [region] for name in zones}
    )


def _zones(aws: Aws) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in aws.all(
        "ec2", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", LocationType="availability-zone"
    ):
        found.setdefault(one["InstanceType"], []).append(one["Location"])
    if not found:
        raise NotAskedError("ec2:DescribeInstanceTypeOfferings", f"it lists no type in {aws.region}", refused=False)
    return found


def on_demand(ask: Ask, region: str) -> dict[str, float]:
    """Return USD an hour by instance type: Linux, shared tenancy, and bare metal as dedicated.

    Raises:
        NotAskedError: The call is refused or fails, or no price in USD is listed.
    """
    found: dict[str, float] = {}
    currencies: set[str] = set()
    for tenancy, family in _PRODUCTS:
        wanted = {**_PRODUCT, "regionCode": region, "tenancy": tenancy, "productFamily": family}
        filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
        for text in ask(_PRICES_IN).all(
            "pricing", "GetProducts", "PriceList", ServiceCode="AmazonEC2", Filters=filters
        ):
            product = parse(_PRICES, text.encode())
            for per_unit in _per_unit(product):
                currencies.update(per_unit)
                if (usd := float(per_unit.get("USD", 0))) > 0:
                    found[product["product"]["attributes"]["instanceType"]] = usd
    if not found:
        others = f", only in {', '.join(sorted(currencies))}" if currencies - {"USD"} else ""
        raise NotAskedError(_PRICES, f"it lists no price in USD of {region}{others}", refused=False)
    return found


def _per_unit(product: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The prices of a product, each by its currencies."""
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            yield dimension["pricePerUnit"]


def spot(ask: Ask, region: str, now: datetime) -> dict[str, dict[str, float]]:
    """Return USD an hour by instance type and zone, as Karpenter asks for it: the prices that hold at a moment.

    Raises:
        NotAskedError: The call is refused or fails, or no price is listed.
    """
    latest: dict[tuple[str, str], tuple[datetime, float]] = {}
    for one in ask(region).all(
        "ec2",
        "DescribeSpotPriceHistory",
        "SpotPriceHistory",
        StartTime=now.isoformat(),
        ProductDescriptions=list(_SPOT_PRODUCTS),
    ):
        where, price = (one["InstanceType"], one["AvailabilityZone"]), (one["Timestamp"], float(one["SpotPrice"]))
        latest[where] = max(latest.get(where, price), price)
    if not latest:
        raise NotAskedError(_SPOT, f"it lists no price of {region}", refused=False)
    found: dict[str, dict[str, float]] = {}
    for (name, zone), (_, usd) in sorted(latest.items()):
        found.setdefault(name, {})[zone] = usd
    return found


def versions(ask: Ask, region: str, before: Document, today: date) -> Document:
    """Return the calendar of Kubernetes versions; those that EKS no longer lists keep their days.

    Raises:
        NotAskedError: The call is refused or fails, or lists nothing.
    """
    found = {
        one["clusterVersion"]: {
            "from": _day(one["releaseDate"]),
            "standard": _day(one["endOfStandardSupportDate"]),
            "extended": _day(one["endOfExtendedSupportDate"]),
        }
        for one in ask(region).all("eks", "DescribeClusterVersions", "clusterVersions", includeAll=True)
    }
    if not found:
        raise NotAskedError(_VERSIONS, f"it lists no version in {region}", refused=False)
    together = {**before["versions"], **found}
    source = f"{_VERSIONS} in {region}; of versions that it no longer lists: {before['source'].rpartition(': ')[2]}"
    return {
        "cloud": "aws",
        "source": source,
        "as_of": today.isoformat(),
        "versions": {version: together[version] for version in sorted(together, key=number)},
    }


def _day(when: datetime) -> str:
    return when.date().isoformat()


def images(ask: Ask, region: str, before: Document, today: date) -> Document:
    """Return the releases of the families of images; what EC2 no longer lists is kept.

    Raises:
        NotAskedError: The call is refused or fails, or lists nothing.
    """
    listed = ask(region).all(
        "ec2",
        "DescribeImages",
        "Images",
        Owners=["amazon"],
        IncludeDeprecated=True,
        Filters=[{"Name": "name", "Values": list(_PATTERNS)}],
    )
    names = [str(one.get("Name", "")) for one in listed]
    families = {family: dict(known) for family, known in before["families"].items()}
    any_found = False
    for family, pattern in _NAMES.items():
        found = [(match["kubernetes"], match["release"]) for name in names if (match := pattern.fullmatch(name))]
        if not found:
            continue
        any_found, known = True, families[family]
        first: dict[str, str] = dict(known["first"])
        for kubernetes, release in found:
            first[kubernetes] = min(first.get(kubernetes, release), release, key=_ordered)
        known["first"] = {one: first[one] for one in sorted(first, key=number)}
        releases = {release for _, release in found}
        if "newest" in known:
            known["newest"] = max({known["newest"], *releases}, key=_ordered)
        else:
            known["releases"] = sorted({*known["releases"], *releases}, key=_ordered)
    if not any_found:
        raise NotAskedError(_IMAGES, f"it lists no image of EKS or Bottlerocket in {region}", refused=False)
    return {
        "source": f"{_IMAGES} in {region}; of releases that it no longer lists: {before['source'].rpartition(': ')[2]}",
        "as_of": today.isoformat(),
        "families": families,
    }


def _ordered(release: str) -> tuple[int, ...]:
    return number(release.removeprefix("v"))
