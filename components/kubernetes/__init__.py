"""What every cluster gets, whatever its cloud: Cilium, Karpenter's charts, node classes and NodePools.

Nothing here knows a cloud: chart names, values and manifests come from the caller, and so does the Kubernetes
provider, through `opts.providers`.
"""

from . import live
from .accepted import wait_until_accepted
from .api_access import no_access_warning, private_access_warning
from .cilium import Cilium, CiliumArgs, CiliumRollOut, DefaultDeny
from .karpenter import Karpenter, KarpenterArgs
from .node_pools import NodePools, NodePoolsArgs
from .options import in_cluster
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
    "no_access_warning",
    "private_access_warning",
    "wait_until_accepted",
]
