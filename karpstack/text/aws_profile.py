"""Which profile of the AWS CLI the environment means: the one that Pulumi's provider takes.

Nothing is imported before it is needed: botocore takes long to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from botocore.session import Session

#: botocore itself prefers the second, so it would ask another account if both are set.
_VARIABLES: Final = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]


def core_session() -> Session:
    """Return botocore's session, for boto3's."""
    from botocore.session import Session

    return Session({"profile": (None, _VARIABLES, None, None)})
