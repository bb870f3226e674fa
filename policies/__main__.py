"""The policy pack: the list of the rules in force. What a rule says is in rules/, one subject a file."""

import sys
from pathlib import Path

# Pulumi runs the pack with its own folder as the root of imports. `karpstack` lies beside it in a checkout, in it in a
# pack that `make pack` has put together, and above it where it is installed.
sys.path.extend(
    str(place) for place in Path(__file__).resolve().parents[:3] if (place / "karpstack" / "__init__.py").is_file()
)

from pulumi_policy import PolicyPack
from rules import (
    address_ranges,
    azure_identity,
    bottlerocket,
    callbacks,
    controller,
    data,
    exception_rules,
    identity,
    network,
    node_pool_types,
    node_pools,
    nodes,
    pod_addresses,
    trust,
    wiring,
)
from rules.rule import Rule

_JUDGING: list[Rule] = [
    identity.IAM_NO_WILDCARD_ACTION,
    identity.IAM_NO_WILDCARD_RESOURCE,
    identity.IAM_PASS_ROLE_SCOPED,
    trust.IAM_TRUST_BOUND,
    azure_identity.AZURE_FEDERATION_EXACT,
    azure_identity.AZURE_ROLE_SCOPE,
    azure_identity.AZURE_NO_PRIVILEGED_ROLE,
    azure_identity.AKS_MANAGED_IDENTITY,
    azure_identity.AKS_LOCAL_ACCOUNTS_OFF,
    azure_identity.AKS_WORKLOAD_IDENTITY,
    azure_identity.AKS_MONITORING_IDENTITY,
    network.CLUSTER_ENDPOINT_ALLOW_LIST,
    network.AKS_OVERLAY_CILIUM,
    network.CILIUM_OVERLAY,
    network.EKS_NO_SECOND_DATAPLANE,
    network.NO_OPEN_INGRESS,
    address_ranges.CIDRS_NO_OVERLAP,
    wiring.TUNNEL_ADMITTED,
    callbacks.API_SERVER_REACHES_PODS,
    node_pools.NODE_POOL_LIMITS,
    node_pool_types.NODE_POOL_COST_CEILING,
    node_pool_types.NODE_POOL_MATCHES_TYPES,
    node_pool_types.NODE_POOL_MIN_VALUES,
    node_pool_types.NODE_POOL_SPOT_DIVERSITY,
    node_pool_types.NODE_POOLS_EXCLUSIVE,
    node_pools.NODE_POOL_ARCHITECTURE,
    node_pools.NODE_POOL_CILIUM_STARTUP_TAINT,
    node_pools.NODE_POOL_CONSOLIDATION,
    node_pools.NODE_POOL_DISRUPTION_BUDGETS,
    node_pools.NODE_POOL_EXPIRE_AFTER,
    node_pools.NODE_POOL_TERMINATION_GRACE,
    nodes.NODE_IMDSV2,
    nodes.NODE_VOLUMES_ENCRYPTED,
    nodes.NODE_GROUP_VOLUMES_ENCRYPTED,
    nodes.NODE_NO_PUBLIC_IP,
    pod_addresses.NODE_MAX_PODS,
    nodes.NODE_IMAGE_PINNED,
    bottlerocket.BOTTLEROCKET_STARTS_CILIUM,
    wiring.NODE_CLASS_DISCOVERY,
    controller.CHARTS_PINNED,
    controller.KARPENTER_CRD_VERSION,
    controller.KARPENTER_OFF_ITS_NODES,
    controller.KARPENTER_AVAILABILITY,
    controller.KARPENTER_FEATURE_GATES,
    controller.SPOT_INTERRUPTION_QUEUE,
    data.CLUSTER_SECRETS_ENCRYPTED,
    data.QUEUE_ENCRYPTED,
    data.QUEUE_POLICY_CLOSED,
    data.CLUSTER_LOGS,
    data.AKS_LOGS,
    data.TAGS_REQUIRED,
    wiring.NODE_CLASS_RESOLVES,
    wiring.DISCOVERY_RESOLVES,
    wiring.EVENT_RULES_COMPLETE,
    node_pool_types.STACK_COST_CEILING,
]

# The exceptions come first, because the other rules ask for them, and those in force are reported last.
RULES: list[Rule] = [
    exception_rules.exceptions([rule.name for rule in _JUDGING]),
    *_JUDGING,
    exception_rules.EXCEPTIONS_IN_FORCE,
]

if __name__ == "__main__":
    PolicyPack(name="karpstack", policies=[rule.policy() for rule in RULES])
