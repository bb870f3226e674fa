"""A snapshot's workloads as Kubernetes has them: pods that ask for the same room at the same places, and do nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from .model import Workload
from .pod import LabelSelector, Pod

#: On a pod: which of the snapshot's workloads it is of. The scale test knows pods by it.
WORKLOAD_LABEL: Final = "karpstack.io/workload"
#: On a pod with do-not-disrupt that is of a Job, which may end before anything deletes the pod.
JOB_LABEL: Final = "karpstack.io/job"
OF_JOBS: Final = "batch/v1"
IMAGE: Final = "registry.k8s.io/pause:3.10"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
#: Resources that may be asked for without a limit of the same number.
_WITHOUT_LIMIT: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_MOVED: Final = "snapshot.karpstack.io/"
#: By which a cluster's own parts (network, DNS, Karpenter) are known, to Services and to the rehearsal: a pod that runs
#: nothing must not be taken for one of them.
_OF_PARTS: Final = frozenset({"app.kubernetes.io/name", "io.cilium/app", "k8s-app"})
# A StatefulSet's name and eleven characters are a label's value of its pods.
_LONGEST_NAME: Final = 52
_LONGEST_VALUE: Final = 63
_MADE_AS: Final = {
    ("apps/v1", "StatefulSet"): "StatefulSet",
    ("apps/v1", "DaemonSet"): "DaemonSet",
}


class Names:
    """How labels and names of a snapshot are written in a cluster in which some labels are taken.

    A label that is taken moves under a prefix, on pods and in every selector alike. So each selector selects what it
    selected, and the taken labels are free for who knows its own by them.
    """

    def __init__(self, taken: Mapping[str, str]) -> None:
        """`taken` are labels that every object gets; those of a cluster's own parts are taken, too."""
        self._taken = frozenset(taken) | {WORKLOAD_LABEL, JOB_LABEL} | _OF_PARTS

    def key(self, key: str) -> str:
        """A label's key."""
        return f"{_MOVED}{key.replace('/', '_')}" if key in self._taken else key

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Labels of a pod or of a namespace."""
        return {self.key(key): value for key, value in labels.items()}

    def selectors(self, value: Any) -> Any:
        """The same with every label selector in it as it has to be, in Kubernetes' words."""
        if isinstance(value, list):
            return [self.selectors(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {key: self._within(key, inner) for key, inner in value.items()}

    def selector(self, selector: LabelSelector) -> dict[str, Any]:
        """A label selector in Kubernetes' words."""
        found: dict[str, Any] = self._within("labelSelector", as_kubernetes(selector))
        return found

    def _within(self, key: str, value: Any) -> Any:
        match key:
            case "labelSelector" | "namespaceSelector":
                found: dict[str, Any] = {}
                if "matchLabels" in value:
                    found["matchLabels"] = self.labels(value["matchLabels"])
                if "matchExpressions" in value:
                    found["matchExpressions"] = [
                        {**one, "key": self.key(one["key"])} for one in value["matchExpressions"]
                    ]
                return found
            case "matchLabelKeys" | "mismatchLabelKeys":
                return [self.key(one) for one in value]
        return self.selectors(value)


def as_kubernetes(part: Any) -> Any:
    """A part of a snapshot in Kubernetes' words, without what is as when it is not said."""
    return part.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def object_name(name: str) -> str:
    """A name that is short enough for all that is made of it."""
    return _cut(name, _LONGEST_NAME)


def label_value(workload: Workload) -> str:
    """By which the pods of a workload are known, whatever their namespace: `namespace.name`, cut if it must be."""
    return _cut(f"{workload.namespace}.{workload.name}", _LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 11].rstrip('-.')}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def created_kind(workload: Workload, *, claims: bool) -> str:
    """The kind that a workload is made as.

    Args:
        workload: The workload.
        claims: Whether each of its pods has a volume of its own that exists.
    """
    kind = _MADE_AS.get((workload.controller.api_version, workload.controller.kind), "Deployment")
    # Only a StatefulSet gives each pod the claim of its number.
    return "StatefulSet" if claims and kind == "Deployment" else kind


def manifest(
    workload: Workload,
    kind: str,
    names: Names,
    labels: Mapping[str, str],
    priority_class: str | None,
    shared_claims: Mapping[str, str],
    claim_templates: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """A workload as it is made.

    Args:
        workload: The workload.
        kind: As `created_kind` says.
        names: How labels are written.
        labels: Labels of the object and of its pods.
        priority_class: Name of a PriorityClass that is there.
        shared_claims: Name of a volume of the pods -> name of the claim that all of them have.
        claim_templates: Name of a volume -> `spec` of the claim that each pod of a StatefulSet has of its own.
    """
    own = {WORKLOAD_LABEL: label_value(workload)}
    name = object_name(workload.name)
    metadata: dict[str, Any] = {"labels": {**names.labels(workload.pod.labels), **labels, **own}}
    if annotations := _annotations(workload.pod):
        metadata["annotations"] = annotations
    if workload.controller.api_version == OF_JOBS and workload.pod.do_not_disrupt:
        metadata["labels"][JOB_LABEL] = "true"
    pod = _pod(workload.pod, names, priority_class)
    if shared_claims:
        pod["volumes"] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in shared_claims.items()
        ]
    spec: dict[str, Any] = {"selector": {"matchLabels": own}, "template": {"metadata": metadata, "spec": pod}}
    if kind in ("Deployment", "StatefulSet"):
        spec["replicas"] = workload.replicas
    if kind == "StatefulSet":
        spec["serviceName"] = name
        # All at once, as they are there all at once.
        spec["podManagementPolicy"] = "Parallel"
        spec["volumeClaimTemplates"] = [
            {"metadata": {"name": volume, "labels": dict(labels)}, "spec": dict(claim)}
            for volume, claim in claim_templates.items()
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": workload.namespace, "labels": dict(labels)},
        "spec": spec,
    }


def _annotations(pod: Pod) -> dict[str, str]:
    found = {}
    if pod.do_not_disrupt is not None:
        found[DO_NOT_DISRUPT] = pod.do_not_disrupt
    if pod.deletion_cost is not None:
        found[DELETION_COST] = str(pod.deletion_cost)
    return found


def _pod(pod: Pod, names: Names, priority_class: str | None) -> dict[str, Any]:
    requests = dict(pod.requests)
    limits = {resource: amount for resource, amount in requests.items() if resource not in _WITHOUT_LIMIT}
    container: dict[str, Any] = {"name": "pause", "image": IMAGE, "resources": {"requests": requests}}
    if limits:
        container["resources"]["limits"] = limits
    if pod.host_ports:
        container["ports"] = [
            {
                "containerPort": one.port,
                "hostPort": one.port,
                "protocol": one.protocol,
                **({"hostIP": one.host_ip} if one.host_ip else {}),
            }
            for one in pod.host_ports
        ]
    made: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
    }
    parts: dict[str, Callable[[], Any]] = {
        "nodeSelector": lambda: dict(pod.node_selector),
        "affinity": lambda: pod.affinity and names.selectors(as_kubernetes(pod.affinity)),
        "tolerations": lambda: [as_kubernetes(one) for one in pod.tolerations],
        "topologySpreadConstraints": lambda: names.selectors(
            [as_kubernetes(one) for one in pod.topology_spread_constraints]
        ),
        "priorityClassName": lambda: priority_class,
    }
    made |= {key: value for key, part in parts.items() if (value := part())}
    if pod.termination_grace_period_seconds is not None:
        made["terminationGracePeriodSeconds"] = pod.termination_grace_period_seconds
    return made
