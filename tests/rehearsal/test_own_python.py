"""A program whose Pulumi.yaml names a Python environment of its own is run by that one's Python, as in the cloud."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from karpstack.rehearsal.engines import EngineSet
from karpstack.text.packaged import IMPORT_ROOT

PROGRAM = """\
import sys
from components import MEANING  # this program's, and not the checkout's of that name
import pulumi
pulumi.export("prefix", sys.prefix)
pulumi.export("meaning", MEANING)
if pulumi.Config().get_bool("fail"):
    raise ValueError("as it was asked to")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with an environment of its own, which borrows the packages of this one."""
    folder = tmp_path / "program"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "own")], check=True)
    (packages,) = (folder / "own" / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"])
    (folder / "Pulumi.yaml").write_text("name: p\nruntime: {name: python, options: {virtualenv: own}}\n")
    (folder / "components.py").write_text("MEANING = 42\n")
    (folder / "__main__.py").write_text(PROGRAM)
    return folder


def pulumi(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    engine = EngineSet.current().program("pulumi")
    (folder / "state").mkdir(exist_ok=True)
    variables = os.environ | {
        "PATH": os.pathsep.join([str(engine.parent), os.environ["PATH"]]),
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "KARPSTACK_PYTHON": sys.executable,
        "PYTHONPATH": str(IMPORT_ROOT),
    }
    command = [str(engine), *arguments, "--non-interactive", "--stack", "s"]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False)


def test_it_runs_there_and_its_failure_is_told(program: Path) -> None:
    assert pulumi(program, "stack", "init").returncode == 0
    done = pulumi(program, "up", "--yes", "--skip-preview")
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = json.loads(pulumi(program, "stack", "output", "--json").stdout)
    assert outputs == {"prefix": str(program / "own"), "meaning": 42}
    failed = pulumi(program, "up", "--yes", "--skip-preview", "--config", "fail=true")
    assert failed.returncode != 0
    assert failed.stdout.count("ValueError: as it was asked to") == 1


def test_an_environment_without_pulumi_is_named(program: Path) -> None:
    (pth,) = (program / "own" / "lib").glob("python*/site-packages/borrowed.pth")
    pth.unlink()
    assert pulumi(program, "stack", "init").returncode == 0
    failed = pulumi(program, "up", "--yes", "--skip-preview")
    assert failed.returncode != 0
    assert "the environment needs the package pulumi" in failed.stdout
