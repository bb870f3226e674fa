"""karpstack.karpenter.offers: what exists, what may be newer than the facts, and what is misspelt."""

from __future__ import annotations

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.offers import Offers

AWS, AZURE = Offers.load("aws"), Offers.load("azure")


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("m5.large", "known"),
        ("g4ad.xlarge", "known"),  # only its name is known
        ("u7in-16tb.224xlarge", "known"),
        ("m10i.large", "newer"),
        ("m9x.large", "wrong"),  # x is no property
        ("m8q.large", "newer"),  # a family beside those of the last generation but one
        ("m5q.large", "wrong"),
        ("m5.9xlarge", "wrong"),
        ("m5.lage", "wrong"),
        ("m50.large", "wrong"),
        ("m5large", "wrong"),
        ("M5.large", "wrong"),
        ("", "wrong"),
    ],
)
def test_instance_types(name: str, verdict: str) -> None:
    assert AWS.types.verdict(name) == verdict


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("Standard_D4s_v5", "known"),
        ("Standard_NC24ads_A100_v4", "known"),
        ("Standard_D4s_v8", "newer"),
        ("Standard_D7s_v8", "wrong"),  # no size has this number
        ("Standard_D4s_v55", "wrong"),
        ("standard_D4s_v5", "wrong"),
        ("D4s_v5", "wrong"),
    ],
)
def test_vm_sizes(name: str, verdict: str) -> None:
    assert AZURE.types.verdict(name) == verdict


@pytest.mark.parametrize(
    ("offers", "name", "verdict"),
    [
        (AWS, "eu-west-1", "known"),
        (AWS, "us-east-3", "newer"),
        (AWS, "us-esat-1", "wrong"),
        (AWS, "us-east1", "wrong"),
        (AZURE, "westus2", "known"),
        (AZURE, "taiwannorth", "newer"),
        (AZURE, "westus4", "newer"),
        (AZURE, "westus22", "wrong"),
        (AZURE, "wesus2", "wrong"),
    ],
)
def test_regions(offers: Offers, name: str, verdict: str) -> None:
    assert offers.region(name) == verdict


@pytest.mark.parametrize(
    ("offers", "region", "zone", "verdict"),
    [
        (AWS, "us-east-1", "us-east-1f", "known"),
        (AWS, "us-east-1", "us-east-1g", "wrong"),
        (AWS, "ca-central-1", "ca-central-1c", "newer"),  # some accounts have it
        (AWS, "mx-central-1", "mx-central-1a", "newer"),  # the facts have no zones of this region
        (AZURE, "westus2", "westus2-3", "known"),
        (AZURE, "westus2", "westus2-4", "wrong"),
        (AZURE, "northcentralus", "northcentralus-1", "wrong"),
    ],
)
def test_zones(offers: Offers, region: str, zone: str, verdict: str) -> None:
    assert offers.zone(zone, region) == verdict


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_what_is_described_is_on_offer_and_says_of_itself_what_its_name_says(cloud: str) -> None:
    offers = Offers.load(cloud)
    for region in Facts.load(cloud).regions[:3]:
        sold = {offer.type.name: offer for offer in offers.sold_in(region)}
        for found in Facts.load(cloud).region(region).types:
            assert sold[found.name].described
            assert found.labels.items() >= offers.types.labels(found.name).items() - {
                ("karpenter.k8s.aws/instance-category", "mac")
            }
