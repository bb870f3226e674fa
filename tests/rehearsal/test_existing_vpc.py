"""A VPC that is there, by the real engine: `up` stops at what is wrong with it before anything is made.

That it comes up where nothing is wrong, with its stories, is for `make soak` with the example's CONFIG_FILE.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.conftest import RehearsedStack, changed_example

STACK = "eks-existing-vpc"


def example(folder: Path, change: Callable[[dict[str, Any]], object]) -> RehearsedStack:
    """The example, with its network changed."""
    return changed_example(folder, "existing-vpc", STACK, "network", change)


def _without_dns_and_owned(network: dict[str, Any]) -> None:
    network["Vpcs"][0]["EnableDnsHostnames"] = False
    network["Subnets"][0]["Tags"].append({"Key": "kubernetes.io/cluster/legacy", "Value": "owned"})


def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    stack = example(tmp_path, _without_dns_and_owned)
    result = stack.command("up")
    assert result.returncode != 0
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "has enableDnsHostnames off" in result.stdout
    assert "aws ec2 modify-vpc-attribute --vpc-id vpc-0d3f5a1b2c4e6f708 --enable-dns-hostnames" in result.stdout
    assert "which the cluster legacy owns" in result.stdout
    assert "Traceback" not in result.stdout
    assert not stack.made()


@pytest.mark.parametrize("part", ["Vpcs", "NatGateways"])
def test_a_network_that_cannot_be_played_is_told_with_its_file(tmp_path: Path, part: str) -> None:
    stack = example(tmp_path, lambda network: network.pop(part))
    result = stack.command("up")
    assert result.returncode != 0
    assert f"Pulumi.{STACK}.network.json: " in result.stdout
    assert "Traceback" not in result.stdout
    # Pulumi has not begun: it would only have said that nobody listens.
    assert "Updating" not in result.stdout
    assert "connection" not in result.stdout
