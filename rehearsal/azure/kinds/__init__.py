"""The types of resources, one subject a module; a type that is not here does not exist in the rehearsal."""

from __future__ import annotations

from rehearsal.azure.kinds.assignments import RoleAssignment
from rehearsal.azure.kinds.base import Kind
from rehearsal.azure.kinds.clusters import AgentPool, ManagedCluster
from rehearsal.azure.kinds.groups import ResourceGroup
from rehearsal.azure.kinds.identities import FederatedIdentityCredential, UserAssignedIdentity
from rehearsal.azure.kinds.interfaces import LoadBalancer, NetworkInterface, NetworkSecurityGroup
from rehearsal.azure.kinds.machines import VirtualMachine, VirtualMachineExtension, VirtualMachineScaleSet
from rehearsal.azure.kinds.networks import Subnet, VirtualNetwork

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
