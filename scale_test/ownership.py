"""Makes a story's objects where nothing of that name is, and removes them where they are a scale test's own.

A name proves nothing: somebody else may take it before a story comes, or while it runs. So objects are created and
never merged into what is there, and only what has a scenario's labels is removed, by its uid.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import config

from .recording.timeline import SCENARIO_LABEL, WORKLOAD_SELECTOR
from .text.shown import cut, value, visible

_TIMEOUTS = (5, 30)  # seconds to connect, and to answer
_PAUSE = 1.0  # seconds between two looks at what is going
_REASON = 500  # characters of an answer that refuses
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
}
# What would come of a story that takes somebody else's, and how to let it run.
_OTHERWISE = {
    "Namespace": "the story would run its workload in it and then remove it with all that is in it; "
    "remove it, or give the scenario another workload.namespace",
    "Deployment": "the story would change it and then remove it; "
    "remove it, or give the scenario another workload.namespace",
    "NodePool": "the story would change it and then remove it with its nodes; "
    "remove it, or give the scenario's NodePool another name (a key of nodePools)",
}


class ClusterError(Exception):
    """The API server is not there or refuses; or something does not go."""


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


class Cluster:
    """Creates, reads and deletes Namespaces, Deployments and NodePools of the cluster that a kubeconfig names.

    Args:
        kubeconfig: The kubeconfig to connect with; None for the usual one.
    """

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self._api = config.new_client_from_config(config_file=str(kubeconfig) if kubeconfig else None)

    def create(self, wanted: Mapping[str, Any]) -> str | None:
        """Create an object; its uid, or None where there is one of that name already.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        found = self._ask("POST", _collection(wanted), wanted, HTTPStatus.CONFLICT)
        return str(found["metadata"]["uid"]) if found else None

    def read(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """What has the kind and the name of an object; None where there is nothing.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        return self._ask("GET", _path(wanted), None, HTTPStatus.NOT_FOUND)

    def labelled(self, kind: str, selector: str) -> list[dict[str, Any]]:
        """What there is of a kind with these labels; nothing where the cluster does not know the kind.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        path = f"{_COLLECTIONS[kind]}?{urlencode({'labelSelector': selector})}"
        found = self._ask("GET", path, None, HTTPStatus.NOT_FOUND)
        return list(found["items"]) if found else []

    def delete(self, wanted: Mapping[str, Any], uid: str) -> bool:
        """Ask for the end of the object that has this uid; False where it is not there any more.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        # In the foreground: a NodePool is gone only when no NodeClaim of it is left.
        policy = "Foreground" if wanted["kind"] == "NodePool" else "Background"
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {"uid": uid},
        }
        gone = HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT
        return self._ask("DELETE", _path(wanted), options, *gone) is not None

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, *expected: HTTPStatus
    ) -> dict[str, Any] | None:
        """The answer to a request; None if it has one of the expected statuses."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._api.param_serialize(
            method, path, body=body, header_params=headers, auth_settings=["BearerToken"]
        )
        try:
            answer: urllib3.HTTPResponse = self._api.call_api(*request, _request_timeout=_TIMEOUTS).response
            content = answer.read()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(f"{method} {path}: {visible(error)}; is the API server there?") from error
        if answer.status in expected:
            return None
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
            reason = cut(visible(content.decode(errors="replace")), _REASON)
            raise ClusterError(f"{method} {path}: {answer.status} {reason}")
        found: dict[str, Any] = json.loads(content)
        return found


def check_names(cluster: Cluster, wanted: Iterable[Mapping[str, Any]]) -> None:
    """See that no Namespace or NodePool of these names is anybody's but a scale test's.

    Raises:
        TakenError: Some are; all of them are named.
        ClusterError: The API server does not answer, or refuses.
    """
    taken = []
    for name, one in {title(one): one for one in wanted if one["kind"] != "Deployment"}.items():
        found = cluster.read(one)
        if found and _scenario(found) is None:
            taken.append(f"{name} is on the cluster already: it {_whose(found)}; {_OTHERWISE[one['kind']]}")
    if taken:
        raise TakenError("\n".join(taken))


def leftovers(cluster: Cluster) -> list[str]:
    """The names of all scenarios that have a Namespace or a NodePool on the cluster.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    there = (one for kind in ("Namespace", "NodePool") for one in cluster.labelled(kind, WORKLOAD_SELECTOR))
    return sorted({name for one in there if (name := _scenario(one)) is not None})


def make(cluster: Cluster, wanted: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Create objects, one after another; kind and name, and the uid, of each as soon as it is there.

    Raises:
        TakenError: Something of that name is there already; it stays as it is.
        ClusterError: The API server does not answer, or refuses.
    """
    for one in wanted:
        uid = cluster.create(one)
        if uid is None:
            found = cluster.read(one)
            whose = _whose(found) if found else "was when it should be made, and has gone since"
            raise TakenError(f"{title(one)} is on the cluster already: it {whose}; {_OTHERWISE[one['kind']]}")
        yield title(one), uid


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
    left = [one for one in wanted if one["kind"] != "Deployment"]
    while left:
        going = []
        for one in left:
            found = cluster.read(one)
            if found is None:
                continue
            if not _own(found, scenarios, made.get(title(one))):
                # What was asked to go is gone then, and this came after it.
                done.kept.append(f"{title(one)} stays as it is: it {_whose(found)}")
                continue
            going.append(one)
            metadata = found["metadata"]
            if "deletionTimestamp" not in metadata and cluster.delete(one, metadata["uid"]):
                done.removed.append(title(one))
        if going and clock() >= end:
            raise ClusterError(
                f"{', '.join(map(title, going))}: there after {timeout:g} seconds still, and its nodes may cost money; "
                "see its finalizers and the controller's log, or run the scenario again, which removes it first"
            )
        if going:
            sleep(_PAUSE)
        left = going
    return done


def title(found: Mapping[str, Any]) -> str:
    """Kind and name of an object."""
    return f"{found['kind']} {found['metadata']['name']}"


def _own(found: Mapping[str, Any], scenarios: Collection[str], uid: str | None) -> bool:
    """Whether an object has a scenario's labels, and is the one that was made where that is known."""
    scenario = _scenario(found)
    return scenario is not None and scenario in scenarios and uid in (None, found["metadata"]["uid"])


def _scenario(found: Mapping[str, Any]) -> str | None:
    """The scenario that made an object, by its labels; None if none did."""
    labels = found["metadata"].get("labels") or {}
    part_of, scale_test = WORKLOAD_SELECTOR.split("=")
    return labels.get(SCENARIO_LABEL) if labels.get(part_of) == scale_test else None


def _whose(found: Mapping[str, Any]) -> str:
    """Whose an object seems to be, as the end of a sentence."""
    metadata = found["metadata"]
    since = value(metadata.get("creationTimestamp"))
    scenario = _scenario(found)
    if scenario is not None:
        return visible(f"was made by another run of a scale test, for scenario {value(scenario)}, at {since}")
    managers = dict.fromkeys(one.get("manager") for one in metadata.get("managedFields") or [])
    labels = metadata.get("labels") or {}
    return visible(
        f"is none of a scale test's (made at {since} with {', '.join(map(value, managers)) or 'an unknown tool'}, "
        f"labels {value(labels)})"
    )


def _collection(wanted: Mapping[str, Any]) -> str:
    return _COLLECTIONS[wanted["kind"]].format(namespace=wanted["metadata"].get("namespace"))


def _path(wanted: Mapping[str, Any]) -> str:
    return f"{_collection(wanted)}/{wanted['metadata']['name']}"
