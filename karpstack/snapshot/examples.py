"""Makes the snapshots that ship, `examples/snapshots`: `python -m karpstack.snapshot.examples`.

They are made up: a shop on EKS, with services that are spread and have budgets, on spot and on demand, on amd64 and on
arm64; databases with volumes in zones; batch work, of which some waits; agents on every node. The same files come out
each time.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.quantities import exact

from .effective_requests import written
from .model import KIND, VERSION, Snapshot
from .reading import checked, write

FOLDER: Final = Path(__file__).resolve().parents[2] / "examples" / "snapshots"
SIZES: Final = (20, 200, 1000)
_SMALL: Final = 100  # pods of a cluster with one DaemonSet

_TAKEN: Final = datetime(2026, 11, 22, 10, tzinfo=UTC)
_REGION: Final = "us-east-1"
_ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_CAPACITY: Final = "karpenter.sh/capacity-type"
_SYSTEM: Final = {"cpu": Decimal("0.1"), "memory": Decimal(700 * 2**20)}  # of a node, for its kubelet
_DAEMONS: Final = {"cpu": Decimal("0.2"), "memory": Decimal(384 * 2**20)}  # of the two DaemonSets' pods together


@dataclass(frozen=True)
class _Pool:
    """A NodePool, and what its nodes are."""

    name: str
    instance_types: tuple[str, ...]
    architecture: str
    capacity_type: str
    taints: tuple[dict[str, str], ...] = ()


_POOLS: Final = (
    _Pool("general", ("m6a.xlarge", "m6a.2xlarge"), "amd64", "on-demand"),
    _Pool("spot", ("m6a.xlarge", "c6a.2xlarge"), "amd64", "spot"),
    _Pool("arm", ("m7g.xlarge", "m7g.2xlarge"), "arm64", "spot"),
    _Pool(
        "databases",
        ("r6g.large", "r6g.xlarge"),
        "arm64",
        "on-demand",
        ({"key": "example.com/databases", "effect": "NoSchedule"},),
    ),
)


@dataclass(frozen=True)
class _Kind:
    """A sort of workload: how it is scheduled, and what share of the pods are of it."""

    name: str
    pool: _Pool
    share: int
    replicas: tuple[int, int]
    sizes: tuple[tuple[str, str], ...]
    pod: dict[str, Any]
    namespace: str = "shop"
    controller: tuple[str, str] = ("apps/v1", "Deployment")
    budget: dict[str, Any] | None = None
    apart: bool = False
    volume: str = ""


def _spread(app: str, key: str, when: str = "ScheduleAnyway") -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


_GENERAL, _SPOT, _ARM, _DATABASES = _POOLS
_NEEDS_ARM: Final = {"nodeSelector": {"kubernetes.io/arch": "arm64"}}
_KINDS: Final = (
    _Kind(
        "checkout",
        _GENERAL,
        25,
        (3, 12),
        (("500m", "1Gi"), ("1", "2Gi")),
        {"nodeSelector": {_CAPACITY: "on-demand"}, "zones": "DoNotSchedule", "priorityClassName": "important"},
        budget={"minAvailable": "50%"},
    ),
    _Kind("catalogue", _SPOT, 30, (2, 20), (("250m", "512Mi"), ("500m", "768Mi")), {"zones": "ScheduleAnyway"}),
    _Kind(
        "search",
        _ARM,
        20,
        (2, 10),
        (("1", "2Gi"), ("2", "4Gi")),
        {**_NEEDS_ARM, "hosts": True},
        budget={"maxUnavailable": 1},
        apart=True,
    ),
    _Kind(
        "ledger",
        _DATABASES,
        10,
        (3, 3),
        (("1", "6Gi"), ("1500m", "12Gi")),
        {
            **_NEEDS_ARM,
            "tolerations": [{"key": "example.com/databases", "operator": "Exists"}],
            "doNotDisrupt": "true",
            "terminationGracePeriodSeconds": 120,
        },
        namespace="data",
        controller=("apps/v1", "StatefulSet"),
        budget={"maxUnavailable": 1},
        volume="100Gi",
    ),
    _Kind(
        "report",
        _SPOT,
        15,
        (1, 8),
        (("2", "2Gi"), ("500m", "3Gi")),
        {},
        namespace="batch",
        controller=("batch/v1", "Job"),
    ),
)


@dataclass
class _Node:
    pool: _Pool
    zone: str
    name: str
    instance_type: str
    free: dict[str, Decimal]
    apps: Counter[str] = field(default_factory=Counter)


def made(pods: int) -> Snapshot:
    """A snapshot of so many pods."""
    # How many nodes there are, and so pods of DaemonSets, follows from the others.
    others = bisect_right(
        range(1, pods + 1), pods, key=lambda others: int(_Maker(pods, others).data()["cluster"]["pods"])
    )
    return checked(_Maker(pods, others).data()).snapshot


class _Maker:
    def __init__(self, pods: int, others: int) -> None:
        self._random = random.Random(pods)  # noqa: S311  # the same each time
        self._all, self._pods = pods, others
        self._facts = Facts.load("aws")
        self._nodes: list[_Node] = []

    def data(self) -> dict[str, Any]:
        """The file."""
        workloads = [self._workload(*one) for one in self._chosen()]
        budgets = [
            {"namespace": one["namespace"], "name": one["name"], "selector": _selector(one["name"]), **budget}
            for one in workloads
            if (budget := one.pop("budget"))
        ]
        others = [self._daemon("node-exporter", 9100)]
        if self._all > _SMALL:
            others.append(self._daemon("log-agent", None))
        waiting = self._all - sum(one["replicas"] for one in (*workloads, *others))
        if waiting > 0:
            others.append(_waiting(waiting))
        everything = sorted([*workloads, *others], key=lambda one: (one["namespace"], one["name"]))
        return {
            "kind": KIND,
            "version": VERSION,
            "taken": _TAKEN.isoformat(),
            "source": "made",
            "cluster": {
                "cloud": "aws",
                "region": _REGION,
                "kubernetes": "v1.34.1",
                "nodes": len(self._nodes),
                "pods": sum(one["replicas"] for one in everything),
            },
            "namespaces": [{"name": name} for name in sorted({one["namespace"] for one in everything})],
            "priorityClasses": [{"name": "important", "value": 1000}],
            "workloads": everything,
            "podDisruptionBudgets": sorted(budgets, key=lambda one: (one["namespace"], one["name"])),
            "nodePools": [_node_pool(pool) for pool in sorted(_POOLS, key=lambda pool: pool.name)],
            "nodeClasses": [
                {
                    "apiVersion": "karpenter.k8s.aws/v1",
                    "kind": "EC2NodeClass",
                    "name": "default",
                    "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}]},
                    "zones": list(_ZONES),
                }
            ],
            "nodeClaims": [self._claim(one) for one in self._nodes],
            "nodes": [self._node(one) for one in self._nodes],
        }

    def _chosen(self) -> Iterator[tuple[_Kind, str, int]]:
        """Kinds, names and numbers of pods, so many in all."""
        left = self._pods
        for kind in _KINDS:
            share = self._pods * kind.share // 100 if kind is not _KINDS[-1] else left
            number = 1
            while share > 0:
                pods = min(share, self._random.randint(*kind.replicas))
                yield kind, f"{kind.name}-{number}", pods
                share, left, number = share - pods, left - pods, number + 1

    def _workload(self, kind: _Kind, name: str, pods: int) -> dict[str, Any]:
        cpu, memory = self._random.choice(kind.sizes)
        shape = dict(kind.pod)
        spread = []
        if when := shape.pop("zones", None):
            spread.append(_spread(name, _ZONE, when))
        pod = {"requests": {"cpu": cpu, "memory": memory}, **shape}
        if shape.pop("hosts", None):
            pod.pop("hosts")
            term = {"topologyKey": _HOST, "labelSelector": _selector(name)}
            pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if spread:
            pod["topologySpreadConstraints"] = spread
        if "priorityClassName" in pod:
            pod["priority"] = 1000
        if spread or kind.apart or kind.budget:
            pod["labels"] = {"app": name}
        needs = {"cpu": exact(cpu), "memory": exact(memory)}
        first = self._random.randrange(len(_ZONES))
        zones = [_ZONES[(first + number) % len(_ZONES)] for number in range(pods)]
        nodes = Counter(self._place(kind, name, needs, zone).name for zone in zones)
        return {
            "namespace": kind.namespace,
            "name": name,
            "controller": {"apiVersion": kind.controller[0], "kind": kind.controller[1]},
            "replicas": pods,
            "pod": pod,
            "nodes": dict(sorted(nodes.items())),
            "budget": kind.budget,
            **(
                {
                    "volumes": [
                        {
                            "size": kind.volume,
                            "storageClass": "gp3",
                            "places": [
                                {"zones": [zone], "pods": count} for zone, count in sorted(Counter(zones).items())
                            ],
                        }
                    ]
                }
                if kind.volume
                else {}
            ),
        }

    def _place(self, kind: _Kind, name: str, needs: dict[str, Decimal], zone: str) -> _Node:
        """The first node with room, or a new one; one in sixteen pods gets a new one, as clusters are."""
        for node in self._nodes:
            room = all(node.free[resource] >= amount for resource, amount in needs.items())
            apart = kind.apart and node.apps[name]
            if node.pool is kind.pool and node.zone == zone and room and not apart and self._random.random() > 1 / 16:
                break
        else:
            node = self._new(kind.pool, zone, needs)
        for resource, amount in needs.items():
            node.free[resource] -= amount
        node.apps[name] += 1
        return node

    def _new(self, pool: _Pool, zone: str, needs: dict[str, Decimal]) -> _Node:
        fitting = [
            name
            for name in pool.instance_types
            if all(amount >= needs[resource] for resource, amount in self._free(name).items())
        ]
        number = len(self._nodes)
        name = f"ip-10-0-{number // 250}-{number % 250 + 4}.ec2.internal"
        instance_type = self._random.choice(fitting)
        node = _Node(pool, zone, name, instance_type, self._free(instance_type))
        self._nodes.append(node)
        return node

    def _free(self, instance_type: str) -> dict[str, Decimal]:
        return {resource: amount - _DAEMONS[resource] for resource, amount in self._allocatable(instance_type).items()}

    def _allocatable(self, instance_type: str) -> dict[str, Decimal]:
        type_ = self._facts.types[instance_type]
        return {
            "cpu": Decimal(type_.vcpus) - _SYSTEM["cpu"],
            "memory": Decimal(type_.memory) * Decimal("0.92") // 2**20 * 2**20 - _SYSTEM["memory"],
        }

    def _daemon(self, name: str, port: int | None) -> dict[str, Any]:
        return {
            "namespace": "monitoring",
            "name": name,
            "controller": {"apiVersion": "apps/v1", "kind": "DaemonSet"},
            "replicas": len(self._nodes),
            "pod": {
                "requests": {"cpu": "100m", "memory": "192Mi"},
                "tolerations": [{"operator": "Exists"}],
                **({"hostPorts": [{"port": port}]} if port else {}),
            },
            "nodes": {node.name: 1 for node in self._nodes},
        }

    def _bought(self, node: _Node) -> dict[str, Any]:
        pool = node.pool
        price = self._facts.price(node.instance_type, pool.capacity_type, _REGION, node.zone, simulated=False)
        age = timedelta(minutes=int(node.name.split("-")[3].split(".")[0]) * 53)
        return {
            "nodePool": pool.name,
            "instanceType": node.instance_type,
            "zone": node.zone,
            "capacityType": pool.capacity_type,
            "created": (_TAKEN - age).isoformat(),
            "pricePerHour": price,
        }

    def _node(self, node: _Node) -> dict[str, Any]:
        type_ = self._facts.types[node.instance_type]
        pods = str(type_.max_pods or 110)
        resources = {"cpu": Decimal(type_.vcpus), "memory": Decimal(type_.memory)}
        return {
            "name": node.name,
            **self._bought(node),
            "nodeClaim": _claim_name(node),
            "architecture": node.pool.architecture,
            "taints": list(node.pool.taints),
            "capacity": {**{name: written(name, amount) for name, amount in resources.items()}, "pods": pods},
            "allocatable": {
                **{name: written(name, amount) for name, amount in self._allocatable(node.instance_type).items()},
                "pods": pods,
            },
        }

    def _claim(self, node: _Node) -> dict[str, Any]:
        return {
            "name": _claim_name(node),
            **self._bought(node),
            "node": node.name,
            "nodeClass": "default",
            "conditions": ["Initialized", "Launched", "Registered"],
            "expireAfter": "720h",
        }


def _waiting(pods: int) -> dict[str, Any]:
    return {
        "namespace": "batch",
        "name": "waiting",
        "controller": {"apiVersion": "batch/v1", "kind": "Job"},
        "replicas": pods,
        "pod": {"requests": {"cpu": "3", "memory": "4Gi"}, "nodeSelector": {_CAPACITY: "spot"}},
    }


def _selector(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def _claim_name(node: _Node) -> str:
    return f"{node.pool.name}-{node.name.split('.')[0].removeprefix('ip-')}"


def _node_pool(pool: _Pool) -> dict[str, Any]:
    requirements = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": [pool.architecture]},
        {"key": _CAPACITY, "operator": "In", "values": [pool.capacity_type]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
    ]
    spec: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "expireAfter": "720h",
        "requirements": requirements,
    }
    if pool.taints:
        spec["taints"] = list(pool.taints)
    return {
        "name": pool.name,
        "spec": {
            "template": {"spec": spec},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "1m",
                "budgets": [{"nodes": "10%"}],
            },
        },
    }


def main() -> None:
    """Write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for pods in SIZES:
        write(made(pods), FOLDER / f"{pods}-pods.json")


if __name__ == "__main__":
    main()
