"""The engine builder's decisions: what is built, when, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from rehearsal import engines
from rehearsal.engines import HERE, EngineSet, builder


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


def test_key_changes_with_every_pin_and_every_line_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "engines"
    for source in [*HERE.glob("*/go.mod"), *HERE.glob("*/go.sum"), *HERE.glob("*/**/*.go")]:
        target = copy / source.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    monkeypatch.setattr(engines, "HERE", copy)
    keys = {engines.recipe_key()}
    pins = [path for path in sorted(copy.rglob("*")) if path.is_file()]
    for pin in pins:
        pin.write_text(pin.read_text() + "// changed\n")
        keys.add(engines.recipe_key())
    assert len(keys) == 1 + len(pins)


@pytest.mark.parametrize(
    ("version", "host", "used"),
    [
        ("v3.246.0", True, True),
        ("v3.300.1", True, True),
        ("v4.0.0", True, True),
        ("v3.245.9", True, False),
        ("v3.246.0", False, False),
        ("nonsense", True, False),
    ],
)
def test_pulumi_on_path_is_used_when_it_suits(only_path: Path, version: str, host: bool, used: bool) -> None:
    own = program(only_path, "pulumi", f"echo {version}")
    if host:
        program(only_path, "pulumi-language-python", "")
    set_ = EngineSet(Path("/nowhere"))
    assert set_.program("pulumi") == (own if used else Path("/nowhere/bin/pulumi"))


def test_every_build_names_a_main_package_that_its_module_pins() -> None:
    for build in builder.builds("v1.36.3", pulumi=True):
        pins = (HERE / build.module / "go.mod").read_text()
        for package in build.programs.values():
            assert package in pins or package.startswith(f"karpstack/engines/{build.module}/")
        names = [builder._file_name(package) for package in build.programs.values()]
        assert len(names) == len(set(names)), "two programs would be written to one file"


def test_upstreams_mains_are_laid_beside_our_guards(tmp_path: Path) -> None:
    for name, module in builder._CONTROLLERS.items():
        for source in (f"{module}/cmd/controller/main.go", f"{module}/cmd/controller/main_test.go"):
            program(tmp_path / Path(source).parent, Path(source).name, "")
        assert (
            'import _ "karpstack/engines/kubernetes/guard"' in (HERE / "kubernetes" / name / "guarded.go").read_text()
        )
    go = SimpleNamespace(module_folder=lambda _, module: tmp_path / module)
    with builder._upstream_mains(go) as flag:  # type: ignore[arg-type]
        overlay = json.loads(Path(flag.removeprefix("-overlay=")).read_text())
    assert overlay == {
        "Replace": {
            str(HERE / "kubernetes" / name / "main.go"): str(tmp_path / module / "cmd" / "controller" / "main.go")
            for name, module in builder._CONTROLLERS.items()
        }
    }


def test_no_controller_is_built_without_its_guard() -> None:
    built = {
        name: package for build in builder.builds("v1.36.3", pulumi=True) for name, package in build.programs.items()
    }
    for name in builder._CONTROLLERS:
        assert built[name] == f"karpstack/engines/kubernetes/{name}"


def test_a_second_command_waits_for_the_first(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys, pathlib
        from rehearsal.engines import builder
        with builder._lock(pathlib.Path(sys.argv[1])):
            print("locked", flush=True)
            sys.stdin.read()
    """)
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
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
    assert not EngineSet.current().complete


def test_engines_are_built_for_the_machine_that_they_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GOOS", "plan9"), ("GOARCH", "arm"), ("GOPROXY", "https://proxy.example")):
        monkeypatch.setenv(name, value)
    found = builder._Go("go", "go1.26.0").environment
    assert not {"GOOS", "GOARCH"} & set(found)
    assert found["GOPROXY"] == "https://proxy.example"
