"""Ansible module: compare two reports. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from karpstack.scale_test.reports import comparison
from karpstack.scale_test.reports.comparing import compare_reports
from karpstack.text.shown import visible
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_compare
short_description: Compare two reports of scale tests and write a page with differences and a verdict
description:
  - No verdict fails the module; RV(verdict) and RV(refused) say what came of it.
  - A second run with the same reports changes nothing. Check mode compares and writes nothing.
author: karpstack
options:
  before:
    description: Folder of the report to compare with; C(report.json) is in it.
    type: path
    required: true
  after:
    description: Folder of the report that is judged.
    type: path
    required: true
  dest:
    description: The page to write, a file. Its folder is made if it is not there.
    type: path
    required: true
  rules:
    description: What counts as a difference. C(vars/comparison.yml) beside the playbook has all keys.
    type: dict
    required: true
  fail_if:
    description:
      - What a pipeline fails on. C(worse) is the verdict; C(any-worse) is any value that got worse and any story that
        fails now, whatever got better.
    type: str
    choices: ["", worse, any-worse]
    default: ""
"""

EXAMPLES = r"""
- name: Compare yesterday with today
  karpstack_compare:
    before: build/yesterday
    after: build/rehearsal/eks
    dest: build/comparison.html
    rules: "{{ comparison_rules }}"
"""

RETURN = r"""
verdict:
  description: C(better), C(worse), C(the same), C(better and worse) or C(not comparable).
  type: str
  returned: success
sentence:
  description: The reason of the verdict.
  type: str
  returned: success
refused:
  description: Whether O(fail_if) is met; false where it is not given.
  type: bool
  returned: success
worse:
  description: A text for each value that got worse and each story that fails now.
  type: list
  returned: success
not_compared:
  description: What could not be compared, and why.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(DOCUMENTATION), supports_check_mode=True)
    given = {key: Path(module.params[key]) for key in ("before", "after", "dest")}
    try:
        result, changed = compare_reports(**given, rules=module.params["rules"], write=not module.check_mode)
    except ValueError as error:
        module.fail_json(msg=visible(error))
    module.exit_json(
        changed=changed,
        verdict=result.verdict,
        refused=bool(module.params["fail_if"]) and comparison.refused(result, module.params["fail_if"]),
        sentence=visible(result.sentence),
        worse=[visible(line) for line in comparison.what_got_worse(result)],
        not_compared=[visible(line) for line in result.not_compared],
    )


if __name__ == "__main__":
    main()
