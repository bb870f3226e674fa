"""Makes karpenter/facts/metrics-aws.json: the metrics that the pinned Karpenter for AWS publishes, from its source.

A dashboard that asks for another name shows nothing, and says nothing of it; most metrics appear only once something
has happened, so that a running controller tells less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from karpstack.rehearsal.engines import CONTROLLERS, release
from karpstack.rehearsal.engines.builder import Go

_PART: Final = "karpenter-aws"
_CORE: Final = "sigs.k8s.io/karpenter/pkg/metrics"
_NAME: Final = re.compile(r'(?m)^\s*(?:const\s+)?(\w*(?:Subsystem|Namespace))\s*=\s*"(\w+)"')
_OPTIONS: Final = re.compile(r"(Counter|Gauge|Histogram|Summary)Opts\{(.*?)\n\s*\}", re.DOTALL)
_FIELD: Final = re.compile(r'(Namespace|Subsystem|Name):\s*([\w.]+|"[^"]+")')


def metrics(folder: Path) -> dict[str, str]:
    """Name -> kind of each metric that the Go files of a folder declare with literal names, in the order of names."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.go")) if _is_source(path)]
    names = {"metrics.Namespace": "karpenter", "Namespace": "karpenter"}
    for source in sources:
        for name, value in _NAME.findall(source):
            names.setdefault(name, value)
            names.setdefault(f"metrics.{name}", value)
    return dict(sorted(found for source in sources for found in _declared(source, names)))


def _is_source(path: Path) -> bool:
    return not path.name.endswith("_test.go")


def _declared(source: str, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for kind, body in _OPTIONS.findall(source):
        fields = dict(_FIELD.findall(body))
        parts = [fields.get(key, '""') for key in ("Namespace", "Subsystem", "Name")]
        meant = [part.strip('"') if part.startswith('"') else names.get(part) for part in parts]
        if meant[0] == "karpenter" and None not in meant:
            yield "_".join(part for part in meant if part), kind.lower()


def documents(go: Go) -> dict[str, str]:
    """Name of the file -> its text."""
    folders = [go.download(_PART, CONTROLLERS["aws"]) / "pkg", go.module_of(_PART, _CORE)[1] / "pkg"]
    found = dict(sorted(entry for folder in folders for entry in metrics(folder).items()))
    return {"metrics-aws.json": json.dumps({"release": release("aws"), "metrics": found}, indent=1) + "\n"}
