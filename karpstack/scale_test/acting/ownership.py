"""Makes a story's objects where nothing of that name is, and removes them where they are a scale test's own.

A name proves nothing: somebody else may take it before a story comes, or while it runs. So objects are created and
never merged into what is there, and only what has a scenario's labels is removed, by its uid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from karpstack.karpenter import clock
from karpstack.text.shown import value, visible

from ..labels import SCENARIO_LABEL, WORKLOAD_SELECTOR
from ..scenarios.environments import ENVIRONMENTS
from ..scenarios.formats import merge_patch
from ..scenarios.manifests import COPY_OF, COUNTED, IN_NO_NAMESPACE, title
from .cluster import Cluster, ClusterError, RefusedError

_PAUSE = 1.0  # seconds between two looks at what is going
# What would come of a story that takes somebody else's, and how to let it run.
_OTHERWISE = {
    "Namespace": "the story would run its workload in it and then remove it with all that is in it; "
    "remove it, or give the scenario another workload.namespace",
    "NodePool": "the story would change it and then remove it with its nodes; "
    "remove it, or give the scenario's NodePool another name (a key of nodePools)",
}
_OTHERWISE_IN_NAMESPACE = (
    "the story would change it and then remove it; remove it, or give the scenario another workload.namespace"
)
_OTHERWISE_IN_NONE = "the story would change it and then remove it; remove it, or give the scenario's another name"


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
    """See that no Namespace, NodePool or other object in no namespace of these names is another's than a scale test's.

    Raises:
        TakenError: Some are; all of them are named.
        ClusterError: The API server does not answer, or refuses.
    """
    taken = []
    for manifest in {title(manifest): manifest for manifest in wanted if not _inside(manifest)}.values():
        live = cluster.read(manifest)
        if live and _scenario(live) is None:
            taken.append(_taken(manifest, _owner_text(live)))
    if taken:
        raise TakenError("\n".join(taken))


def leftovers(cluster: Cluster) -> list[str]:
    """The names of all scenarios that have something on the cluster, but for what is in a namespace.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    kinds = [
        ("v1", "Namespace"),
        ("karpenter.sh/v1", "NodePool"),
        *((api, kind) for kind, api in IN_NO_NAMESPACE.items()),
    ]
    kinds += [(environment.node_class_api, environment.node_class_kind) for environment in ENVIRONMENTS]
    there = (live for api, kind in dict.fromkeys(kinds) for live in cluster.labelled(api, kind, WORKLOAD_SELECTOR))
    return sorted({name for live in there if (name := _scenario(live)) is not None})


def make(
    cluster: Cluster, wanted: Sequence[Mapping[str, Any]], otherwise: str | None = None
) -> Iterator[tuple[str, str]]:
    """Create objects, one after another; kind and name, and the uid, of each as soon as it is there.

    Args:
        cluster: The cluster.
        wanted: The objects.
        otherwise: What would come of it where a name is taken, and what to do; None for a story's.

    Raises:
        TakenError: Something of that name is there already; it stays as it is.
        RefusedError: The API server takes one for wrong; the text says where in which scenario it is.
        ClusterError: The API server does not answer, or refuses.
    """
    for manifest in wanted:
        try:
            uid = cluster.create(_complete(cluster, manifest))
        except RefusedError as error:
            raise RefusedError(f"{_place(manifest)}{title(manifest)}", error.why) from error
        if uid is None:
            live = cluster.read(manifest)
            whose = _owner_text(live) if live else "was when it should be made, and has gone since"
            raise TakenError(_taken(manifest, whose, otherwise))
        yield title(manifest), uid


@clock.waiting()
def remove(
    cluster: Cluster,
    wanted: Sequence[Mapping[str, Any]],
    scenarios: Collection[str],
    made: Mapping[str, str],
    timeout: float,
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], None] = clock.sleep,
) -> Removal:
    """Remove what scenarios made and wait until it is gone; what is in a namespace goes with it.

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
    left = [manifest for manifest in wanted if not _inside(manifest)]
    while left:
        going = []
        for manifest in left:
            live = cluster.read(manifest)
            if live is None:
                continue
            if not _own(live, scenarios, made.get(title(manifest))):
                # What was asked to go is gone then, and this came after it.
                done.kept.append(f"{title(manifest)} stays as it is: it {_owner_text(live)}")
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


def _taken(wanted: Mapping[str, Any], whose: str, otherwise: str | None = None) -> str:
    otherwise = otherwise or _OTHERWISE.get(
        wanted["kind"], _OTHERWISE_IN_NAMESPACE if _inside(wanted) else _OTHERWISE_IN_NONE
    )
    return f"{title(wanted)} is on the cluster already: it {whose}; {otherwise}"


def _complete(cluster: Cluster, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A manifest as it is made: of a copy, what the original has too.

    Raises:
        ClusterError: There is no original, or the API server does not answer or refuses.
    """
    if COPY_OF not in manifest:
        return manifest
    rest = {key: value for key, value in manifest.items() if key != COPY_OF}
    original = cluster.read({**rest, "metadata": {"name": manifest[COPY_OF]}})
    if original is None:
        raise ClusterError(
            f"{manifest['kind']} {manifest[COPY_OF]} is not there, so {title(manifest)} cannot be made as its copy; "
            "name one that the cluster has as copyOf"
        )
    return {**rest, "spec": merge_patch(original["spec"], manifest["spec"])}


def _place(manifest: Mapping[str, Any]) -> str:
    """Where what is to be made was written, as the beginning of a sentence; empty where no scenario has it."""
    scenario = _scenario(manifest)
    if scenario is None:
        return ""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    if kind == "NodePool":
        key = f"nodePools.{name}"
    elif kind in {environment.node_class_kind for environment in ENVIRONMENTS}:
        key = f"nodeClasses.{name}"
    else:
        key = "workload, workloads or manifests" if kind in COUNTED else "manifests"
    return f"{scenario}.yml: {key}: nothing more of the story is made until it is mended there: "


def _inside(manifest: Mapping[str, Any]) -> bool:
    """Whether it goes with its namespace."""
    return "namespace" in manifest["metadata"]


def _own(live: Mapping[str, Any], scenarios: Collection[str], uid: str | None) -> bool:
    """Whether an object has a scenario's labels, and is the one that was made where that is known."""
    scenario = _scenario(live)
    return scenario is not None and scenario in scenarios and uid in (None, live["metadata"]["uid"])


def _scenario(live: Mapping[str, Any]) -> str | None:
    """The scenario that made an object, by its labels; None if none did."""
    labels = live["metadata"].get("labels") or {}
    part_of, scale_test = WORKLOAD_SELECTOR.split("=")
    return labels.get(SCENARIO_LABEL) if labels.get(part_of) == scale_test else None


def _owner_text(live: Mapping[str, Any]) -> str:
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
