"""Ansible module: see that nobody else works on a rehearsed stack. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.scale_test.recording import stack_lock

DOCUMENTATION = r"""
module: karpstack_lock
short_description: See that nobody else works on a rehearsed stack
description:
  - Fails where somebody does, and says who.
  - The lock is free again when the module ends. The recorder holds it while it records, see M(karpstack_recorder).
author: karpstack
options:
  path:
    description: The stack's lock, as C(python -m rehearsal env) names it.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Nobody else works on the stack
  karpstack_lock:
    path: "{{ lookup('ansible.builtin.env', 'KARPSTACK_REHEARSAL_LOCK') }}"
"""

RETURN = r""" # """


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}})
    try:
        stack_lock.check(Path(module.params["path"]))
    except (stack_lock.BusyError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
