"""Ansible module: record what happens on a cluster, or stop recording. See DOCUMENTATION."""

from __future__ import annotations

import signal
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule, env_fallback

from karpenter.instance_types import Facts, FactsError
from scale_test.market.prices import Table
from scale_test.recording import recording
from scale_test.recording.recorder import Recorder, resources
from scale_test.recording.timeline import Writer

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
  cloud:
    description: The cloud whose prices are wanted, V(aws) or V(azure); needed with O(facts).
    type: str
  region:
    description: Its region; needed with O(facts).
    type: str
  node_class:
    description: Kind and path of the environment's node classes, as M(karpstack_scenarios) returns them.
    type: dict
  owner:
    description: Id of the process whose end ends the recording.
    type: int
"""

EXAMPLES = r"""
- name: Start the recorder
  karpstack_recorder:
    timeline: build/timeline.jsonl
    node_class: "{{ stack_chosen.node_class }}"
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
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "kubeconfig": {"type": "path"},
            "metrics_url": {"type": "str", "default": ""},
            "metrics_token": {
                "type": "str",
                "no_log": True,
                "fallback": (env_fallback, ["KARPSTACK_METRICS_TOKEN"]),
            },
            "facts": {"type": "path"},
            "cloud": {"type": "str"},
            "region": {"type": "str"},
            "node_class": {"type": "dict"},
            "owner": {"type": "int"},
        },
        required_if=[("state", "started", ["node_class"])],
        required_by={"facts": ["cloud", "region"]},
    )
    timeline = Path(module.params["timeline"])
    if module.params["state"] == "stopped":
        try:
            module.exit_json(changed=recording.stop(timeline, _STOP_SECONDS))
        except recording.RecorderError as error:
            module.fail_json(msg=str(error))
    facts = module.params["facts"]
    try:
        table = Table(Facts.load(module.params["cloud"], Path(facts)), module.params["region"]) if facts else None
    except FactsError as error:
        module.fail_json(msg=str(error))
    try:
        writer = Writer(timeline, recording=True)
    except BlockingIOError:
        module.fail_json(
            msg=f"{timeline} is being recorded already, so two runs would be mixed; wait for the other run, "
            "or give this one another report_dir"
        )
    with writer:
        module.exit_json(changed=True, reason=_record(module, writer, table))


def _record(module: AnsibleModule, writer: Writer, table: Table | None) -> str:
    """Record until the end; why it came. An error is told in the timeline, where those who wait see it."""
    reason = "it crashed"
    try:
        kubeconfig = module.params["kubeconfig"]
        node_class = module.params["node_class"]
        recorder = Recorder(
            writer,
            resources(node_class["kind"], node_class["path"]),
            Path(kubeconfig) if kubeconfig else None,
            module.params["metrics_url"] or None,
            table,
            metrics_token=module.params["metrics_token"] or "",
        )
        signal.signal(signal.SIGTERM, lambda *_: recorder.stop())
        reason = recorder.run(module.params["owner"])
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        writer.write("STOP", reason=reason)
    return reason


if __name__ == "__main__":
    main()
