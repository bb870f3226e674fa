"""The timeline: JSON lines into which the recorder writes what it sees, and the playbook what it does.

Each line has `type` and `received` (our clock, UTC, microseconds). Types:

    START, SYNCED, STOP       the recorder: begun (pid, kubernetes; prices: whether the controller is asked for them, so
                              that they may come late; stack: name, and the outputs that a run is judged by; scenarios:
                              names of those that are to run, where the playbook says), all lists read, ended (reason;
                              clock: {speed, late}, how fast cluster time ran on average, and by how many seconds of it
                              a timer was late at most; missing where it was real time)
    ADDED, MODIFIED, DELETED  an object changed: kind, apiTime, object (an excerpt of it)
    GAP                       changes of a kind may be missing: its watch broke off and its list is read again,
                              or the API server does not answer for long
    PRICE                     instanceType, capacityType, zone, pricePerHour (USD) of something that was launched, and
                              source: controller (its metrics; also where it is not said) or table (facts/)
    PRICES                    cheapest: capacity type -> instance type -> USD an hour in the cheapest zone, of all that
                              the controller could launch, by its metrics
    UNAVAILABLE               the controller's metrics were asked which offerings it takes for unavailable: since the
                              time before, these became so (became) and these ceased to be (ceased): capacity type ->
                              zone -> instance types. The first time, all that are
    CONTROLLER                its process by its metrics, every few seconds: memory_bytes; cpu_seconds and api_errors
                              since it started (failed calls of Kubernetes' or the cloud's API); started (Unix time);
                              looks (how often since then it has looked at all nodes and disrupted none)
    QUEUE                     the interruption queue by the controller's metrics, every few seconds: errors (since it
                              started), reading (whether it is at it at that moment)
    STORY, STEP, ERROR, END   the playbook: a story began, a step ended, a task failed, all is removed
    FAULT                     the playbook broke something on purpose: scenario, step (from 0), kind (as in
                              `actions.FAULTS`, or cordon, delete-node), detail (an object, for example nodeClaim
                              and instance)
    RESOURCES                 the playbook asked the cloud what there is of Karpenter's making: moment (before all
                              stories, at the end of a story, after all), scenario, source (who told; empty: nobody,
                              then reason says why), resources (a list of kind, id, nodeClaim), orphans (those that
                              belong to nothing)
    PHASE                     how far a what-if is, by `phase`: settings (base: its name; at: the moment that is asked
                              about, null for now; waitFactor, by which waits were divided; pools: name -> setting ->
                              [asked, used]), loaded (the workload is made; leftOut: what of it is not, a sentence
                              each; others: nodes of NodePools, and pods, cpu and memory of pods on them that are not
                              the workload's), base-settled, change-begins (candidate: its name), change-applied
                              (changes: list of op, type, name), change-settled. `quiet` says for how many seconds
                              nothing had moved when it settled, and `needed` how many are rest; `gaveUp` why it did
                              not settle, and `left` what was under way still; `refused` what was said when the change
                              was refused.
                              Where the changed cluster lived for days: life-begins (curve: pattern of workloads -> hour
                              -> factor of replicas), image-published (images), life-ends (realSeconds: how long
                              that took; skippedSeconds: how much of their time was skipped, in so many skips)

An object that is ADDED also has what cannot change later: a NodeClaim its requirements and requests, a pod its
tolerations, the node affinity that it requires and its grace period. `apiTime` is the newest of the object's own
timestamps; they have a resolution of one second. A lock on the file tells whether a recorder is writing to it. This
module knows the file, not what its lines mean together.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from karpstack.karpenter import clock
from karpstack.text.files import ResultError, open_result
from karpstack.text.json_file import values_at_most

from ..market.quantities import amount, pod_requests

Line = dict[str, Any]

LONGEST = 16 * 1024 * 1024  # bytes of a line; those with the prices of a cloud have a tenth of one
# Of a line, and of all: a what-if of 60 nodes and 900 pods has 9,000 values in a line, and 280,000 in all.
_VALUES, _VALUES_IN_ALL, _BYTES_IN_ALL = 1_000_000, 20_000_000, 2**30
_DEFAULT_DISK = "20Gi"  # amifamily.DefaultEBS of the AWS provider
_RELAXED = "karpenter.sh/nodeclaim-min-values-relaxed"
# Annotation -> key of an excerpt. The last one is a what-if's, on a NodeClaim made for a node of a snapshot.
_DO_NOT_DISRUPT = ("karpenter.sh/do-not-disrupt", "doNotDisrupt")
_TERMINATION_TIME = ("karpenter.sh/nodeclaim-termination-timestamp", "terminationTime")
_STANDS_FOR = ("karpstack.io/snapshot-node", "standsFor")
_OF_EVERY_POD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TEMPLATE = "launch template"  # a kind of resource in RESOURCES lines


def now() -> str:
    """The time by our clock, in the timeline's format."""
    return clock.utcnow().isoformat(timespec="microseconds")


def parse_time(text: str) -> datetime:
    """A time of the timeline or of the API."""
    return datetime.fromisoformat(text)


class TimelineError(ValueError):
    """A line that cannot be read; the text has its number."""


class Writer:
    """Appends lines; several processes may write to one timeline.

    Args:
        path: The file, made if it is not there.
        recording: Hold the lock that says that a recorder writes to it.

    Raises:
        BlockingIOError: Another recorder writes to it.
    """

    def __init__(self, path: Path, *, recording: bool = False) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        if recording:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, type_: str, **content: object) -> None:
        """Append one line. A single write to a file opened for appending is never torn by another writer.

        Raises:
            ValueError: It is longer than a reader takes.
        """
        line = json.dumps({"type": type_, "received": now(), **content}, separators=(",", ":")).encode() + b"\n"
        if len(line) > LONGEST:
            raise ValueError(f"a line of the type {type_} has more than {LONGEST // 2**20} MiB")
        os.write(self._file, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that writes late must not write to a file that has the number by then.
        file, self._file = self._file, -1
        os.close(file)


class Reader:
    """Reads a timeline from its beginning, and then what was appended since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._number = 0
        self._values = 0

    def new_lines(self) -> Iterator[Line]:
        """Lines appended since the last call; none while there is no file.

        Raises:
            TimelineError: A line is not JSON, or longer than any that was written; or all together are; or it is no
                file.
        """
        try:
            file = _opened(self._path)
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            while text := file.readline(LONGEST + 1):
                if not text.endswith(b"\n") and len(text) <= LONGEST:
                    return  # its writer is not done with it
                self._offset += len(text)
                self._number += 1
                yield self._parsed(text)

    def _parsed(self, text: bytes) -> Line:
        try:
            if len(text) > LONGEST:
                raise ValueError(f"more than {LONGEST // 2**20} MiB in one line")
            values = values_at_most(text)
            self._values += values
            if values > _VALUES or self._values > _VALUES_IN_ALL or self._offset > _BYTES_IN_ALL:
                raise ValueError(
                    f"more than {_VALUES:,} values in a line, or in all {_VALUES_IN_ALL:,} values or "
                    f"{_BYTES_IN_ALL // 2**30} GiB"
                )
            line: Line = json.loads(text)
            if not isinstance(line, dict):
                raise TypeError("no object")
        except (TypeError, ValueError, RecursionError) as error:
            raise TimelineError(
                f"{self._path}, line {self._number}: not a line of a timeline ({error}), so the run cannot be judged; "
                "run the scale test again"
            ) from error
        return line


def _opened(path: Path) -> BinaryIO:
    """Open a timeline. A link in its place could lead to another file; a pipe or a device may never end."""
    try:
        file = open_result(path.parent, path.name)
    except ResultError as error:
        raise TimelineError(str(error)) from error
    if file is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return file


def is_recorded(path: Path) -> bool:
    """Whether a recorder writes to this timeline now."""
    try:
        with _opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def excerpt(kind: str, item: dict[str, Any]) -> Line:
    """What the timeline keeps of an object: enough to judge a story, small enough for thousands of pods."""
    if kind == "Event":
        return {
            "metadata": _pick(item["metadata"], "name", "namespace", "uid", "creationTimestamp"),
            "involvedObject": _pick(item["involvedObject"], "kind", "name", "namespace", "uid"),
            **_pick(item, "type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime"),
        }
    metadata = _pick(item["metadata"], "name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp")
    status = item.get("status") or {}
    spec = item.get("spec") or {}
    kept: Line = {
        "metadata": metadata,
        "conditions": [
            _pick(condition, "type", "status", "reason", "message", "lastTransitionTime")
            for condition in status.get("conditions") or []
        ],
    }
    if kind == "Pod":
        kept |= _pick(spec, "nodeName", "nodeSelector", "priorityClassName") | _pick(status, "phase")
        kept["image"] = next((container.get("image", "") for container in spec.get("containers") or ()), "")
        kept["requests"] = pod_requests(spec)
        kept |= _annotated(item, _DO_NOT_DISRUPT)
    elif kind == "Node":
        kept |= _pick(spec, "providerID", "taints") | _pick(status, "capacity", "allocatable")
        # A fake kubelet's nodes carry kwok's annotation: their boot time was chosen, not measured.
        kept |= _annotated(item, _DO_NOT_DISRUPT)
        kept["simulated"] = "kwok.x-k8s.io/node" in (item["metadata"].get("annotations") or {})
    elif kind == "NodeClaim":
        kept |= _pick(spec, "expireAfter", "terminationGracePeriod")
        kept |= _annotated(item, _DO_NOT_DISRUPT, _TERMINATION_TIME, _STANDS_FOR)
        kept |= _pick(status, "nodeName", "providerID", "imageID", "capacity", "allocatable")
    elif kind == "NodePool":
        kept |= _pick(spec, "limits") | _pick(status, "resources")
        kept |= _pick(spec.get("template", {}).get("spec", {}), "nodeClassRef")
        kept["spec"] = spec
    elif kind == "PodDisruptionBudget":
        kept |= _pick(spec, "selector", "minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy")
        kept |= _pick(status, "disruptionsAllowed", "desiredHealthy", "expectedPods")
    elif kind.endswith("NodeClass"):
        # The one has it in the kubelet's configuration, the other beside it.
        pods = {**spec, **(spec.get("kubelet") or {})}.get("maxPods")
        kept |= {"maxPods": pods} if isinstance(pods, int) else {}  # or an expression, by instance type
        if aliases := [term["alias"] for term in spec.get("amiSelectorTerms") or () if "alias" in term]:
            kept["images"] = aliases
        if "subnets" in status:  # on AWS; on Azure they are no zone's
            kept["zones"] = sorted({subnet["zone"] for subnet in status["subnets"] if subnet.get("zone")})
        if (disk := _largest_disk(spec)) is not None:
            kept["disk"] = disk
    return kept


def _largest_disk(spec: dict[str, Any]) -> float | None:
    """Bytes of ephemeral storage that a node of a node class has at most; None where the instance type decides.

    Source: `ephemeralStorage`, `kubeReservedResources` and `evictionThreshold` in pkg/providers/instancetype of the
    AWS provider, `ephemeralStorage` there of the Azure provider.
    """
    if size := spec.get("osDiskSizeGB"):
        return float(size) * 10**9
    if "amiSelectorTerms" not in spec or spec.get("instanceStorePolicy"):
        return None
    sizes = [(one.get("ebs") or {}).get("volumeSize") for one in spec.get("blockDeviceMappings") or ()]
    largest = max(amount(size) for size in (_DEFAULT_DISK, *sizes) if size)
    # Without settings of its own, the kubelet keeps a tenth and 1 GiB.
    own = (spec.get("kubelet") or {}).keys() & {"kubeReserved", "evictionHard"}
    return largest if own else largest * 0.9 - 2**30


def once(kind: str, item: dict[str, Any]) -> Line:
    """What of an object cannot change, and is kept when it is first seen: a NodeClaim's instance types are many."""
    spec = item.get("spec") or {}
    if kind == "NodeClaim":
        asked = (spec.get("resources") or {}).get("requests") or {}
        annotations = item["metadata"].get("annotations") or {}
        return {
            "requirements": spec.get("requirements") or [],
            "requests": {resource: amount(quantity) for resource, quantity in asked.items()},
            "minValuesRelaxed": annotations.get(_RELAXED) == "true",
        }
    if kind == "Pod":
        node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        return {
            # Every pod gets those of the kubelet's conditions; no NodePool has such taints.
            "tolerations": [one for one in spec.get("tolerations") or () if one.get("key") not in _OF_EVERY_POD],
            "nodeSelectorTerms": required.get("nodeSelectorTerms") or [],
            **_pick(spec, "terminationGracePeriodSeconds"),
        }
    return {}


def api_time(kept: Line) -> str | None:
    """The newest of the timestamps that the API put into an excerpt."""
    metadata = kept["metadata"]
    times = [
        metadata.get("creationTimestamp"),
        metadata.get("deletionTimestamp"),
        *(kept.get(key) for key in ("firstTimestamp", "lastTimestamp", "eventTime")),
        *(condition.get("lastTransitionTime") for condition in kept.get("conditions", ())),
    ]
    return max((time for time in times if time and isinstance(time, str)), default=None, key=parse_time)


def _annotated(item: dict[str, Any], *wanted: tuple[str, str]) -> Line:
    annotations = item["metadata"].get("annotations") or {}
    return {key: annotations[annotation] for annotation, key in wanted if annotation in annotations}


def _pick(source: dict[str, Any], *keys: str) -> Line:
    return {key: source[key] for key in keys if source.get(key) is not None}
