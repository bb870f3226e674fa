"""The types of resources: each row of the table, with the code that some of them need besides."""

from __future__ import annotations

from karpstack.rehearsal.azure.arm.kind import Kind
from karpstack.rehearsal.azure.arm.rows import ROWS
from karpstack.rehearsal.azure.clusters.agent_pool import AgentPool
from karpstack.rehearsal.azure.clusters.managed_cluster import ManagedCluster
from karpstack.rehearsal.azure.identity.assignments import RoleAssignment
from karpstack.rehearsal.azure.identity.identities import FederatedIdentityCredential, UserAssignedIdentity
from karpstack.rehearsal.azure.machines.virtual_machines import VirtualMachine
from karpstack.rehearsal.azure.monitor.collection import DataCollectionRule
from karpstack.rehearsal.azure.monitor.diagnostics import DiagnosticSetting
from karpstack.rehearsal.azure.monitor.workspaces import LogWorkspace
from karpstack.rehearsal.azure.network.networks import NetworkInterface, PublicIPAddress, Subnet, VirtualNetwork

_CODE: tuple[type[Kind], ...] = (
    *(VirtualNetwork, Subnet, NetworkInterface, PublicIPAddress, UserAssignedIdentity, FederatedIdentityCredential),
    *(RoleAssignment, ManagedCluster, AgentPool, DiagnosticSetting, LogWorkspace, DataCollectionRule, VirtualMachine),
)
_BY_TYPE = {kind.type: kind for kind in _CODE}
KINDS: tuple[type[Kind], ...] = tuple(
    _BY_TYPE.get(name) or type(name.rpartition("/")[2], (Kind,), {"type": name}) for name in ROWS
)
