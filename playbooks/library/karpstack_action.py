"""Ansible module: take one action of the playbooks. See DOCUMENTATION."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from pydantic import ConfigDict, ValidationError, validate_call

from playbooks.actions import FailedError
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_action
short_description: Take one action of karpstack's playbooks
description:
  - An action is a Python function in C(playbooks/actions), which says what it does and what it returns.
  - Those that change something are skipped in check mode.
author: karpstack
options:
  name:
    description: Module and function, C(run.mark) for C(mark) of C(playbooks/actions/run.py).
    type: str
    required: true
  arguments:
    description: The parameters of the function, by their names.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Mark the beginning of a story
  karpstack_action:
    name: run.mark
    arguments: {timeline: build/timeline.jsonl, scenario: eks-cheapest-fit, mark: STORY}
"""

RETURN = r"""#"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(DOCUMENTATION), supports_check_mode=True)
    subject, _, name = module.params["name"].partition(".")
    actions = import_module(f"playbooks.actions.{subject}")
    action, given = getattr(actions, name), dict(module.params["arguments"])
    if "check" in signature(action).parameters:
        given["check"] = module.check_mode
    elif module.check_mode:
        module.exit_json(skipped=True, msg=f"{name} would change something")
    try:
        result = _call(action, given)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, details['loc']))}: {details['msg']}" for details in error.errors())
        module.fail_json(msg=f"{module.params['name']}: {'; '.join(wrong)}")
    except FailedError as error:
        module.fail_json(msg=str(error), **error.told)
    except actions.ERRORS as error:
        module.fail_json(msg=str(error))
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


def _call(action: Any, given: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = validate_call(config=ConfigDict(coerce_numbers_to_str=True))(action)(**given)
    return result


if __name__ == "__main__":
    main()
