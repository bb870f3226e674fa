"""The policy pack in real previews: each group of rules refuses, and the example environments are clean.

The AKS environments are looked at in test_aks.py, where they are up anyway.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.rehearsal.conftest import LIMIT, ROOT, RehearsedStack, preview_as_production

PROGRAM = ROOT / "tests" / "rehearsal" / "bad_resources"

#: What each group's resources must be refused for.
REFUSED = {
    "identity": ("iam-no-wildcard-action", "iam-no-wildcard-resource", "iam-pass-role-scoped", "iam-trust-bound"),
    "network": ("cluster-endpoint-allow-list", "no-open-ingress", "cilium-overlay"),
    "node pools": ("node-pool-limits", "node-pool-cost-ceiling", "node-pool-matches-types", "node-pool-min-values"),
    "node classes": ("node-imdsv2", "node-volumes-encrypted", "node-no-public-ip", "node-image-pinned"),
    "controller": ("charts-pinned", "karpenter-availability", "karpenter-off-its-nodes"),
    "data": ("queue-encrypted", "queue-policy-closed", "tags-required"),
    "stack": (
        "cidrs-no-overlap",
        "discovery-resolves",
        "karpenter-crd-version",
        "karpenter-feature-gates",
        "node-class-resolves",
        "node-max-pods",
        "node-pools-exclusive",
        "spot-interruption-queue",
    ),
}

Preview = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def preview(eks: RehearsedStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preview]:
    """Previews the bad resources of a group with a configuration of the pack."""
    folder = tmp_path_factory.mktemp("policies")
    variables = {
        **eks.variables,
        "PULUMI_STACK": "bad-resources",
        "PULUMI_OPTION_CONFIG_FILE": str(folder / "Pulumi.bad-resources.yaml"),
        # The program's folder is the engine's; the pack is in the checkout.
        "PYTHONPATH": str(ROOT) + os.pathsep + os.environ.get("PYTHONPATH", ""),
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *command, "--non-interactive"],
            cwd=PROGRAM,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )

    def previewed(
        group: str, configuration: Path = ROOT / "policies" / "production.json"
    ) -> subprocess.CompletedProcess[str]:
        arguments = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(configuration))
        return run("preview", "--config", f"group={group}", *arguments)

    for command in (
        ("stack", "init", "bad-resources"),
        ("config", "set", "aws:region", eks.info.region),
        ("config", "set", "--secret", "kubeconfig", eks.folder.kubeconfig.read_text()),
    ):
        result = run(*command)
        assert result.returncode == 0, result.stdout
    yield previewed
    run("stack", "rm", "--yes", "--force")


@pytest.mark.parametrize("group", REFUSED)
def test_refuses_the_bad_resources_of_each_group(preview: Preview, group: str) -> None:
    result = preview(group)
    assert result.returncode != 0, result.stdout
    missing = [name for name in REFUSED[group] if name not in result.stdout]
    assert not missing, result.stdout


def test_an_exception_is_reported_and_ends(preview: Preview, tmp_path: Path) -> None:
    configuration = tmp_path / "exceptions.json"
    granted = {"rule": "tags-required", "resource": "good", "reason": "to be seen", "until": "2999-12-31"}
    configuration.write_text(json.dumps({"exceptions": {"granted": [granted]}}))
    result = preview("exceptions", configuration)
    assert result.returncode == 0, result.stdout
    assert "tags-required is not applied to good until 2999-12-31: to be seen" in result.stdout

    configuration.write_text(json.dumps({"exceptions": {"granted": [granted | {"until": "2020-01-31"}]}}))
    result = preview("exceptions", configuration)
    assert result.returncode != 0, result.stdout
    assert "That day is over" in result.stdout

    configuration.write_text(json.dumps({"exceptions": {"granted": [granted | {"rule": "no-such"}]}}))
    result = preview("exceptions", configuration)
    assert result.returncode != 0, result.stdout
    assert "'no-such', which is no rule of this pack" in result.stdout


def test_the_eks_environment_is_clean_under_production_settings(eks: RehearsedStack) -> None:
    findings = preview_as_production(eks)
    # The two that carry a reasoned exception, and nothing else.
    assert findings.count("exceptions-in-force") == 2, findings
    assert findings.count("node-image-pinned is not applied to") == 2, findings


def test_the_eks_environment_is_refused_when_it_breaks_a_rule(eks: RehearsedStack) -> None:
    # The copy that the stack was brought up with, which plain pulumi reads.
    configuration = eks.folder.stack_configuration
    before = configuration.read_text()
    content = yaml.safe_load(before)
    del content["config"]["karpstack:nodePools"]["default"]["limits"]
    configuration.write_text(yaml.safe_dump(content, sort_keys=False))
    try:
        result = eks.by_hand("pulumi", "preview", "--non-interactive", "--policy-pack", "policies")
    finally:
        configuration.write_text(before)
    assert result.returncode != 0, result.stdout
    assert "node-pool-limits" in result.stdout
