"""The list of pins: what is on it, and what it says when a registry does not answer. No process is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from karpstack.rehearsal import outdated
from karpstack.rehearsal.engines import PULUMI_VERSION

MODULE = {
    "Tool": [{"Path": "example.org/app/cmd/app"}],
    "Require": [
        {"Path": "example.org/app", "Version": "v1.2.0", "Indirect": True},
        {"Path": "example.org/application", "Version": "v9.0.0", "Indirect": True},
        {"Path": "example.org/direct", "Version": "v0.1.0"},
        {"Path": "example.org/held", "Version": "v2.1.0", "Indirect": True},
        {"Path": "karpstack/engines/guard", "Version": "v0.0.0"},
        {"Path": "k8s.io/api", "Version": "v0.36.3", "Indirect": True},
    ],
    "Replace": [
        {"Old": {"Path": "example.org/held"}, "New": {"Path": "example.org/held", "Version": "v2.0.0"}},
        {"Old": {"Path": "karpstack/engines/guard"}, "New": {"Path": "../guard"}},
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "k8s.io/api", "Version": "v0.36.3"}},
    ],
}


def go(answers: Mapping[str, Mapping[str, Any]]) -> Any:
    """A `go` that has MODULE as every go.mod, and answers as it is told."""

    def run(_: str, *arguments: str) -> str:
        if arguments[:2] == ("mod", "edit"):
            return json.dumps(MODULE)
        paths = [argument.removesuffix("@latest") for argument in arguments if argument.endswith("@latest")]
        return "\n".join(json.dumps({"Path": path, **answers[path]}, indent=1) for path in paths)

    return SimpleNamespace(run=run)


def test_what_a_go_mod_chooses_is_listed_and_what_follows_is_not() -> None:
    answers: dict[str, dict[str, Any]] = {
        "example.org/app": {"Version": "v1.3.0"},
        "example.org/direct": {"Version": "v0.1.0"},
        "example.org/held": {"Version": "latest", "Error": {"Err": "403 Forbidden"}},
    }
    found = {(pin.name, pin.used, pin.newest) for pin in outdated.go_pins(go(answers))}
    assert found == {
        ("example.org/app", "v1.2.0", "v1.3.0"),
        ("example.org/direct", "v0.1.0", "v0.1.0"),
        ("example.org/held", "v2.0.0", "not answered"),
    }


def test_no_answer_at_all_is_an_error_with_its_fix() -> None:
    names = ("example.org/app", "example.org/direct", "example.org/held")
    silent: dict[str, dict[str, Any]] = {name: {"Error": {"Err": "no route"}} for name in names}
    with pytest.raises(outdated.RegistryError, match=r"Go modules was not reached.*no route.*GOPROXY"):
        list(outdated.go_pins(go(silent)))


def test_the_index_that_does_not_answer_is_an_error_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=2, stderr="error: Failed to fetch\n  cause: refused", stdout="")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: failed)
    with pytest.raises(
        outdated.RegistryError, match=r"Python packages.*Failed to fetch cause: refused.*UV_DEFAULT_INDEX"
    ):
        outdated.outdated_packages()


def test_every_direct_pin_is_listed_and_of_the_others_what_is_old() -> None:
    pins = {pin.name: pin for pin in outdated.python_pins({"pulumi": "9.9.9", "protobuf": "99.0"})}
    assert pins["pulumi"] == outdated.Pin("requirements.lock", "pulumi", PULUMI_VERSION, "9.9.9")
    assert pins["moto"].used == pins["moto"].newest
    assert (pins["protobuf"].file, pins["protobuf"].newest) == ("requirements.lock", "99.0")
    assert "aiohttp" not in pins


def test_what_is_not_at_its_newest_is_marked() -> None:
    text = outdated.table([outdated.Pin("go.mod", "a", "v1", "v2"), outdated.Pin("go.mod", "longer", "v1", "v1")])
    assert [line.endswith("*") for line in text.splitlines()] == [False, True, False]
