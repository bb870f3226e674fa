"""Ansible module: wait until a step of a scenario has come to its end, and judge it. See DOCUMENTATION."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.judging.gate import wait_for_end
from scale_test.recording.recording import RecorderError
from scale_test.recording.timeline import TimelineError, parse_time
from scale_test.scenarios.scenario import parse

DOCUMENTATION = r"""
module: karpstack_wait
short_description: Wait until the cluster has come to rest after a step, and judge what came of it
description:
  - Follows the recorder's timeline.
  - Ends at rest, when the step cannot succeed any more, or after its C(within) seconds.
  - A wrong expectation does not fail the module; RV(failures) has it.
author: karpstack
options:
  timeline:
    description: The timeline.
    type: path
    required: true
  scenario:
    description: The scenario.
    type: dict
    required: true
  step:
    description: Which of its steps, from 0.
    type: int
    required: true
  requested:
    description: When it was asked for, in ISO 8601 with an offset.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Wait for rest
  karpstack_wait:
    timeline: build/timeline.jsonl
    scenario: "{{ story_scenario }}"
    step: 0
    requested: "2026-11-21T10:00:00.000000+00:00"
"""

RETURN = r"""
assertions:
  description: What was checked, with C(name), C(expected), C(seen), C(passed) and C(where_to_look).
  type: list
  returned: success
failures:
  description: A message for each of them that failed.
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
            "requested": {"type": "str", "required": True},
        }
    )
    try:
        assertions = wait_for_end(
            Path(module.params["timeline"]),
            parse(module.params["scenario"], "scenario"),
            module.params["step"],
            parse_time(module.params["requested"]),
        )
    except (RecorderError, TimelineError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        assertions=[asdict(assertion) for assertion in assertions],
        failures=[assertion.message for assertion in assertions if not assertion.passed],
    )


if __name__ == "__main__":
    main()
