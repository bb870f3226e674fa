"""Ansible module: call one action of the playbooks. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: action
short_description: Call one action of karpstack's playbooks and roles
description:
  - An action is a Python function in C(plugins/module_utils/actions) of this collection. Its docstring says what it
    does and what it returns.
  - The playbooks and roles of this collection use this module. They are the stable interface; actions may change.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: Actions that only read run in check mode. Actions that change something are skipped, with a message.
    support: partial
    details: V(cluster.choose), V(cluster.ensure_current), V(run.variables), V(run.program), V(run.report_folder),
      V(run.changes), V(stories.scenarios), V(stories.thresholds) and V(stories.present) run in check mode.
options:
  name:
    description: File and function, V(run.mark) for the function C(mark) in C(run.py).
    type: str
    required: true
    choices:
      - cluster.choose
      - cluster.ensure_current
      - real_run.begin
      - real_run.stage
      - real_run.watch
      - reports.report
      - run.changes
      - run.lock
      - run.mark
      - run.program
      - run.report_folder
      - run.variables
      - stories.clear_faults
      - stories.evidence
      - stories.make
      - stories.present
      - stories.remove
      - stories.resources
      - stories.scenarios
      - stories.step
      - stories.thresholds
      - whatif.live
      - whatif.make_nodes
      - whatif.make_workload
      - whatif.remove_nodes
      - whatif.remove_workload
      - whatif.settled
  arguments:
    description: The arguments of the function by name. An unknown argument and a value of another type are refused.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Mark the beginning of a story
  karpstack.scale_test.action:
    name: run.mark
    arguments: {timeline: build/timeline.jsonl, scenario: eks-cheapest-fit, mark: STORY}
"""

RETURN = r"""
changes:
  description: The resources that an update changed, from Pulumi's log of events.
  type: list
  elements: dict
  returned: O(name=run.changes)
context:
  description: The kubeconfig's context, which later tasks get as C(KARPSTACK_CONTEXT).
  type: str
  returned: O(name=cluster.choose)
failures:
  description: A message for each assertion that failed.
  type: list
  elements: str
  returned: O(name=stories.step) or O(name=reports.report)
passed:
  description: Whether all stories of the run have passed.
  type: bool
  returned: O(name=reports.report)
scenarios:
  description: The scenarios to run on the stack.
  type: list
  elements: dict
  returned: O(name=stories.scenarios)
server:
  description: The address of the API server, which later tasks get as C(KARPSTACK_SERVER).
  type: str
  returned: O(name=cluster.choose)
skipped:
  description:
    - The scenarios that do not suit the stack, each with C(name) and C(reason).
    - In check mode, V(true) if the action was skipped.
  type: raw
  returned: O(name=stories.scenarios), or in check mode
"""

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(DOCUMENTATION)


if __name__ == "__main__":
    main()
