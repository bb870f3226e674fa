"""The engine builder's decisions: what is built, when, and what it says when it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from rehearsal import engines
from rehearsal.engines import HERE, builder


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
            (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / source).touch()
        assert 'import _ "karpstack/engines/guard"' in (HERE / name / "controller" / "guarded.go").read_text()
    go = SimpleNamespace(module_folder=lambda _, module: tmp_path / module)
    with builder._upstream_mains(go) as flag:  # type: ignore[arg-type]
        overlay = json.loads(Path(flag.removeprefix("-overlay=")).read_text())
    assert overlay == {
        "Replace": {
            str(HERE / name / "controller" / "main.go"): str(tmp_path / module / "cmd" / "controller" / "main.go")
            for name, module in builder._CONTROLLERS.items()
        }
    }


def test_no_controller_is_built_without_its_guard() -> None:
    built = {
        name: package for build in builder.builds("v1.36.3", pulumi=True) for name, package in build.programs.items()
    }
    for name in builder._CONTROLLERS:
        assert built[name] == f"karpstack/engines/{name}/controller"


def test_engines_are_built_for_the_machine_that_they_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GOOS", "plan9"), ("GOARCH", "arm"), ("GOPROXY", "https://proxy.example")):
        monkeypatch.setenv(name, value)
    found = builder.Go("go", "go1.26.0").environment
    assert not {"GOOS", "GOARCH"} & set(found)
    assert found["GOPROXY"] == "https://proxy.example"
