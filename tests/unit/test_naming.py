"""karpstack.components.naming: names, their limits, tags."""

from karpstack.components.naming import (
    RESERVED_AZURE_TAG_PREFIXES,
    RESERVED_TAG_PREFIXES,
    AksNames,
    EksNames,
    named,
    principal_label,
    worst,
)


def test_every_physical_name_starts_from_the_clusters() -> None:
    names = [limited.name for limited in EksNames("demo").limited()]
    assert all("demo" in name for name in names)
    kinds = [(limited.kind, limited.name) for limited in EksNames("demo").limited()]
    assert len(kinds) == len(set(kinds))


def test_limits_are_the_clouds() -> None:
    limits = {limited.kind: limited.limit for limited in EksNames("demo").limited()}
    assert limits == {
        "EKS cluster": 100,
        "IAM role": 64,
        "IAM policy": 128,
        "SQS queue": 80,
        "EventBridge rule": 64,
        "launch template": 128,
        "security group": 255,
        "KMS alias": 256,
    }


def test_the_longest_name_that_fits() -> None:
    assert worst(EksNames("n" * 43)).excess == 0
    assert worst(EksNames("n" * 44)).excess == 1
    assert worst(AksNames("n" * 54)).excess == 0
    assert (worst(AksNames("n" * 55)).kind, worst(AksNames("n" * 55)).excess) == ("DNS prefix", 1)


def test_limits_of_azure() -> None:
    limits = {limited.kind: limited.limit for limited in AksNames("demo").limited()}
    assert limits == {
        "AKS cluster": 63,
        "DNS prefix": 54,
        "resource group": 90,
        "node resource group": 80,
        "virtual network": 64,
        "NAT gateway": 80,
        "public IP address": 80,
        "cluster identity": 128,
        "controller identity": 128,
        "Log Analytics workspace": 63,
        "Azure Monitor workspace": 63,
    }
    assert all("demo" in limited.name for limited in AksNames("demo").limited())


def test_principals_of_two_accounts_have_two_labels() -> None:
    assert principal_label("arn:aws:iam::123456789012:role/teams/admin") == "123456789012-admin"
    assert principal_label("arn:aws:iam::210987654321:role/admin") == "210987654321-admin"


def test_name_tag_is_added() -> None:
    assert named("x", {"owner": "y"}) == {"owner": "y", "Name": "x"}


def test_discovery_is_reserved() -> None:
    assert "karpenter.sh/discovery".startswith(RESERVED_TAG_PREFIXES)
    assert "karpenter.azure.com_cluster".startswith(RESERVED_AZURE_TAG_PREFIXES)
    assert not "owner".startswith((*RESERVED_TAG_PREFIXES, *RESERVED_AZURE_TAG_PREFIXES))
