"""A network of Azure's that is there, by the real engine: `up` stops at what is wrong with it before anything is made.

That it comes up where nothing is wrong, with its stories, is for `make soak` with the example's CONFIG_FILE.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.rehearsal.conftest import RehearsedStack, changed_example

STACK = "aks-existing-vnet"


def example(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> RehearsedStack:
    """The example, with its network changed."""
    return changed_example(folder, "existing-vnet", STACK, "network", change)


def _without_a_zone_and_ways(network: list[dict[str, Any]]) -> None:
    table, zone, vnet = network
    table["properties"]["routes"][0]["properties"]["nextHopType"] = "Internet"
    network.remove(zone)
    api_server = next(one for one in vnet["properties"]["subnets"] if one["name"] == "api-server")
    api_server["properties"]["delegations"] = []


def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    stack = example(tmp_path, _without_a_zone_and_ways)
    result = stack.command("up")
    assert result.returncode != 0
    # Three subnets of nodes, the API server's, the zone.
    assert "the stack's configuration has 5 errors; nothing was created in the cloud" in result.stdout
    assert "has a default route that leads to Internet" in result.stdout
    assert "karpstack:nodeClasses.batch.vnetSubnetID" in result.stdout
    assert "is delegated to nobody" in result.stdout
    assert "name a private DNS zone that is there" in result.stdout
    assert "Traceback" not in result.stdout
    assert not stack.made()


def test_a_network_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = example(tmp_path, lambda network: network.pop()).command("up")
    assert result.returncode != 0
    assert "lies in no network that is there" in result.stdout
    assert "Traceback" not in result.stdout


def test_a_network_that_cannot_be_played_is_told_with_its_file(tmp_path: Path) -> None:
    result = example(tmp_path, lambda network: network.pop(0)).command("up")
    assert result.returncode != 0
    assert f"Pulumi.{STACK}.network.json: " in result.stdout
    assert "Traceback" not in result.stdout
