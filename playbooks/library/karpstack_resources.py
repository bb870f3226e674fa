"""Ansible module: ask the cloud what is left of Karpenter's making. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.acting.resources import look

DOCUMENTATION = r"""
module: karpstack_resources
short_description: Mark in the timeline what of Karpenter's making there is in the cloud
description:
  - Waits until nothing is left that belongs to no NodeClaim. What is left does not fail the module; the report says it.
  - Where there is nobody to ask, the timeline says that nothing was checked.
author: karpstack
options:
  timeline:
    description: The timeline.
    type: path
    required: true
  moment:
    description: Before all stories, at the end of one, or after all. Then launch templates are waited for, too.
    type: str
    choices: [before, story, after]
    required: true
  scenario:
    description: Name of the scenario.
    type: str
    default: ""
  stack_outputs:
    description: The stack's outputs.
    type: dict
    required: true
  rehearsal_url:
    description: Address of the rehearsal's control endpoint; empty for a real cloud.
    type: str
    default: ""
  timeout:
    description: Seconds to wait at most.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: See what is left
  karpstack_resources:
    timeline: build/timeline.jsonl
    moment: story
    scenario: eks-cheapest-fit
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
orphans:
  description: What is left.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "moment": {"type": "str", "choices": ["before", "story", "after"], "required": True},
            "scenario": {"type": "str", "default": ""},
            "stack_outputs": {"type": "dict", "required": True},
            "rehearsal_url": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 60},
        },
        required_if=[("moment", "story", ["scenario"])],
    )
    given = module.params
    left = look(
        Path(given["timeline"]),
        given["stack_outputs"],
        given["rehearsal_url"],
        given["moment"],
        given["scenario"],
        given["timeout"],
    )
    module.exit_json(changed=False, orphans=left)


if __name__ == "__main__":
    main()
