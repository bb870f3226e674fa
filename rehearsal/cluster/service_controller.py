"""Plays the service controller of the cloud's controller manager: Services of type LoadBalancer get a load balancer.

The finalizer keeps a Service until its load balancer is gone; a cluster that ends before its Services leaves their load
balancers behind, for nobody is left to remove them. That is how clouds do it, and why a network cannot be deleted then.
"""

from __future__ import annotations

import logging

from rehearsal.cluster.cloud import LoadBalancerError, LoadBalancers
from rehearsal.cluster.feed import Event, Feed
from rehearsal.cluster.objects import ApiError, Object, Objects, warn

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"

_SERVICES = "/api/v1/services"
_COMPONENT = "service-controller"
_FAILED = "SyncLoadBalancerFailed"
_LOG = logging.getLogger(__name__)


class ServiceController:
    """The load balancers of one cluster's Services."""

    def __init__(self, objects: Objects, balancers: LoadBalancers) -> None:
        self._objects = objects
        self._balancers = balancers
        self._feed = Feed(objects)

    def start(self) -> None:
        """Begin to watch; returns at once."""
        self._feed.watch("services", _SERVICES)
        self._feed.run(self._handle, _COMPONENT)

    def stop(self) -> None:
        """End; what was made stays."""
        self._feed.close()

    def _handle(self, event: Event) -> None:
        service = event.object
        if event.type == "DELETED" or not service:
            return
        has_one = FINALIZER in service["metadata"].get("finalizers", [])
        try:
            if not _wants_one(service):
                if has_one:
                    self._remove(service)
            elif not has_one or not service["status"]["loadBalancer"].get("ingress"):
                self._ensure(service)
        except ApiError as error:
            if error.status not in (404, 409):  # it is gone, or a newer version of it comes along
                raise

    def _ensure(self, service: Object) -> None:
        # Before the load balancer is made: it would be left behind if the Service went in between.
        self._set_finalizers(service, [*service["metadata"].get("finalizers", []), FINALIZER])
        try:
            hostname = self._balancers.ensure(service)
        except LoadBalancerError as error:
            warn(self._objects, service, _COMPONENT, _FAILED, f"Error syncing load balancer: {error}")
            return
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


def _path(service: Object) -> str:
    metadata = service["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/services/{metadata['name']}"
