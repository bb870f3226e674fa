"""AKS environments. `Environment` composes the other components; each can be used by itself as well."""

from .access import DeployerAccess, DeployerAccessArgs
from .cluster import Cluster, ClusterArgs, SystemPool
from .cluster_identity import ClusterIdentity, ClusterIdentityArgs
from .controller_identity import ControllerIdentity, ControllerIdentityArgs
from .environment import (
    ControlPlanePlan,
    Environment,
    EnvironmentArgs,
    NetworkPlan,
    NodeProvisioningPlan,
)
from .karpenter import KarpenterPlan, SelfHostedKarpenter, SelfHostedKarpenterArgs
from .network import Network, NetworkArgs
from .node_bootstrap import NodeBootstrap, NodeBootstrapArgs
from .role_assignments import Grant, RoleAssignments, RoleAssignmentsArgs

__all__ = [
    "Cluster",
    "ClusterArgs",
    "ClusterIdentity",
    "ClusterIdentityArgs",
    "ControlPlanePlan",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "DeployerAccess",
    "DeployerAccessArgs",
    "Environment",
    "EnvironmentArgs",
    "Grant",
    "KarpenterPlan",
    "Network",
    "NetworkArgs",
    "NetworkPlan",
    "NodeBootstrap",
    "NodeBootstrapArgs",
    "NodeProvisioningPlan",
    "RoleAssignments",
    "RoleAssignmentsArgs",
    "SelfHostedKarpenter",
    "SelfHostedKarpenterArgs",
    "SystemPool",
]
