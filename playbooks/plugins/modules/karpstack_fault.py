"""Ansible module: break something on purpose, as a step of a scenario says. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.faults.faults import FaultError, Target, clear, inflict
from scale_test.recording.recording import RecorderError
from scale_test.recording.timeline import TimelineError, parse_time
from scale_test.scenarios.scenario import parse

DOCUMENTATION = r"""
module: karpstack_fault
short_description: Bring about the faults of a scenario's step, or end those that last
description:
  - Notices of interruption, a killed controller; in a rehearsal also shortage, throttling, a restarted API server.
  - A fault in the middle of a step waits for that moment, as the scenario says.
  - Each fault is marked in the timeline.
author: karpstack
options:
  state:
    description: Bring about what the step says, or end shortage and throttling.
    type: str
    choices: [present, absent]
    default: present
  timeline:
    description: The timeline.
    type: path
  scenario:
    description: The scenario.
    type: dict
  step:
    description: Which of its steps, from 0.
    type: int
  requested:
    description: When the step was asked for, in ISO 8601 with an offset.
    type: str
  stack_outputs:
    description: The stack's outputs.
    type: dict
  rehearsal_url:
    description: Address of the rehearsal's control endpoint; empty for a real cloud.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Interrupt
  karpstack_fault:
    timeline: build/timeline.jsonl
    scenario: "{{ story_scenario }}"
    step: 1
    requested: "2026-11-21T10:00:00.000000+00:00"
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
faults:
  description: What was broken, each with C(kind) and C(detail).
  type: list
  returned: when state is present
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "timeline": {"type": "path"},
            "scenario": {"type": "dict"},
            "step": {"type": "int"},
            "requested": {"type": "str"},
            "stack_outputs": {"type": "dict"},
            "rehearsal_url": {"type": "str", "default": ""},
        },
        required_if=[
            ("state", "present", ["timeline", "scenario", "step", "requested", "stack_outputs"]),
            ("state", "absent", ["rehearsal_url"]),
        ],
    )
    given = module.params
    try:
        if given["state"] == "absent":
            module.exit_json(changed=clear(given["rehearsal_url"]))
        done = inflict(
            Target(given["stack_outputs"], given["rehearsal_url"], Path(given["timeline"])),
            parse(given["scenario"], "scenario"),
            given["step"],
            parse_time(given["requested"]),
        )
    except (FaultError, RecorderError, TimelineError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=True, faults=done)


if __name__ == "__main__":
    main()
