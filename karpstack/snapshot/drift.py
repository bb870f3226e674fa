"""What of an object Karpenter compares to see whether its nodes have drifted.

Karpenter writes a hash of a NodePool's template, or of a node class, to each NodeClaim. The order of lists is no part
of it, nor is how a duration or a quantity is written; a field with hash:"ignore" is none either. (`Hash` of pkg/apis/v1
of kubernetes-sigs/karpenter at 22664681 and of aws/karpenter-provider-aws at 1d927085, and of pkg/apis/v1beta1 of
Azure/karpenter-provider-azure at 352646f5.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from karpstack.karpenter import crds
from karpstack.karpenter.quantities import duration, exact

NODE_POOL: Final = "NodePool"
_EC2: Final = "EC2NodeClass"
#: Fields by which nodes neither drift nor become other ones. AKS changes tags in place.
HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    _EC2: frozenset({"ipPrefixCount"}),
    "AKSNodeClass": frozenset({"tags"}),
}
#: Fields by which nodes drift if they select something else: the account decides.
SELECTING: Final = frozenset(
    {"amiSelectorTerms", "capacityReservationSelectorTerms", "securityGroupSelectorTerms", "subnetSelectorTerms"}
)
_FAMILY: Final = "amiFamily"
_DURATIONS: Final = frozenset({"cpuCFSQuotaPeriod", "expireAfter", "terminationGracePeriod"})
_QUANTITIES: Final = frozenset({"cpu", "ephemeral-storage", "memory", "nodes", "volumeSize"})
#: Fields of which an empty text, or false, is as none. Other fields are pointers, to which false is a value.
_PLAIN: Final = frozenset({"rootVolume", "value"})


def differing(cloud: str, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the fields of two specs by which nodes drift, or may.

    Args:
        cloud: `aws` or `azure`.
        kind: NodePool, EC2NodeClass or AKSNodeClass.
        before, after: The specs; what the API server adds to them counts.
    """
    old, new = (_compared(cloud, kind, spec) for spec in (before, after))
    # An image family that is not named is that of an image which the account alone knows.
    unknown = {_FAMILY} - (old.keys() & new.keys())
    return {key for key in {*old, *new} - unknown if old.get(key) != new.get(key)}


def is_same(cloud: str, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two specs say the same, with what the API server adds."""
    old, new = (_canonical(crds.completed(cloud, kind, spec)) for spec in (before, after))
    return bool(old == new)


def _compared(cloud: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    found = crds.completed(cloud, kind, spec)
    if kind == NODE_POOL:
        template = found.get("template") or {}
        parts = {part: dict(template.get(part) or {}) for part in ("metadata", "spec")}
        parts["spec"].pop("requirements", None)
        fields = {f"template.{part}.{key}": value for part, of in parts.items() for key, value in of.items()}
    else:
        fields = {key: value for key, value in found.items() if key not in HARMLESS[kind]}
    if kind == _EC2:
        fields[_FAMILY] = image_family(found) or None
        # It is hashed as its text, in which nothing is another thing written otherwise. Until 1.14, an empty one was
        # another than none.
        fields["kubelet"] = json.dumps(found["kubelet"], sort_keys=True) if "kubelet" in found else None
    return {
        key: made for key, value in fields.items() if (made := _canonical(value, key.rpartition(".")[2])) is not None
    }


def image_family(spec: Mapping[str, Any]) -> str:
    """The image family of an EC2NodeClass, as its alias or `amiFamily` names it; empty if neither does."""
    aliases = [str(one.get("alias") or "") for one in spec.get("amiSelectorTerms") or ()]
    return next((alias.partition("@")[0] for alias in aliases if alias), str(spec.get("amiFamily") or "").lower())


def _canonical(value: Any, key: str = "") -> Any:
    """A value that is the same for all ways to write it."""
    if isinstance(value, Mapping):
        made = {name: _canonical(item, name) for name, item in value.items()}
        return {name: item for name, item in sorted(made.items()) if not _is_nothing(name, item)}
    if isinstance(value, list):
        return sorted({json.dumps(_canonical(one), sort_keys=True) for one in value})
    try:
        if key in _DURATIONS:
            return duration(str(value)).total_seconds()
        return str(exact(value).normalize()) if key in _QUANTITIES else value
    except ValueError:  # Never, or what Karpenter refuses
        return value


def _is_nothing(key: str, value: Any) -> bool:
    return value is None or (key in _PLAIN and not value)
