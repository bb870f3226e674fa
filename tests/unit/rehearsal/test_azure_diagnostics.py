"""What Azure Monitor refuses of a cluster's diagnostic setting."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from tests.unit.rehearsal.azure_world import CLUSTER, GROUP, World

VERSION = "2021-05-01-preview"
WORKSPACE = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"


def put(world: World, name: str, category: str = "kube-audit-admin", **properties: Any) -> None:
    given = {"workspaceId": WORKSPACE, "logs": [{"category": category, "enabled": True}], **properties}
    setting = f"{CLUSTER}/providers/Microsoft.Insights/diagnosticSettings/{name}"
    world.arm.put(setting, VERSION, {"properties": given})


@pytest.fixture
def world() -> World:
    found = World()
    found.cluster()
    return found


def test_a_setting_is_kept_and_changed(world: World) -> None:
    put(world, "one")
    put(world, "one", "guard")
    put(world, "other", "kube-apiserver")
    put(world, "third", "guard", workspaceId=f"{WORKSPACE}2")


def test_the_same_goes_to_the_same_place_once(world: World) -> None:
    put(world, "one")
    with pytest.raises(
        ArmError, match=f"Data sink '{WORKSPACE}' is already used in diagnostic setting 'one'"
    ) as caught:
        put(world, "two")
    assert (caught.value.code, caught.value.status) == ("Conflict", 409)
