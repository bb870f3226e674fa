"""The collection, built and installed into an empty folder, and the checkout as a collection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
NAMES = sorted(path.stem for path in (PLAYBOOKS / "playbooks").iterdir())
MODULES = sorted(path.stem for path in (PLAYBOOKS / "plugins" / "modules").glob("*.py"))


def ansible(command: str, *arguments: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Ansible in a folder, without the user's settings and without a network."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_HOME": str(folder / "ansible"), "HOME": str(folder), "PWD": "/"}
    return subprocess.run(
        [str(Path(sys.executable).with_name(command)), *map(str, arguments)],
        cwd=folder,
        env=environment
        | {"NO_COLOR": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which only the built collection is installed."""
    empty = tmp_path_factory.mktemp("collection")
    built = ansible("ansible-galaxy", "collection", "build", PLAYBOOKS, "--output-path", empty / "built", folder=empty)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    (archive,) = (empty / "built").iterdir()
    there = ("--offline", "--collections-path", empty / "installed")
    installed = ansible("ansible-galaxy", "collection", "install", archive, *there, folder=empty)
    assert installed.returncode == 0, installed.stderr
    return empty


def test_what_is_installed_is_complete_and_no_more(folder: Path) -> None:
    root = folder / "installed" / "ansible_collections" / "karpstack" / "scale_test"
    assert not [name for name in ("collections", "tests") if (root / name).exists()]
    assert "karpstack[scale-test]" in (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert not [path for path in root.rglob("*") if path.is_symlink() or path.suffix == ".pyc"]
    assert (root / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert {path.name for path in (root / "scenarios").iterdir()} == {
        path.name for path in (PLAYBOOKS / "scenarios").iterdir()
    }


def test_an_installed_playbook_is_run_by_its_name(folder: Path) -> None:
    names = [f"karpstack.scale_test.{name}" for name in NAMES]
    listed = ansible("ansible-playbook", "--list-tasks", *names, folder=folder, ANSIBLE_COLLECTIONS_PATH="installed")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.count("playbook: ") == len(names)
    run = ansible(
        *("ansible-playbook", "karpstack.scale_test.scale_test", "--check"),
        folder=folder,
        **{"ANSIBLE_COLLECTIONS_PATH": "installed", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    # Far enough for a module, a role and the folder where Pulumi is asked.
    assert "Check what is given with -e" in run.stdout
    assert "The stack is not up" in run.stdout, run.stdout + run.stderr
    assert "there is no program pulumi in PATH" in run.stdout


@pytest.mark.parametrize("where", ["installed", "checkout"])
def test_every_module_has_a_page_of_documentation(where: str, folder: Path) -> None:
    names = [f"karpstack.scale_test.{name}" for name in MODULES]
    paths = {"installed": "installed", "checkout": str(PLAYBOOKS / "collections")}
    page = ansible("ansible-doc", "--json", *names, folder=folder, ANSIBLE_COLLECTIONS_PATH=paths[where])
    assert page.returncode == 0, page.stderr
    assert page.stderr == ""
    pages = json.loads(page.stdout)
    assert all(pages[name]["doc"]["options"] and pages[name]["return"] and pages[name]["examples"] for name in names)
