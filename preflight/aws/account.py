"""Whose account this is, and whether it is the stack's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..finding import Finding
from ..stack import not_read
from .subject import StackSubject

_CALL = "sts:GetCallerIdentity"


def account(subject: StackSubject) -> Iterator[Finding]:
    """Who asks, where; an account that the configuration does not allow; the root user."""
    caller = subject.caller
    where = f"{caller.arn} in the account {caller.account}, region {subject.aws.region}"
    yield Finding("note", f"asked as {where}", "the stack would be made there", "", _CALL)
    yield from not_read(subject.state)
    allowed = listed(subject.raw.get("aws:allowedAccountIds"))
    forbidden = listed(subject.raw.get("aws:forbiddenAccountIds"))
    if (allowed and caller.account not in allowed) or caller.account in forbidden:
        yield Finding(
            "error",
            f"the account {caller.account} is not one that aws:allowedAccountIds and aws:forbiddenAccountIds admit",
            "the provider refuses each resource",
            "take credentials of another account, or change the list",
            _CALL,
        )
    if caller.arn.endswith(":root"):
        yield Finding(
            "warning",
            "the caller is the account's root user",
            "no policy limits what a mistake does, and the cluster's first administrator would be root",
            "take a role or a user",
            _CALL,
        )


def listed(value: Any) -> list[str]:
    """Accounts as the provider's configuration lists them, whether Pulumi wrote it or a person."""
    found = json.loads(value) if isinstance(value, str) and value else value
    return [str(one) for one in found] if isinstance(found, list) else []
