"""Ansible module: check the account of a stack before `pulumi up` or `pulumi destroy`. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Check the account of a stack before pulumi up, or the account and the cluster before pulumi destroy
description:
  - Asks the AWS account or the Azure subscription of the stack, with the credentials that its provider would use.
    Before C(pulumi destroy) it asks the cluster too.
  - A blocker does not fail the module. RV(in_the_way) lists the blockers. The module fails if nothing can be asked.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: The module is read-only, so check mode makes no difference.
    support: full
options:
  stack:
    description: Name of the stack, V(eks) for C(Pulumi.eks.yaml).
    type: str
    required: true
  before:
    description: What is planned for the stack.
    type: str
    choices: [up, destroy]
    default: up
  project:
    description: Folder with C(Pulumi.yaml). Default is the nearest one, upward from the current folder.
    type: path
  config_file:
    description: The stack's configuration, for O(before=up). Default is C(Pulumi.<stack>.yaml) in O(project).
    type: path
  stack_outputs:
    description: The stack's outputs, for O(before=destroy). By default Pulumi is asked.
    type: dict
  kubeconfig:
    description: The cluster's kubeconfig, for O(before=destroy). Default is the file in E(KUBECONFIG).
    type: path
"""

EXAMPLES = r"""
- name: See what blocks pulumi up
  karpstack.scale_test.preflight:
    stack: eks

- name: See what would block pulumi destroy, or remain after it
  karpstack.scale_test.preflight:
    stack: eks
    before: destroy
"""

RETURN = r"""
checks:
  description: Each check with its C(name) and its C(findings).
  type: list
  elements: dict
  returned: success
in_the_way:
  description: A text for each blocker.
  type: list
  elements: str
  returned: success
summary:
  description: The result in one sentence.
  type: str
  returned: success
"""

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(DOCUMENTATION, "preflight.preflight")


if __name__ == "__main__":
    main()
