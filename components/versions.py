"""The pin table: every version and source that the program deploys.

Container images are not listed: each chart pins its own. The rehearsal builds its engines from the same
versions (rehearsal/engines), and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: A stack may choose another (karpenter.chartVersion). Upstream supports a regular minor release until the next one,
#: 1.14, its long-term release, until July 2027 (karpenter-provider-aws, SUPPORT.md).
KARPENTER_AWS: Final = "1.15.1"
#: What its chart and its permissions need is known from here on (`documents.charts`, `documents.iam`).
KARPENTER_AWS_OLDEST: Final = "1.13.0"
#: Kubernetes minor versions that each release accepts, the newest first; it refuses to start on any other
#: (karpenter-provider-aws, pkg/providers/version: MinK8sVersion and MaxK8sVersion).
KARPENTER_AWS_KUBERNETES_MIN: Final = "1.26"
KARPENTER_AWS_KUBERNETES_MAX: Final[Mapping[str, str]] = {"1.15.0": "1.37", "1.13.0": "1.36"}
KARPENTER_AWS_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter"
KARPENTER_AWS_CRD_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter-crd"

#: A chart in Microsoft's registry is the code of the release of the same number, and its image that of the chart
#: (karpenter-provider-azure, hack/release/common.sh); what the chart in the repository calls itself means nothing.
#: That the registry holds this one is probable and not proven: seen were 1.10.2 and 1.13.0. A stack may choose
#: another (karpenter.chartVersion).
KARPENTER_AZURE: Final = "1.14.2"
#: Before this release, what a machine fetches its kubelet from is not published any more for many patches of
#: Kubernetes 1.34 and later, so it may never join (karpenter-provider-azure issue 1760, mended in 1762).
KARPENTER_AZURE_JOINING: Final = "1.13.1"
KARPENTER_AZURE_JOINING_SINCE: Final = "1.34"
#: What its chart takes is known from here on (`documents.charts`).
KARPENTER_AZURE_OLDEST: Final = "1.10.0"
KARPENTER_AZURE_CHART: Final = "oci://mcr.microsoft.com/aks/karpenter/karpenter"
KARPENTER_AZURE_CRD_CHART: Final = "oci://mcr.microsoft.com/aks/karpenter/karpenter-crd"
#: From 1.32 on, every image family resolves to one that is published: below, AzureLinux means Azure Linux 2, which
#: is gone, and there is no Ubuntu2404 (karpenter-provider-azure, pkg/providers/imagefamily/utils.go).
AKS_KUBERNETES_MIN: Final = "1.32"
AKS_KUBERNETES_MAX: Final = "1.36"
#: Versions of the Azure APIs, by resource type. The SDK has one each and chooses it, so that its version in
#: pyproject.toml pins them: this is what was reviewed, and a test tells when the SDK moves. Node provisioning is in
#: Microsoft.ContainerService since 2025-07-01.
AZURE_APIS: Final[Mapping[str, str]] = {
    "authorization.RoleAssignment": "2022-04-01",
    "containerservice.ManagedCluster": "2025-09-01",
    "managedidentity.FederatedIdentityCredential": "2023-01-31",
    "managedidentity.UserAssignedIdentity": "2023-01-31",
    "monitor.DiagnosticSetting": "2021-05-01-preview",
    "network.Subnet": "2024-05-01",
    "network.VirtualNetwork": "2024-05-01",
    "resources.ResourceGroup": "2024-03-01",
}

CILIUM: Final = "1.20.2"
#: What its chart takes is known from here on (`documents.charts`). A stack may choose another (cilium.chartVersion).
CILIUM_OLDEST: Final = "1.19.0"
#: The newest Kubernetes that each minor release is tested with upstream (Cilium, Documentation/network/kubernetes/
#: compatibility.rst): what Kubernetes supports when the release is branched off. A newer one may work.
CILIUM_KUBERNETES_MAX: Final[Mapping[str, str]] = {"1.20.0": "1.36", "1.19.0": "1.35"}
CILIUM_CHART: Final = "cilium"
CILIUM_REPOSITORY: Final = "https://helm.cilium.io"

METRICS_SERVER: Final = "3.13.1"
METRICS_SERVER_CHART: Final = "metrics-server"
METRICS_SERVER_REPOSITORY: Final = "https://kubernetes-sigs.github.io/metrics-server"
#: Its policy is that of this release too (`documents.load_balancer_policy`).
LOAD_BALANCER_CONTROLLER: Final = "3.3.0"
LOAD_BALANCER_CONTROLLER_CHART: Final = "aws-load-balancer-controller"
LOAD_BALANCER_CONTROLLER_REPOSITORY: Final = "https://aws.github.io/eks-charts"
