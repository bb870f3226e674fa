"""Writes karpenter/schemas/: the schemas of Karpenter's NodePools and node classes, from the pinned CRD charts.

`make facts`, or `python -m rehearsal.crds [FOLDER]`. Descriptions are left out, and rules that compare an object with
what it was before (`oldSelf`), which say nothing of a new one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from karpenter.crds import FOLDER
from rehearsal.engines import EngineSet

_KINDS = {"aws": ("NodePool", "EC2NodeClass"), "azure": ("NodePool", "AKSNodeClass")}
_RULES = "x-kubernetes-validations"


def documents(engines: EngineSet) -> dict[str, str]:
    """Name of each file -> its text."""
    return {f"{cloud}.json": _document(engines, f"karpenter-crd-{cloud}", kinds) for cloud, kinds in _KINDS.items()}


def _document(engines: EngineSet, chart: str, kinds: Sequence[str]) -> str:
    folder = engines.chart(chart)
    rendered = subprocess.run(
        [engines.program("helm"), "template", folder], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found = {crd["spec"]["names"]["kind"]: crd for crd in yaml.safe_load_all(rendered) if crd}
    version = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))["version"]
    content = {
        "source": {"chart": chart.removesuffix("-aws").removesuffix("-azure"), "version": version},
        "kinds": {kind: _without_words(_spec(found[kind])) for kind in kinds},
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _spec(crd: Mapping[str, Any]) -> Any:
    """The schema of the spec, in the version that is stored."""
    (stored,) = (version for version in crd["spec"]["versions"] if version["storage"])
    return stored["schema"]["openAPIV3Schema"]["properties"]["spec"]


def _without_words(schema: Any) -> Any:
    """A schema without descriptions; a field may itself be called `description`."""
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: value for key, value in schema.items() if key != "description"}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _without_words(kept[key])
    if "properties" in kept:
        kept["properties"] = {name: _without_words(field) for name, field in kept["properties"].items()}
    if _RULES in kept:
        kept[_RULES] = [rule for rule in kept[_RULES] if "oldSelf" not in rule["rule"]]
    return kept


def main(arguments: Sequence[str]) -> int:
    """Write the files."""
    folder = Path(arguments[0]) if arguments else FOLDER
    for name, text in documents(EngineSet.current()).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{folder / name}: {len(text) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
