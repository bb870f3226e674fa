"""The short form of a workload: what its pods ask for, and the plain manifest that this stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from karpstack.karpenter.quantities import duration

from .formats import MOST_PODS, DnsLabel, Image, LabelKey, LabelValue, Model, Pods, Quantity
from .problems import refuse

WorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job"]

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def _do_not_disrupt(value: object, _: ValidatorFunctionWrapHandler) -> bool | str:
    if isinstance(value, bool) or value == "true":
        return bool(value)
    try:
        if isinstance(value, str) and duration(value):
            return value
    except ValueError:
        pass
    # parseDoNotDisrupt of pkg/utils/pod/scheduling.go, sigs.k8s.io/karpenter 1.15.
    raise refuse("do-not-disrupt")


#: Value of Karpenter's annotation: for ever, or for so long from a pod's start.
DoNotDisrupt = Annotated[bool | str, WrapValidator(_do_not_disrupt)]


class TopologySpread(Model):
    """How the pods are spread, in Kubernetes' own words; the label selector is the workload's pods.

    Attributes:
        topology_key: Node label whose values are the domains; `kubernetes.io/hostname` for nodes.
        max_skew: Maximum difference in pods between two domains.
        min_domains: With fewer domains, no domain gets more than `maxSkew` pods.
        when_unsatisfiable: Whether a pod stays pending if it would violate the constraint.
    """

    topology_key: LabelKey
    max_skew: int = Field(1, gt=0, le=MOST_PODS)
    min_domains: int | None = Field(None, gt=0, le=MOST_PODS)
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"


class Volume(Model):
    """A volume of each pod: a claim that a StatefulSet keeps, and that goes with the pod in any other workload.

    Attributes:
        size: Size, for example `1Gi`.
        storage_class: Name of its StorageClass (default: that of the cluster).
    """

    size: Quantity
    storage_class: DnsLabel | None = None

    @property
    def claim(self) -> dict[str, Any]:
        """The `spec` of its PersistentVolumeClaim."""
        claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": self.size}}}
        return claim if self.storage_class is None else {**claim, "storageClassName": self.storage_class}


class PodForm(Model):
    """Pods that ask for room and do nothing.

    Attributes:
        image: Image of the only container.
        requests: Resource requests of a pod, for example `{cpu: 1, memory: 1.5Gi}`; none if empty.
        node_selector: Node selector of the pods.
        tolerations: Tolerations, in the form of Kubernetes.
        affinity: Affinity, in the form of Kubernetes.
        topology_spread: Topology spread constraints.
        priority_class_name: PriorityClass of the pods.
        do_not_disrupt: `true`: while the pods run, Karpenter does not choose their nodes for consolidation or drift. A
            duration such as `30m`: for this time after a pod's start. It does not prevent expiry, interruption or
            deletion, nor drift if the NodePool has a `terminationGracePeriod`. In these cases the node is drained and
            waits for the pod until the `terminationGracePeriod` ends; if the NodePool has none, forever.
        volumes: Volumes of each pod.
    """

    image: Image = "registry.k8s.io/pause:3.10"
    requests: dict[LabelKey, Quantity] = Field(default_factory=dict)
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    tolerations: list[dict[str, Any]] | None = None
    affinity: dict[str, Any] | None = None
    topology_spread: list[TopologySpread] = Field(default_factory=list)
    priority_class_name: DnsLabel | None = None
    do_not_disrupt: DoNotDisrupt | None = None
    volumes: list[Volume] | None = None

    def manifest(self, kind: WorkloadKind, name: str, replicas: int, labels: Mapping[str, str]) -> dict[str, Any]:
        """The workload that it stands for.

        Args:
            kind: Its kind.
            name: Its name.
            replicas: How many pods; of no meaning for a DaemonSet.
            labels: By which it knows its pods.
        """
        kept = kind == "StatefulSet"
        claims = {f"volume-{number}": volume.claim for number, volume in enumerate(self.volumes or ())}
        pod: dict[str, Any] = {
            # The container has nothing to finish, and a drained node should not wait for it.
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": dict(self.node_selector),
            "topologySpreadConstraints": [
                {**spread.model_dump(by_alias=True, exclude_none=True), "labelSelector": {"matchLabels": dict(labels)}}
                for spread in self.topology_spread
            ],
            "containers": [{"name": "pause", "image": self.image, "resources": {"requests": dict(self.requests)}}],
        }
        if self.tolerations:
            pod["tolerations"] = self.tolerations
        if self.affinity:
            pod["affinity"] = self.affinity
        if self.priority_class_name:
            pod["priorityClassName"] = self.priority_class_name
        if kind == "Job":
            pod["restartPolicy"] = "Never"
        if claims and not kept:
            pod["volumes"] = [
                {"name": volume, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
                for volume, claim in claims.items()
            ]
        metadata: dict[str, Any] = {"labels": dict(labels)}
        if self.do_not_disrupt:
            lasting = self.do_not_disrupt
            metadata["annotations"] = {DO_NOT_DISRUPT: lasting if isinstance(lasting, str) else "true"}
        spec: dict[str, Any] = {"template": {"metadata": metadata, "spec": pod}}
        if kind == "Job":
            spec["parallelism"] = replicas
        else:
            spec["selector"] = {"matchLabels": dict(labels)}
        if kind in ("Deployment", "StatefulSet"):
            spec["replicas"] = replicas
        if kept:
            spec["serviceName"] = name
            spec["volumeClaimTemplates"] = [
                {"metadata": {"name": volume}, "spec": claim} for volume, claim in claims.items()
            ]
        api = "batch/v1" if kind == "Job" else "apps/v1"
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


class Deployment(PodForm):
    """The only Deployment of a story that needs no more.

    Attributes:
        name: Name of the Deployment.
        replicas: Number of pods before the first step.
    """

    name: DnsLabel
    replicas: Pods = 0


class WorkloadForm(PodForm):
    """One of a story's workloads.

    Attributes:
        kind: Kind of the workload.
        replicas: Number of pods before the first step (default: 0). A DaemonSet has one on each node; a Job runs this
            number in parallel.
    """

    kind: WorkloadKind = "Deployment"
    replicas: Pods | None = None

    @model_validator(mode="after")
    def _no_replicas_of_a_daemon_set(self) -> Self:
        if self.kind == "DaemonSet" and self.replicas is not None:
            raise refuse("daemon-set-replicas")
        return self
