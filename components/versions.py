"""The pin table: every version and source that the program deploys.

Container images are not listed: each chart pins its own. The rehearsal builds its engines from the same
versions (karpstack/rehearsal/engines), and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

#: A stack may choose another (karpenter.chartVersion).
KARPENTER_AWS: Final = "1.15.1"
#: What its chart and its permissions need is known from here on (`documents.charts`, `documents.iam`).
KARPENTER_AWS_OLDEST: Final = "1.13.0"
KARPENTER_AWS_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter"
KARPENTER_AWS_CRD_CHART: Final = "oci://public.ecr.aws/karpenter/karpenter-crd"

#: A chart in Microsoft's registry is the code of the release of the same number, and its image that of the chart
#: (karpenter-provider-azure, hack/release/common.sh); what the chart in the repository calls itself means nothing.
#: That the registry holds this one is probable and not proven: seen were 1.10.2 and 1.13.0. A stack may choose
#: another (karpenter.chartVersion).
KARPENTER_AZURE: Final = "1.14.2"
#: What its chart takes is known from here on (`documents.charts`).
KARPENTER_AZURE_OLDEST: Final = "1.10.0"
KARPENTER_AZURE_CHART: Final = "oci://mcr.microsoft.com/aks/karpenter/karpenter"
KARPENTER_AZURE_CRD_CHART: Final = "oci://mcr.microsoft.com/aks/karpenter/karpenter-crd"
#: Versions of the Azure APIs, by resource type. The SDK has one each and chooses it, so that its version in
#: requirements.lock pins them: this is what was reviewed, and a test tells when the SDK moves. Node provisioning is in
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
CILIUM_CHART: Final = "cilium"
CILIUM_REPOSITORY: Final = "https://helm.cilium.io"

METRICS_SERVER: Final = "3.13.1"
METRICS_SERVER_CHART: Final = "metrics-server"
METRICS_SERVER_REPOSITORY: Final = "https://kubernetes-sigs.github.io/metrics-server"
#: Its policy is that of this release too (`documents/policies.json`).
LOAD_BALANCER_CONTROLLER: Final = "3.3.0"
LOAD_BALANCER_CONTROLLER_CHART: Final = "aws-load-balancer-controller"
LOAD_BALANCER_CONTROLLER_REPOSITORY: Final = "https://aws.github.io/eks-charts"


class Compatible(NamedTuple):
    """The Kubernetes versions that go with the releases of something, from one release on to the next row's.

    Attributes:
        since: The first release.
        oldest: The oldest minor version of Kubernetes.
        newest: The newest; empty if upstream names none.
        support: What upstream says of its support; empty if nothing.
        ended: The first day without upstream's fixes, by the month; empty if none is known.
    """

    since: str
    oldest: str
    newest: str
    support: str = ""
    ended: str = ""


#: The newest releases first; sources: `COMPATIBILITY_SOURCES`. docs/reference/compatibility.md is generated from both.
COMPATIBILITY: Final[Mapping[str, tuple[Compatible, ...]]] = {
    # On any other Kubernetes it refuses to start.
    "karpenter-aws": (
        Compatible("1.15.0", "1.26", "1.37", "regular: until the next minor release"),
        Compatible("1.14.0", "1.26", "1.36", "long-term: until July 2027", "2027-08-01"),
        Compatible("1.13.0", "1.26", "1.36", "ended with 1.14", "2026-08-01"),
    ),
    # Below 1.32, AzureLinux means Azure Linux 2, which is gone, and there is no Ubuntu2404. Before 1.13.1, the kubelet
    # of 1.34 and later is fetched from where it is published for some patches only, so machines may never join.
    "karpenter-azure": (Compatible("1.13.1", "1.32", "1.36"), Compatible("1.10.0", "1.32", "1.33")),
    # What Kubernetes supports when the release is branched off. A newer one may work.
    "cilium": (Compatible("1.20.0", "1.21", "1.36"), Compatible("1.19.0", "1.21", "1.35")),
    "metrics-server": (Compatible("3.13.0", "1.31", ""),),
    "aws-load-balancer-controller": (Compatible("2.5.0", "1.22", ""),),
}
COMPATIBILITY_SOURCES: Final[Mapping[str, str]] = {
    "karpenter-aws": "karpenter-provider-aws, pkg/providers/version and SUPPORT.md",
    "karpenter-azure": "karpenter-provider-azure, pkg/providers/imagefamily/utils.go; issue 1760, fixed in 1762",
    "cilium": "Cilium, Documentation/network/kubernetes/compatibility.rst, and its chart's kubeVersion",
    "metrics-server": "metrics-server, compatibility matrix of its README (chart 3.13 is release 0.8)",
    "aws-load-balancer-controller": "aws-load-balancer-controller, docs/deploy/installation.md",
}
