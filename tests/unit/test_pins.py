"""One version of each thing: what is deployed is what is rehearsed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from karpstack.components import versions
from karpstack.components.documents import charts
from karpstack.rehearsal import engines
from karpstack.rehearsal.aws import provider as aws
from karpstack.rehearsal.cluster import provider as kubernetes

ROOT = Path(__file__).resolve().parents[2]


def module_pin(module: str, path: str) -> str:
    text = (engines.HERE / module / "go.mod").read_text()
    found = re.search(rf"^(?:require )?\s*{re.escape(path)} v(\S+)", text, re.MULTILINE)
    assert found, f"{path} is not pinned in {module}/go.mod"
    return found[1]


def package_pin(package: str) -> str:
    """Version of a package in requirements.lock, where its hashes follow."""
    lock = (ROOT / "requirements.lock").read_text()
    found = re.search(rf"^{re.escape(package.lower())}(?:\[\S+\])?==(\S+)(?: ;.*)? \\$", lock, re.MULTILINE)
    assert found, f"{package} is not in requirements.lock; run make lock"
    return found[1]


def direct() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = [project["project"]["dependencies"], *extras.values(), *project["dependency-groups"].values()]
    return [Requirement(line) for group in groups for line in group if not line.startswith("karpstack[")]


def test_karpenter_is_one_version() -> None:
    assert module_pin("karpenter-aws", "github.com/aws/karpenter-provider-aws") == versions.KARPENTER_AWS
    assert engines.release("aws") == versions.KARPENTER_AWS


def test_karpenter_for_azure_is_what_is_rehearsed() -> None:
    assert module_pin("karpenter-azure", "github.com/Azure/karpenter-provider-azure") == versions.KARPENTER_AZURE
    assert engines.release("azure") == versions.KARPENTER_AZURE
    with pytest.raises(LookupError, match=r"there is no Karpenter for gcp"):
        engines.release("gcp")


def test_cilium_is_one_version() -> None:
    assert module_pin("charts", "github.com/cilium/cilium") == versions.CILIUM


def test_kubernetes_is_one_minor_version() -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.eks.yaml").read_text())["config"]
    pin = module_pin("kubernetes", "k8s.io/kubernetes")
    assert stack["karpstack:cluster"]["version"] == ".".join(pin.split(".")[:2])


@pytest.mark.parametrize(
    ("package", "version"),
    [("pulumi", engines.PULUMI_VERSION), ("pulumi-aws", aws.VERSION), ("pulumi-kubernetes", kubernetes.VERSION)],
)
def test_the_providers_are_the_sdks_versions(package: str, version: str) -> None:
    assert package_pin(package) == version


def test_the_sdk_is_the_engines_version() -> None:
    assert module_pin("pulumi", "github.com/pulumi/pulumi/pkg/v3") == engines.PULUMI_VERSION
    workflow = (ROOT / ".github" / "workflows" / "real-run.yml").read_text(encoding="utf-8")
    assert re.findall(r'PULUMI_VERSION: "(.+)"', workflow) == [engines.PULUMI_VERSION]


def test_every_direct_dependency_has_a_lowest_version_and_is_locked_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for one in direct():
        assert {each.operator for each in one.specifier} & {">=", "=="}, one
        assert package_pin(one.name) in one.specifier, one
    assert "http" not in re.sub(r"(aio)?http\S*==", "", lock).replace("httpx", ""), "a registry's address in the lock"


def test_the_document_names_the_versions_that_can_be_rehearsed() -> None:
    text = (ROOT / "docs" / "how-to" / "whatif.md").read_text(encoding="utf-8")
    rows = [
        line for line in text.splitlines() if line.startswith(("| `karpenter.chartVersion`", "| `cluster.version`"))
    ]
    for row, newest in zip(rows, ("karpenter-aws", "karpenter-azure", "kubernetes"), strict=True):
        assert re.findall(r"\d+(?:\.\d+)+", row)[: len(engines.releases(newest))] == [*engines.releases(newest)], row


@pytest.mark.parametrize("version", engines.releases("karpenter-aws"))
def test_the_kubernetes_versions_of_each_release_are_known(version: str) -> None:
    assert charts.release(version) >= charts.release(versions.KARPENTER_AWS_OLDEST)
    assert charts.release(versions.COMPATIBILITY["karpenter-aws"][-1].since) <= charts.release(version)


def test_the_version_of_the_project_stands_in_pyproject_and_elsewhere_as_there() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    expected = {
        "playbooks/galaxy.yml": r"^version: ([\d.]+)",
        "policies/PulumiPolicy.yaml": r"^version: ([\d.]+)",
        "README.md": r"Alpha \(([\d.]+)\)",
        "docs/how-to/engines.md": r"engines:([\d.]+\d)",
        "karpstack/cli/engines.py": r"engines:([\d.]+\d)",
        "playbooks/README.md": r"scale_test-([\d.]+)\.tar",
    }
    for name, pattern in expected.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(pattern, text, re.MULTILINE)) == {version}, name
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([\w.]+)\]", changes, re.MULTILINE)[:2] == ["Unreleased", version]


@pytest.mark.parametrize("name", ["Dockerfile", ".devcontainer/Dockerfile"])
def test_an_image_begins_with_one_of_a_known_digest(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    bases = [base for base in re.findall(r"^(?:FROM |ARG BASE=)(\S+)", text, re.MULTILINE) if base != "${BASE}"]
    assert len(bases) == 1
    assert re.fullmatch(r"docker\.io/library/\w+:[\w.-]+@sha256:[0-9a-f]{64}", bases[0])


def test_the_image_gets_every_file_that_it_reads() -> None:
    first, *kept = (ROOT / ".dockerignore").read_text().splitlines()
    read = set(re.findall(r"/source/([\w./*-]+)", (ROOT / "Dockerfile").read_text()))
    assert (first, {line.removeprefix("!") for line in kept}) == ("*", read)
