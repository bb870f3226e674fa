"""What the API server takes of the specs that our own judge knows."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.karpenter_specs import CASES
from tests.rehearsal.conftest import RehearsedStack


def assert_verdicts(stack: RehearsedStack, cloud: str, folder: Path) -> None:
    """Give the whole table to the API server in one dry run, and compare what it takes."""
    cases = [case for case in CASES if case.cloud == cloud]
    for case in cases:
        (folder / f"{case.name}.json").write_text(json.dumps(case.manifest))
    command = ("kubectl", "create", "--dry-run=server", "--validate=strict", "--filename", str(folder))
    output = stack.by_hand(*command, timeout=60).stdout
    taken = set(re.findall(r"^\S+/verdict-(\S+) created \(server dry run\)$", output, re.MULTILINE))
    assert taken == {case.name for case in cases if case.wrong is None}, output
