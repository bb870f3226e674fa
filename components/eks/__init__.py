"""EKS environments. `Environment` composes the other components; each can be used by itself as well."""

from .access import Access, AccessArgs
from .addons import Addons, AddonsArgs
from .cluster import Cluster, ClusterArgs
from .environment import (
    ControlPlanePlan,
    Environment,
    EnvironmentArgs,
    KarpenterPlan,
    NetworkPlan,
    SystemNodesPlan,
)
from .identity import ControllerIdentity, ControllerIdentityArgs
from .interruption import Interruption, InterruptionArgs
from .network import Network, NetworkArgs
from .node_role import NodeRole, NodeRoleArgs
from .spot_role import SpotServiceLinkedRole
from .system_nodes import SystemNodes, SystemNodesArgs

__all__ = [
    "Access",
    "AccessArgs",
    "Addons",
    "AddonsArgs",
    "Cluster",
    "ClusterArgs",
    "ControlPlanePlan",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "Environment",
    "EnvironmentArgs",
    "Interruption",
    "InterruptionArgs",
    "KarpenterPlan",
    "Network",
    "NetworkArgs",
    "NetworkPlan",
    "NodeRole",
    "NodeRoleArgs",
    "SpotServiceLinkedRole",
    "SystemNodes",
    "SystemNodesArgs",
    "SystemNodesPlan",
]
