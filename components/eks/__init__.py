"""EKS environments. `Environment` composes the other components; each can be used by itself as well.

Its arguments are the models of `settings.eks`, or of `settings.eks_existing`, which a stack's file is read into too.
"""

from .access import Access, AccessArgs
from .addons import Addons, AddonsArgs
from .cluster import Cluster, ClusterArgs
from .environment import Environment
from .existing_cluster import ExistingCluster, ExistingClusterArgs
from .extra_addons import ExtraAddons, ExtraAddonsArgs
from .flow_logs import FlowLogs, FlowLogsArgs
from .identity import ControllerIdentity, ControllerIdentityArgs
from .interruption import Interruption, InterruptionArgs
from .network import Network, NetworkArgs
from .node_role import NodeRole, NodeRoleArgs
from .pod_role import PodRole, PodRoleArgs
from .private_access import PrivateAccess, PrivateAccessArgs
from .scope import Scope
from .system_nodes import SystemNodes, SystemNodesArgs

__all__ = [
    "Access",
    "AccessArgs",
    "Addons",
    "AddonsArgs",
    "Cluster",
    "ClusterArgs",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "Environment",
    "ExistingCluster",
    "ExistingClusterArgs",
    "ExtraAddons",
    "ExtraAddonsArgs",
    "FlowLogs",
    "FlowLogsArgs",
    "Interruption",
    "InterruptionArgs",
    "Network",
    "NetworkArgs",
    "NodeRole",
    "NodeRoleArgs",
    "PodRole",
    "PodRoleArgs",
    "PrivateAccess",
    "PrivateAccessArgs",
    "Scope",
    "SystemNodes",
    "SystemNodesArgs",
]
