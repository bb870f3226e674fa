"""Write the tables of docs/reference/scenarios.md and a JSON schema for editors, from the models of scenario files.

`make goldens` writes both, and tests compare. What a key means is said
once, under `Attributes` of its model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from karpstack.text.docstrings import describe, field_meanings

from .actions import Churn, Life, Meanwhile, NodeClassPatch, NodePoolPatch, Nodes, OutOfCapacity, RollOut, Throttle
from .expectation import Expectation, Pending, Places, Replacement, WorkloadExpectation
from .pods import Deployment, PodForm, TopologySpread, Volume, WorkloadForm
from .scenario import NodeClassCopy, Part, Scenario, Step, Workload

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "reference" / "scenarios.md"
SCHEMA = ROOT / "playbooks" / "scenario.schema.json"

#: The tables by the name of their place in the document: where the keys are written, and the model that has them.
TABLES: dict[str, list[tuple[str, type[BaseModel]]]] = {
    "file": [
        ("", Scenario),
        ("workload.", Workload),
        ("workload.deployment.", Deployment),
        ("workloads.<name>.", WorkloadForm),
        ("….topologySpread[].", TopologySpread),
        ("….volumes[].", Volume),
        ("nodeClasses.<name>.", NodeClassCopy),
        ("environments.<kind>.", Part),
    ],
    "steps": [
        ("", Step),
        ("meanwhile.", Meanwhile),
        ("rollOut.", RollOut),
        ("patchNodePool.", NodePoolPatch),
        ("patchNodeClass.", NodeClassPatch),
        ("cordon, deleteNode, interrupt, rebalance: ", Nodes),
        ("outOfCapacity.", OutOfCapacity),
        ("throttle.", Throttle),
        ("churn.", Churn),
        ("live.", Life),
    ],
    "expectations": [
        ("", Expectation),
        ("replacement.", Replacement),
        ("pending.", Pending),
        ("workloads.<name>.", WorkloadExpectation),
    ],
}
#: Whose keys are said where their heirs' are not: `workloads` has those of a Deployment, but for its name.
_SAID: dict[type[BaseModel], type[BaseModel]] = {WorkloadForm: PodForm, WorkloadExpectation: Places}

_MARK = "<!-- {name}: written by `make goldens` from karpstack/scale_test/scenarios; do not edit -->"
_END = "<!-- end of {name} -->"


def table(name: str) -> str:
    """One table of the document."""
    rows = ["| key | meaning |", "| --- | --- |"]
    rows += [f"| {key} | {meaning} |" for where, model in TABLES[name] for key, meaning in _rows(where, model)]
    return "\n".join(rows)


def _rows(where: str, model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    said = _SAID[model].model_fields if model in _SAID else {}
    found = field_meanings(model)
    for name, field in model.model_fields.items():
        if name not in said:
            default = "" if field.is_required() else _default(field.get_default(call_default_factory=True))
            prefix = where if where.endswith(": ") else ""
            key = f"{prefix}`{'' if prefix else where}{field.alias or name}`"
            yield key, (found[name] + default).replace("|", "\\|")


def _default(value: object) -> str:
    """What holds where a key is left out, for what is not simply nothing."""
    if value is None or value in ({}, [], False, ""):
        return ""
    shown = value.model_dump(by_alias=True) if isinstance(value, BaseModel) else value
    return f" If left out: `{json.dumps(shown)}`."


def document(text: str) -> str:
    """docs/reference/scenarios.md with its tables as they are now.

    Raises:
        ValueError: It has no place for one of them.
    """
    for name in TABLES:
        begin, end = _MARK.format(name=name), _END.format(name=name)
        if begin not in text or end not in text:
            raise ValueError(f"{DOCUMENT}: has no place for {name}: lines with {begin} and {end}")
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{table(name)}\n\n{end}{rest.partition(end)[2]}"
    return text


def schema() -> dict[str, Any]:
    """The JSON schema of a scenario file, with what each key means."""
    made = Scenario.model_json_schema(by_alias=True)
    models = {model.__name__: model for model in _models()}
    for name, definition in ({**made.get("$defs", {}), "Scenario": made}).items():
        if model := models.get(name):
            describe(definition, model)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _models() -> Iterator[type[BaseModel]]:
    for models in TABLES.values():
        yield from (model for _, model in models)


def main() -> None:
    """Write both."""
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
