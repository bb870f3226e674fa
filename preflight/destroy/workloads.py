"""What workloads have made in the cloud, and what of them holds nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpenter.selectors import is_about

from ..finding import Finding, Severity
from .cluster import Object
from .subject import FOR_EVER, PODS, Subject, annotations_of, kubectl, name_of

SERVICES: Final = "/api/v1/services"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
#: What AWS's own controller, and EKS's, make load balancers of.
_AWS_CLASSES: Final = frozenset({"service.k8s.aws/nlb", "eks.amazonaws.com/nlb"})
_NAMED: Final = 5  # of many pods
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"


def load_balancers(subject: Subject) -> Iterator[Finding]:
    """Services whose load balancers only the cluster knows."""
    for service in subject.cluster.list(SERVICES):
        if (service.get("spec") or {}).get("type") != "LoadBalancer":
            continue
        on_aws = subject.cloud == "aws"
        # What a class that is not AWS's makes need not be in the VPC at all.
        foreign = bool(made_by := (service["spec"].get("loadBalancerClass") or "")) and made_by not in _AWS_CLASSES
        yield Finding(
            "error" if on_aws and not foreign else "warning",
            f"the Service {name_of(service)} is of type LoadBalancer"
            + (f", of the class {made_by}" if foreign else ""),
            "whatever makes load balancers of this class may leave one behind: nobody is left to delete it"
            if foreign
            else "its load balancer and security group outlive the cluster and stay in the VPC: pulumi destroy retries "
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
            _volume_fix(volume, claim),
            f"GET {_VOLUMES}",
        )


def _volume_fix(volume: Object, claim: Mapping[str, Any]) -> str:
    """What removes a volume's disk: its claim, while the driver deletes with it; otherwise somebody has to."""
    keep = "keep a snapshot if the data is worth it, then "
    name = volume["metadata"]["name"]
    delete_claim = f"kubectl delete pvc --namespace {claim.get('namespace')} {claim.get('name')}"
    released = (volume.get("status") or {}).get("phase") == "Released"
    if (volume.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Retain":
        deletes = (
            f"kubectl patch persistentvolume {name} --type merge "
            '--patch \'{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}\''
        )
        gone = released or not claim
        return f"{keep}{deletes}, upon which the driver deletes the disk" + ("" if gone else f", after {delete_claim}")
    if released:
        return f"its claim is gone and the driver is deleting it; see why it does not: kubectl describe pv {name}"
    return f"{keep}{delete_claim}" if claim else kubectl("delete", "persistentvolume", volume)


def budgets(subject: Subject) -> Iterator[Finding]:
    """PodDisruptionBudgets that let no pod of Karpenter's nodes go now, and pods that are under more than one."""
    pods = subject.pods_on_karpenters_nodes()
    under: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for pod, pool in pods:
        if len(several := [name_of(budget) for budget in subject.cluster.list(_BUDGETS) if is_about(budget, pod)]) > 1:
            under[pool, tuple(sorted(several))] += 1
    for (pool, names), number in sorted(under.items()):
        yield _holds(
            subject,
            pool,
            f"{' and '.join(names)} select the same {number} pods on nodes of {pool}, and the eviction API takes no "
            "pod with more than one PodDisruptionBudget, whatever they allow",
            "leave one of them, or scale the workload to 0",
            f"GET {_BUDGETS}",
        )
    for budget in subject.cluster.list(_BUDGETS):
        if (budget.get("status") or {}).get("disruptionsAllowed", 0) > 0:
            continue
        held = [(pod, pool) for pod, pool in pods if is_about(budget, pod)]
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
