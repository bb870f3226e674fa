"""Which pods come after those that are evicted: a move is not done before their owners have made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

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
#: Conditions of a Job that makes no more pods.
_ENDED: Final = {"Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget"}

Object = Mapping[str, Any]


@dataclass
class _Owner:
    """What has made pods; how many there were before the first was evicted, and since; when these became more."""

    reference: Mapping[str, str]
    namespace: str
    pods: int
    most: int = -1
    since: float = 0

    @property
    def name(self) -> str:
        return f"{self.reference['kind']} {self.namespace}/{self.reference['name']}"


class Missing(NamedTuple):
    """An owner with fewer pods than it had and wants, by kind and name, and since when it has made no other."""

    owner: str
    since: float


class Successors:
    """The pods that the owners of evicted pods are to make."""

    def __init__(self, cluster: Cluster, patience: float) -> None:
        """`patience` is how long a pod may be without a node, in seconds."""
        self._cluster, self._within = cluster, min(_UNKNOWN_WITHIN, patience)
        self._owners: dict[str, _Owner] = {}
        self._empty: float | None = None
        #: Those with fewer pods that are not waited for, and why.
        self.fewer: list[str] = []

    def note(self, pod: Object) -> None:
        """Count the pods of a pod's owner, before the first of them is evicted.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        reference = controller(pod)
        if reference is None or reference["uid"] in self._owners:
            return
        namespace = str(pod["metadata"]["namespace"])
        pods = self._pods(namespace, with_ending=_is_known(reference))  # one may end since a move that was broken off
        self._owners[reference["uid"]] = _Owner(reference, namespace, pods.get(reference["uid"], 0))

    def missing(self, moment: float) -> Missing | None:
        """An owner with fewer pods than it had and wants; None if there is none.

        Args:
            moment: When this is asked, in seconds, first when the last pod is gone. Who does not say how many pods it
                wants, such as a runner of pipelines, is given a minute, and is one of `fewer` then.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        self._empty = moment if self._empty is None else self._empty
        by_namespace = {one.namespace: self._pods(one.namespace) for one in self._owners.values()}
        for uid, owner in list(self._owners.items()):
            pods = by_namespace[owner.namespace].get(uid, 0)
            if pods > owner.most:
                owner.most, owner.since = pods, moment
            if pods < owner.pods:
                wanted, why = self._wanted(owner)
                if moment - self._empty < self._within if wanted is None else pods < wanted:
                    return Missing(owner.name, owner.since)
                if why:
                    self.fewer.append(f"{owner.name} ({why})")
            del self._owners[uid]
        return None

    def _pods(self, namespace: str, *, with_ending: bool = False) -> dict[str, int]:
        """How many pods the owners in a namespace have, without those that have ended."""
        counted: dict[str, int] = {}
        for pod in self._cluster.labelled("v1", "Pod", "", f"metadata.namespace={namespace}"):
            owner = controller(pod)
            has_ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if owner and not has_ended and (with_ending or not pod["metadata"].get("deletionTimestamp")):
                counted[owner["uid"]] = counted.get(owner["uid"], 0) + 1
        return counted

    def _wanted(self, owner: _Owner) -> tuple[int | None, str]:
        """How many pods an owner wants, None if it does not say; and what is to be said of it if it has fewer."""
        if not _is_known(owner.reference):
            return None, "it does not say how many it wants"
        kind, metadata = owner.reference["kind"], {"name": owner.reference["name"], "namespace": owner.namespace}
        found = self._cluster.read({"apiVersion": _KINDS[kind], "kind": kind, "metadata": metadata})
        if found is None or found["metadata"]["uid"] != owner.reference["uid"]:
            return 0, ""
        if found["metadata"].get("deletionTimestamp"):
            return 0, ""
        return _of_job(found) if kind == "Job" else (int(found["spec"].get("replicas", 1)), "")


def controller(pod: Object) -> Mapping[str, str] | None:
    """What makes another pod for it; other owners only remove it with themselves."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def _is_known(reference: Mapping[str, str]) -> bool:
    return reference.get("apiVersion") == _KINDS.get(reference["kind"])


def _of_job(job: Object) -> tuple[int, str]:
    """How many pods a Job still makes, no more than are left to complete; and whether it has failed."""
    spec, status = job["spec"], job.get("status") or {}
    met = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    succeeded, failed = int(status.get("succeeded") or 0), _indexes(str(status.get("failedIndexes") or ""))
    why = "it has failed" if met & {"Failed", "FailureTarget"} else f"{failed} indexes have failed" if failed else ""
    if met & _ENDED or ("completions" not in spec and succeeded):
        return 0, why
    parallel = int(spec.get("parallelism", 1))
    return (min(parallel, int(spec["completions"]) - succeeded - failed) if "completions" in spec else parallel), why


def _indexes(text: str) -> int:
    """How many indexes a Job's status names, as `1,3-5` does four."""
    ranges = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)
