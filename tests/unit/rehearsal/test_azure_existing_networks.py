"""Networks that the rehearsed subscription has already, as `az resource show` prints them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import settings
from components.settings import AksSettings
from preflight.azure import network
from preflight.azure.existing_network import find
from preflight.azure.subject import subject
from preflight.stack import State
from rehearsal.azure.network import existing
from rehearsal.azure.network.existing import NetworkFileError
from tests.unit.example_stack import ROOT, raw
from tests.unit.rehearsal.azure_world import NETWORK, REGION, World
from tests.unit.rehearsal.preflight_azure_world import asked

FOLDER = ROOT / "examples" / "existing-vnet"
FILE = FOLDER / "Pulumi.aks-existing-vnet.network.json"
RESOURCES: list[dict[str, Any]] = json.loads(FILE.read_text())
VNET = next(one["id"] for one in RESOURCES if one["type"] == "Microsoft.Network/virtualNetworks")
TABLE = next(one["id"] for one in RESOURCES if one["type"] == "Microsoft.Network/routeTables")


def example() -> AksSettings:
    config = yaml.safe_load((FOLDER / "Pulumi.aks-existing-vnet.yaml").read_text())["config"]
    loaded = settings.load(raw(config))
    assert isinstance(loaded, AksSettings)
    return loaded


def made(resources: Any, folder: Path) -> World:
    file = folder / "network.json"
    file.write_text(json.dumps(resources))
    world = World()
    existing.make(existing.load(file), world.arm, world.azure.subscription_id, REGION)
    return world


def test_the_example_is_kept_as_it_is_told(tmp_path: Path) -> None:
    world = made(RESOURCES, tmp_path)
    told = next(one for one in RESOURCES if one["id"] == VNET)["properties"]
    vnet = world.arm.get(VNET, NETWORK)["properties"]
    assert vnet["resourceGuid"] == told["resourceGuid"]
    assert [one["properties"]["addressPrefix"] for one in vnet["subnets"]] == [
        one["properties"]["addressPrefix"] for one in told["subnets"]
    ]
    delegated = next(one for one in vnet["subnets"] if one["name"] == "api-server")["properties"]["delegations"]
    assert delegated[0]["properties"]["serviceName"] == "Microsoft.ContainerService/managedClusters"
    assert [one["id"] for one in world.arm.get(TABLE, NETWORK)["properties"]["subnets"]] == [
        f"{VNET}/subnets/{name}" for name in ("system", "workloads", "batch")
    ]


def test_the_look_before_up_finds_nothing_in_it(tmp_path: Path) -> None:
    world = made(RESOURCES, tmp_path)
    world.azure.start(tmp_path / "certificates")
    try:
        seen = subject(asked(world), example(), State())
        assert not list(network.subnet(seen))
        found = find(seen, f"{VNET}/subnets/system")
    finally:
        world.azure.stop()
    assert found.routes == {TABLE.lower(): {"0.0.0.0/0": "VirtualAppliance"}}
    assert [str(one) for one in found.peered["hub"]] == ["10.20.0.0/16"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda file: file.pop(0), "was not found"),
        (lambda file: file[2].update(location="eastus"), "eastus"),
        (lambda file: file[2].update(type="Microsoft.Network/azureFirewalls"), "is a Microsoft.Network/azureFirewalls"),
        (
            lambda file: file[2]["properties"]["subnets"][0]["properties"].update(addressPrefix="10.99.0.0/24"),
            "outside the IP address range",
        ),
    ],
)
def test_what_cannot_be_is_told(change: Callable[[Any], object], text: str, tmp_path: Path) -> None:
    resources = json.loads(json.dumps(RESOURCES))
    change(resources)
    with pytest.raises(NetworkFileError, match=text):
        made(resources, tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[", "so it is no JSON"),
        ("[{}]", "0.id: Field required"),
        ('[{"id": "net", "type": "x", "location": "y", "properties": {}}]', "0.id: "),
    ],
)
def test_a_file_that_is_none_is_told(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    file.write_text(content)
    with pytest.raises(NetworkFileError, match=text):
        existing.load(file)


def test_one_resource_alone_is_a_file_too(tmp_path: Path) -> None:
    world = made(next(one for one in RESOURCES if one["id"] == TABLE), tmp_path)
    assert world.arm.get(TABLE, NETWORK)["properties"]["routes"][0]["name"] == "default"
