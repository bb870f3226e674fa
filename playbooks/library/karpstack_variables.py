"""Ansible module: refuse variables that are meant for others. See DOCUMENTATION."""

from __future__ import annotations

import difflib

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: karpstack_variables
short_description: Refuse variables whose names are nearly those of a playbook
description:
  - A name that a playbook does not know has no effect, and Ansible does not say so.
  - Refused is what is spelt nearly as one that the playbook knows, or is a word of one. What is quite another name may
    be somebody else's.
author: karpstack
options:
  names:
    description: Names of all variables that there are.
    type: list
    elements: str
    required: true
  known:
    description: Names that the playbook knows.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Nothing is given that nobody reads
  karpstack_variables:
    names: "{{ query('ansible.builtin.varnames', '.+') }}"
    known: [scenarios, scenario_labels]
"""

RETURN = r""" # """

_NEAR = 0.7
_ANSIBLES = ("ansible_", "inventory_")


def main() -> None:
    """Run the module."""
    options = {"type": "list", "elements": "str", "required": True}
    module = AnsibleModule(argument_spec={"names": options, "known": options}, supports_check_mode=True)
    known = module.params["known"]
    problems = []
    for name in sorted(set(module.params["names"]) - set(known)):
        near = difflib.get_close_matches(name, known, 1, _NEAR) or [one for one in known if name in one.split("_")]
        if near and not name.startswith(_ANSIBLES):
            problems.append(
                f"-e {name}: no variable of this playbook, so it would have no effect; did you mean {near[0]}?"
            )
    if problems:
        module.fail_json(msg="\n".join(problems))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
