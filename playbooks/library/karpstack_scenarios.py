"""Ansible module: read the scenario files and choose those to run. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.scenarios.choosing import choose
from scale_test.scenarios.environments import StackError, environment_of
from scale_test.scenarios.objects import objects
from scale_test.scenarios.scenario import Scenario, ScenarioError, load

DOCUMENTATION = r"""
module: karpstack_scenarios
short_description: Read the scale test's scenarios and choose those to run on a stack
description:
  - Checks every scenario file of a folder, and the chosen ones against the outputs of the stack.
  - A scenario that cannot be run on the stack is refused when it is named, and skipped otherwise.
author: karpstack
options:
  folder:
    description: Folder with the scenario files (*.yml).
    type: path
    required: true
  names:
    description: Names of the scenarios to run.
    type: list
    elements: str
    default: []
  labels:
    description:
      - Labels, of which a scenario must have one.
      - Without O(names) and O(labels), all that suit the stack are run.
    type: list
    elements: str
    default: []
  stack_outputs:
    description: What C(pulumi stack output --json) printed.
    type: dict
    required: true
  rehearsal_url:
    description: Address at which a rehearsal can be told to fail; empty for a real cloud.
    type: str
    default: ""
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
  description: The chosen scenarios as they are in this environment, with all defaults filled in.
  type: list
  returned: success
objects:
  description: By its name, the objects that each of them makes; a Namespace, what is deployed, NodePools.
  type: dict
  returned: success
skipped:
  description: C(name) and C(reason) of each scenario that cannot be run on this stack.
  type: list
  returned: success
titles:
  description: Name of each chosen scenario, with a line a step (which it is, what it does, how long it may take).
  type: dict
  returned: success
breaking:
  description: Names of the chosen scenarios that break something on purpose.
  type: list
  elements: str
  returned: success
node_class:
  description: Kind and path in the API of the environment's node classes.
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
            "labels": {"type": "list", "elements": "str", "default": []},
            "stack_outputs": {"type": "dict", "required": True},
            "rehearsal_url": {"type": "str", "default": ""},
        },
    )
    outputs = module.params["stack_outputs"]
    try:
        environment = environment_of(outputs)
        choice = choose(
            load(Path(module.params["folder"])),
            outputs,
            module.params["names"],
            module.params["labels"],
            rehearsed=bool(module.params["rehearsal_url"]),
        )
    except (ScenarioError, StackError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        scenarios=[scenario.model_dump(by_alias=True, mode="json", exclude_none=True) for scenario in choice.scenarios],
        objects={scenario.name: objects(scenario) for scenario in choice.scenarios},
        skipped=[scenario._asdict() for scenario in choice.skipped],
        titles={scenario.name: _titles(scenario) for scenario in choice.scenarios},
        breaking=[scenario.name for scenario in choice.scenarios if scenario.faults],
        node_class=environment.node_class,
    )


def _titles(scenario: Scenario) -> list[str]:
    count = len(scenario.steps)
    return [
        f"{number} of {count}: {step.title}, at rest within {step.expect.within:g} s"
        for number, step in enumerate(scenario.steps, 1)
    ]


if __name__ == "__main__":
    main()
