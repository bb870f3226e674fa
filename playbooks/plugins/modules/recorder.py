"""Ansible module: record a cluster, or stop the recorder. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recorder
short_description: Record pods, nodes, NodeClaims, NodePools and Karpenter's events as a timeline
description:
  - With O(state=started) the module records until it is stopped. Run it with C(async) and C(poll=0).
  - The recorder also ends when the process O(owner) ends. An interrupted playbook leaves no recorder behind.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: The module is skipped in check mode.
    support: none
options:
  timeline:
    description: The file to which the timeline is appended.
    type: path
    required: true
  state:
    description: V(started) records. V(stopped) stops the recorder that writes to O(timeline).
    type: str
    choices: [started, stopped]
    default: started
  kubeconfig:
    description: The cluster's kubeconfig. Default is the file in E(KUBECONFIG), then C(~/.kube/config).
    type: path
  metrics_url:
    description: Address of the controller's metrics, for prices, the interruption queue and the controller's process.
    type: str
    default: ""
  metrics_token:
    description: Bearer token for O(metrics_url). Default is E(KARPSTACK_METRICS_TOKEN). Empty means none.
    type: str
  facts:
    description: Folder with facts about instance types, for prices that the controller does not publish. Default is
      the folder in the toolkit.
    type: path
  stack:
    description: Name of the stack. Required with O(state=started).
    type: str
  stack_outputs:
    description: The stack's outputs. Required with O(state=started).
    type: dict
  owner:
    description: Process id. The recorder ends when this process ends.
    type: int
  scenarios:
    description: Names of the scenarios that are to run. One that does not begin before the recording ends has not
      passed.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Start the recorder
  karpstack.scale_test.recorder:
    timeline: build/timeline.jsonl
    stack: eks
    stack_outputs: "{{ stack_outputs }}"
  async: 86400
  poll: 0

- name: Stop the recorder
  karpstack.scale_test.recorder:
    timeline: build/timeline.jsonl
    state: stopped
"""

RETURN = r"""
reason:
  description: Why the recording ended.
  type: str
  returned: O(state=started), when the recording has ended
"""

from ansible.module_utils.basic import env_fallback

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(
        DOCUMENTATION,
        "recorder.record",
        required_if=[("state", "started", ["stack", "stack_outputs"])],
        metrics_token={"no_log": True, "fallback": (env_fallback, ["KARPSTACK_METRICS_TOKEN"])},
    )


if __name__ == "__main__":
    main()
