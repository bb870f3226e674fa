"""What workloads have made in the cloud, and what of them holds nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from ..finding import Finding, Severity
from .cluster import Object
from .subject import FOR_EVER, PODS, Subject, annotations_of, kubectl, labels_of, name_of

SERVICES: Final = "/api/v1/services"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_NAMED: Final = 5  # of many pods
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"


def load_balancers(subject: Subject) -> Iterator[Finding]:
    """Services whose load balancers only the cluster knows."""
    for service in subject.cluster.list(SERVICES):
        if (service.get("spec") or {}).get("type") != "LoadBalancer":
            continue
        on_aws = subject.cloud == "aws"
        yield Finding(
            "error" if on_aws else "warning",
            f"the Service {name_of(service)} is of type LoadBalancer",
            "its load balancer and security group outlive the cluster and stay in the VPC: pulumi destroy retries "
            "for 20 minutes and fails with DependencyViolation"
            if on_aws
            else "its public address goes with the node resource group, and is not given back",
            f"{kubectl('delete', 'service', service)}, and wait until it is gone",
            f"GET {SERVICES}",
        )


def volumes(subject: Subject) -> Iterator[Finding]:
    """Volumes that a driver made."""
    for volume in subject.cluster.list(_VOLUMES):
        driver = annotations_of(volume).get(_PROVISIONED_BY)
        if not driver:
            continue
        claim = (volume.get("spec") or {}).get("claimRef") or {}
        used_by = f" for {claim['namespace']}/{claim['name']}" if claim else ""
        yield Finding(
            "warning",
            f"the PersistentVolume {name_of(volume)} was made by {driver}{used_by}",
            "its disk outlives the cluster and costs on: nobody is left to delete it"
            if subject.cloud == "aws"
            else "its disk goes with the node resource group, and its data with it",
            f"keep a snapshot if the data is worth it, then kubectl delete pvc --namespace {claim['namespace']} "
            f"{claim['name']}"
            if claim
            else kubectl("delete", "persistentvolume", volume),
            f"GET {_VOLUMES}",
        )


def budgets(subject: Subject) -> Iterator[Finding]:
    """PodDisruptionBudgets that let no pod of Karpenter's nodes go now."""
    pods = subject.pods_on_karpenters_nodes()
    for budget in subject.cluster.list(_BUDGETS):
        if (budget.get("status") or {}).get("disruptionsAllowed", 0) > 0:
            continue
        selector = (budget.get("spec") or {}).get("selector")
        held = [
            (pod, pool)
            for pod, pool in pods
            if pod["metadata"].get("namespace") == budget["metadata"]["namespace"] and _selects(selector, pod)
        ]
        for pool in sorted({pool for _, pool in held}):
            number = sum(pool == other for _, other in held)
            yield _holds(
                subject,
                pool,
                f"the PodDisruptionBudget {name_of(budget)} lets none of its {number} pods on nodes of {pool} go now",
                f"{kubectl('delete', 'poddisruptionbudget', budget)}, or scale the workload to 0",
                f"GET {_BUDGETS}",
            )


def undisturbed_pods(subject: Subject) -> Iterator[Finding]:
    """Pods with karpenter.sh/do-not-disrupt, a finding a NodePool."""
    held: dict[str, list[str]] = defaultdict(list)
    for pod, pool in subject.pods_on_karpenters_nodes():
        if annotations_of(pod).get(_DO_NOT_DISRUPT) == "true":
            held[pool].append(name_of(pod))
    for pool, pods in sorted(held.items()):
        named = ", ".join(sorted(pods)[:_NAMED]) + (" and others" if len(pods) > _NAMED else "")
        yield _holds(
            subject,
            pool,
            f"{len(pods)} pods on nodes of {pool} have {_DO_NOT_DISRUPT}: {named}",
            "scale their workloads to 0, or take the annotation away",
            f"GET {PODS}",
        )


def _holds(subject: Subject, pool: str, what: str, fix: str, call: str) -> Finding:
    grace = subject.grace(pool)
    severity: Severity = "error" if grace == FOR_EVER and not subject.is_managed else "warning"
    consequence = (
        "a node of a NodePool without terminationGracePeriod waits for it for ever"
        if grace == FOR_EVER
        else f"the node waits for it, for {grace} at most (terminationGracePeriod)"
    )
    return Finding(severity, what, consequence, fix, call)


def _selects(selector: dict[str, Any] | None, pod: Object) -> bool:
    """Whether a label selector of policy/v1 selects a pod: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    found = labels_of(pod)
    return all(found.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _matches(expression, found.get(expression["key"])) for expression in selector.get("matchExpressions") or ()
    )


def _matches(expression: dict[str, Any], value: str | None) -> bool:
    match expression["operator"]:
        case "In":
            return value in (expression.get("values") or ())
        case "NotIn":
            return value not in (expression.get("values") or ())
        case "Exists":
            return value is not None
    return value is None  # DoesNotExist
