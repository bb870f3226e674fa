"""Ansible module: scale a Deployment up and down for a while. See DOCUMENTATION."""

from __future__ import annotations

import urllib3
from ansible.module_utils.basic import AnsibleModule
from kubernetes import client

from scale_test.faults.churning import churn, deployment
from scale_test.scenarios.scenario import parse

DOCUMENTATION = r"""
module: karpstack_churn
short_description: Scale a scenario's Deployment up and down, in the rhythm of one of its steps
author: karpstack
options:
  scenario:
    description: The scenario.
    type: dict
    required: true
  step:
    description: Which of its steps, from 0.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Churn
  karpstack_churn:
    scenario: "{{ story_scenario }}"
    step: 0
"""

RETURN = r"""
replicas:
  description: The replicas that were set, in this order.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"scenario": {"type": "dict", "required": True}, "step": {"type": "int", "required": True}}
    )
    scenario = parse(module.params["scenario"], "scenario")
    step, workload = scenario.steps[module.params["step"]], scenario.workload
    if step.churn is None:
        module.fail_json(msg=f"{step.title}: no churn, so nothing would be scaled; call it for a churn step")
    try:
        done = churn(step.churn, deployment(workload.namespace, workload.deployment.name))
    except (client.ApiException, urllib3.exceptions.HTTPError) as error:
        module.fail_json(msg=f"{workload.deployment.name} cannot be scaled: {error}; is the API server there?")
    module.exit_json(changed=True, replicas=done)


if __name__ == "__main__":
    main()
