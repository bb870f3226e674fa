"""What the subscription has before anything is rehearsed in it, as a file says: networks and more of somebody else.

The file is what `az resource show --ids ...` prints, a list of resources in ARM's own JSON: virtual networks with
their subnets, and the NAT gateways, public addresses, route tables, network security groups and private DNS zones that
these name, container registries, key vaults, and workspaces for logs and metrics. IDs, ranges, delegations, routes,
peerings and addresses are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.identifiers import GROUP_TYPE, ResourceId, group_id
from karpstack.rehearsal.azure.arm.manager import Arm
from karpstack.rehearsal.azure.arm.rows import latest
from karpstack.rehearsal.host import description_files
from karpstack.rehearsal.host.description_files import DescriptionError

#: In the order in which one can name another.
_TYPES: Final = (
    *(f"Microsoft.Network/{name}" for name in ("networkSecurityGroups", "publicIPAddresses", "natGateways")),
    *(f"Microsoft.Network/{name}" for name in ("routeTables", "privateDnsZones", "virtualNetworks")),
    *("Microsoft.ContainerRegistry/registries", "Microsoft.KeyVault/vaults"),
    *("Microsoft.OperationalInsights/workspaces", "Microsoft.Monitor/accounts"),
)
_PAGE: Final = "docs/how-to/aks/existing-vnet.md"


class NetworkFileError(DescriptionError):
    """The file is not what Azure would answer, or the rehearsal cannot play it; the text names file, place and fix."""


class Existing(BaseModel):
    """One resource of the file."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(pattern=r"(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/[^/]+/[^/]+/[^/]+$")
    type: str
    location: str
    tags: dict[str, str] | None = None
    sku: dict[str, Any] | None = None
    zones: list[str] | None = None
    properties: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        """The request that makes it: what ARM computes by itself is left out."""
        told = self.model_dump(exclude={"id", "type"}, exclude_none=True)
        computed = ("provisioningState", "subnets") if self.type.lower() != "microsoft.network/virtualnetworks" else ()
        return {**told, "properties": {key: value for key, value in self.properties.items() if key not in computed}}


_FILE: Final = TypeAdapter(list[Existing])


def load(path: Path) -> list[Existing]:
    """Read a file.

    Raises:
        NetworkFileError: It is not what Azure would answer.
    """
    return description_files.read(
        path,
        lambda said: _FILE.validate_python([said] if isinstance(said, Mapping) else said),
        NetworkFileError,
        what="network",
        command="az resource show",
        page=_PAGE,
    )


def make(resources: list[Existing], arm: Arm, subscription: str, region: str) -> None:
    """Make them in a subscription, with the resource groups in which they lie.

    Raises:
        NetworkFileError: One cannot be there, or is none that the rehearsal plays.
    """
    known = {name.lower(): name for name in _TYPES}
    for one in resources:
        if one.type.lower() not in known:
            raise NetworkFileError(
                f"{one.id} is a {one.type}, of which the rehearsal has nothing, so that it would be missed without a "
                f"word; leave it out: it plays {', '.join(_TYPES)}"
            )
    for one in sorted(resources, key=lambda one: list(known).index(one.type.lower())):
        try:
            group = group_id(subscription, ResourceId.parse(one.id).group)
            arm.put(group, latest(GROUP_TYPE), {"location": region})
            arm.put(one.id, latest(known[one.type.lower()]), one.body)
        except ArmError as error:
            raise NetworkFileError(
                f"{one.id} cannot be: {error.message}; so none was made; write it as Azure answers it, with what it "
                "names"
            ) from error
