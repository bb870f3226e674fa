"""A cluster as the API server tells of it: what kubectl writes, with secrets in every place that may hold one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

#: In each place of which nothing may get into a snapshot.
CANARY = "canary-4711"
NODES = 4
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
#: Names that people gave; none of them may be in a snapshot that is anonymised.
NAMES = ("shop", "payroll", "ledger", "acme.example", "gold", "ip-10-0-", "general", "bottles", "rollout-a", "fast-ssd")

Item = dict[str, Any]


def metadata(name: str, namespace: str | None = None, **more: Any) -> Item:
    """As every object has it."""
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": f"uid-{namespace}-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-11-20T08:00:00Z",
        "managedFields": [{"manager": CANARY}],
        **more,
        "annotations": {"acme.example/secret": CANARY, **more.get("annotations", {})},
    }


def owner(kind: str, name: str, api_version: str = "apps/v1") -> list[Item]:
    """Of a pod or of a ReplicaSet."""
    return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}]


def container(cpu: str = "500m", memory: str = "1Gi", **more: Any) -> Item:
    """One that has all that there is to leave out."""
    return {
        "name": "main",
        "image": f"registry.acme.example/{CANARY}:1",
        "command": ["/bin/sh", "-c", f"echo {CANARY}"],
        "args": [CANARY],
        "env": [{"name": "TOKEN", "value": CANARY}, {"name": CANARY, "valueFrom": {"secretKeyRef": {"name": CANARY}}}],
        "envFrom": [{"secretRef": {"name": CANARY}}],
        "livenessProbe": {"httpGet": {"path": f"/{CANARY}", "port": 80}},
        "lifecycle": {"preStop": {"exec": {"command": [CANARY]}}},
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        **more,
    }


def pod_spec(**more: Any) -> Item:
    """The `spec` of a pod, with all that the API server and the controllers add."""
    return {
        "containers": [container()],
        "serviceAccountName": CANARY,
        "imagePullSecrets": [{"name": CANARY}],
        "hostname": CANARY,
        "dnsConfig": {"searches": [CANARY]},
        "securityContext": {"runAsUser": 1000},
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "volumes": [
            {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "config", "configMap": {"name": CANARY}},
            {"name": "secret", "secret": {"secretName": CANARY}},
        ],
        **more,
        "tolerations": [
            *more.get("tolerations", ()),
            *(
                {
                    "effect": "NoExecute",
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ),
        ],
    }


def pod(name: str, node: str | None, labels: Item, owners: list[Item], namespace: str = "shop", **more: Any) -> Item:
    """A pod that runs, or waits where it has no node."""
    spec = pod_spec(**more.pop("spec", {}))
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace, labels=labels, ownerReferences=owners, **more),
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending", "podIP": "10.1.2.3"},
    }


def node(number: int, **more: Any) -> Item:
    """A node of Karpenter's; the last one is spot and arm64."""
    spot = number == NODES - 1
    zone = ZONES[number % 3]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(
            f"ip-10-0-0-{number}.ec2.internal",
            labels={
                "kubernetes.io/arch": "arm64" if spot else "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": f"ip-10-0-0-{number}.ec2.internal",
                "node.kubernetes.io/instance-type": "m7g.xlarge" if spot else "m5.large",
                "topology.kubernetes.io/zone": zone,
                "topology.kubernetes.io/region": "us-east-1",
                "karpenter.sh/capacity-type": "spot" if spot else "on-demand",
                "karpenter.sh/nodepool": "general",
                "acme.example/tier": "gold",
                "acme.example/unasked": CANARY,
                **more,
            },
        ),
        "spec": {
            "providerID": f"aws:///{zone}/i-{number}",
            "taints": [{"key": "acme.example/tier", "value": "gold", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"cpu": "1930m", "memory": "7291Mi", "pods": "29", "hugepages-2Mi": "0"},
            "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29", "hugepages-2Mi": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.34.1-eks-113cf36", "machineID": CANARY},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "images": [{"names": [CANARY]}],
        },
    }


def claim(number: int) -> Item:
    """The NodeClaim of a node."""
    of = node(number)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata(f"general-{number}", labels=of["metadata"]["labels"]),
        "spec": {
            "expireAfter": "720h",
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "bottles"},
            "resources": {"requests": {"cpu": "1", "memory": "2Gi", "pods": "4"}},
            "requirements": [],
        },
        "status": {
            "nodeName": of["metadata"]["name"],
            "providerID": of["spec"]["providerID"],
            "conditions": [
                {"type": "Launched", "status": "True"},
                {"type": "Drifted", "status": "False"},
                {"type": "Consolidatable", "status": "True"},
            ],
        },
    }


def _name(number: int) -> str:
    return f"ip-10-0-0-{number}.ec2.internal"


SELECTOR = {"matchLabels": {"app": "payroll"}}
TOLERATION = {"key": "acme.example/tier", "operator": "Equal", "value": "gold", "effect": "NoSchedule"}
WEB = {
    "nodeSelector": {"acme.example/tier": "gold"},
    "tolerations": [TOLERATION],
    "priorityClassName": "gold",
    "priority": 1000,
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            # The API server puts the value beside the key when a pod is made.
            "labelSelector": {
                **SELECTOR,
                "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["5d4f8"]}],
            },
            "matchLabelKeys": ["pod-template-hash"],
        }
    ],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {
                            "matchExpressions": [{"key": "app", "operator": "In", "values": ["payroll", "ledger"]}]
                        },
                        "namespaceSelector": {"matchLabels": {"team": "gold"}},
                    },
                }
            ]
        }
    },
}


def web() -> Iterator[Item]:
    """A Deployment of three pods, one of which waits, and what is left of the version before."""
    labels = {"app": "payroll", "pod-template-hash": "5d4f8", "version": "7"}
    template = {"metadata": {"labels": {"app": "payroll", "version": "7"}}, "spec": pod_spec(**WEB)}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata("payroll", "shop"),
        "spec": {"replicas": 3, "selector": SELECTOR, "template": template},
    }
    for suffix, replicas in (("5d4f8", 3), ("77c9b", 0)):
        yield {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": metadata(f"payroll-{suffix}", "shop", ownerReferences=owner("Deployment", "payroll")),
            "spec": {"replicas": replicas, "selector": SELECTOR, "template": template},
        }
    for number, where in enumerate((_name(0), _name(1), None)):
        yield pod(f"payroll-5d4f8-{number}", where, labels, owner("ReplicaSet", "payroll-5d4f8"), spec=WEB)


def database() -> Iterator[Item]:
    """A StatefulSet of three pods with volumes in three zones, never to be disrupted."""
    for number in range(3):
        labels = {
            "app": "ledger",
            "controller-revision-hash": "ledger-9",
            "statefulset.kubernetes.io/pod-name": f"ledger-{number}",
            "apps.kubernetes.io/pod-index": str(number),
        }
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-ledger-{number}"}}
        yield pod(
            f"ledger-{number}",
            _name(number),
            labels,
            owner("StatefulSet", "ledger"),
            annotations={"karpenter.sh/do-not-disrupt": "true"},
            spec={"volumes": [*pod_spec()["volumes"], volume]},
        )
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata(f"data-ledger-{number}", "shop"),
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "8Gi"}},
                "storageClassName": "fast-ssd",
                "volumeName": f"pvc-{number}",
            },
            "status": {"capacity": {"storage": "8Gi"}, "phase": "Bound"},
        }
        zone = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [ZONES[number]]}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata(f"pvc-{number}"),
            "spec": {
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": CANARY},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            },
        }


def agents() -> Iterator[Item]:
    """A DaemonSet, whose controller binds each pod to its node by name, with a port of the node."""
    for number in range(NODES):
        field = {"key": "metadata.name", "operator": "In", "values": [_name(number)]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        own = [
            {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            {"operator": "Exists", "effect": "NoSchedule"},
        ]
        yield pod(
            f"agent-{number}",
            _name(number),
            {"app": "agent", "controller-revision-hash": "a", "pod-template-generation": "1"},
            owner("DaemonSet", "agent"),
            spec={
                "hostNetwork": True,
                "containers": [container("100m", "128Mi", ports=[{"containerPort": 9100, "hostPort": 9100}])],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
                "tolerations": own,
            },
        )


def others() -> Iterator[Item]:
    """Pods of other controllers and of none, and pods that do not count."""
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata("nightly-1", "shop", ownerReferences=owner("CronJob", "nightly", "batch/v1")),
        "spec": {"parallelism": 2, "template": {"spec": pod_spec()}},
    }
    for number in range(2):
        labels = {"batch.kubernetes.io/job-name": "nightly-1", "controller-uid": "x"}
        yield pod(f"nightly-1-{number}", _name(3), labels, owner("Job", "nightly-1", "batch/v1"))
    yield {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata(
            "rollout-a-1", "shop", ownerReferences=owner("Rollout", "rollout-a", "argoproj.io/v1alpha1")
        ),
        "spec": {"replicas": 1, "template": {"spec": pod_spec()}},
    }
    yield pod("rollout-a-1-x", _name(1), {"app": "rollout-a"}, owner("ReplicaSet", "rollout-a-1"))
    yield pod("lonely", _name(1), {}, [])
    mirror = {"kubernetes.io/config.mirror": CANARY}
    yield pod(f"kube-proxy-{_name(0)}", _name(0), {}, owner("Node", _name(0), "v1"), "kube-system", annotations=mirror)
    ended = pod("done", _name(0), {}, [])
    ended["status"]["phase"] = "Succeeded"
    yield ended
    yield pod("ending", _name(0), {}, [], deletionTimestamp="2026-11-22T09:59:00Z")
    yield pod("gated", None, {}, [], spec={"schedulingGates": [{"name": "acme.example/gate"}]})


def provisioning() -> list[Item]:
    """A NodePool and its node class."""
    return [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": metadata("general"),
            "spec": {
                "limits": {"cpu": 1000, "memory": "4000Gi"},
                "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "10%"}]},
                "template": {
                    "metadata": {"labels": {"acme.example/tier": "gold"}, "annotations": {"note": CANARY}},
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "bottles"},
                        "requirements": [
                            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]},
                            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["1"]},
                        ],
                        "taints": [{"key": "acme.example/tier", "value": "gold", "effect": "NoSchedule"}],
                    },
                },
            },
        },
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": metadata("bottles"),
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@v20261101"}, {"id": f"ami-{CANARY}"}],
                "userData": CANARY,
                "role": CANARY,
                "tags": {"owner": CANARY},
                "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": CANARY}}],
                "blockDeviceMappings": [
                    {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "kmsKeyID": CANARY, "volumeType": "gp3"}}
                ],
                "kubelet": {"maxPods": 110, "clusterDNS": [CANARY], "staticPodURLHeader": {"Authorization": [CANARY]}},
            },
            "status": {"subnets": [{"id": f"subnet-{CANARY}", "zone": zone} for zone in ZONES]},
        },
    ]


def cluster() -> list[Item]:
    """All of it."""
    items: list[Item] = [
        *map(node, range(NODES)),
        *map(claim, range(NODES)),
        *web(),
        *database(),
        *agents(),
        *others(),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata("payroll", "shop"),
            "spec": {"minAvailable": "50%", "selector": SELECTOR},
            "status": {"disruptionsAllowed": 1},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata("gold"),
            "value": 1000,
            "description": CANARY,
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata("system-node-critical"),
            "value": 2000001000,
        },
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata("shop", labels={"team": "gold", "kubernetes.io/metadata.name": "shop", "x": CANARY}),
        },
        *provisioning(),
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("s", "shop"), "data": {"key": CANARY}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("c", "shop"), "data": {"key": CANARY}},
    ]
    return copy.deepcopy(items)


def exported(items: list[Item]) -> Item:
    """As `kubectl get -o json` writes it."""
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
