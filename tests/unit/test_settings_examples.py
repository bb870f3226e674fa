"""components.settings: the NodePools of upstream's own examples, pasted into a stack, are taken or rightly refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from karpstack.components import settings
from karpstack.components.problems import SettingsError
from karpstack.karpenter.findings import Finding
from tests.unit.example_stack import example

TODAY = date(2026, 11, 22)
#: The manifests of karpenter-provider-aws v1.14.1, examples/v1, as JSON by the files' names, without words.
EXAMPLES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "stacks" / "karpenter-provider-aws-examples.json").read_text(encoding="utf-8")
)
#: Those that cannot work here, and why.
REFUSED = {
    "min-values-family": "is older than the first image of al2023 for Kubernetes 1.36",
    "min-values-multiple-keys": "is older than the first image of al2023 for Kubernetes 1.36",
    "windows-2019": "is a Windows image",
    "windows-2022": "is a Windows image",
    "windows-2025": "is a Windows image",
    "windows-custom-userdata": "is a Windows image",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_upstream(name: str) -> None:
    kinds: dict[str, dict[str, Any]] = {"NodePool": {}, "EC2NodeClass": {}}
    for manifest in EXAMPLES[name]:
        # The role is the environment's, here as for everybody who pastes.
        spec = {key: value for key, value in manifest["spec"].items() if key != "role"}
        kinds[manifest["kind"]][manifest["metadata"]["name"]] = spec
    given = example(nodePools=kinds["NodePool"], nodeClasses=kinds["EC2NodeClass"])
    warnings: list[Finding] = []
    if name in REFUSED:
        with pytest.raises(SettingsError) as caught:
            settings.load(given, today=TODAY)
        assert any(problem.consequence.startswith(REFUSED[name]) for problem in caught.value.problems)
    else:
        settings.load(given, today=TODAY, warn=warnings.append)
    assert all(problem.key.endswith(".terminationGracePeriod") for problem in warnings)
