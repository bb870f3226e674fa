"""Ansible module: record what happens on a cluster, or stop recording. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule, env_fallback

from karpstack.karpenter.instance_types import FactsError
from karpstack.scale_test.recording.process import RecorderError, stop
from karpstack.scale_test.recording.record import RecordedError, Sources, record
from karpstack.scale_test.scenarios.environments import Stack, StackError
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_recorder
short_description: Record pods, nodes, NodeClaims, NodePools and Karpenter's events as a timeline
description:
  - With O(state=started) it records until it is stopped, so run it with C(async) and C(poll=0).
  - It also ends when the process O(owner) is gone, so that an interrupted playbook leaves no recorder behind.
author: karpstack
options:
  timeline:
    description: File that the timeline is appended to.
    type: path
    required: true
  state:
    description: Record, or stop whoever records to this timeline.
    type: str
    choices: [started, stopped]
    default: started
  kubeconfig:
    description: The kubeconfig to connect with; that of KUBECONFIG, or the usual file, if not given.
    type: path
  metrics_url:
    description: Address of the controller's metrics, for prices, the interruption queue and its process.
    type: str
    default: ""
  metrics_token:
    description: Bearer token that they ask for; that of C(KARPSTACK_METRICS_TOKEN) if not given, and none if empty.
    type: str
  facts:
    description:
      - Folder with what is known of instance types, for prices that the controller does not publish.
      - No such prices if not given.
    type: path
  stack:
    description: The stack's name; needed with O(state=started).
    type: str
  stack_outputs:
    description: The stack's outputs; needed with O(state=started).
    type: dict
  owner:
    description: Id of the process whose end ends the recording.
    type: int
"""

EXAMPLES = r"""
- name: Start the recorder
  karpstack_recorder:
    timeline: build/timeline.jsonl
    stack: eks
    stack_outputs: "{{ stack_outputs }}"
  async: 86400
  poll: 0
"""

RETURN = r"""
reason:
  description: Why the recording ended.
  type: str
  returned: when it has recorded
"""

# With the minute and more that it may wait for prices of a controller that has just started.
_STOP_SECONDS = 100.0


def main() -> None:
    """Run the module."""
    token = {"no_log": True, "fallback": (env_fallback, ["KARPSTACK_METRICS_TOKEN"])}
    module = AnsibleModule(
        argument_spec=argument_spec(DOCUMENTATION, metrics_token=token),
        required_if=[("state", "started", ["stack", "stack_outputs"])],
    )
    given = module.params
    timeline = Path(given["timeline"])
    if given["state"] == "stopped":
        try:
            module.exit_json(changed=stop(timeline, _STOP_SECONDS))
        except RecorderError as error:
            module.fail_json(msg=str(error))
    sources = Sources(
        Path(given["kubeconfig"]) if given["kubeconfig"] else None,
        given["metrics_url"] or None,
        given["metrics_token"] or "",
        Path(given["facts"]) if given["facts"] else None,
    )
    try:
        reason = record(timeline, Stack(given["stack"], given["stack_outputs"]), sources, given["owner"])
    except (FactsError, RecordedError, StackError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=True, reason=reason)


if __name__ == "__main__":
    main()
