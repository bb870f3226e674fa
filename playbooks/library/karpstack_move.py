"""Ansible module: move the pods of nodes to others, node after node. See DOCUMENTATION."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from kubernetes import client
from kubernetes.config import ConfigException

from karpstack.components.workloads.running import AUTOSCALER, running
from karpstack.scale_test.acting import moving
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.connecting import connect
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_move
short_description: Move the pods of node groups, or of NodePools, to other nodes
description:
  - With C(cordoned) refuses what would go wrong, and lets the nodes take no new pods. With C(drained) evicts the pods
    of one node within their PodDisruptionBudgets, and waits until there is a node for each pod. With C(undone) lets
    nodes that were cordoned so take pods again.
  - What is done already is not done again.
author: karpstack
options:
  state:
    description: What is to be.
    type: str
    choices: [cordoned, drained, undone]
    required: true
  groups:
    description: Names of managed node groups of EKS, or of agent pools of AKS.
    type: list
    elements: str
    default: []
  node_pools:
    description: Or names of NodePools, on the way back.
    type: list
    elements: str
    default: []
  node:
    description: Name of the node to drain.
    type: str
  patience:
    description: Seconds for which no pod goes, one does not end, or one is without a node, until it fails.
    type: float
    default: 900
  accept_waiting:
    description: Whether pods may be without a node before.
    type: bool
    default: false
  accepted:
    description: Those that were, with their namespaces.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Let the nodes of two groups take no new pods
  karpstack_move:
    state: cordoned
    groups: [general, batch]
"""

RETURN = r"""
nodes:
  description: With C(cordoned) and C(undone), the names of all nodes that were meant.
  type: list
  returned: success
cordoned_before:
  description: With C(cordoned), the names of those that a move had cordoned before, which was broken off.
  type: list
  returned: success
uncordoned:
  description: With C(undone), the names of those that take pods again.
  type: list
  returned: success
groups:
  description: With C(cordoned), the names of all groups that have nodes.
  type: list
  returned: success
waiting:
  description: With C(cordoned), pods that are without a node already.
  type: list
  returned: success
lets_none_go:
  description: With C(cordoned), PodDisruptionBudgets that let no pod go now.
  type: list
  returned: success
to_nothing:
  description: With C(cordoned), the commands of the cloud that scale the groups to nothing.
  type: list
  returned: success
drained:
  description: With C(drained), how many C(pods) were moved, in how many C(seconds), for how long one was without a node
    at most (C(waited)), and which PodDisruptionBudgets were broken meanwhile (C(broken)).
  type: dict
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=argument_spec(DOCUMENTATION),
        required_if=[("state", "drained", ["node"])],
        supports_check_mode=True,
    )
    given = module.params
    try:
        cluster = Cluster()
        result = {"cordoned": _cordoned, "drained": _drained, "undone": _undone}[given["state"]](
            cluster, given, module.check_mode
        )
    except (ClusterError, ConfigException, moving.MoveError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def _cordoned(cluster: Cluster, given: dict[str, Any], check: bool) -> dict[str, Any]:
    nodes = moving.chosen(cluster, given["groups"], given["node_pools"])
    moving.refuse(
        cluster,
        nodes,
        given["node_pools"],
        accept_waiting=given["accept_waiting"],
        groups=given["groups"],
        autoscalers=_autoscalers() if given["groups"] else [],
    )
    before = moving.marked(nodes)
    changed = bool(moving.taking(nodes) if check else moving.cordon(cluster, nodes))
    return {
        "changed": changed,
        "nodes": _names(nodes),
        "cordoned_before": _names(before),
        "groups": moving.known(cluster),
        # Those that a move has left which was broken off are not accepted, but waited for.
        "waiting": moving.waiting(cluster) if given["accept_waiting"] or not before else [],
        "lets_none_go": moving.lets_none_go(cluster),
        "to_nothing": moving.to_nothing(nodes),
    }


def _drained(cluster: Cluster, given: dict[str, Any], check: bool) -> dict[str, Any]:
    if check:
        return {"changed": True, "drained": asdict(moving.Drained()) | {"broken": []}}
    done = moving.drain(cluster, given["node"], given["patience"], given["accepted"])
    return {"changed": done.pods > 0, "drained": asdict(done) | {"broken": sorted(done.broken)}}


def _undone(cluster: Cluster, given: dict[str, Any], check: bool) -> dict[str, Any]:
    nodes = moving.chosen(cluster, given["groups"], given["node_pools"])
    mine = _names(moving.marked(nodes)) if check else moving.uncordon(cluster, nodes)
    return {"changed": bool(mine), "nodes": _names(nodes), "uncordoned": mine}


def _names(nodes: list[moving.Object]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]


def _autoscalers() -> list[str]:
    """Deployments of Cluster Autoscaler that have replicas, with their namespaces."""
    apps: Any = client.AppsV1Api(connect())
    return list(running(apps.list_deployment_for_all_namespaces().items, AUTOSCALER))


if __name__ == "__main__":
    main()
