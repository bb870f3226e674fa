"""Who the environment and a profile of the AWS CLI log in as: the same as for Pulumi's provider.

Its SDK chooses in another order than botocore, which would ask another account where several are named.
https://github.com/aws/aws-sdk-go-v2/blob/main/config/resolve_credentials.go

Nothing is imported before it is needed: botocore takes long to load.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from botocore.session import Session

_PROFILES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_OF_ENVIRONMENT: Final = "AWS_WEB_IDENTITY_TOKEN_FILE"
_ROLE, _WEB_IDENTITY = "assume-role", "assume-role-with-web-identity"
_STATIC: Final = ("shared-credentials-file", "config-file")
#: What of a profile counts first, by botocore's names; what is not here follows in botocore's order.
_ORDER: Final = ("env", _ROLE, *_STATIC, _WEB_IDENTITY, "sso", "login", "custom-process")


def core_session(profile: str = "") -> Session:
    """Return botocore's session, for boto3's.

    Args:
        profile: Of the AWS CLI; the environment's login if empty.

    Raises:
        botocore.exceptions.ProfileNotFound: There is no such profile.
    """
    from botocore.session import Session

    # An empty variable is none.
    core = Session({"profile": (None, [name for name in _PROFILES if os.environ.get(name)], None, None)})
    if profile:
        core.set_config_variable("profile", profile)
    order = [*_ORDER]
    if not profile and os.environ.get(_OF_ENVIRONMENT):
        order.remove(_WEB_IDENTITY)
        order.insert(order.index(_ROLE), _WEB_IDENTITY)
    providers = core.get_component("credential_provider").providers
    providers.sort(key=lambda one: order.index(one.METHOD) if one.METHOD in order else len(order))
    return core
