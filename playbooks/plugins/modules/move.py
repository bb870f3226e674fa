"""Ansible module: move the pods of nodes to other nodes, one node after the other. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: move
short_description: Move the pods of node groups, or of NodePools, to other nodes
description:
  - V(cordoned) refuses a move that would fail or lose data. Then it lets the nodes take no new pods.
  - V(drained) evicts the pods of one node within their PodDisruptionBudgets. Then it waits until each pod has a node.
  - V(listed) changes nothing, and returns what the nodes have and do.
  - V(undone) lets the nodes that a move has cordoned take pods again.
  - A state that is already reached is not changed.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: V(cordoned) and V(undone) read the cluster and return what they would change. V(drained) reads nothing
      and returns a result with zeros.
    support: full
options:
  state:
    description: The state to reach.
    type: str
    choices: [cordoned, drained, listed, undone]
    required: true
  groups:
    description: Names of managed node groups (EKS) or agent pools (AKS).
    type: list
    elements: str
    default: []
  node_pools:
    description: Names of NodePools, for the way back.
    type: list
    elements: str
    default: []
  node:
    description: Name of the node to drain. Required with O(state=drained).
    type: str
  patience:
    description: Seconds without progress after which O(state=drained) fails. Progress means that a pod leaves, ends or
      gets a node.
    type: float
    default: 900
  accept_waiting:
    description: Whether to start although pods have no node.
    type: bool
    default: false
  accepted:
    description: The pods that had no node before, with their namespaces, as RV(waiting) returns them.
    type: list
    elements: str
    default: []
  owner:
    description: Process id. O(state=drained) evicts no more pods when this process has ended.
    type: int
"""

EXAMPLES = r"""
- name: Let the nodes of two groups take no new pods
  karpstack.scale_test.move:
    state: cordoned
    groups: [general, batch]

- name: Drain one node
  karpstack.scale_test.move:
    state: drained
    node: ip-10-0-1-2.ec2.internal
"""

RETURN = r"""
nodes:
  description: Names of the nodes of O(groups) or O(node_pools).
  type: list
  elements: str
  returned: O(state=cordoned), O(state=listed) or O(state=undone)
taking:
  description: Names of those of the nodes that take new pods.
  type: list
  elements: str
  returned: O(state=listed)
pods:
  description: Pods on the nodes, with their namespaces, without those of DaemonSets and those that end.
  type: list
  elements: str
  returned: O(state=listed)
cordoned_before:
  description: Names of the nodes that an interrupted move has cordoned.
  type: list
  elements: str
  returned: O(state=cordoned)
uncordoned:
  description: Names of the nodes that take pods again.
  type: list
  elements: str
  returned: O(state=undone)
groups:
  description: Names of all groups that have nodes.
  type: list
  elements: str
  returned: O(state=cordoned)
waiting:
  description: Pods that have no node, with their namespaces.
  type: list
  elements: str
  returned: O(state=cordoned)
lets_none_go:
  description: PodDisruptionBudgets that allow no eviction now.
  type: list
  elements: str
  returned: O(state=cordoned)
to_nothing:
  description: The cloud's commands that scale the groups to zero.
  type: list
  elements: str
  returned: O(state=cordoned)
drained:
  description: What was moved.
  type: dict
  returned: O(state=drained)
  contains:
    pods:
      description: The number of pods that were moved.
      type: int
    seconds:
      description: The duration.
      type: float
    waited:
      description: The longest time that a pod had no node, in seconds.
      type: float
    fewer:
      description: Owners with fewer pods than before, and why they are not waited for, such as Jobs that have failed.
      type: list
      elements: str
    broken:
      description: PodDisruptionBudgets that were violated meanwhile.
      type: list
      elements: str
"""

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(DOCUMENTATION, "move.move", required_if=[("state", "drained", ["node"])])


if __name__ == "__main__":
    main()
