"""components.outputs: one statement, and the component, the program, the documentation and its readers follow it."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pulumi
import pytest

from karpstack.components.outputs import descriptions
from tests.unit.example_stack import ROOT, STACKS, example
from tests.unit.mock_engine import deploy

PAGE = ROOT / "docs" / "reference" / "outputs.md"
HEAD = """\
# Outputs of a stack

<!-- Written by `make goldens` from components/outputs.py; do not edit. -->

`pulumi stack output --json` prints them. The scale test reads a stack only through its outputs. The components
`eks.Environment` and `aks.Environment` have the same values in `outputs`.

| output | meaning |
| --- | --- |
"""
#: Where a stack is known by its outputs. What looks an output up there has no types to be checked by.
READERS = ("karpstack/scale_test", "playbooks", "karpstack/preflight", "karpstack/rehearsal/session")
LOOKED_UP = re.compile(r"""\boutputs(?:\[|\.get\()["'](\w+)["']""")


@pytest.mark.parametrize("stack", STACKS)
def test_the_component_registers_them_and_the_program_exports_them(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exported: dict[str, Any] = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)

    def program() -> None:
        pulumi.runtime.set_all_config(example(stack))
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    deployment = deploy(program)
    (environment,) = (urn for urn, each in deployment.resources.items() if each.type.endswith(":Environment"))
    assert list(exported) == list(descriptions())
    assert set(deployment.outputs[environment]) == set(descriptions())


def test_the_documentation_has_them(request: pytest.FixtureRequest) -> None:
    written = HEAD + "".join(f"| `{name}` | {what} |\n" for name, what in descriptions().items())
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written)
    assert PAGE.read_text() == written, f"{PAGE} differs; see --update-goldens"


def test_who_looks_one_up_calls_it_by_its_name() -> None:
    paths = [path for folder in READERS for path in (ROOT / folder).rglob("*.py")]
    found = {name for path in paths for name in LOOKED_UP.findall(path.read_text())}
    assert "defaultNodePools" in found
    assert found <= {*descriptions()}
