"""Makes karpenter/schemas/: the schemas of NodePools, NodeOverlays and node classes, from the pinned CRD charts.

And that of the kubelet's configuration, which the CRD leaves open since 1.15, from the Go type that the pinned
controller for AWS decodes it into.

Descriptions are left out, and rules that compare an object with what it was before (`oldSelf`), which say nothing of a
new one.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from karpstack.rehearsal.engines import EngineSet

_KINDS = {"aws": ("NodePool", "NodeOverlay", "EC2NodeClass"), "azure": ("NodePool", "NodeOverlay", "AKSNodeClass")}
_KUBELET = "k8s.io/kubelet"
_RULES = "x-kubernetes-validations"
# Go's type -> its schema; any other is a text where it is named like one, or an object of its own, which is left open.
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "bool": {"type": "boolean"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "float64": {"type": "number"},
    "string": {"type": "string"},
    "metav1.Duration": {"type": "string"},
}
# What Karpenter asks of the values beside their types (pkg/apis/v1/kubeletconfiguration_validation.go): the keys of
# these maps, and how fields go together.
_SIGNALS = (
    *("memory.available", "nodefs.available", "nodefs.inodesFree"),
    *("imagefs.available", "imagefs.inodesFree", "pid.available"),
)
_KEYS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"), _SIGNALS),
    **dict.fromkeys(("kubeReserved", "systemReserved"), ("cpu", "memory", "ephemeral-storage", "pid")),
}
_TOGETHER = (
    *(
        {
            "message": f"{one} has a key that {other} lacks",
            "rule": f"!has(self.{one}) || self.{one}.all(key, has(self.{other}) && key in self.{other})",
        }
        for one, other in (
            ("evictionSoft", "evictionSoftGracePeriod"),
            ("evictionSoftGracePeriod", "evictionSoft"),
        )
    ),
    {
        "message": "imageGCLowThresholdPercent is not below imageGCHighThresholdPercent",
        "rule": "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || "
        "self.imageGCLowThresholdPercent < self.imageGCHighThresholdPercent",
    },
)
# Karpenter sets it from the NodePool's taints, and refuses a node class that does.
_NOT_OURS = "registerWithTaints"


def documents(engines: EngineSet) -> dict[str, str]:
    """Name of each file -> its text."""
    charts = {f"{cloud}.json": _document(engines, f"karpenter-{cloud}", kinds) for cloud, kinds in _KINDS.items()}
    return charts | {"kubelet.json": _kubelet(engines.kubelet())}


def _document(engines: EngineSet, part: str, kinds: Sequence[str]) -> str:
    chart = "karpenter-crd"
    folder = engines.chart(part, chart)
    rendered = subprocess.run(
        [engines.program("helm"), "template", folder], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found = {crd["spec"]["names"]["kind"]: crd for crd in yaml.load_all(rendered, yaml.CSafeLoader) if crd}
    version = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))["version"]
    content = {
        "source": {"chart": chart, "version": version},
        "kinds": {kind: _without_words(_spec(found[kind])) for kind in kinds},
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _kubelet(types: Path) -> str:
    return kubelet_schema(types.read_text(encoding="utf-8"), types.parent.name)


def kubelet_schema(source: str, version: str) -> str:
    """The document with the schema of the kubelet's configuration.

    Args:
        source: Text of `config/v1beta1/types.go` of k8s.io/kubelet.

    Raises:
        ValueError: The source has no such type.
    """
    aliases = dict(re.findall(r"^type (\w+) (string)$", source, re.MULTILINE))
    struct = re.search(r"^type KubeletConfiguration struct \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    if not struct:
        raise ValueError(f"{_KUBELET} {version} has no type KubeletConfiguration in config/v1beta1/types.go")
    fields = re.findall(r"^\t\w+\s+(\S+)\s+`json:\"(\w+)", struct[1], re.MULTILINE)
    properties = {name: _of_go(kind, aliases) for kind, name in fields if name != _NOT_OURS}
    for name, keys in _KEYS.items():
        rule = {"message": f"has other keys than {', '.join(keys)}", "rule": f"self.all(key, key in {[*keys]})"}
        properties[name][_RULES] = [rule]
    content = {
        "source": {"module": _KUBELET, "version": version},
        "kinds": {"KubeletConfiguration": {"type": "object", "properties": properties, _RULES: [*_TOGETHER]}},
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _of_go(kind: str, aliases: Mapping[str, str]) -> dict[str, Any]:
    kind = kind.removeprefix("*")
    if kind.startswith("[]"):
        return {"type": "array", "items": _of_go(kind[2:], aliases)}
    if kind.startswith("map[string]"):
        return {"type": "object", "additionalProperties": _of_go(kind.removeprefix("map[string]"), aliases)}
    return dict(_TYPES.get(aliases.get(kind, kind), {"type": "object", "additionalProperties": {}}))


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
