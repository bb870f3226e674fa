"""Ansible module: what is in the way of `pulumi up`. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from preflight.finding import UnknowableError
from preflight.looking import PROJECT, before_up
from preflight.shown import as_result
from scale_test.text.shown import visible

DOCUMENTATION = r"""
module: karpstack_preflight
short_description: Look at the account that a stack is for, before pulumi up
description:
  - Asks the AWS account or the Azure subscription that the stack is for, with the credentials that its provider would
    take. Nothing is changed, with or without check mode.
  - What is in the way does not fail the module; RV(in_the_way) has it. It fails where nothing can be asked.
author: karpstack
options:
  stack:
    description: Name of the stack, C(eks) for C(Pulumi.eks.yaml).
    type: str
    required: true
  project:
    description: Folder with C(Pulumi.yaml); the checkout of the module if not said.
    type: path
  config_file:
    description: The stack's configuration; C(Pulumi.<stack>.yaml) of the project if not said.
    type: path
"""

EXAMPLES = r"""
- name: See what is in the way of pulumi up
  karpstack_preflight:
    stack: eks
"""

RETURN = r"""
checks:
  description: Each check with its C(name) and its C(findings).
  type: list
  returned: success
in_the_way:
  description: What is in the way, a text each.
  type: list
  returned: success
summary:
  description: One sentence on all of it.
  type: str
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "stack": {"type": "str", "required": True},
            "project": {"type": "path"},
            "config_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        checked = before_up(
            given["stack"],
            project=Path(given["project"] or PROJECT),
            config_file=Path(given["config_file"]) if given["config_file"] else None,
        )
    except UnknowableError as error:
        module.fail_json(msg=visible(error))
    module.exit_json(changed=False, **as_result(checked))


if __name__ == "__main__":
    main()
