"""What the engine builder does with the programs on PATH, and with another builder beside it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from karpstack.rehearsal.engines import HERE, EngineSet, builder


def program(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the whole PATH, and an empty cache."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KARPSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "bin"


def test_missing_go_is_said_with_the_fix(only_path: Path) -> None:
    with pytest.raises(builder.BuildError, match=r"no `go` on PATH.*Install Go 1\.26 or newer"):
        builder.ensure()


def test_too_old_go_is_said_with_its_version(only_path: Path) -> None:
    found = program(only_path, "go", "echo go1.25.9")
    with pytest.raises(builder.BuildError, match=rf"{re.escape(str(found))} is go1\.25\.9"):
        builder.ensure()


@pytest.mark.parametrize(
    ("version", "host", "used"),
    [
        ("v3.259.0", True, True),
        ("v3.300.1", True, True),
        ("v4.0.0", True, True),
        ("v3.258.9", True, False),
        ("v3.259.0", False, False),
        ("nonsense", True, False),
    ],
)
def test_pulumi_on_path_is_used_when_it_suits(only_path: Path, version: str, host: bool, used: bool) -> None:
    own = program(only_path, "pulumi", f"echo {version}")
    if host:
        program(only_path, "pulumi-language-python", "")
    set_ = EngineSet(Path("/nowhere"))
    assert set_.program("pulumi") == (own if used else set_.part("pulumi") / "bin" / "pulumi")


def test_a_second_command_waits_for_the_first(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys, pathlib
        from karpstack.rehearsal.engines import builder
        with builder._lock(pathlib.Path(sys.argv[1])):
            print("locked", flush=True)
            sys.stdin.read()
    """)
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert first.stdout
        assert first.stdout.readline() == "locked\n"
        second = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        assert second.stdout
        assert second.stdout.readline().startswith("Another command is building the engines; waiting")
        first.communicate("")
        assert second.stdout.readline() == "locked\n"
        second.communicate("")
    finally:
        first.kill()
        first.wait()


def test_an_interrupted_build_leaves_no_set(only_path: Path, tmp_path: Path) -> None:
    program(only_path, "go", 'case "$1 $2" in "env GOVERSION") echo go1.26.1;; *) echo no network >&2; exit 1;; esac')
    with pytest.raises(builder.BuildError, match="no network"):
        builder.ensure()
    assert not EngineSet.current().complete("kubernetes")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{\n\t"VetxOnly": true\n}', ""),  # a package that ours import
        ('{\n\t"VetxOnly": false\n}', "seen -printf=true unit.cfg\n"),
    ],
)
def test_go_vet_looks_at_our_packages_alone(tmp_path: Path, content: str, said: str) -> None:
    real = program(tmp_path / "go tools", "vet", 'echo "seen $@"')
    tool = tmp_path / "tool"
    tool.write_text(builder._VET.format(vet=shlex.quote(str(real))))
    tool.chmod(0o755)
    (tmp_path / "unit.cfg").write_text(content)
    run = subprocess.run([tool, "-printf=true", "unit.cfg"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == said
    asked = subprocess.run([tool, "-V=full"], capture_output=True, text=True, check=True)
    assert asked.stdout == "seen -V=full\n"
