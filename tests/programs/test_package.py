"""The package stands alone: without the rehearsal, and as a library of other Pulumi programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_without_the_rehearsal_the_rest_is_complete(tmp_path: Path) -> None:
    stacks = [path.name for path in ROOT.glob("Pulumi*.yaml")]
    folders = (
        "components",
        "dashboards",
        "docs",
        "examples",
        "karpstack",
        "policies",
        "playbooks",
        "tests",
    )
    files = ("__main__.py", "ansible.cfg", "Makefile", "pyproject.toml", "requirements.lock")
    for name in (*stacks, *files, *folders):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, symlinks=True)  # with what is compiled already
        else:
            shutil.copy(source, tmp_path / name)
    # What rehearses pull requests goes with the rehearsal.
    for name in ("rehearsal", "pull_request"):
        shutil.rmtree(tmp_path / "karpstack" / name)
    gone = ("rehearsal", "unit/rehearsal", "programs/rehearsal", "unit/pull_request", "programs/pull_request")
    # So do tests that ask the simulated accounts.
    for name in (*gone, "unit/real_run"):
        shutil.rmtree(tmp_path / "tests" / name)
    preflight = tmp_path / "tests" / "unit" / "preflight"
    for path in (preflight / "conftest.py", preflight / "test_refresh.py", *preflight.glob("*preflight_*.py")):
        path.unlink()
    # These three are about the rehearsal's place in this repository.
    for name in ("test_arrows.py", "test_clock.py", "test_pins.py"):
        (tmp_path / "tests" / "unit" / name).unlink()
    # Every test is collected, which imports all that it needs. test_arrows.py sees the imports inside functions.
    tiers = ("tests/unit", "tests/policies", "tests/programs")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *tiers],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-5000:]
    assert " tests collected" in result.stdout


def test_the_components_install_as_karpstack(tmp_path: Path) -> None:
    for name in ("components", "karpstack"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / "source" / name, ignore=ignored, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "source" / name)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--disable-pip-version-check",
            "--target",
            str(tmp_path / "site"),
            str(tmp_path / "source"),
        ],
        check=True,
        capture_output=True,
    )
    code = (
        "from karpstack.components import eks, kubernetes, settings\n"
        "from karpstack.components.documents import manifests\n"
        "from karpstack.karpenter import crds, instance_types\n"
        "assert crds.problems('aws', 'NodePool', {}) and instance_types.Facts.load('aws').types\n"
        "print(eks.Environment.__module__, eks.__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith(f"karpstack.components.eks.environment {tmp_path / 'site'}")
    assert (tmp_path / "site" / "karpstack" / "py.typed").is_file()
    (metadata,) = (tmp_path / "site").glob("karpstack-*.dist-info/METADATA")
    clouds = [line for line in metadata.read_text().splitlines() if "pulumi-a" in line]
    assert [line.split("==")[0] for line in clouds] == [
        "Requires-Dist: pulumi-aws",
        "Requires-Dist: pulumi-azure-native",
    ]
    assert all("extra ==" in line for line in clouds)  # whoever has one cloud need not have the other's SDK


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("karpstack.components.settings", ("pulumi_aws", "pulumi_azure_native", "pulumi_kubernetes")),
        ("karpstack.components.eks", ("pulumi_azure_native",)),
        ("karpstack.components.aks", ("pulumi_aws",)),
    ],
)
def test_a_cloud_pays_for_no_other_clouds_sdk(imported: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(absent) & set(loaded.stdout.split())
