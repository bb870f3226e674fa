"""The types of resources, one subject a module; a type that is not here does not exist in the rehearsal."""

from __future__ import annotations

from rehearsal.clouds.azure.kinds.assignments import RoleAssignment
from rehearsal.clouds.azure.kinds.base import Kind
from rehearsal.clouds.azure.kinds.clusters import AgentPool, ManagedCluster
from rehearsal.clouds.azure.kinds.groups import ResourceGroup
from rehearsal.clouds.azure.kinds.identities import FederatedIdentityCredential, UserAssignedIdentity
from rehearsal.clouds.azure.kinds.interfaces import LoadBalancer, NetworkInterface, NetworkSecurityGroup
from rehearsal.clouds.azure.kinds.machines import VirtualMachine, VirtualMachineExtension, VirtualMachineScaleSet
from rehearsal.clouds.azure.kinds.networks import Subnet, VirtualNetwork

KINDS: tuple[type[Kind], ...] = (
    ResourceGroup,
    VirtualNetwork,
    Subnet,
    NetworkInterface,
    NetworkSecurityGroup,
    LoadBalancer,
    UserAssignedIdentity,
    FederatedIdentityCredential,
    RoleAssignment,
    ManagedCluster,
    AgentPool,
    VirtualMachine,
    VirtualMachineExtension,
    VirtualMachineScaleSet,
)
