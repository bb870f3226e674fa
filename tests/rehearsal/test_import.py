"""What somebody made by hand with a stack's layout, taken over by `pulumi import`, as in docs/how-to/import.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.rehearsal.conftest import RehearsedStack


@pytest.fixture
def forgotten(eks: RehearsedStack, tmp_path: Path) -> Iterator[RehearsedStack]:
    """The stack that is up, of which Pulumi knows nothing; it gets its state back where a test leaves it changed."""
    saved = tmp_path / "state.json"
    saved.write_text(eks.done("pulumi", "stack", "export"))
    eks.done("pulumi", "state", "delete", "--all", "--force", "--yes")
    try:
        yield eks
    except BaseException:
        eks.done("pulumi", "stack", "import", "--file", str(saved))
        raise
    if eks.by_hand("pulumi", "preview", "--expect-no-changes", "--non-interactive").returncode:
        eks.done("pulumi", "stack", "import", "--file", str(saved))


def running(stack: RehearsedStack) -> set[tuple[str, str]]:
    """Nodes and pods, as those that they are."""
    core = client.CoreV1Api(stack.api())
    objects: list[Any] = [*core.list_node().items, *core.list_pod_for_all_namespaces().items]
    return {(each.metadata.name, each.metadata.uid) for each in objects}


def imported(stack: RehearsedStack, folder: Path) -> str:
    """One round of the page; what `ids` says."""
    file, preview = folder / "import.json", folder / "preview.json"
    steps: str = stack.done("pulumi", "preview", "--json", "--import-file", str(file))
    preview.write_text(steps[steps.index("{") :])
    ids = (
        "-m",
        "karpstack",
        "preflight",
        "ids",
        "eks",
        str(file),
        str(preview),
        "--config-file",
        str(stack.configuration),
    )
    told = stack.done(sys.executable, *ids)
    options = ("--protect=false", "--generate-code=false", "--yes", "--skip-preview")
    stack.done("pulumi", "import", "--file", str(file), *options)
    return told


def test_what_was_made_by_hand_is_taken_over_and_nothing_is_replaced(forgotten: RehearsedStack, tmp_path: Path) -> None:
    before = running(forgotten)
    first = imported(forgotten, tmp_path)
    assert "not found" not in first
    assert "8 next time, when the cluster is in the state" in first
    second = imported(forgotten, tmp_path)
    assert "6 resources are there" in second

    steps = forgotten.done("pulumi", "preview", "--json")
    summary: Any = json.loads(steps[steps.index("{") :])["changeSummary"]
    assert summary.keys() == {"same", "update", "create"}, summary
    assert summary["create"] == 2  # the fields of Cilium's workloads that `up` sets

    forgotten.done("pulumi", "up", "--yes", "--skip-preview")
    forgotten.done("pulumi", "preview", "--expect-no-changes")
    assert running(forgotten) == before
