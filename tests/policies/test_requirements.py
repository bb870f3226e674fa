"""What the pack reads of requirements and facts, and says where they are missing."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from pulumi_policy import PolicyProviderResource
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy
from rules import facts, tokens
from rules.regions import Regions
from rules.requirements import admitted
from rules.rule import NotKnownError

from karpstack.karpenter.addresses import Range, overlaps, parse
from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.requirements import Requirement


def test_a_region_without_prices_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(NotKnownError) as raised:
        facts.facts("aws")
    assert "has no prices and zones of eu-west-1; it has us-east-1" in raised.value.message


def test_a_region_that_nothing_says_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(NotKnownError) as raised:
        facts.region_of("aws")
    assert "nothing says the region" in raised.value.message


def provider(kind: str, **properties: str) -> PolicyProviderResource:
    return PolicyProviderResource(f"pulumi:providers:{kind}", unknown_checking_proxy(properties), "urn", "default")


def noted(*seen: tuple[str, dict[str, str], PolicyProviderResource | None]) -> Regions:
    regions = Regions()
    for token, properties, of in seen:
        regions.note(token, unknown_checking_proxy(properties), of)
    return regions


EAST, WEST = provider("aws", region="us-east-1"), provider("aws", region="us-west-2")


def test_the_region_is_the_cluster_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert noted((tokens.VPC, {}, EAST)).of("aws") == {"us-east-1"}
    assert noted((tokens.VPC, {}, EAST), (tokens.CLUSTER, {}, WEST)).of("aws") == {"us-west-2"}
    assert noted((tokens.CLUSTER, {"region": "us-east-2"}, WEST)).of("aws") == {"us-east-2"}
    azure = noted((tokens.AKS_CLUSTER, {"location": "West US 2"}, provider("azure-native")))
    assert azure.of("azure") == {"westus2"}
    assert azure.of("aws") == {"eu-west-1"}


def test_a_provider_says_its_region_by_itself() -> None:
    """A stack on a cluster of Azure's that is there has no resource in it, and a provider that was asked."""
    alone = noted(("pulumi:providers:azure-native", {"location": "West US 3"}, None))
    assert alone.of("azure") == {"westus3"}
    assert noted(("pulumi:providers:kubernetes", {"location": "westus3"}, None)).of("azure") == {"westus2"}


def test_what_says_no_region_is_passed_over() -> None:
    kubernetes = provider("kubernetes", region="us-east-1")
    regions = noted((tokens.CLUSTER, {}, None), (tokens.CLUSTER, {}, kubernetes), (tokens.CLUSTER, {}, provider("aws")))
    regions.note(tokens.CLUSTER, {}, provider("aws", region=UNKNOWN_STRING_VALUE))
    assert regions.of("azure") == {"westus2"}
    assert regions.of("aws") == {"us-east-1"}


def test_clusters_in_two_regions_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "REGIONS", noted((tokens.CLUSTER, {}, EAST), (tokens.CLUSTER, {}, WEST)))
    with pytest.raises(NotKnownError) as raised:
        facts.region_of("aws")
    assert "there are clusters in us-east-1, us-west-2" in raised.value.message


def test_facts_that_are_not_there_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(facts, "Facts", SimpleNamespace(load=lambda cloud: Facts.load(cloud, tmp_path)))
    with pytest.raises(NotKnownError) as raised:
        facts.facts("aws")
    assert "make facts" in raised.value.message


def test_a_label_that_the_facts_lack_is_said() -> None:
    wanted = [Requirement("karpenter.k8s.aws/instance-ebs-bandwidth", "Gt", ("1000",))]
    with pytest.raises(NotKnownError) as raised:
        admitted(wanted, facts.facts("aws"))
    assert "karpenter.k8s.aws/instance-ebs-bandwidth Gt [1000] is on a label" in raised.value.message


def test_ranges_of_two_families_do_not_overlap() -> None:
    ranges = [Range(parse(cidr), cidr, "") for cidr in ("10.0.0.0/8", "::/0", "10.1.2.3/16")]
    assert [(one.what, other.what) for one, other in overlaps(ranges)] == [("10.0.0.0/8", "10.1.2.3/16")]
