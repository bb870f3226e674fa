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


@pytest.mark.parametrize(
    ("category", "properties", "text"),
    [
        ("audit", {}, r"Category 'audit' is not supported\."),
        ("guard", {"workspaceId": None}, "data sink"),
    ],
)
def test_a_setting_is_refused(world: World, category: str, properties: dict[str, Any], text: str) -> None:
    with pytest.raises(ArmError, match=text) as caught:
        put(world, "one", category, **properties)
    assert (caught.value.code, caught.value.status) == ("BadRequest", 400)


def test_the_same_goes_to_the_same_place_once(world: World) -> None:
    put(world, "one")
    with pytest.raises(
        ArmError, match=f"Data sink '{WORKSPACE}' is already used in diagnostic setting 'one'"
    ) as caught:
        put(world, "two")
    assert (caught.value.code, caught.value.status) == ("Conflict", 409)


def test_without_a_cluster_there_is_nothing_to_log() -> None:
    with pytest.raises(ArmError, match=r"ParentResourceNotFound|ResourceNotFound"):
        put(World(), "one")
