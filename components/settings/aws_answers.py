"""What the AWS provider says where it has no answer: there is no such thing, there are several, or nobody may ask.

It says it in one exception's text (terraform-provider-aws). `couldn't find resource` is said of an add-on or an OIDC
provider (retry.NotFoundError), `no matching EC2 VPC Endpoint found` and `multiple EC2 VPC Endpoints matched` of an
endpoint (tfresource.SingularDataSourceFindError). What AWS refuses has the operation, and mostly the right too:
`operation error EKS: DescribeAddon, ... AccessDeniedException: User: ... is not authorized to perform:
eks:DescribeAddon on resource: ...`.
"""

from __future__ import annotations

import re
from typing import Final

from ..problems import SettingsError, finding

_ABSENT: Final = re.compile(r"couldn't find resource|no matching .+ found")
_SEVERAL: Final = re.compile(r"multiple .+ matched")
_REFUSED: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized to perform")
_RIGHT: Final = re.compile(r"is not authorized to perform: (?P<service>[\w-]+):(?P<operation>\w+)")
_OPERATION: Final = re.compile(r"operation error (?P<service>\w+): (?P<operation>\w+)")


def is_absent(text: str) -> bool:
    """Whether there is no such thing."""
    return bool(_ABSENT.search(text))


def is_several(text: str) -> bool:
    """Whether there are more of it than one."""
    return bool(_SEVERAL.search(text))


def is_refused(text: str) -> bool:
    """Whether AWS does not let the one ask who does."""
    return bool(_REFUSED.search(text))


def permission_error(section: str, field: str, value: object, text: str, unknown: str) -> SettingsError:
    """Return the error for a lookup that AWS denies.

    Args:
        section: With `field` the setting by which that is meant which is looked at.
        field: See there.
        value: Of that setting.
        text: What was said.
        unknown: What is unknown without the answer: `whether ...`.
    """
    said = _RIGHT.search(text) or _OPERATION.search(text)
    right = f"{said['service'].lower()}:{said['operation']}" if said else "what it takes"
    return SettingsError(
        [finding("not-allowed-to-ask", (section, field), value, right=right, unknown=unknown, text=text)]
    )
