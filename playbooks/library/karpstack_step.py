"""Ansible module: take one step of a story. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.faults import FaultError, Target
from scale_test.acting.step import take
from scale_test.judging.live import Live
from scale_test.recording.process import RecorderError
from scale_test.recording.timeline import TimelineError
from scale_test.scenarios.scenario import parse

DOCUMENTATION = r"""
module: karpstack_step
short_description: Take one step of a story
description:
  - Does what the step says, and returns when all is at rest and has been for as long as the step says, or when its time
    is over.
  - What it breaks and how the step ended is marked in the timeline.
author: karpstack
options:
  timeline:
    description: The file that the recorder writes.
    type: path
    required: true
  scenario:
    description: The scenario, as M(karpstack_scenarios) returns it.
    type: dict
    required: true
  step:
    description: Index of the step, from 0.
    type: int
    required: true
  stack_outputs:
    description: The stack's outputs.
    type: dict
    required: true
  rehearsal_url:
    description: Address of the rehearsal's control endpoint; empty for a real cloud.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Take the first step
  karpstack_step:
    timeline: build/timeline.jsonl
    scenario: "{{ story_scenario }}"
    step: 0
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
assertions:
  description: What was expected and what was seen.
  type: list
  returned: success
failures:
  description: A message for each assertion that failed.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "scenario": {"type": "dict", "required": True},
            "step": {"type": "int", "required": True},
            "stack_outputs": {"type": "dict", "required": True},
            "rehearsal_url": {"type": "str", "default": ""},
        }
    )
    given = module.params
    try:
        assertions = take(
            Cluster(),
            Target(given["stack_outputs"], given["rehearsal_url"]),
            Live(Path(given["timeline"])),
            parse(given["scenario"], "scenario"),
            given["step"],
        )
    except (ClusterError, ConfigException, FaultError, RecorderError, TimelineError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=True,
        assertions=[assertion.told for assertion in assertions],
        failures=[assertion.message for assertion in assertions if not assertion.passed],
    )


if __name__ == "__main__":
    main()
