"""Whose account this is, and whether it is the stack's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..finding import Finding, finding
from ..stack import not_read
from .subject import StackSubject

_CALL = "sts:GetCallerIdentity"


def account(subject: StackSubject) -> Iterator[Finding]:
    """Who asks, where; an account that the configuration does not allow; the root user."""
    caller = subject.caller
    where = f"{caller.arn} in the account {caller.account}, region {subject.aws.region}"
    yield finding("asked-as-on-aws", _CALL, where=where)
    yield from not_read(subject.state)
    allowed = listed(subject.raw.get("aws:allowedAccountIds"))
    forbidden = listed(subject.raw.get("aws:forbiddenAccountIds"))
    if (allowed and caller.account not in allowed) or caller.account in forbidden:
        yield finding("account-not-allowed", _CALL, account=caller.account)
    if caller.arn.endswith(":root"):
        yield finding("caller-is-root", _CALL)


def listed(value: Any) -> list[str]:
    """Accounts as the provider's configuration lists them, whether Pulumi wrote it or a person."""
    found = json.loads(value) if isinstance(value, str) and value else value
    return [str(one) for one in found] if isinstance(found, list) else []
