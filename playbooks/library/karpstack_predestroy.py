"""Ansible module: what would block `pulumi destroy`, or outlive it. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from preflight.finding import UnknowableError
from preflight.looking import PROJECT, before_destroy
from preflight.shown import as_result
from scale_test.text.shown import visible

DOCUMENTATION = r"""
module: karpstack_predestroy
short_description: Look at a stack that is up, before pulumi destroy
description:
  - Asks the cluster, and its AWS account or Azure subscription. Nothing is changed, with or without check mode.
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
  stack_outputs:
    description: The stack's outputs; Pulumi is asked if not said.
    type: dict
  kubeconfig:
    description: The cluster's kubeconfig; the one that E(KUBECONFIG) names if not said.
    type: path
"""

EXAMPLES = r"""
- name: See what is in the way of pulumi destroy
  karpstack_predestroy:
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
            "stack_outputs": {"type": "dict"},
            "kubeconfig": {"type": "path"},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        checked = before_destroy(
            given["stack"],
            project=Path(given["project"] or PROJECT),
            outputs=given["stack_outputs"] or None,
            kubeconfig=Path(given["kubeconfig"]) if given["kubeconfig"] else None,
        )
    except UnknowableError as error:
        module.fail_json(msg=visible(error))
    module.exit_json(changed=False, **as_result(checked))


if __name__ == "__main__":
    main()
