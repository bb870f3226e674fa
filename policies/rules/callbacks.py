"""What the API server calls: webhooks of admission, and aggregated APIs.

Judges what the stack says of the pods behind them; what a chart brings is judged by the chart's own switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pulumi_policy import PolicyResource

from karpstack.karpenter import callbacks

from . import graph
from .rule import Judgement, StackRule, section
from .tokens import (
    API_SERVICE,
    CLUSTER,
    DAEMON_SET,
    DEPLOYMENT,
    HELM_RELEASE,
    MUTATING_WEBHOOKS,
    SERVICE,
    STATEFUL_SET,
    VALIDATING_WEBHOOKS,
)

#: Charts whose pods the API server calls, and the value that puts these on the host's network.
_CHARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws-load-balancer-controller": ("hostNetwork",),
    "cert-manager": ("webhook", "hostNetwork"),
    "metrics-server": ("hostNetwork", "enabled"),
}


def _callbacks(resources: list[PolicyResource], judgement: Judgement) -> None:
    if not any(True for _ in graph.of(resources, CLUSTER)) or not _overlay(resources, judgement):
        return
    _of_charts(resources, judgement)
    for resource in graph.of(resources, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, API_SERVICE):
        with judgement.part():
            for service in dict.fromkeys(_called(resource)):
                for workload in _in_the_overlay(resources, service, judgement):
                    judgement.violation(
                        f"{resource.name} calls Service {'/'.join(service)}, and the pods of {workload.name} behind it "
                        "are not on the host's network.",
                        resource.urn,
                    )


def _overlay(resources: list[PolicyResource], judgement: Judgement) -> bool:
    """Whether pods have addresses that the VPC does not know."""
    for release in graph.releases(resources, "cilium", judgement):
        with judgement.part():
            if (graph.values(release).get("routingMode") or "tunnel") == "tunnel":
                return True
    return False


def _of_charts(resources: list[PolicyResource], judgement: Judgement) -> None:
    for release in graph.of(resources, HELM_RELEASE):
        for chart, path in _CHARTS.items():
            with judgement.part():
                if not graph.is_chart(graph.output(release, "chart") or "", chart):
                    continue
                if section(graph.values(release), *path[:-1]).get(path[-1]) not in (True, "true"):
                    judgement.violation(
                        f"values.{'.'.join(path)} of {release.name} is not true, and the API server calls pods of the "
                        f"chart {chart}.",
                        release.urn,
                    )


def _called(resource: PolicyResource) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Services that the API server calls because of a resource."""
    if resource.resource_type == API_SERVICE:
        return callbacks.of_api(graph.output(resource, "spec") or {})
    return callbacks.of_webhooks(graph.output(resource, "webhooks") or [])


def _in_the_overlay(
    resources: list[PolicyResource], service: tuple[str, str], judgement: Judgement
) -> Iterator[PolicyResource]:
    """Workloads behind a Service whose pods are not on the host's network. A Service of elsewhere is not judged."""
    for each in graph.of(resources, SERVICE):
        with judgement.part():
            if _place(each) != service:
                continue
            wanted = section(graph.output(each, "spec"), "selector")
            for workload in graph.of(resources, DEPLOYMENT, DAEMON_SET, STATEFUL_SET):
                with judgement.part():
                    template = section(graph.output(workload, "spec"), "template")
                    if _place(workload)[0] == service[0] and callbacks.is_off_host(wanted, template):
                        yield workload


def _place(resource: PolicyResource) -> tuple[str, str]:
    return str(graph.metadata(resource).get("namespace") or "default"), graph.object_name(resource)


API_SERVER_REACHES_PODS = StackRule(name="api-server-reaches-pods", check=_callbacks)
