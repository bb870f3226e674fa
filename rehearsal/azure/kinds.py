"""The types of resources of every room; a type that is not here does not exist in the rehearsal."""

from __future__ import annotations

from rehearsal.azure.arm.kind import Kind
from rehearsal.azure.clusters.agent_pool import AgentPool
from rehearsal.azure.clusters.managed_cluster import ManagedCluster
from rehearsal.azure.groups.resource_group import ResourceGroup
from rehearsal.azure.identity.assignments import RoleAssignment
from rehearsal.azure.identity.identities import FederatedIdentityCredential, UserAssignedIdentity
from rehearsal.azure.identity.protection import DenyAssignment, ManagementLock
from rehearsal.azure.machines.virtual_machines import VirtualMachine, VirtualMachineExtension, VirtualMachineScaleSet
from rehearsal.azure.monitor.collection import (
    DataCollectionEndpoint,
    DataCollectionRule,
    DataCollectionRuleAssociation,
)
from rehearsal.azure.monitor.diagnostics import DiagnosticSetting
from rehearsal.azure.monitor.workspaces import DeletedWorkspace, LogWorkspace, MetricWorkspace
from rehearsal.azure.network.interfaces import LoadBalancer, NetworkInterface, NetworkSecurityGroup
from rehearsal.azure.network.networks import Subnet, VirtualNetwork
from rehearsal.azure.network.ways_out import NatGateway, PublicIPAddress, RouteTable
from rehearsal.azure.network.zones import PrivateZone
from rehearsal.azure.stores.kinds import Registry, Vault

KINDS: tuple[type[Kind], ...] = (
    ResourceGroup,
    VirtualNetwork,
    Subnet,
    NetworkInterface,
    NetworkSecurityGroup,
    LoadBalancer,
    PublicIPAddress,
    NatGateway,
    RouteTable,
    PrivateZone,
    Registry,
    Vault,
    UserAssignedIdentity,
    FederatedIdentityCredential,
    RoleAssignment,
    ManagementLock,
    DenyAssignment,
    ManagedCluster,
    AgentPool,
    DiagnosticSetting,
    LogWorkspace,
    DeletedWorkspace,
    MetricWorkspace,
    DataCollectionEndpoint,
    DataCollectionRule,
    DataCollectionRuleAssociation,
    VirtualMachine,
    VirtualMachineExtension,
    VirtualMachineScaleSet,
)
