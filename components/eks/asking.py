"""Questions about what may not be there: "there is none" is one answer, "whoever deploys may not ask" is another.

The SDK raises one exception for both, with the provider's text. "There is none" is `couldn't find resource` (an add-on,
an OIDC provider) or `no matching EC2 VPC Endpoint found`; of several that match the provider says `multiple EC2 VPC
Endpoints matched` (terraform-provider-aws: retry.NotFoundError, tfresource.SingularDataSourceFindError). What AWS
refuses has the operation, and mostly the right too: `operation error EKS: DescribeAddon, ... AccessDeniedException:
User: ... is not authorized to perform: eks:DescribeAddon on resource: ...`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from ..problems import Problem, SettingsError, shown

_ABSENT: Final = re.compile(r"couldn't find resource|no matching .+ found")
_SEVERAL: Final = re.compile(r"multiple .+ matched")
_REFUSED: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized to perform")
_RIGHT: Final = re.compile(r"is not authorized to perform: (?P<service>[\w-]+):(?P<operation>\w+)")
_OPERATION: Final = re.compile(r"operation error (?P<service>\w+): (?P<operation>\w+)")
_Answer = TypeVar("_Answer")


class _RefusedError(Exception):
    """AWS refuses a question, and what is unknown without its answer stands in `unknown`."""

    def __init__(self, text: str, unknown: str) -> None:
        super().__init__(text)
        self.unknown = unknown


def unless_absent(ask: Callable[[], _Answer], unknown: str) -> _Answer | None:
    """An answer; None where the account says that there is no such thing.

    Args:
        ask: Asks the provider.
        unknown: What nobody knows without the answer, and why that matters: `whether ...`. Said by `looking`.
    """
    try:
        return ask()
    except Exception as error:  # the SDK has no type of its own for what AWS answers
        text = str(error)
        if _ABSENT.search(text):
            return None
        if _REFUSED.search(text):
            raise _RefusedError(text, unknown) from error
        raise


def is_there(ask: Callable[[], object], unknown: str) -> bool:
    """Whether there is one such thing, or more of them; the arguments are those of `unless_absent`."""
    try:
        return unless_absent(ask, unknown) is not None
    except Exception as error:  # as above
        if _SEVERAL.search(str(error)):
            return True
        raise


@contextmanager
def looking(key: str, value: object, unknown: str) -> Iterator[None]:
    """Say of a look, whose questions are asked inside, which right is missing where AWS refuses one of them.

    Args:
        key: Of the setting by which that is meant which is looked at.
        value: Of that setting.
        unknown: What nobody knows without a question that does not say so itself.

    Raises:
        SettingsError: Whoever deploys may not ask.
    """
    try:
        yield
    except SettingsError:  # of an answer, which may tell of rights too
        raise
    except Exception as error:  # as above
        text = str(error)
        if not _REFUSED.search(text):
            raise
        said = _RIGHT.search(text) or _OPERATION.search(text)
        right = f"{said['service'].lower()}:{said['operation']}" if said else "what it takes"
        what = error.unknown if isinstance(error, _RefusedError) else unknown
        raise SettingsError(
            [
                Problem(
                    key,
                    shown(value),
                    f"could not be looked at: whoever deploys may not call {right}, and without it nobody knows {what}",
                    f"have {right} allowed: `python -m preflight rights <stack>` prints all that a deployer needs. "
                    f"AWS has said: {text}",
                )
            ]
        ) from error
