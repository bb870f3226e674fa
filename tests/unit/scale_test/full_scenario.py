"""Two scenarios as their files hold them: a small one, and one that says all that one can say."""

from __future__ import annotations

import copy
from typing import Any

_LABELS = {"app": "pasted"}
_NODES = {
    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    "requirements": [],
    "startupTaints": [{"key": "team.example/ready", "effect": "NoSchedule"}],
}

SMALL: dict[str, Any] = {
    "name": "small",
    "description": "One pod gets one node",
    "stacks": ["eks"],
    "nodePools": {"small": {"template": {"spec": _NODES}}},
    "workload": {"namespace": "small", "deployment": {"name": "inflate", "requests": {"cpu": 1}}},
    "steps": [{"scale": 1, "expect": {"within": 60, "nodes": 1}}],
}

FULL: dict[str, Any] = {
    "name": "full",
    "description": "Several workloads, and manifests beside them",
    "stacks": ["eks", "aks-self-hosted"],
    "nodeClasses": {"full": {"copyOf": "default", "spec": {"tags": {"team": "a"}}}},
    "nodePools": {
        "full": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "full"},
                    "requirements": [],
                }
            }
        }
    },
    "environments": {"aks-self-hosted": {"nodeClasses": {"full": {"copyOf": "default"}}}},
    "workload": {"namespace": "full"},
    "workloads": {
        "web": {
            "replicas": 2,
            "image": "registry.k8s.io/pause:3.9",
            "requests": {"cpu": "500m"},
            "nodeSelector": {"karpenter.sh/nodepool": "full"},
            "tolerations": [{"key": "team", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "topologySpread": [{"topologyKey": "topology.kubernetes.io/zone"}],
            "priorityClassName": "high",
            "doNotDisrupt": True,
            "volumes": [{"size": "1Gi"}],
        },
        "db": {
            "kind": "StatefulSet",
            "replicas": 1,
            "priorityClassName": "low",
            "volumes": [{"size": "1Gi", "storageClass": "zonal"}],
        },
        "agent": {"kind": "DaemonSet", "requests": {"cpu": "100m"}},
        "batch": {"kind": "Job", "replicas": 3},
    },
    "manifests": [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"karpstack.io/workload": "web"}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "pasted", "namespace": "full", "labels": _LABELS},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": _LABELS},
                "template": {
                    "metadata": {"labels": _LABELS},
                    "spec": {"containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}]},
                },
            },
        },
    ],
    "steps": [
        {
            "scale": {"web": 3, "pasted": 2},
            "expect": {
                "within": 60,
                "nodePools": {"full": {"min": 1}},
                "zones": {"us-east-1a": 1},
                "zoneCount": {"min": 1, "max": 3},
                "capacityTypes": {"spot": 0},
                "workloads": {"web": {"ready": 3, "waiting": 0, "nodes": {"min": 1}, "capacityTypes": {"spot": 0}}},
                "disrupted": "none",
                "podDisruptionBudgetsKept": True,
                "disruptionBudgetsKept": True,
                "scheduledBefore": {"high": "low"},
                "costWithin": 2.5,
            },
        },
        {
            "apply": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}],
            "expect": {"within": 60},
        },
        {
            "rollOut": {"workload": "web", "image": "registry.k8s.io/pause:3.10"},
            "expect": {"within": 60, "disrupted": ["db", "batch"], "disruptedInOrder": ["batch", "db"]},
        },
        {"patchNodeClass": {"name": "full", "spec": {"tags": {"team": "b"}}}, "expect": {"within": 60}},
        {"cordon": {"nodes": 1, "zone": "us-east-1a"}, "expect": {"within": 60}},
        {"deleteNode": {"nodes": 1, "capacityType": "spot", "nodePool": "full"}, "expect": {"within": 60}},
        {"outOfCapacity": {"instanceTypes": "all", "zones": ["us-east-1a"]}, "expect": {"within": 60}},
    ],
}

#: What makes of it one with two workloads, a PodDisruptionBudget of web, and a step in which nothing is done.
OBSERVING = {
    "workloads": {
        "web": {"replicas": 2, "priorityClassName": "low"},
        "batch": {"kind": "Job", "replicas": 1, "priorityClassName": "high"},
    },
    "manifests": FULL["manifests"][:2],
    "steps": [{"observe": "what happens", "expect": {"within": 60}}],
}


def with_value(scenario: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy of a scenario with one value set; None removes what is there, of the small one."""
    data = copy.deepcopy(scenario)
    *parents, last = path.split(".")
    at: Any = data
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    if value is None and scenario["name"] == "small":
        del at[last]
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return data
