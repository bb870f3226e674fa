"""Karpenter's two charts: the CRDs, then the controller.

Helm never upgrades what lies in a chart's `crds/` folder, so the CRDs have a chart and a release of their own.
The controller's cloud identity is the caller's: it must exist before this component, because credentials are
injected when a pod is admitted and not later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.helm.v3 import Release

from ..documents import manifests


@dataclass(frozen=True, kw_only=True)
class KarpenterArgs:
    """Arguments of `Karpenter`.

    Attributes:
        chart: The controller's chart, `oci://...`.
        crd_chart: The CRDs' chart, `oci://...`.
        version: Version of both.
        namespace: An existing namespace.
        values: Values of the controller's chart.
        install_after: What the controller's pods need and the CRDs do not: nodes, DNS, an identity.
        service_monitor: Whether Prometheus is told of its metrics, by a kind that must be known to the API server.
        patience: Seconds to wait for the controller's pods. Until its identity may do something, it crashes and is
            started again.
    """

    chart: str
    crd_chart: str
    version: str
    namespace: str
    values: pulumi.Input[Mapping[str, Any]]
    install_after: tuple[pulumi.Resource, ...] = ()
    service_monitor: bool = False
    patience: int = 300


class Karpenter(pulumi.ComponentResource):
    """The releases `karpenter-crd` and `karpenter`."""

    version: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: KarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:kubernetes:Karpenter", name, {}, opts)
        definitions = Release(
            f"{name}-crd",
            name="karpenter-crd",
            namespace=args.namespace,
            chart=args.crd_chart,
            version=args.version,
            opts=pulumi.ResourceOptions(parent=self),
        )
        controller = Release(
            f"{name}-controller",
            name="karpenter",
            namespace=args.namespace,
            chart=args.chart,
            version=args.version,
            values=args.values,
            timeout=args.patience,
            # The controller must go before its CRDs: it removes finalizers of what it owns.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[definitions, *args.install_after]),
        )
        if args.service_monitor:
            CustomResource(
                f"{name}-service-monitor",
                **manifests.service_monitor("karpenter", args.namespace),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[controller]),
            )
        # Plain inputs, so that other programs know them at preview too.
        self.version = pulumi.Output.from_input(args.version)
        self.namespace = pulumi.Output.from_input(args.namespace)
        self.register_outputs({"version": self.version, "namespace": self.namespace})
