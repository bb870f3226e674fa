"""The policy pack: the list of the rules in force. What a rule says is in rules/, one subject a file."""

from pulumi_policy import PolicyPack
from rules import controller, identity, network, node_pools, nodes

RULES = [
    controller.SPOT_INTERRUPTION_QUEUE,
    identity.IAM_NO_WILDCARD_ACTION,
    identity.IAM_PASS_ROLE_SCOPED,
    network.CLUSTER_ENDPOINT_ALLOW_LIST,
    node_pools.NODE_POOL_CILIUM_STARTUP_TAINT,
    node_pools.NODE_POOL_LIMITS,
    nodes.NODE_IMDSV2,
    nodes.NODE_VOLUMES_ENCRYPTED,
]

if __name__ == "__main__":
    PolicyPack(name="karpstack", policies=[rule.policy() for rule in RULES])
