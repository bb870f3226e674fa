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

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import ResourceId, group_id
from rehearsal.azure.arm.manager import Arm
from rehearsal.azure.groups.resource_group import ResourceGroup
from rehearsal.azure.monitor.workspaces import LogWorkspace, MetricWorkspace
from rehearsal.azure.network.interfaces import NetworkSecurityGroup
from rehearsal.azure.network.networks import VirtualNetwork
from rehearsal.azure.network.ways_out import NatGateway, PublicIPAddress, RouteTable
from rehearsal.azure.network.zones import PrivateZone
from rehearsal.azure.stores.kinds import Registry, Vault
from rehearsal.host import described
from rehearsal.host.described import DescriptionError

#: In the order in which one can name another.
_KINDS: Final = (
    NetworkSecurityGroup,
    PublicIPAddress,
    NatGateway,
    RouteTable,
    PrivateZone,
    VirtualNetwork,
    Registry,
    Vault,
    LogWorkspace,
    MetricWorkspace,
)
_PAGE: Final = "docs/existing-vnet.md"


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
        computed = ("provisioningState", "subnets") if self.type.lower() != VirtualNetwork.type.lower() else ()
        return {**told, "properties": {key: value for key, value in self.properties.items() if key not in computed}}


_FILE: Final = TypeAdapter(list[Existing])


def load(path: Path) -> list[Existing]:
    """Read a file.

    Raises:
        NetworkFileError: It is not what Azure would answer.
    """
    return described.read(
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
    types = {kind.type.lower(): kind for kind in _KINDS}
    for one in resources:
        if one.type.lower() not in types:
            raise NetworkFileError(
                f"{one.id} is a {one.type}, of which the rehearsal has nothing, so that it would be missed without a "
                f"word; leave it out: it plays {', '.join(kind.type for kind in _KINDS)}"
            )
    for kind in _KINDS:
        for one in resources:
            if one.type.lower() == kind.type.lower():
                try:
                    group = group_id(subscription, ResourceId.parse(one.id).group)
                    arm.put(group, ResourceGroup.versions[-1], {"location": region})
                    arm.put(one.id, kind.versions[-1], one.body)
                except ArmError as error:
                    raise NetworkFileError(
                        f"{one.id} cannot be: {error.message}; so none was made; write it as Azure answers it, with "
                        "what it names"
                    ) from error
