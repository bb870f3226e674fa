"""What the stand-ins of a cluster make of objects, as kubelets, Helm and Cilium's operator do (cluster_rules.yaml)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.cluster import cilium, container
from karpstack.rehearsal.cluster.readiness import missing_for_available, pod_problem

CASES = yaml.safe_load(Path(__file__).with_name("cluster_rules.yaml").read_text())
ALLOCATABLE = {"cpu": "1930m", "memory": "6903Mi"}
POD: dict[str, Any] = {
    "metadata": {"name": "karpenter-1", "namespace": "kube-system", "labels": {"app": "karpenter"}},
    "spec": {"nodeName": "ip-10-0-0-1", "serviceAccountName": "karpenter"},
}
DATA = {("ConfigMap", "settings"): {"REGION": "us-east-1"}, ("Secret", "keys"): {"key": "hidden"}}


#: Status of a workload with two of two pods.
WHOLE = {
    "Deployment": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
    "DaemonSet": dict.fromkeys(
        ("observedGeneration", "desiredNumberScheduled", "updatedNumberScheduled", "numberReady"), 2
    ),
}


def lacks(kind: str, status: Mapping[str, Any], everything: bool, unavailable: int | str = 0) -> str:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}
    spec = {"replicas": 2, "strategy": strategy}
    workload = {"kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": {**WHOLE.get(kind, {}), **status}}
    return missing_for_available(workload, all_replicas=everything)


def unreachable(host: str | None, port: str | None, endpoint: str, kube_proxy: bool) -> str:
    pairs = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    variables = [{"name": name, "value": value} for name, value in pairs.items() if value is not None]
    first = [{"name": "config", "env": variables}, {"name": "mount-cgroup"}]
    agent = {"spec": {"initContainers": first, "containers": [{"name": "cilium-agent", "env": variables}]}}
    return cilium.unreachable(agent, endpoint, kube_proxy=kube_proxy)


def environment(variables: list[Any], more: Mapping[str, Any] | None = None) -> dict[str, str]:
    made = {"env": variables, **(more or {})}
    return container.environment(POD, made, ALLOCATABLE, lambda kind, name: DATA.get((kind, name)))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "readiness.missing_for_available": lacks,
    "readiness.pod_problem": pod_problem,
    "agent.unreachable": unreachable,
    "agent.changed_taints": lambda taints, up, sets, removes: cilium.changed_taints(
        taints, cilium.TAINT, up=up, set_taint=sets, remove_taint=removes
    ),
    "container.resource": lambda reference, resources: container.resource(
        reference, {"resources": resources}, ALLOCATABLE
    ),
    "container.environment": environment,
    "container.arguments": lambda args: container.arguments({"args": args}, {"A": "1"}),
}


@pytest.mark.parametrize(
    ("function", "arguments", "answer"),
    [(function, arguments, answer) for function, cases in CASES.items() for arguments, answer in cases],
)
def test_what_is_made_of_objects(function: str, arguments: list[Any], answer: Any) -> None:
    call = FUNCTIONS[function]
    if isinstance(answer, str) and answer.startswith("!"):
        with pytest.raises(container.ContainerConfigError, match=answer[1:]):
            call(*arguments)
    elif isinstance(answer, str) and answer.startswith("~"):
        assert re.search(answer[1:], call(*arguments))
    else:
        assert call(*arguments) == answer
