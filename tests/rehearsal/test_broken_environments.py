"""Environments that are wrong in one place: the rehearsal must find it, as the cloud would, and name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.conftest import RehearsedStack

CHEAPEST_FIT = ("run", "--scenarios", "eks-cheapest-fit", "--report")


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(
        (dict(found) for found in resource.get("status", {}).get("conditions", []) if found["type"] == kind), {}
    )


def failing_story(stack: RehearsedStack, folder: Path) -> str:
    result = stack.command(*CHEAPEST_FIT, str(folder))
    assert result.returncode != 0, result.stdout
    (story,) = json.loads((folder / "report.json").read_text())["stories"]
    assert not story["passed"]
    return result.stdout + json.dumps(story)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tests.rehearsal.conftest import new_stack

    stack = new_stack(tmp_path_factory.mktemp("broken"))
    yield stack
    stack.command("down", "--force")


def test_a_node_class_that_discovers_nothing_is_found(broken: RehearsedStack, tmp_path: Path) -> None:
    broken.configure(
        **{"karpstack:nodeClasses/default/subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "nobody"}}]}
    )
    broken.succeed("up")
    found = broken.wait_for(
        "ec2nodeclasses",
        "karpenter.k8s.aws",
        lambda item: item["metadata"]["name"] == "default" and condition(item, "SubnetsReady").get("status") == "False",
    )
    assert found, "the EC2NodeClass never said that it found no subnets"
    output = failing_story(broken, tmp_path)
    assert "SubnetsReady" in output or "subnet" in output.lower(), output
    broken.configure(**{"karpstack:nodeClasses/default/subnetSelectorTerms": None})


def test_a_wrong_queue_name_ends_the_controller(broken: RehearsedStack) -> None:
    broken.configure(**{"karpstack:karpenter/settings": {"interruptionQueue": "nobody-made-this"}})
    result = broken.command("up")
    assert result.returncode == 1
    assert "interruptionQueue" in result.stdout or "nobody-made-this" in result.stdout, result.stdout
