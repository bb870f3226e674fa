"""Which variables and arguments of a pod reach Karpenter's process.

The process runs on this machine, as its user, while the pod may come from a file that somebody else wrote. So it gets
Karpenter's own options, and nothing that leads a program, its loader, its runtime or a cloud's SDK elsewhere.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

from karpstack.rehearsal.cluster.container import ContainerConfigError

#: What the charts of Karpenter's releases set, the options of its providers, and what a stack behind a proxy sets; a
#: proxy would see made-up credentials, and nothing of the simulated cloud, which is on the loopback interface.
_NAMES: Final = """
    AWS_FEATURE_GATES BATCH_IDLE_DURATION BATCH_MAX_DURATION CLUSTER_CA_BUNDLE CLUSTER_ENDPOINT CLUSTER_NAME
    CPU_REQUESTS DISABLE_CLUSTER_STATE_OBSERVABILITY DISABLE_DRY_RUN DISABLE_LEADER_ELECTION DISABLE_WEBHOOK
    EKS_CONTROL_PLANE ENABLE_ZONAL_SHIFT FEATURE_GATES HEALTH_PROBE_PORT IGNORE_DRA_REQUESTS INTERRUPTION_QUEUE
    ISOLATED_VPC KARPENTER_SERVICE KUBE_CLIENT_BURST KUBE_CLIENT_QPS KUBERNETES_MIN_VERSION LEGACY_NODE_REPAIR
    LOG_ERROR_OUTPUT_PATHS LOG_LEVEL LOG_OUTPUT_PATHS MEMORY_LIMIT METRICS_PORT MIN_VALUES_POLICY PREFERENCE_POLICY
    RESERVED_ENIS SYSTEM_NAMESPACE VM_MEMORY_OVERHEAD_PERCENT WEBHOOK_METRICS_PORT WEBHOOK_PORT
    AMI_REFRESH_INTERVAL SECURITY_GROUP_REFRESH_INTERVAL SUBNET_REFRESH_INTERVAL AWS_DEFAULT_REGION AWS_REGION
    ADDITIONAL_TAGS ARM_RESOURCE_GROUP ARM_SUBSCRIPTION_ID AZURE_NODE_RESOURCE_GROUP AZURE_SUBSCRIPTION_ID
    DNS_SERVICE_IP KUBELET_BOOTSTRAP_TOKEN KUBELET_IDENTITY_CLIENT_ID LINUX_ADMIN_USERNAME LOCATION NETWORK_DATAPLANE
    NETWORK_PLUGIN NETWORK_PLUGIN_MODE NETWORK_POLICY NODE_IDENTITIES PROVISION_MODE SSH_PUBLIC_KEY VNET_GUID
    VNET_SUBNET_ID
    HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_DIR
"""
_OPTIONS: Final = frozenset(_NAMES.split())
#: Elsewhere, a log would be written into any file of the user's.
_OUTPUTS: Final = frozenset({"stdout", "stderr"})
_LOG = logging.getLogger(__name__)


def passed(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of a container that reach the process; the daemon's log names the others."""
    found = {name: value for name, value in variables.items() if _is_option(name, value)}
    if others := sorted(variables.keys() - found.keys()):
        _LOG.info("variables of the Karpenter pod that its process is not given: %s", ", ".join(others))
    return found


def check(arguments: Sequence[str]) -> None:
    """Refuse arguments of a container that are no options of Karpenter.

    Raises:
        ContainerConfigError: There is one, and the process is not started without it.
    """
    for argument in arguments:
        name, _, value = argument.lstrip("-").partition("=")
        if not argument.startswith("-") or not _is_option(name.upper().replace("-", "_"), value):
            raise ContainerConfigError(
                f"the argument {argument!r:.100} is no option of Karpenter that the rehearsal passes to its process on "
                "this machine; use an option of the chart instead"
            )


def _is_option(name: str, value: str) -> bool:
    if name.endswith("_OUTPUT_PATHS"):
        return name in _OPTIONS and set(value.split(",")) <= _OUTPUTS
    # A region is a part of the names of hosts.
    return name in _OPTIONS and (not name.endswith("REGION") or bool(re.fullmatch("[a-z0-9-]*", value)))
