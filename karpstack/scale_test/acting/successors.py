"""Which pods come after those that are evicted: a move is not done before their owners have made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .cluster import Cluster

#: Kinds of owners that say how many pods they want -> their API version.
_KINDS: Final[Mapping[str, str]] = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
}

#: Seconds in which others may make another pod.
_UNKNOWN_WITHIN: Final = 60.0

Object = Mapping[str, Any]


@dataclass
class _Owner:
    """What has made pods, and how many of them there were before the first was evicted."""

    reference: Mapping[str, str]
    namespace: str
    pods: int

    @property
    def name(self) -> str:
        return f"{self.reference['kind']} {self.namespace}/{self.reference['name']}"


class Successors:
    """The pods that the owners of evicted pods are to make."""

    def __init__(self, cluster: Cluster, patience: float) -> None:
        """`patience` is how long a pod may be without a node, in seconds."""
        self._cluster, self._within = cluster, min(_UNKNOWN_WITHIN, patience)
        self._owners: dict[str, _Owner] = {}
        #: Those with fewer pods that do not say how many they want.
        self.fewer: list[str] = []

    def note(self, pod: Object) -> None:
        """Count the pods of a pod's owner, before the first of them is evicted.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        reference = _owner(pod)
        if reference is None or reference["uid"] in self._owners:
            return
        namespace = str(pod["metadata"]["namespace"])
        self._owners[reference["uid"]] = _Owner(reference, namespace, self._pods(namespace).get(reference["uid"], 0))

    def missing(self, waited: float) -> str:
        """An owner with fewer pods than it had and wants, by kind and name; empty if there is none.

        Args:
            waited: Seconds since the last pod was gone. Who does not say how many pods it wants, such as a runner of
                pipelines, is given a minute, and is one of `fewer` then.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        by_namespace = {one.namespace: self._pods(one.namespace) for one in self._owners.values()}
        for uid, owner in list(self._owners.items()):
            pods = by_namespace[owner.namespace].get(uid, 0)
            wanted = self._wanted(owner)
            if pods < owner.pods and (pods < wanted if wanted is not None else waited < self._within):
                return owner.name
            if pods < owner.pods and wanted is None:
                self.fewer.append(owner.name)
            del self._owners[uid]
        return ""

    def _pods(self, namespace: str) -> dict[str, int]:
        """How many pods the owners in a namespace have, without those that end or have ended."""
        counted: dict[str, int] = {}
        for pod in self._cluster.labelled("v1", "Pod", "", f"metadata.namespace={namespace}"):
            owner = _owner(pod)
            has_ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if owner and not has_ended and not pod["metadata"].get("deletionTimestamp"):
                counted[owner["uid"]] = counted.get(owner["uid"], 0) + 1
        return counted

    def _wanted(self, owner: _Owner) -> int | None:
        """How many pods an owner wants: none if it is gone, or a Job that is done; None if it does not say."""
        kind = owner.reference["kind"]
        if owner.reference.get("apiVersion") != _KINDS.get(kind):
            return None
        metadata = {"name": owner.reference["name"], "namespace": owner.namespace}
        found = self._cluster.read({"apiVersion": _KINDS[kind], "kind": kind, "metadata": metadata})
        if found is None or found["metadata"]["uid"] != owner.reference["uid"]:
            return 0
        return _of_job(found) if kind == "Job" else int(found["spec"].get("replicas", 1))


def _owner(pod: Object) -> Mapping[str, str] | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def _of_job(job: Object) -> int:
    """How many pods a Job still makes; one with `completions` makes no more than are left to complete."""
    spec, status = job["spec"], job.get("status") or {}
    has_ended = any(
        one["type"] in ("Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget")
        and one["status"] == "True"
        for one in status.get("conditions") or ()
    )
    done = int(status.get("succeeded") or 0)
    if has_ended or ("completions" not in spec and done):
        return 0
    parallel = int(spec.get("parallelism", 1))
    return min(parallel, int(spec["completions"]) - done) if "completions" in spec else parallel
