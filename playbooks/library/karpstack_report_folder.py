"""Ansible module: make room for a report. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.reports.folder import OverwriteError, judge, make_room

DOCUMENTATION = r"""
module: karpstack_report_folder
short_description: Make room for a report
description:
  - Makes the folder, and removes from it the results of an older scale test, nothing else.
  - Fails where results lie that no scale test has written.
author: karpstack
options:
  folder:
    description: The folder of the report.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Make room for the report
  karpstack_report_folder:
    folder: build/rehearsal/eks
"""

RETURN = r"""
removed:
  description: The results of an older run that were removed, or would be in check mode.
  type: list
  elements: str
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"folder": {"type": "path", "required": True}}, supports_check_mode=True)
    folder = Path(module.params["folder"])
    changed = not folder.is_dir()
    try:
        removed = judge(folder) if module.check_mode else make_room(folder)
    except (OverwriteError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed or bool(removed), removed=removed)


if __name__ == "__main__":
    main()
