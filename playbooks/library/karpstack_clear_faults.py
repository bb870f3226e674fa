"""Ansible module: end what a story broke. See DOCUMENTATION."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from scale_test.acting.faults import FaultError, clear

DOCUMENTATION = r"""
module: karpstack_clear_faults
short_description: End the shortage and the throttling of a rehearsal
description:
  - Fails if throttling was set and no call met it, because the story has shown nothing then.
author: karpstack
options:
  rehearsal_url:
    description: Address of the rehearsal's control endpoint.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: End shortage and throttling
  karpstack_clear_faults:
    rehearsal_url: "{{ rehearsal_url }}"
"""

RETURN = r"""
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"rehearsal_url": {"type": "str", "required": True}})
    try:
        module.exit_json(changed=clear(module.params["rehearsal_url"]))
    except FaultError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
