"""The simulated Azure subscription: it composes the parts, starts and stops them.

Several can run in one process. When one stops, nothing is kept but the certificates in the folder given to `start`.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from karpstack.karpenter.price_file import PriceList
from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.faults import Faults
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import Body
from karpstack.rehearsal.azure.arm.manager import Action, Arm
from karpstack.rehearsal.azure.arm.operations import Durations, Operations
from karpstack.rehearsal.azure.arm.store import Resource, Store
from karpstack.rehearsal.azure.cloud import AzureCloud
from karpstack.rehearsal.azure.clusters import CLUSTER_TYPE
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity import assignments
from karpstack.rehearsal.azure.identity.access import Access
from karpstack.rehearsal.azure.identity.entra import DEPLOYER, Directory, Principal
from karpstack.rehearsal.azure.identity.identities import credentials
from karpstack.rehearsal.azure.identity.roles import Role
from karpstack.rehearsal.azure.kinds import KINDS
from karpstack.rehearsal.azure.machines.prices import PriceTable
from karpstack.rehearsal.azure.wire.routes import IDENTITY_PATH, Routes
from karpstack.rehearsal.azure.wire.server import Server
from karpstack.rehearsal.recorded_rights import Recorder
from karpstack.rehearsal.timing import Timing

SUBSCRIPTION_ID = "12345678-1234-1234-1234-123456789012"


class Subscription:
    """An Azure subscription in one region.

    Attributes:
        subscription_id: Its id.
        tenant_id: Id of the tenant.
        region: Where everything lies.
        timing: Simulated durations of the rehearsal.
        arm: Azure Resource Manager, for callers in this process.
        directory: Entra.
        faults: Error injection.
        images: The community galleries.
        prices: What sizes cost.
        quotas: vCPU limits by name of the family, `cores` or `lowPriorityCores`; 1000 where nothing is set.
        unregistered: Resource providers, in lower case, that it is not registered to use.
        features: Preview features that it is registered for, `Microsoft.Compute/EncryptionAtHost`.
        restricted: Zones in which it may not have a VM size, by its name in lower case.
        network_limits: How many of a network resource it may have, by the name that its usage has.
        keep: Stores a resource that Azure makes by itself.
        uses: What principals asked of access control.
    """

    def __init__(
        self,
        region: str,
        prices: Path | Mapping[str, Mapping[str, float]],
        timing: Timing,
        durations: Durations | None = None,
        subscription_id: str = SUBSCRIPTION_ID,
        fetched: PriceList | None = None,
    ) -> None:
        """Make it; `start` puts it on the wire.

        Args:
            region: An Azure region that the price table has.
            prices: The price table, or the file that `PriceTable.load` reads.
            timing: Simulated durations.
            durations: Of long-running operations; the usual ones when None.
            subscription_id: Its id, a GUID in lower case.
            fetched: Prices of its region that go before the table.

        Raises:
            ValueError: The price table does not have the region.
        """
        table = PriceTable.load(prices, fetched) if isinstance(prices, Path) else PriceTable(prices, fetched)
        if region not in table.regions:
            raise ValueError(
                f"the price table has no Azure region {region!r}, so no VM size would be sold there; use one of "
                f"{', '.join(sorted(table.regions))}"
            )
        self.subscription_id = subscription_id
        self.region = region
        self.timing = timing
        self.prices = table
        self.faults = Faults()
        store = Store()
        self.directory = Directory(credentials=lambda identity: list(credentials(store, identity)))
        self.tenant_id = self.directory.tenant
        self._context = Context(
            subscription_id,
            region,
            store,
            table,
            self.directory,
            Operations(store.lock),
            self.faults,
            durations or Durations(),
            role_effective=timing.role_effective,
        )
        self.images = self._context.images
        self.quotas = self._context.quotas
        self.unregistered = self._context.unregistered
        self.features = self._context.features
        self.restricted = self._context.restricted
        self.network_limits = self._context.network_limits
        self.keep = self._context.keep
        self.uses = Recorder("azure")
        self.arm = Arm(self._context, KINDS, Access(store, self.directory, self.uses))
        for action in ("listClusterUserCredential", "listClusterAdminCredential"):
            self.arm.answer(CLUSTER_TYPE, action, self._credentials(action))
        self._secrets: dict[str, str] = {}
        self.directory.add(Principal(DEPLOYER, "User", "whoever deploys"))
        self._deployer_secret = self._identity_secret(DEPLOYER)
        self._server = Server(Routes(self._context, self.arm, self._secrets.get))
        self._clouds: dict[str, AzureCloud] = {}
        self._lock = threading.Lock()

    def start(self, folder: Path | None = None) -> None:
        """Put it on the wire.

        Args:
            folder: Where the certificates go, a folder below the stack's; a temporary one when None.
        """
        self._server.start(folder)

    def stop(self) -> None:
        """Take it off the wire and forget everything; safe to call twice."""
        self._server.stop()
        self.uses.close()
        self._context.operations.close()
        self._context.store.clear()
        self._clouds.clear()

    @property
    def proxy(self) -> str:
        """URL of the proxy through which clients reach this subscription as if it were Azure."""
        return self._server.url

    @property
    def deployer_environment(self) -> dict[str, str]:
        """Environment with which clients of ARM talk to this subscription as whoever deploys.

        The names are those of Azure's providers for Terraform and Pulumi, and of its SDKs for a managed identity.
        """
        return {
            "ARM_RESOURCE_MANAGER_ENDPOINT": self._server.url,
            "ARM_SUBSCRIPTION_ID": self.subscription_id,
            "ARM_TENANT_ID": self.tenant_id,
            "ARM_USE_MSI": "true",
            "IDENTITY_ENDPOINT": f"{self._server.url}{IDENTITY_PATH}",
            "IDENTITY_HEADER": self._deployer_secret,
        }

    @property
    def authority(self) -> Path:
        """PEM file of the authority that those clients must trust."""
        return self._server.authority

    @property
    def refused_hosts(self) -> list[str]:
        """Hosts that somebody tried to reach through the proxy and that are none of Azure's."""
        return list(self._server.refused)

    def cloud(self, cluster_id: str) -> AzureCloud:
        """The subscription as a managed cluster sees it; always the same object for one id."""
        key = ResourceId.parse(cluster_id).key
        with self._lock:
            if key not in self._clouds:
                self._clouds[key] = AzureCloud(cluster_id, self._context, self._server, self._identity_secret)
            return self._clouds[key]

    def grant(self, principal: str, scope: str, role: Role) -> None:
        """Give a role that a principal has had since long."""
        assignments.make(self._context, principal, scope, role)

    def was_there(self, cluster_id: str, *, state: str, power: str, changed: Callable[[], None]) -> None:
        """Say of a cluster that it was made long ago, by somebody else.

        Args:
            cluster_id: Its id.
            state: Its provisioningState.
            power: `Running` or `Stopped`.
            changed: Called whenever ARM has changed it or a pool of it; returns at once.
        """
        identifier = ResourceId.parse(cluster_id)
        resource = self._context.get(cluster_id)
        if resource is not None:
            resource.state = state
            resource.properties["powerState"] = {"code": power}
        self._context.followers[identifier.key] = changed

    def _identity_secret(self, principal: str) -> str:
        """A secret with which the managed identity endpoint gives tokens of a principal."""
        secret = secrets.token_urlsafe(24)
        self._secrets[secret] = principal
        return secret

    def _credentials(self, action: str) -> Action:
        def answer(resource: Resource, body: Mapping[str, Any]) -> Body:
            if "Admin" in action and resource.properties.get("disableLocalAccounts"):
                raise refused("BadRequest/local-accounts")
            cluster = self.cloud(resource.id.text).bound
            if cluster is None:
                raise refused("OperationNotAllowed/not-running", name=resource.id.name)
            name = "clusterAdmin" if "Admin" in action else "clusterUser"
            return {
                "kubeconfigs": [{"name": name, "value": base64.b64encode(cluster.kubeconfig.read_bytes()).decode()}]
            }

        return answer
