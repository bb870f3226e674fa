"""A snapshot without the names that people gave: each is replaced by a keyed hash, the same one wherever it stands.

So selectors, spread, affinities, budgets, taints and the NodePools' labels match what they matched. What stays is what
Kubernetes, Karpenter and the clouds call their own: their labels' keys, and values such as instance types and zones.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter.offers import LABELS
from karpstack.karpenter.quantities import duration

from . import system_workloads
from .api_nodes import spec_of_class
from .api_pod import OF_CONTROLLERS
from .daemon_sets import NO_VIRTUAL_NODE
from .from_api import BUILT_IN, KINDS
from .left_out import NOT_UNDERSTOOD, OBJECTS
from .manifests import DO_NOT_DISRUPT
from .model import LeftOut, Snapshot
from .reading import as_data, checked

#: Whose labels, taints and resources are public.
_DOMAINS: Final = (
    "amazonaws.com",
    "amd.com",
    "azure.com",
    "cilium.io",
    "cloud.google.com",
    "gke.io",
    "k8s.aws",
    "k8s.io",
    "karpenter.sh",
    "kubernetes.io",
    "nvidia.com",
)
#: Those among them under which people write labels and taints of their own, such as
#: `acme.node-restriction.kubernetes.io/tier` (Kubernetes' NodeRestriction; Karpenter's LabelDomainExceptions).
_SHARED: Final = (
    "kops.k8s.io",
    "kubelet.kubernetes.io",
    "node-restriction.kubernetes.io",
    "node-role.kubernetes.io",
    "node.kubernetes.io",
)
#: What Kubernetes itself has there.
_OF_KUBERNETES: Final = frozenset(
    {
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/exclude-from-external-load-balancers",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/windows-build",
    }
)
_KEYS: Final = frozenset({"CriticalAddonsOnly"}) | OF_CONTROLLERS
#: Labels whose values are the cloud's or Kubernetes' own.
_PUBLIC: Final = LABELS | {
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "eks.amazonaws.com/capacityType",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    # Of instance types and images: NodePools with hashes instead would admit no instance type.
    "karpenter.azure.com/sku-gpu-name",
    "karpenter.azure.com/sku-hyperv-generation",
    "karpenter.azure.com/sku-series",
    "karpenter.k8s.aws/instance-accelerator-manufacturer",
    "karpenter.k8s.aws/instance-accelerator-name",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-name",
    "kubernetes.azure.com/ebpf-dataplane",
    "kubernetes.azure.com/os-sku-effective",
    "kubernetes.azure.com/os-sku-requested",
    "topology.disk.csi.azure.com/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
}
_CONTROLLERS: Final = ("v1", "apps/v1", "batch/v1")
_OF_ALL: Final = ("", "0.0.0.0", "::", "127.0.0.1", "::1")  # noqa: S104  # addresses that every node has
_BOUNDS: Final = ("Gt", "Gte", "Lt", "Lte")
_POOL: Final = ("weight", "limits", "replicas", "disruption")
_DISRUPTION: Final = ("budgets", "consolidateAfter", "consolidationPolicy")
_BUDGET: Final = ("duration", "nodes", "reasons", "schedule")
_OVERLAY: Final = ("weight", "price", "priceAdjustment", "requirements", "capacity")
_POOLS_NODE: Final = ("expireAfter", "terminationGracePeriod")
_HIDDEN: Final = "hidden.karpstack.io"
#: Conditions of NodeClaims that Karpenter writes; other controllers may write more.
_CONDITIONS: Final = frozenset(
    {
        *("ConsistentStateFound", "Consolidatable", "DisruptionReason", "Drained", "Drifted", "Empty", "Initialized"),
        *("InstanceTerminating", "Launched", "Ready", "Registered", "VolumesDetached"),
    }
)
#: The environment variable that may have a text from which the key of the hashes is made.
VARIABLE: Final = "KARPSTACK_SNAPSHOT_KEY"
Data = dict[str, Any]


def hash_key(secret: str | None) -> bytes:
    """A key made of a text, the same one each time; of none, another one each time, which is not stored."""
    return hashlib.sha256(secret.encode()).digest() if secret else secrets.token_bytes(32)


def anonymised(snapshot: Snapshot, key: bytes) -> Snapshot:
    """The snapshot with hashes instead of names.

    Args:
        snapshot: The snapshot.
        key: Key of the hashes, 64 bytes at most. With the same key a name gets the same hash in every snapshot; who
            has the key can try names.
    """
    return checked(_Anonymiser(snapshot, key).data()).snapshot


class _Anonymiser:
    def __init__(self, snapshot: Snapshot, key: bytes) -> None:
        self._snapshot = snapshot
        self._key = key
        self._data = as_data(snapshot)
        self._numbers = set(_compared(self._data))
        self._hashed: set[str] = set()

    def data(self) -> Data:
        """The file."""
        data = self._data
        parts: dict[str, Callable[[Data], Data]] = {
            "namespaces": self._namespace,
            "priorityClasses": lambda one: {**one, "name": self._priority_class(one["name"])},
            "workloads": lambda one: self._workload(
                one, own=system_workloads.is_system_name(one["namespace"], one["name"])
            ),
            "podDisruptionBudgets": self._budget,
            "nodePools": self._pool,
            "nodeClasses": lambda one: _with(one, {"name": self._name, "spec": spec_of_class}),
            "nodeOverlays": self._overlay,
            "nodeClaims": self._bought,
            "nodes": self._bought,
        }
        made = {
            key: sorted(map(part, data[key]), key=lambda one: (str(one.get("namespace")), one["name"]))
            for key, part in parts.items()
            if key in data
        }
        return {**data, **made, "anonymised": True, "leftOut": list(self._left_out())}

    def _hash(self, text: str) -> str:
        self._hashed.add(text)
        return f"x{hashlib.blake2b(text.encode(), key=self._key, digest_size=6).hexdigest()}"

    def _name(self, name: str) -> str:
        return name if name in system_workloads.NAMESPACES else self._hash(name)

    def _priority_class(self, name: str) -> str:
        return name if name in BUILT_IN else self._name(name)

    def _namespace_name(self, name: str) -> str:
        return name if system_workloads.is_system_namespace(name) else self._name(name)

    def _label_key(self, key: str) -> str:
        if key in _KEYS or _public(key):
            return key
        prefix, _, name = key.rpartition("/")
        shared = next((one for one in _SHARED if _within_domain(prefix, one)), None)
        if shared is None or not name:
            return self._hash(key)
        # Its domain stays, for Karpenter and Kubernetes treat such labels in ways of their own.
        own = prefix.removesuffix(shared).removesuffix(".")
        return f"{f'{self._hash(own)}.' if own else ''}{shared}/{self._hash(key)}"

    def _value(self, key: str, value: str) -> str:
        if not value or key in _PUBLIC or (key in self._numbers and value.lstrip("-").isdigit()):
            return value
        return self._namespace_name(value) if key == "kubernetes.io/metadata.name" else self._name(value)

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self._label_key(key): self._value(key, value) for key, value in labels.items()}

    def _resources(self, amounts: Mapping[str, str]) -> dict[str, str]:
        return {
            key if "/" not in key or _public(key) else f"{_HIDDEN}/{self._hash(key)}": amount
            for key, amount in amounts.items()
        }

    def _namespace(self, one: Data) -> Data:
        return _with(one, {"name": self._namespace_name, "labels": self._labels})

    def _workload(self, one: Data, *, own: bool) -> Data:
        version, kind = one["controller"]["apiVersion"], one["controller"]["kind"]
        known = version in _CONTROLLERS
        return _with(
            one,
            {
                "namespace": self._namespace_name,
                "name": (lambda name: name) if own else self._name,
                "controller": lambda given: (
                    given if known else {"apiVersion": f"{_HIDDEN}/v1", "kind": f"X{self._hash(f'{version} {kind}')}"}
                ),
                "pod": self._pod,
                "volumes": lambda given: [
                    _with(volume, {"storageClass": self._name, "claim": self._name}) for volume in given
                ],
                "nodes": lambda given: {self._name(node): pods for node, pods in given.items()},
            },
        )

    def _pod(self, pod: Data) -> Data:
        return _with(
            pod,
            {
                "labels": self._labels,
                "requests": self._resources,
                "nodeSelector": self._labels,
                "affinity": self._within,
                "tolerations": lambda given: [self._taint(one) for one in given],
                "topologySpreadConstraints": self._within,
                "priorityClassName": self._priority_class,
                "schedulerName": self._name,
                "doNotDisrupt": self._when,
                "hostPorts": lambda given: [_with(one, {"hostIP": self._address}) for one in given],
            },
        )

    def _within(self, value: Any) -> Any:
        """Affinities and spread: selectors, terms and topology keys, however deep."""
        if isinstance(value, list):
            return [self._within(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {key: self._part(key, inner) for key, inner in value.items()}

    def _part(self, key: str, value: Any) -> Any:
        match key:
            case "matchLabels":
                return self._labels(value)
            case "matchExpressions":
                return [self._requirement(one) for one in value]
            case "matchFields":
                return [_with(one, {"values": lambda given: [self._name(name) for name in given]}) for one in value]
            case "topologyKey":
                return self._label_key(value)
            case "matchLabelKeys" | "mismatchLabelKeys":
                return [self._label_key(one) for one in value]
            case "namespaces":
                return [self._namespace_name(one) for one in value]
        return self._within(value)

    def _requirement(self, one: Data) -> Data:
        if one == NO_VIRTUAL_NODE.model_dump():
            return one  # of AKS's own DaemonSets; loading knows it
        key = one["key"]
        return _with(
            one, {"key": self._label_key, "values": lambda given: [self._value(key, value) for value in given]}
        )

    def _taint(self, one: Data) -> Data:
        key = one.get("key", "")
        return _with(one, {"key": self._label_key, "value": lambda value: self._value(key, value)})

    def _address(self, address: str) -> str:
        if address in _OF_ALL:
            return address
        return ".".join(["10", *(str(byte) for byte in bytes.fromhex(self._hash(address)[1:7]))])

    def _budget(self, one: Data) -> Data:
        own = system_workloads.is_system_name(one["namespace"], one["name"])
        return _with(
            one,
            {
                "namespace": self._namespace_name,
                "name": (lambda name: name) if own else self._name,
                "selector": self._within,
            },
        )

    def _pool(self, one: Data) -> Data:
        spec = one["spec"]
        template = spec.get("template") or {}
        node = template.get("spec") or {}
        made_node = {key: node[key] for key in _POOLS_NODE if key in node}
        if "requirements" in node:
            made_node["requirements"] = [self._requirement(each) for each in node["requirements"]]
        for key in ("taints", "startupTaints"):
            if key in node:
                made_node[key] = [self._taint(each) for each in node[key]]
        if "nodeClassRef" in node:
            made_node["nodeClassRef"] = self._node_class(node["nodeClassRef"])
        made_template: Data = {"spec": made_node}
        if labels := (template.get("metadata") or {}).get("labels"):
            made_template["metadata"] = {"labels": self._labels(labels)}
        if when := ((template.get("metadata") or {}).get("annotations") or {}).get(DO_NOT_DISRUPT):
            made_template.setdefault("metadata", {})["annotations"] = {DO_NOT_DISRUPT: self._when(str(when))}
        kept = {key: spec[key] for key in _POOL if key in spec}
        return {
            **one,
            "name": self._name(one["name"]),
            "spec": {
                **_with(kept, {"limits": self._resources, "disruption": _disruption}),
                "template": made_template,
            },
        }

    def _overlay(self, one: Data) -> Data:
        spec = {key: value for key, value in one["spec"].items() if key in _OVERLAY}
        parts: dict[str, Callable[[Any], Any]] = {
            "requirements": lambda given: [self._requirement(each) for each in given],
            "capacity": self._resources,
        }
        return {**one, "name": self._name(one["name"]), "spec": _with(spec, parts)}

    def _node_class(self, reference: Data) -> Data:
        """Hide the name in a reference to a node class; for a private provider also the kind and the group."""
        hidden = {"group": lambda _: _HIDDEN, "kind": lambda kind: f"X{self._hash(kind)}"}
        own = not _public(f"{reference.get('group', '')}/class")
        return _with(reference, {"name": self._name, **(hidden if own else {})})

    def _condition(self, kind: str) -> str:
        return kind if kind in _CONDITIONS else f"X{self._hash(kind)}"

    def _when(self, given: str) -> str:
        return given if _says_when(given) else self._hash(given)

    def _bought(self, one: Data) -> Data:
        names = dict.fromkeys(("name", "nodePool", "nodeClaim", "node", "nodeClass"), self._name)
        return _with(
            one,
            {
                **names,
                "labels": self._labels,
                "taints": lambda given: [self._taint(each) for each in given],
                "conditions": lambda given: sorted(map(self._condition, given)),
                **dict.fromkeys(("capacity", "allocatable", "requests"), self._resources),
            },
        )

    def _left_out(self) -> Iterator[Data]:
        others = 0
        for one in self._snapshot.left_out:
            kind = one.what.removeprefix(OBJECTS).partition(" ")[0]
            if one.what.startswith(OBJECTS) and kind not in KINDS:
                others += one.count  # its name may be one's own
            elif one.what.endswith(NOT_UNDERSTOOD):
                yield _entry(one.what, one.count, "something of them is not as the API has it")
            else:
                yield one.model_dump(mode="json")
        if others:
            yield _entry("objects of other kinds", others, "no scheduling depends on them")
        yield _entry("names, and labels that are one's own", len(self._hashed), "hashes are there instead")


def _disruption(given: Data) -> Data:
    """Without what a later Karpenter, or a person, may have in it."""
    kept: Data = {key: given[key] for key in _DISRUPTION if key in given}
    return _with(
        kept, {"budgets": lambda budgets: [{key: one[key] for key in _BUDGET if key in one} for one in budgets]}
    )


def _entry(what: str, count: int, why: str) -> Data:
    return LeftOut(what=what, count=count, why=why).model_dump(mode="json")


def _with(one: Mapping[str, Any], changes: Mapping[str, Callable[[Any], Any]]) -> Data:
    """The same with some of its values changed, where they are there."""
    return {key: changes[key](value) if key in changes else value for key, value in one.items()}


def _says_when(do_not_disrupt: str) -> bool:
    """Whether a value of `karpenter.sh/do-not-disrupt` is one that Karpenter reads, and no name."""
    try:
        return do_not_disrupt in ("true", "false") or bool(duration(do_not_disrupt))
    except ValueError:
        return False


def _public(key: str) -> bool:
    if key in _OF_KUBERNETES:
        return True
    domain = key.rpartition("/")[0]
    return any(_within_domain(domain, one) for one in _DOMAINS) and not any(
        _within_domain(domain, one) for one in _SHARED
    )


def _within_domain(domain: str, other: str) -> bool:
    return domain == other or domain.endswith(f".{other}")


def _compared(value: Any) -> Iterator[str]:
    """Keys whose values are compared as numbers somewhere."""
    if isinstance(value, list):
        for one in value:
            yield from _compared(one)
    elif isinstance(value, dict):
        if value.get("operator") in _BOUNDS and isinstance(value.get("key"), str):
            yield value["key"]
        for inner in value.values():
            yield from _compared(inner)
