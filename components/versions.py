"""The pin table: every version and source that the program deploys.

Container images are not listed: each chart pins its own. The rehearsal builds its engines from the same
versions (rehearsal/engines), and a test compares the two.
"""

from __future__ import annotations

from typing import Final

KARPENTER: Final = "1.14.1"
#: Kubernetes minor versions that this Karpenter accepts; it refuses to start on any other
#: (karpenter-provider-aws, pkg/providers/version: MinK8sVersion and MaxK8sVersion).
KARPENTER_KUBERNETES_MIN: Final = "1.26"
KARPENTER_KUBERNETES_MAX: Final = "1.36"
KARPENTER_AWS_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter"
KARPENTER_AWS_CRD_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter-crd"

CILIUM: Final = "1.20.2"
CILIUM_CHART: Final = "cilium"
CILIUM_REPOSITORY: Final = "https://helm.cilium.io"
