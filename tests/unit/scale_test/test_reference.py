"""What is said of scenario files follows from their models: the document, the schema for editors, and a start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis.strategies import binary

from karpstack.scale_test.scenarios import reference
from karpstack.scale_test.scenarios.scenario import ScenarioError, load
from karpstack.scale_test.scenarios.start import write
from karpstack.text.docstrings import field_meanings
from tests.mutations import mutations, taken
from tests.unit.command_line import karpstack
from tests.unit.scale_test.full_scenario import FULL

main = karpstack("scenario")

SCENARIOS = reference.ROOT / "playbooks" / "scenarios"


def valid(data: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(reference.schema()).is_valid(data))


def test_the_document_says_what_the_models_say() -> None:
    text = reference.DOCUMENT.read_text(encoding="utf-8")
    assert reference.document(text) == text, "run: make goldens"
    with pytest.raises(ValueError, match="has no place for steps"):
        reference.document(text.replace("<!-- end of steps -->", ""))


def test_the_schema_says_what_the_models_say() -> None:
    assert json.loads(reference.SCHEMA.read_text(encoding="utf-8")) == reference.schema(), "run: make goldens"


def test_every_key_is_explained_once() -> None:
    for name, models in reference.TABLES.items():
        text = reference.table(name)
        for _, model in models:
            assert set(field_meanings(model)) == set(model.model_fields), model
        assert all(len(row) > len("| `` |  |") for row in text.splitlines())


def test_what_may_be_written_suits_the_schema() -> None:
    assert valid(FULL)
    for path in sorted(SCENARIOS.glob("*.yml")):
        assert valid(yaml.safe_load(path.read_text(encoding="utf-8"))), path
    assert not valid({**FULL, "step": []})
    assert not valid({**FULL, "steps": [{"scale": "many", "expect": {"within": 60}}]})


def test_a_start_is_a_scenario_and_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert main(["new", "two-pods", "--folder", str(folder)]) == 0
    assert str(folder / "two-pods.yml") in capsys.readouterr().out
    (scenario,) = load(folder)
    assert (scenario.name, len(scenario.steps)) == ("two-pods", 2)
    text = (folder / "two-pods.yml").read_text(encoding="utf-8")
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (folder / named).resolve() == reference.SCHEMA
    assert valid(yaml.safe_load(text))
    assert main(["new", "two-pods", "--folder", str(folder)]) == 2
    assert "would be lost; name another file" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["new", "two-pods", "--folder", str(tmp_path / "file")]) == 2
    assert "file: File exists; give another path" in capsys.readouterr().err
    with pytest.raises(ScenarioError, match=r"name: '../a': Kubernetes would refuse this name"):
        write(folder, "../a")


def test_the_name_of_a_folder_does_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "\x1b[31m\u202e\nname: b"
    assert main(["new", "two-pods", "--folder", str(folder)]) == 0
    assert main(["check", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.count(r"\x1b[31m\u202e") == 3
    assert said.isascii()
    assert "\x1b" not in said
    assert load(folder)[0].name == "two-pods"


def loaded(folder: Path, content: bytes) -> None:
    """Read a scenario file: it is taken, or refused in sentences."""
    (folder / "a.yml").write_bytes(content)
    taken(lambda: load(folder), ScenarioError, names="a.yml: ")


@settings(max_examples=100, deadline=None, derandomize=True)
@given(mutations(FULL))
def test_no_scenario_file_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    loaded(tmp_path_factory.mktemp("scenarios"), text.encode("utf-8", "surrogatepass"))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(binary(max_size=200))
def test_neither_does_any_other_file(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    start = yaml.safe_dump(FULL).encode()
    loaded(tmp_path_factory.mktemp("scenarios"), start[: len(start) // 2] + data + start[len(start) // 2 :])
