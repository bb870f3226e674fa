"""The policy pack in real previews: each group of rules refuses, and the example environments are clean.

The AKS environments are looked at in test_aks_nap.py and test_aks_self_hosted.py, where they are up anyway, and so are
the rules that are about Azure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.rehearsal.conftest import (
    Preview,
    RehearsedStack,
    preview_as_production,
    previewing_bad_resources,
    refused_for,
)

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


@pytest.fixture(scope="module")
def preview(eks: RehearsedStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preview]:
    """Previews the bad resources of a group with a configuration of the pack."""
    region = {"aws:region": eks.info.region}
    yield from previewing_bad_resources(eks, tmp_path_factory.mktemp("policies"), region)


@pytest.mark.parametrize("group", REFUSED)
def test_refuses_the_bad_resources_of_each_group(preview: Preview, group: str) -> None:
    assert refused_for(preview(group)) >= set(REFUSED[group])


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


def test_the_eks_environment_is_reviewed(eks: RehearsedStack, tmp_path: Path) -> None:
    said = eks.succeed("review", "--output", str(tmp_path))
    assert "Passed." in said, said
    page, comment = (tmp_path / "review.html").read_text(), (tmp_path / "review.md").read_text()
    for text in (page, comment):
        assert "node-image-pinned" in text, "an exception is in force"
        assert "service account kube-system/karpenter" in text
        assert "ec2:RunInstances" in text
    assert ">m5.large</td>" in page
    (run,) = json.loads((tmp_path / "review.sarif").read_text())["runs"]
    assert run["invocations"][0]["executionSuccessful"]
    assert [one["ruleId"] for one in run["results"] if one["suppressions"]] == ["node-image-pinned"] * 2
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    lines = eks.configuration.read_text().splitlines()
    assert {lines[one["region"]["startLine"] - 1].strip() for one in places} == {"default:", "bottlerocket:"}
    # The daemon that ran before runs on.
    assert eks.info.alive


def test_the_eks_environment_is_refused_when_it_breaks_a_rule(eks: RehearsedStack) -> None:
    # The file that the stack was brought up with, which plain pulumi reads.
    configuration = eks.configuration
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
