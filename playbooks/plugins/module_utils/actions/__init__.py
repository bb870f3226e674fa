"""The actions of this collection's modules: functions of typed arguments, by subject.

A function returns the result of its task, with `changed`. Modules of this folder have their errors in `ERRORS`.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, validate_call

from karpstack.text.shown import visible

if TYPE_CHECKING:  # Ansible sends only files that it finds in an import statement.
    from . import (  # noqa: F401
        cluster,
        compare,
        move,
        preflight,
        real_run,
        recorder,
        reports,
        run,
        snapshot,
        stories,
        whatif,
    )

Result = dict[str, Any]


class FailedError(Exception):
    """An action has failed; `result` is what its task returns nevertheless."""

    def __init__(self, message: str, **result: Any) -> None:
        super().__init__(visible(message))
        self.result = result


def call(name: str, given: Result, *, check: bool) -> Result:
    """Call an action and return its result. In check mode, an action without a parameter `check` is skipped.

    Args:
        name: Module and function, `run.mark` for `mark` in run.py.
        given: The function's arguments by name, as JSON has them.
        check: Whether nothing may change.

    Raises:
        FailedError: The arguments are wrong, or the action has failed.
    """
    subject, _, function = name.partition(".")
    module = import_module(f"{__name__}.{subject}")
    action = getattr(module, function)
    if "check" in signature(action).parameters:
        given = {**given, "check": check}
    elif check:
        return {"changed": False, "skipped": True, "msg": f"{function} would change something"}
    try:
        result: Result = validate_call(config=ConfigDict(coerce_numbers_to_str=True))(action)(**given)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, details['loc']))}: {details['msg']}" for details in error.errors())
        raise FailedError(f"{name}: {'; '.join(wrong)}") from error
    except module.ERRORS as error:
        raise FailedError(str(error)) from error
    return result
