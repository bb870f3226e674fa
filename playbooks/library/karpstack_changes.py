"""Ansible module: which resources `pulumi up` changed. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from whatif.changes import ChangesError, changes

DOCUMENTATION = r"""
module: karpstack_changes
short_description: Read from Pulumi's log of events which resources an update changed
author: karpstack
options:
  log:
    description: The log, which C(pulumi up --event-log) has written.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: See what was changed
  karpstack_changes:
    log: build/events.jsonl
"""

RETURN = r"""
changes:
  description: The resources, each with op, type and name, and what an update changed.
  type: list
  elements: dict
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"log": {"type": "path", "required": True}}, supports_check_mode=True)
    try:
        module.exit_json(changed=False, changes=changes(Path(module.params["log"])))
    except ChangesError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
