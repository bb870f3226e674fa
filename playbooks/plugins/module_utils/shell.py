"""Run a module of this collection: check its options and call its action."""

from __future__ import annotations

import sys
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .documentation import argument_spec, has_check_mode


def run(documentation: str, action: str = "", *, required_if: Any = (), **more: dict[str, Any]) -> None:
    """Run a module. It fails with the command to run if the toolkit cannot be imported.

    Args:
        documentation: Its DOCUMENTATION, which has its options.
        action: The action that takes the options; the option `name` names it if empty, `arguments` has its arguments.
        required_if: As `AnsibleModule` takes it.
        more: Option -> what documentation cannot say of it, such as `no_log`.
    """
    module = AnsibleModule(
        argument_spec=argument_spec(documentation, **more),
        required_if=required_if,
        supports_check_mode=has_check_mode(documentation),
    )
    options = {name: value for name, value in module.params.items() if value is not None}
    name, given = (action, options) if action else (options["name"], options["arguments"])
    try:
        from .actions import FailedError, call
    except ImportError as error:
        module.fail_json(msg=_missing(error))
    try:
        result = call(name, given, check=module.check_mode)
    except ImportError as error:
        module.fail_json(msg=_missing(error))
    except FailedError as error:
        module.fail_json(msg=str(error), **error.result)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


def _missing(error: ImportError) -> str:
    return (
        f"{sys.executable} cannot import the toolkit karpstack ({error}), so this task cannot run; run: "
        f"{sys.executable} -m pip install 'karpstack[scale-test]'"
    )
