"""Plays the service controller of the cloud's controller manager: Services of type LoadBalancer get a load balancer.

The finalizer keeps a Service until its load balancer is gone; a cluster that ends before its Services leaves their load
balancers behind, for nobody is left to remove them. That is how clouds do it, and why a network cannot be deleted then.

What fails is tried again, as by k8s.io/cloud-provider (controllers/service): after 5 s, then after twice as long, up to
five minutes; at once when the Service itself changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from karpstack.rehearsal.cluster.cloud import LoadBalancerError, LoadBalancers
from karpstack.rehearsal.cluster.feed import TIMER, Event, Player
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects, warn

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"

_FAILED = "SyncLoadBalancerFailed"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Failure:
    """What failed for a Service.

    Attributes:
        tries: How many in a row.
        seconds: How long after the last one the next is.
        wanted: What the Service asked for at the last one.
    """

    tries: int
    seconds: float
    wanted: Any


class ServiceController(Player):
    """The load balancers of one cluster's Services."""

    name = "service-controller"
    #: Seconds until the second try, and at most between two.
    back_off = (5.0, 300.0)
    watches: ClassVar = {"services": {"path": "/api/v1/services"}}

    def __init__(self, objects: Objects, balancers: LoadBalancers) -> None:
        super().__init__(objects)
        self._balancers = balancers
        self._failures: dict[str, _Failure] = {}

    def _handle(self, event: Event) -> None:
        if event.type == TIMER:
            self._again(event.object["path"], event.object["tries"])
        elif event.type == "DELETED":
            self._failures.pop(_path(event.object), None)
        elif event.object:
            failed = self._failures.get(_path(event.object))
            # What changed may be its finalizer only, or its status: no reason not to wait.
            if failed is None or failed.wanted != _wanted(event.object):
                self._sync(event.object)

    def _again(self, path: str, tries: int) -> None:
        failed = self._failures.get(path)
        if failed is None or failed.tries != tries:
            return  # it has been tried since
        if service := self._objects.get(path):
            self._sync(service)
        else:
            del self._failures[path]

    def _sync(self, service: Object) -> None:
        has_one = FINALIZER in service["metadata"].get("finalizers", [])
        try:
            if _wants_one(service):
                if not has_one or not service["status"]["loadBalancer"].get("ingress"):
                    self._try("ensure", self._ensure, service)
            elif has_one:
                self._try("delete", self._remove, service)
            else:
                self._failures.pop(_path(service), None)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            self._failures.pop(_path(service), None)  # it is gone, or a newer version of it comes along

    def _try(self, verb: str, act: Callable[[Object], None], service: Object) -> None:
        path = _path(service)
        try:
            act(service)
        except LoadBalancerError as error:
            text = f"Error syncing load balancer: failed to {verb} load balancer: {error}"
            warn(self._objects, service, self.name, _FAILED, text)
            before, (first, longest) = self._failures.get(path), self.back_off
            tries, seconds = (before.tries + 1, 2 * before.seconds) if before else (1, first)
            failed = self._failures[path] = _Failure(tries, min(seconds, longest), _wanted(service))
            self._feed.after(failed.seconds, "again", {"path": path, "tries": tries})
        else:
            self._failures.pop(path, None)

    def _ensure(self, service: Object) -> None:
        # Before the load balancer is made: it would be left behind if the Service went in between.
        self._set_finalizers(service, [*service["metadata"].get("finalizers", []), FINALIZER])
        hostname = self._balancers.ensure(service)
        self._objects.patch(
            f"{_path(service)}/status", {"status": {"loadBalancer": {"ingress": [{"hostname": hostname}]}}}
        )
        _LOG.info("the Service %s has the load balancer %s", _path(service), hostname)

    def _remove(self, service: Object) -> None:
        self._balancers.remove(service)
        self._objects.patch(f"{_path(service)}/status", {"status": {"loadBalancer": {"ingress": None}}})
        self._set_finalizers(service, [each for each in service["metadata"]["finalizers"] if each != FINALIZER])

    def _set_finalizers(self, service: Object, finalizers: list[str]) -> None:
        self._objects.patch(_path(service), {"metadata": {"finalizers": list(dict.fromkeys(finalizers))}})


def _wants_one(service: Object) -> bool:
    spec = service["spec"]
    # A Service with a class belongs to another controller.
    is_ours = spec["type"] == "LoadBalancer" and not spec.get("loadBalancerClass")
    return is_ours and "deletionTimestamp" not in service["metadata"]


def _wanted(service: Object) -> Any:
    metadata = service["metadata"]
    return service["spec"], metadata.get("annotations"), metadata.get("deletionTimestamp"), metadata.get("uid")


def _path(service: Object) -> str:
    metadata = service["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/services/{metadata['name']}"
