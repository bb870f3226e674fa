"""What every cluster gets, whatever its cloud: Cilium, Karpenter's charts, node classes and NodePools.

Nothing here knows a cloud: chart names, values and manifests come from the caller, and so does the Kubernetes
provider, through `opts.providers`.
"""

from . import live
from .accepted import wait_until_accepted
from .cilium import Cilium, CiliumArgs, CiliumRollOut, DefaultDeny
from .karpenter import Karpenter, KarpenterArgs
from .node_pools import NodePools, NodePoolsArgs
from .options import in_cluster
from .reach import warns_of_another_way, warns_of_no_way
from .trusted_certificates import TrustedCertificates

__all__ = [
    "Cilium",
    "CiliumArgs",
    "CiliumRollOut",
    "DefaultDeny",
    "Karpenter",
    "KarpenterArgs",
    "NodePools",
    "NodePoolsArgs",
    "TrustedCertificates",
    "in_cluster",
    "live",
    "wait_until_accepted",
    "warns_of_another_way",
    "warns_of_no_way",
]
