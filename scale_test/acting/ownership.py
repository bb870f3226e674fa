"""Makes a story's objects where nothing of that name is, and removes them where they are a scale test's own.

A name proves nothing: somebody else may take it before a story comes, or while it runs. So objects are created and
never merged into what is there, and only what has a scenario's labels is removed, by its uid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..recording.timeline import SCENARIO_LABEL, WORKLOAD_SELECTOR
from ..text.shown import value, visible
from .cluster import Cluster, ClusterError

_PAUSE = 1.0  # seconds between two looks at what is going
# What would come of a story that takes somebody else's, and how to let it run.
_OTHERWISE = {
    "Namespace": "the story would run its workload in it and then remove it with all that is in it; "
    "remove it, or give the scenario another workload.namespace",
    "Deployment": "the story would change it and then remove it; "
    "remove it, or give the scenario another workload.namespace",
    "NodePool": "the story would change it and then remove it with its nodes; "
    "remove it, or give the scenario's NodePool another name (a key of nodePools)",
}


class TakenError(Exception):
    """Something of that name is on the cluster already."""


@dataclass
class Removal:
    """What came of a clean-up.

    Attributes:
        removed: Kind and name of what was asked to go.
        kept: A sentence for each object that has a name of the story's and is not its own.
    """

    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def check_names(cluster: Cluster, wanted: Iterable[Mapping[str, Any]]) -> None:
    """See that no Namespace or NodePool of these names is anybody's but a scale test's.

    Raises:
        TakenError: Some are; all of them are named.
        ClusterError: The API server does not answer, or refuses.
    """
    taken = []
    for manifest in {title(manifest): manifest for manifest in wanted if manifest["kind"] != "Deployment"}.values():
        live = cluster.read(manifest)
        if live and _scenario(live) is None:
            taken.append(_taken(manifest, _whose(live)))
    if taken:
        raise TakenError("\n".join(taken))


def leftovers(cluster: Cluster) -> list[str]:
    """The names of all scenarios that have a Namespace or a NodePool on the cluster.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    there = (live for kind in ("Namespace", "NodePool") for live in cluster.labelled(kind, WORKLOAD_SELECTOR))
    return sorted({name for live in there if (name := _scenario(live)) is not None})


def make(cluster: Cluster, wanted: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Create objects, one after another; kind and name, and the uid, of each as soon as it is there.

    Raises:
        TakenError: Something of that name is there already; it stays as it is.
        ClusterError: The API server does not answer, or refuses.
    """
    for manifest in wanted:
        uid = cluster.create(manifest)
        if uid is None:
            live = cluster.read(manifest)
            whose = _whose(live) if live else "was when it should be made, and has gone since"
            raise TakenError(_taken(manifest, whose))
        yield title(manifest), uid


def remove(
    cluster: Cluster,
    wanted: Sequence[Mapping[str, Any]],
    scenarios: Collection[str],
    made: Mapping[str, str],
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Removal:
    """Remove what scenarios made and wait until it is gone; Deployments go with their namespace.

    All are asked to go before any is waited for, so that pods and nodes go at the same time.

    Args:
        cluster: The cluster.
        wanted: The objects.
        scenarios: The names of scenarios, of whose labels an object must have one.
        made: Kind and name of an object -> its uid, as far as known; another one of that name stays.
        timeout: Seconds to wait at most.
        clock: Tells seconds.
        sleep: Waits so many seconds.

    Raises:
        ClusterError: The API server does not answer or refuses, or something is there after that time.
    """
    done = Removal()
    end = clock() + timeout
    left = [manifest for manifest in wanted if manifest["kind"] != "Deployment"]
    while left:
        going = []
        for manifest in left:
            live = cluster.read(manifest)
            if live is None:
                continue
            if not _own(live, scenarios, made.get(title(manifest))):
                # What was asked to go is gone then, and this came after it.
                done.kept.append(f"{title(manifest)} stays as it is: it {_whose(live)}")
                continue
            going.append(manifest)
            metadata = live["metadata"]
            if "deletionTimestamp" not in metadata and cluster.delete(manifest, metadata["uid"]):
                done.removed.append(title(manifest))
        if going and clock() >= end:
            raise ClusterError(
                f"{', '.join(map(title, going))}: there after {timeout:g} seconds still, and its nodes may cost money; "
                "see its finalizers and the controller's log, or run the scenario again, which removes it first"
            )
        if going:
            sleep(_PAUSE)
        left = going
    return done


def _taken(wanted: Mapping[str, Any], whose: str) -> str:
    return f"{title(wanted)} is on the cluster already: it {whose}; {_OTHERWISE[wanted['kind']]}"


def title(manifest: Mapping[str, Any]) -> str:
    """Kind and name of an object."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _own(live: Mapping[str, Any], scenarios: Collection[str], uid: str | None) -> bool:
    """Whether an object has a scenario's labels, and is the one that was made where that is known."""
    scenario = _scenario(live)
    return scenario is not None and scenario in scenarios and uid in (None, live["metadata"]["uid"])


def _scenario(live: Mapping[str, Any]) -> str | None:
    """The scenario that made an object, by its labels; None if none did."""
    labels = live["metadata"].get("labels") or {}
    part_of, scale_test = WORKLOAD_SELECTOR.split("=")
    return labels.get(SCENARIO_LABEL) if labels.get(part_of) == scale_test else None


def _whose(live: Mapping[str, Any]) -> str:
    """Whose an object seems to be, as the end of a sentence."""
    metadata = live["metadata"]
    since = value(metadata.get("creationTimestamp"))
    scenario = _scenario(live)
    if scenario is not None:
        return visible(f"was made by another run of a scale test, for scenario {value(scenario)}, at {since}")
    managers = dict.fromkeys(entry.get("manager") for entry in metadata.get("managedFields") or [])
    labels = metadata.get("labels") or {}
    return visible(
        f"is none of a scale test's (made at {since} with {', '.join(map(value, managers)) or 'an unknown tool'}, "
        f"labels {value(labels)})"
    )
