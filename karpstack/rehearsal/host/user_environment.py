"""Which environment variables what a rehearsal starts is given: an allow-list.

A rehearsal runs beside a developer's cloud credentials and needs none of them. So the daemon and all commands start
with what is named here and with what the rehearsal sets itself. What stays outside: credentials (AWS_*, ARM_*, tokens),
what would lead elsewhere (KUBECONFIG, ANSIBLE_*, PULUMI_*), proxies, which would see the traffic of the loopback
interface, and what loads code into a process (LD_*, DYLD_*, PYTHON*). Engines get even less: see `processes`.

Whose own program or playbook needs a variable names it in KARPSTACK_PASS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

#: Names, separated by commas, of variables that Pulumi's and Ansible's commands get as well.
MORE = "KARPSTACK_PASS"

_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"),
        *("LANG", "LANGUAGE", "TZ"),
        # How output looks.
        *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI"),
        "KARPSTACK_CACHE",
    }
)
_ALLOWED_PREFIXES = ("LC_", "REHEARSAL_")

# What would lead a command to a real account, by name and by beginning.
_REAL_ACCOUNT = (
    *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    *("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_SUBSCRIPTION_ID"),
    *("ARM_CLIENT_ID", "ARM_CLIENT_SECRET", "ARM_TENANT_ID", "ARM_SUBSCRIPTION_ID", "ARM_OIDC_TOKEN"),
    *("IDENTITY_ENDPOINT", "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS"),
    "PULUMI_ACCESS_TOKEN",
)
_REAL_ACCOUNT_PREFIXES = ("AWS_", "AZURE_", "ARM_", "GOOGLE_", "CLOUDSDK_")

#: AWS clients read no file of the user's: a profile there may run a program that gets credentials.
WITHOUT_PROFILES = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def allowed(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the user's variables that whatever we start may have."""
    return {name: value for name, value in variables.items() if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)}


def passed(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that KARPSTACK_PASS names, where they are set."""
    names = (name.strip() for name in variables.get(MORE, "").split(","))
    return {name: variables[name] for name in names if name in variables}


def real_account(variables: Mapping[str, str]) -> list[str]:
    """Names of what would lead to a real account: the well-known ones, and what there is of their kind."""
    # What no shell takes for a name could be a command to the one that reads them.
    names = (name for name in variables if name.isascii() and name.isidentifier())
    return sorted({*_REAL_ACCOUNT, *(name for name in names if name.startswith(_REAL_ACCOUNT_PREFIXES))})
