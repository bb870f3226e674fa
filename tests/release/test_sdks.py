"""The SDKs that Pulumi's generators write from the schema of the package compile; modules come from the registries."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from karpstack.rehearsal.engines import PULUMI_VERSION
from karpstack.rehearsal.engines.builder import HERE

SCHEMA = Path(__file__).resolve().parents[2] / "components" / "schema.json"


def run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True)


@pytest.fixture(scope="module")
def sdks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is generated, in folders `go` and `nodejs`, by the modules of the rehearsal's engine."""
    folder = tmp_path_factory.mktemp("sdks")
    run(HERE / "pulumi", "go", "run", str(Path(__file__).with_name("generate.go")), str(SCHEMA), str(folder))
    return folder


def test_go_takes_its_sdk(sdks: Path) -> None:
    folder = sdks / "go" / "karpstack"
    run(folder, "go", "mod", "init", "example.com/pulumi-karpstack/sdk/go/karpstack")
    run(folder, "go", "get", f"github.com/pulumi/pulumi/sdk/v3@v{PULUMI_VERSION}")
    run(folder, "go", "mod", "tidy")
    run(folder, "go", "vet", "./...")


def test_typescript_takes_its_sdk(sdks: Path) -> None:
    run(sdks / "nodejs", "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")
    run(sdks / "nodejs", "npx", "tsc", "--noEmit")
