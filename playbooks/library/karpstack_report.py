"""Ansible module: make the report of a run. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from karpenter.instance_types import Facts, FactsError
from scale_test.numbers.thresholds import Thresholds, ThresholdsError
from scale_test.recording.timeline import Reader, TimelineError
from scale_test.reports import report
from scale_test.reports.folder import TIMELINE
from scale_test.reports.table import table
from scale_test.reports.writing import with_evidence_in, write
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import parse
from scale_test.version import version

DOCUMENTATION = r"""
module: karpstack_report
short_description: Judge a run by its timeline and write report.json, report.html and junit.xml
description:
  - A failed expectation does not fail the module; RV(failures) has it.
author: karpstack
options:
  folder:
    description: Folder of the report; C(timeline.jsonl) is in it.
    type: path
    required: true
  scenarios:
    description: The scenarios of the run.
    type: list
    elements: dict
    required: true
  stack:
    description: Name of the stack.
    type: str
    required: true
  stack_outputs:
    description: Its outputs.
    type: dict
    required: true
  facts:
    description: Folder with what is known of instance types, for the lower bound of the cost; no bound if not given.
    type: path
  thresholds:
    description: Limits of performance by scenario, as M(karpstack_thresholds) returns them.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Write the report
  karpstack_report:
    folder: build/rehearsal/eks
    scenarios: "{{ stack_chosen.scenarios }}"
    stack: eks
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
passed:
  description: Whether all stories passed.
  type: bool
  returned: success
failures:
  description: A message for each assertion that failed.
  type: list
  returned: success
table:
  description: The result for a terminal.
  type: str
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "scenarios": {"type": "list", "elements": "dict", "required": True},
            "stack": {"type": "str", "required": True},
            "stack_outputs": {"type": "dict", "required": True},
            "facts": {"type": "path"},
            "thresholds": {"type": "dict", "default": {}},
        }
    )
    folder = Path(module.params["folder"])
    scenarios = [parse(scenario, "scenario") for scenario in module.params["scenarios"]]
    outputs, limits = module.params["stack_outputs"], module.params["thresholds"]
    try:
        facts = Facts.load(outputs["cloud"], Path(module.params["facts"])) if module.params["facts"] else None
        thresholds = Thresholds.parse(limits, "thresholds", limits.keys())
    except (FactsError, ThresholdsError) as error:
        module.fail_json(msg=str(error))
    timeline = folder / TIMELINE
    try:
        made = report.make(
            scenarios,
            Reader(timeline).new_lines(),
            Stack(module.params["stack"], outputs),
            facts=facts,
            thresholds=thresholds,
            version=version(),
        )
    except TimelineError as error:
        module.fail_json(msg=str(error))
    made = with_evidence_in(folder, made)
    write(made, timeline, folder)
    module.exit_json(changed=True, passed=made["passed"], failures=report.failures(made), table=table(made))


if __name__ == "__main__":
    main()
