"""What a report of the EKS stories must say, wherever they ran: asserted by the rehearsal and by the cloud tier."""

from __future__ import annotations

from typing import Any


def story(report: dict[str, Any], name: str) -> dict[str, Any]:
    """One story of a report."""
    return next(dict(found) for found in report["stories"] if found["name"] == name)


def check_cheapest_fit(report: dict[str, Any]) -> None:
    """Exactly one m5.large on demand, with its price."""
    found = story(report, "eks-cheapest-fit")
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["instance_type"] == "m5.large"
    assert claim["capacity_type"] == "on-demand"
    assert claim["price_per_hour"] > 0


def check_spot_consolidation(report: dict[str, Any]) -> None:
    """A spot node of size 2xlarge, replaced by a cheaper spot node."""
    found = story(report, "eks-spot-consolidation")
    assert found["passed"], found
    first, second = sorted(found["nodeclaims"], key=lambda claim: str(claim["created"]))
    assert first["instance_type"].endswith(".2xlarge")
    assert first["capacity_type"] == second["capacity_type"] == "spot"
    assert second["price_per_hour"] < first["price_per_hour"]


def check_spot_default(report: dict[str, Any]) -> None:
    """One spot node of 4 vCPUs, gone with its pods."""
    found = story(report, "eks-spot-default")
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["capacity_type"] == "spot"
    assert claim["gone"]
