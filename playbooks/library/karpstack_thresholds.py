"""Ansible module: read the limits of performance. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.numbers.thresholds import Thresholds, ThresholdsError
from scale_test.scenarios.scenario import names

DOCUMENTATION = r"""
module: karpstack_thresholds
short_description: Read and check the limits of performance that stories are held against
description:
  - Fails on unknown keys and on names of scenarios that there are not.
author: karpstack
options:
  path:
    description: The file with the limits.
    type: path
    required: true
  folders:
    description: Folders with scenario files (*.yml), for their names.
    type: list
    elements: path
    required: true
"""

EXAMPLES = r"""
- name: Read the thresholds
  karpstack_thresholds:
    path: "{{ playbook_dir }}/thresholds.yml"
    folders: ["{{ playbook_dir }}/scenarios"]
"""

RETURN = r"""
thresholds:
  description: Limits by scenario, and C(default).
  type: dict
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "path": {"type": "path", "required": True},
            "folders": {"type": "list", "elements": "path", "required": True},
        },
    )
    scenarios = names(*map(Path, module.params["folders"]))
    try:
        thresholds = Thresholds.load(Path(module.params["path"]), scenarios)
    except ThresholdsError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, thresholds=thresholds.data())


if __name__ == "__main__":
    main()
