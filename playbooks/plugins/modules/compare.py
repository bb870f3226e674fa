"""Ansible module: compare two reports. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: compare
short_description: Compare two reports of scale tests and write a page with differences and a verdict
description:
  - No verdict fails the module. RV(verdict) and RV(refused) have the result.
  - A second run with the same reports changes nothing.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: The reports are compared. The page is not written.
    support: full
options:
  before:
    description: Folder with the C(report.json) to compare with.
    type: path
    required: true
  after:
    description: Folder with the C(report.json) that is judged.
    type: path
    required: true
  dest:
    description: The page to write, an HTML file. Its folder is created if necessary.
    type: path
    required: true
  rules:
    description: What counts as a difference. C(vars/comparison.yml) of this collection has all keys. An unknown key is
      refused.
    type: dict
    required: true
  fail_if:
    description: When RV(refused) is true. V(worse) means that the verdict is C(worse). V(any-worse) means that any
      value got worse, or any story fails now or was not run, even if others got better. Empty means never.
    type: str
    choices: ["", worse, any-worse]
    default: ""
"""

EXAMPLES = r"""
- name: Compare yesterday with today
  karpstack.scale_test.compare:
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
  sample: worse
sentence:
  description: The reason for the verdict.
  type: str
  returned: success
refused:
  description: Whether O(fail_if) is met.
  type: bool
  returned: success
worse:
  description: A text for each value that got worse and each story that fails now.
  type: list
  elements: str
  returned: success
not_compared:
  description: What could not be compared, and why.
  type: list
  elements: str
  returned: success
"""

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(DOCUMENTATION, "compare.compare")


if __name__ == "__main__":
    main()
