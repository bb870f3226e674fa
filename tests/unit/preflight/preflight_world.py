"""A stack to look at, in the simulated account, and what the checks find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.subject import Subject, subject
from karpstack.preflight.finding import Finding
from karpstack.preflight.stack import State
from karpstack.rehearsal.aws.account import Account
from tests.unit.example_stack import unjudged

Check = Callable[[Subject], Iterable[Finding]]


def looked_at(
    account: Account,
    *,
    client: Callable[[str], Any] | None = None,
    state: State | None = None,
    raw: dict[str, Any] | None = None,
    **changes: Any,
) -> Subject:
    """The example stack with changes, asked by the administrator, or by whom `client` makes clients for."""
    return subject(Aws(account.region, client or account.client), unjudged(**changes), raw or {}, state or State())


def found(check: Check, seen: Subject) -> list[tuple[str, str]]:
    """Severity and what was found."""
    return [(finding.severity, finding.what) for finding in check(seen)]


def one(check: Check, seen: Subject) -> Finding:
    """The only finding."""
    (finding,) = check(seen)
    return finding
