"""Ansible module: read the scenario files and choose those to run. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.scale_test import scenario
from ..module_utils.scale_test.environments import StackError, environment_of

DOCUMENTATION = r"""
module: karpstack_scenarios
short_description: Read the scale test's scenarios and choose those to run on a stack
description:
  - Checks every scenario file of a folder, and the chosen ones against the outputs of the stack.
author: karpstack
options:
  folder:
    description: Folder with the scenario files (*.yml).
    type: path
    required: true
  names:
    description: Names of the scenarios to run; all that suit the stack if empty.
    type: list
    elements: str
    default: []
  stack_outputs:
    description: What C(pulumi stack output --json) printed.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Choose the scenarios
  karpstack_scenarios:
    folder: "{{ playbook_dir }}/scenarios"
    names: [eks-cheapest-fit]
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
scenarios:
  description: The chosen scenarios, with all defaults filled in.
  type: list
  returned: success
node_class:
  description: API version, kind and path in the API of the environment's node classes.
  type: dict
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "folder": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "stack_outputs": {"type": "dict", "required": True},
        },
    )
    outputs = module.params["stack_outputs"]
    try:
        environment = environment_of(outputs)
        chosen = scenario.choose(scenario.load(Path(module.params["folder"])), module.params["names"], outputs)
    except (scenario.ScenarioError, StackError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        scenarios=[found.model_dump(by_alias=True, mode="json", exclude_none=True) for found in chosen],
        node_class={
            "api_version": environment.node_class_api,
            "kind": environment.node_class_kind,
            "path": f"/apis/{environment.node_class_api}/{environment.node_class_plural}",
        },
    )


if __name__ == "__main__":
    main()
