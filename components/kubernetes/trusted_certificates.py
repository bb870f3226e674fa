"""Certificates of authorities that programs in pods trust beside the public ones."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from ..documents.proxy import Egress


class TrustedCertificates(pulumi.ComponentResource):
    """A ConfigMap of them, which pods have as a folder (`Egress.volumes`); another one for other certificates."""

    def __init__(
        self,
        name: str,
        egress: Egress,
        namespace: str,
        labels: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("karpstack:kubernetes:TrustedCertificates", name, {}, opts)
        # The SDK needs a second for it, and most stacks have no use for it.
        from pulumi_kubernetes.core.v1 import ConfigMap

        ConfigMap(
            f"{name}-files",
            metadata={"name": egress.config_map, "namespace": namespace, "labels": dict(labels)},
            data=egress.config_map_data,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
