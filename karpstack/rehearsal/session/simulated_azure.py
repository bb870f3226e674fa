"""Azure as the daemon composes it."""

from __future__ import annotations

from collections.abc import Mapping

from karpstack.rehearsal.azure import provider
from karpstack.rehearsal.azure.clusters.existing import Description, make
from karpstack.rehearsal.azure.control import AzureControl
from karpstack.rehearsal.azure.network import existing
from karpstack.rehearsal.azure.resource import Session
from karpstack.rehearsal.azure.subscription import SUBSCRIPTION_ID, Subscription
from karpstack.rehearsal.session.descriptions import named, read
from karpstack.rehearsal.session.simulated import Parts, Simulation


class SimulatedAzure(Simulation):
    """A subscription of Azure."""

    package = provider.PACKAGE
    version = provider.VERSION

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        stack_file = parts.stack_file
        self._subscription = Subscription(
            stack_file.region,
            parts.engines.prices("azure"),
            parts.timing,
            subscription_id=stack_file.subscription or SUBSCRIPTION_ID,
            fetched=parts.fetched_prices,
        )
        self._subscription.uses.write_to(parts.folder.rights)
        if (network := read(stack_file.network, existing.load)) is not None:
            with named(stack_file.network):
                existing.make(network, self._subscription.arm, self._subscription.subscription_id, stack_file.region)
        self._definitions = parts.engines.chart("karpenter-azure", "karpenter-crd") / "templates"
        self._cluster = read(stack_file.cluster, Description.load)
        self.configuration = provider.configuration(self._subscription, parts.clusters, self._definitions)
        self.control = AzureControl(self._subscription)

    def start(self) -> Mapping[str, str]:
        """Put the subscription on the wire, then make the cluster that a file describes."""
        self._subscription.start(self._parts.folder.root / "azure")
        if self._cluster is not None:
            with named(self._parts.stack_file.cluster):
                make(self._cluster, Session(self._subscription, self._parts.clusters, self._definitions))
        return self._subscription.deployer_environment

    @property
    def address(self) -> str:
        """The URL of the proxy that plays Azure."""
        return self._subscription.proxy

    def stop(self) -> None:
        """Take the subscription off the wire."""
        self._subscription.stop()
