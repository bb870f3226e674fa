"""AKS environments. `Environment` composes the other components; each can be used by itself as well.

Its arguments are the models of `settings.aks`, which a stack's file is read into too.
"""

from .access import DeployerAccess, DeployerAccessArgs
from .cluster import Cluster, ClusterArgs
from .cluster_identity import ClusterIdentity, ClusterIdentityArgs
from .controller_identity import ControllerIdentity, ControllerIdentityArgs
from .environment import Environment
from .existing_cluster import ExistingCluster, ExistingClusterArgs
from .existing_environment import ExistingEnvironment
from .karpenter import SelfHostedKarpenter, SelfHostedKarpenterArgs
from .logs import Logs, LogsArgs
from .network import Network, NetworkArgs
from .node_bootstrap import NodeBootstrap, NodeBootstrapArgs
from .role_assignments import Grant, RoleAssignments, RoleAssignmentsArgs

__all__ = [
    "Cluster",
    "ClusterArgs",
    "ClusterIdentity",
    "ClusterIdentityArgs",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "DeployerAccess",
    "DeployerAccessArgs",
    "Environment",
    "ExistingCluster",
    "ExistingClusterArgs",
    "ExistingEnvironment",
    "Grant",
    "Logs",
    "LogsArgs",
    "Network",
    "NetworkArgs",
    "NodeBootstrap",
    "NodeBootstrapArgs",
    "RoleAssignments",
    "RoleAssignmentsArgs",
    "SelfHostedKarpenter",
    "SelfHostedKarpenterArgs",
]
