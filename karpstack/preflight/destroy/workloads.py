"""What workloads have made in the cloud, and what of them holds nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from shlex import quote
from typing import Any, Final

from karpstack.karpenter import clock
from karpstack.karpenter.quantities import go_duration
from karpstack.karpenter.selectors import is_about

from ..finding import Finding, Severity, finding
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
        # What a class that is not AWS's makes need not be in the VPC at all.
        foreign = bool(made_by := (service["spec"].get("loadBalancerClass") or "")) and made_by not in _AWS_CLASSES
        yield finding(
            "service-of-another-class" if foreign else f"service-load-balancer-on-{subject.cloud}",
            f"GET {SERVICES}",
            service=name_of(service),
            made_by=made_by,
            delete=kubectl("delete", "service", service),
        )


def volumes(subject: Subject) -> Iterator[Finding]:
    """Volumes that a driver made."""
    for volume in subject.cluster.list(_VOLUMES):
        driver = annotations_of(volume).get(_PROVISIONED_BY)
        if not driver:
            continue
        claim = (volume.get("spec") or {}).get("claimRef") or {}
        used_by = f" for {claim['namespace']}/{claim['name']}" if claim else ""
        yield finding(
            "disk-outlives-cluster" if subject.cloud == "aws" else "disk-goes-with-cluster",
            f"GET {_VOLUMES}",
            volume=name_of(volume),
            driver=driver,
            used_by=used_by,
            fix=_volume_fix(volume, claim),
        )


def _volume_fix(volume: Object, claim: Mapping[str, Any]) -> str:
    """What removes a volume's disk: its claim, while the driver deletes with it; otherwise somebody has to."""
    keep = "keep a snapshot if the data is worth it, then "
    name = quote(str(volume["metadata"]["name"]))
    delete_claim = kubectl("delete", "pvc", {"metadata": claim}) if claim else ""
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
            subject, pool, "pods-under-several-budgets", f"GET {_BUDGETS}", budgets=" and ".join(names), number=number
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
                "budget-lets-no-pod-go",
                f"GET {_BUDGETS}",
                budget=name_of(budget),
                number=number,
                delete=kubectl("delete", "poddisruptionbudget", budget),
            )


def check_do_not_disrupt(subject: Subject) -> Iterator[Finding]:
    """Pods with karpenter.sh/do-not-disrupt, a finding a NodePool; another for those that have it for a time."""
    held: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for pod, pool in subject.pods_on_karpenters_nodes():
        given = annotations_of(pod).get(_DO_NOT_DISRUPT, "")
        if given == "true" or _is_protected(pod, given):
            held[pool, given == "true"].append(name_of(pod))
    for (pool, lasting), pods in sorted(held.items()):
        named = ", ".join(sorted(pods)[:_NAMED]) + (" and others" if len(pods) > _NAMED else "")
        code, call, number = "pods-not-to-disrupt", f"GET {PODS}", len(pods)
        if lasting:
            yield _holds(subject, pool, code, call, number=number, pods=named)
        else:
            waits = "the node waits for it, until the time in the annotation is over at most"
            yield finding(code, call, pool=pool, waits=waits, number=number, pods=named)


def _is_protected(pod: Object, duration: str) -> bool:
    """Whether the time is not over that the annotation of a pod names, which begins with the pod."""
    try:
        started = datetime.fromisoformat((pod.get("status") or {})["startTime"])
        return clock.utcnow() < started + go_duration(duration)
    except (KeyError, OverflowError, TypeError, ValueError):  # no time, or one that Karpenter does not understand
        return False


def _holds(subject: Subject, pool: str, code: str, call: str, **words: object) -> Finding:
    grace = subject.grace(pool)
    severity: Severity = "error" if grace == FOR_EVER and not subject.is_managed else "warning"
    waits = (
        "a node of a NodePool without terminationGracePeriod waits for it for ever"
        if grace == FOR_EVER
        else f"the node waits for it, for {grace} at most (terminationGracePeriod)"
    )
    return finding(code, call, severity=severity, pool=pool, waits=waits, **words)
