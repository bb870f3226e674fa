"""Whether workloads are available, and the reasons when they are not."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.cluster.readiness import pod_problem, shortfall


def deployment(strategy: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {"generation": 2},
        "spec": {"replicas": 2, "strategy": strategy or {}},
        "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, **status},
    }


def test_a_deployment_with_all_its_pods_lacks_nothing() -> None:
    assert shortfall(deployment(), all_replicas=True) == ""


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"observedGeneration": 1}, "its controller has not seen the last change"),
        ({"updatedReplicas": 1}, "1 of 2 pods are up to date"),
        ({"replicas": 3}, "1 old pods are still there"),
        ({"availableReplicas": 1}, "1 of 2 pods are ready"),
    ],
)
def test_what_a_deployment_lacks(status: dict[str, Any], text: str) -> None:
    assert shortfall(deployment(**status), all_replicas=True) == text


def test_helm_lets_lack_what_the_strategy_lets_lack() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    assert shortfall(deployment(strategy=strategy, availableReplicas=1), all_replicas=False) == ""
    assert shortfall(deployment(strategy=strategy, availableReplicas=1), all_replicas=True) == "1 of 2 pods are ready"
    share = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}
    assert shortfall(deployment(strategy=share, availableReplicas=1), all_replicas=False) == "1 of 2 pods are ready"


def test_a_daemon_set_is_measured_by_the_nodes_that_should_have_it() -> None:
    status = {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 2}
    daemon_set = {"kind": "DaemonSet", "metadata": {"generation": 1}, "spec": {}, "status": status}
    assert shortfall(daemon_set, all_replicas=True) == "2 of 3 pods are ready"
    assert shortfall({**daemon_set, "status": {**status, "numberReady": 3}}, all_replicas=True) == ""


def test_a_definition_without_conditions_is_not_established() -> None:
    definition = {"kind": "CustomResourceDefinition", "status": {"conditions": None}}
    assert shortfall(definition, all_replicas=True) == "it is not established"


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (
            {
                "spec": {},
                "status": {
                    "phase": "Pending",
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "0/2 nodes are available",
                        }
                    ],
                },
            },
            "Unschedulable: 0/2 nodes are available",
        ),
        ({"spec": {}, "status": {"phase": "Pending"}}, "the scheduler has not looked at it yet"),
        ({"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}, "it is Pending on node n"),
        (
            {
                "spec": {"nodeName": "n"},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            },
            "container c is waiting: CrashLoopBackOff",
        ),
        ({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ""),
        ({"spec": {}, "status": {"phase": "Succeeded"}}, ""),
    ],
)
def test_why_a_pod_is_not_ready(pod: dict[str, Any], text: str) -> None:
    assert pod_problem(pod) == text
