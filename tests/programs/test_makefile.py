"""What `make` builds for whom, and what it removes: nothing that the project did not make."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def clean(cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "clean-cache", f"KARPSTACK_CACHE={cache}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_cache_folder_with_somebody_elses_files_stays_as_it_is(tmp_path: Path) -> None:
    """A home, for example, where `go` is the user's own."""
    for name in ("go", ".ssh"):
        (tmp_path / name).mkdir()
    result = clean(tmp_path)
    assert result.returncode
    assert f"Kept: {tmp_path} holds what the project did not make: .ssh" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"go", ".ssh"}


def test_a_cache_folder_of_the_projects_alone_goes(tmp_path: Path) -> None:
    cache = tmp_path / "karpstack"
    for name in ("engines", "go", "uv"):
        (cache / name).mkdir(parents=True)
    (cache / "engines.lock").touch()
    assert clean(cache).returncode == 0
    assert not cache.exists()


@pytest.mark.parametrize(
    ("goals", "asked"),
    [
        (["rehearsal"], "-m rehearsal.engines Pulumi.eks.yaml"),
        (["soak", "STACK=aks-nap"], "-m rehearsal.engines Pulumi.aks-nap.yaml"),
        (["review", "STACK=aks-nap"], "-m rehearsal.engines Pulumi.aks-nap.yaml"),
        (["facts"], "-m rehearsal.engines"),
        (["test"], "-m rehearsal.engines"),
    ],
)
def test_a_stack_needs_the_engines_of_its_cloud_and_the_tests_need_all(goals: list[str], asked: str) -> None:
    result = subprocess.run(["make", "--dry-run", *goals], cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = (line for line in result.stdout.splitlines() if "-m rehearsal.engines" in line and "--lint" not in line)
    assert line.rstrip().endswith(asked)
