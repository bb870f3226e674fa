"""What is known of the format from its models: the JSON schema, and the tables of docs/reference/snapshot.md.

`python -m karpstack.snapshot.reference` writes both, and tests compare. What a key means stands once, in its model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from .formats import models_in
from .model import Bought, Snapshot

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs" / "reference" / "snapshot.md"
SCHEMA: Final = ROOT / "karpstack" / "snapshot" / "schema.json"

_BEGIN: Final = "<!-- format: written by `python -m karpstack.snapshot.reference`; do not edit -->"
_END: Final = "<!-- end of format -->"
#: Shapes that are Kubernetes' own, of which its documents tell.
_KUBERNETES: Final = frozenset({"Affinity", "LabelSelector", "TopologySpreadConstraint", "Toleration", "Taint"})


def models() -> dict[str, type[BaseModel]]:
    """Every model of the format by its name, the whole file first."""
    found: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [Snapshot]
    while waiting:
        model = waiting.pop(0)
        if model.__name__ not in found:
            found[model.__name__] = model
            fields = model.model_fields.values()
            waiting += [inner for field in fields for inner in models_in(field.annotation) if inner is not Bought]
    return found


def schema() -> dict[str, Any]:
    """The JSON schema of a snapshot, with what each key means."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Snapshot.model_json_schema(by_alias=True),
    }


def table() -> str:
    """The tables of the document: one a model that is the format's own."""
    lines: list[str] = []
    for name, model in models().items():
        if name in _KUBERNETES or not _own(model):
            continue
        lines += [f"**{_title(name)}**", "", "| key | meaning |", "| --- | --- |"]
        for field, info in model.model_fields.items():
            meaning = (info.description or "").replace("|", "\\|")
            lines.append(f"| `{info.alias or field}` | {meaning} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def document(text: str) -> str:
    """docs/reference/snapshot.md with its tables as they are now.

    Raises:
        ValueError: It has no place for them.
    """
    if _BEGIN not in text or _END not in text:
        raise ValueError(f"{DOCUMENT}: has no place for the format: lines with {_BEGIN} and {_END}")
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{rest.partition(_END)[2]}"


def _own(model: type[BaseModel]) -> bool:
    return model.__module__.endswith(".model") or model.__name__ in ("Pod", "Volume", "VolumePlace", "HostPort")


def _title(name: str) -> str:
    return {"Snapshot": "The whole file", "NamespaceOf": "Namespace"}.get(name, name)


def main() -> None:
    """Write both."""
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
