"""The same stories on a real cluster. Opt-in, because it costs money: see docs/how-to/eks/deploy.md.

KARPSTACK_CLOUD_STACK names the stack; it must be up, with KUBECONFIG and KARPSTACK_METRICS_URL for its cluster:

    KARPSTACK_CLOUD_STACK=eks python -m pytest tests/cloud
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import stories

STACK = os.environ.get("KARPSTACK_CLOUD_STACK", "")
ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(not STACK, reason="KARPSTACK_CLOUD_STACK names no stack"),
    pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("report")
    subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            "playbooks/scale_test.yml",
            "-e",
            f"report_dir={folder}",
            "-e",
            "scenario_labels=walk-through",
        ],
        cwd=ROOT,
        env={**os.environ, "PULUMI_STACK": STACK},
        check=False,  # the report says what failed
    )
    return dict(json.loads((folder / "report.json").read_text()))


def test_cheapest_fit_is_one_m5_large(report: dict[str, Any]) -> None:
    stories.check_cheapest_fit(report)


def test_spot_consolidation_ends_on_a_cheaper_smaller_spot_node(report: dict[str, Any]) -> None:
    stories.check_spot_consolidation(report)


def test_spot_default_comes_and_goes(report: dict[str, Any]) -> None:
    stories.check_spot_default(report)
