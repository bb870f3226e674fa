"""Ansible module: write into the timeline what the playbook does. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.recording.process import RecorderError, wait_until_recorded
from scale_test.recording.timeline import Writer

DOCUMENTATION = r"""
module: karpstack_mark
short_description: Mark in the timeline that a story begins, is in another phase, met an error or is cleaned up
description:
  - O(mark=STORY) first waits until the recorder records, so that nothing of the story can be missed.
author: karpstack
options:
  timeline:
    description: The timeline.
    type: path
    required: true
  scenario:
    description: Name of the scenario.
    type: str
    required: true
  mark:
    description: What happened.
    type: str
    choices: [STORY, PHASE, ERROR, END]
    required: true
  phase:
    description: Which phase of a what-if begins.
    type: str
  content:
    description: What else is told of it.
    type: dict
    default: {}
  task:
    description: Name of the task that failed.
    type: str
  message:
    description: What it said.
    type: str
"""

EXAMPLES = r"""
- name: Mark the story's beginning
  karpstack_mark:
    timeline: build/timeline.jsonl
    scenario: eks-cheapest-fit
    mark: STORY
"""

RETURN = r"""#"""

_RECORDER_SECONDS = 60.0


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "scenario": {"type": "str", "required": True},
            "mark": {"type": "str", "choices": ["STORY", "PHASE", "ERROR", "END"], "required": True},
            "phase": {"type": "str"},
            "content": {"type": "dict", "default": {}},
            "task": {"type": "str"},
            "message": {"type": "str"},
        },
        required_if=[("mark", "ERROR", ["task", "message"]), ("mark", "PHASE", ["phase"])],
    )
    timeline = Path(module.params["timeline"])
    mark = module.params["mark"]
    try:
        if mark == "STORY":
            wait_until_recorded(timeline, _RECORDER_SECONDS)
    except RecorderError as error:
        module.fail_json(msg=str(error))
    content = {key: module.params[key] for key in ("task", "message")} if mark == "ERROR" else {}
    if mark == "PHASE":
        content = {**module.params["content"], "phase": module.params["phase"]}
    with Writer(timeline) as writer:
        writer.write(mark, scenario=module.params["scenario"], **content)
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
