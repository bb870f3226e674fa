"""Ansible module: what is in the way of `pulumi up`, or of `pulumi destroy`. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from karpstack.preflight.finding import UnknowableError
from karpstack.preflight.looking import PROJECT, before_destroy, before_up
from karpstack.preflight.shown import as_result
from karpstack.text.shown import visible
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_preflight
short_description: Check the account of a stack before pulumi up, or the account and the cluster before pulumi destroy
description:
  - Asks the AWS account or the Azure subscription that the stack is for, with the credentials that its provider would
    take, and before pulumi destroy the cluster too. Nothing is changed, with or without check mode.
  - What is in the way does not fail the module; RV(in_the_way) has it. It fails where nothing can be asked.
author: karpstack
options:
  stack:
    description: Name of the stack, C(eks) for C(Pulumi.eks.yaml).
    type: str
    required: true
  before:
    description: What is to be done to the stack.
    type: str
    choices: [up, destroy]
    default: up
  project:
    description: Folder with C(Pulumi.yaml); the checkout of the module if not given.
    type: path
  config_file:
    description: Before up, the stack's configuration; C(Pulumi.<stack>.yaml) of the project if not given.
    type: path
  stack_outputs:
    description: Before destroy, the stack's outputs; Pulumi is asked if not given.
    type: dict
  kubeconfig:
    description: Before destroy, the cluster's kubeconfig; the one that E(KUBECONFIG) names if not given.
    type: path
"""

EXAMPLES = r"""
- name: See what is in the way of pulumi up
  karpstack_preflight:
    stack: eks

- name: See what would block pulumi destroy, or outlive it
  karpstack_preflight:
    stack: eks
    before: destroy
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
    module = AnsibleModule(argument_spec=argument_spec(DOCUMENTATION), supports_check_mode=True)
    given = module.params
    project = Path(given["project"] or PROJECT)
    config_file, kubeconfig = (Path(given[key]) if given[key] else None for key in ("config_file", "kubeconfig"))
    try:
        if given["before"] == "up":
            checked = before_up(given["stack"], project=project, config_file=config_file)
        else:
            checked = before_destroy(
                given["stack"], project=project, outputs=given["stack_outputs"] or None, kubeconfig=kubeconfig
            )
    except UnknowableError as error:
        module.fail_json(msg=visible(error))
    module.exit_json(changed=False, **as_result(checked))


if __name__ == "__main__":
    main()
