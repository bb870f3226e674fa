"""Ansible module: let nobody else work on a rehearsed stack. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test import stack_lock

DOCUMENTATION = r"""
module: karpstack_lock
short_description: Let nobody else work on a rehearsed stack until the playbook ends
description:
  - Fails where somebody does already, and says who.
author: karpstack
options:
  path:
    description: The stack's lock, as C(python -m rehearsal env) names it.
    type: path
    required: true
  owner:
    description: Id of the process whose end frees the lock.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Let nobody else work on the stack
  karpstack_lock:
    path: "{{ lookup('ansible.builtin.env', 'KARPSTACK_REHEARSAL_LOCK') }}"
    owner: "{{ lookup('ansible.builtin.pipe', 'ps -o ppid= -p $PPID') | int }}"
"""

RETURN = r""" # """


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "owner": {"type": "int", "required": True}}
    )
    try:
        stack_lock.take(Path(module.params["path"]), module.params["owner"])
    except (stack_lock.BusyError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
