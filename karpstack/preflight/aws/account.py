"""Whose account this is, and whether it is the stack's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from ..finding import Finding, InputError, NotAskedError, UnknowableError, finding
from ..stack import State, deployer, not_read
from .asking import Aws
from .subject import StackSubject, identify_caller

_CALL = "sts:GetCallerIdentity"
_ACCOUNT: Final = re.compile("[0-9]{12}")
_OF_ARN: Final = re.compile("arn:[^:]+:[^:]+:[^:]*:([0-9]{12}):")
_ALLOWED, _FORBIDDEN = "aws:allowedAccountIds", "aws:forbiddenAccountIds"


def account(subject: StackSubject) -> Iterator[Finding]:
    """Who asks, where; an account that the configuration does not allow; the root user."""
    caller = subject.caller
    where = f"{caller.arn} in the account {caller.account}, region {subject.aws.region}"
    yield finding("asked-as-on-aws", _CALL, where=where)
    yield from not_read(subject.state)
    if _is_excluded(caller.account, *_lists(subject.raw)):
        yield finding("account-not-allowed", _CALL, account=caller.account)
    if caller.arn.endswith(":root"):
        yield finding("caller-is-root", _CALL)


def connect(region: str, raw: Mapping[str, Any], made: State | None = None) -> Aws:
    """Return the stack's account as its provider sees it; another than the stack's is refused.

    In another account, none of the stack's resources would be found, and those of another stack could be deleted.

    Args:
        region: Where the stack is.
        raw: The stack's configuration, with `aws:` keys: it may exclude accounts.
        made: What Pulumi's state holds, where it is known: resources of it name their account.

    Raises:
        UnknowableError: The account is not the stack's, does not answer, or there is no login.
    """
    allowed, forbidden = _lists(raw)
    aws = Aws.connect(region, *deployer(raw))
    ensure_account_of_state(aws, made or State())
    if not (allowed or forbidden):
        return aws
    caller = identify_caller(aws)
    if _is_excluded(caller.account, allowed, forbidden):
        raise UnknowableError(
            f"the account {caller.account} of {caller.arn} is excluded by {_ALLOWED} or {_FORBIDDEN}, so nothing is "
            "asked or deleted there; use credentials of the stack's account"
        )
    return aws


def ensure_account_of_state(aws: Aws, made: State) -> None:
    """See that an account is that of what Pulumi has made, by the ARNs of its state.

    Raises:
        UnknowableError: It is another one, or does not answer.
    """
    accounts = {found[1] for _, name in made.resources if (found := _OF_ARN.match(name))}
    if accounts and (caller := identify_caller(aws)).account not in accounts:
        raise UnknowableError(
            f"the stack's resources are in the account {', '.join(sorted(accounts))}, and {caller.arn} is of another "
            "one, so nothing is asked there; use credentials of the stack's account"
        )


def ensure_account_has_cluster(aws: Aws, outputs: Mapping[str, Any]) -> None:
    """See that an account has the cluster of a stack, which answers.

    Raises:
        UnknowableError: It does not, so that it is not the stack's.
    """
    name, endpoint = (str(outputs.get(key) or "") for key in ("clusterName", "clusterEndpoint"))
    try:
        found = aws.find("eks", "DescribeCluster", ("ResourceNotFoundException",), name=name) if name else {}
    except NotAskedError:  # as the check of protection says
        return
    cluster = (found or {}).get("cluster")
    own = str(cluster.get("endpoint") or "") if isinstance(cluster, Mapping) else ""
    if found is None or (endpoint and own and urlsplit(own).hostname != urlsplit(endpoint).hostname):
        raise UnknowableError(
            f"the account has no cluster {name} in {aws.region} with the address {endpoint}, so it is not the stack's, "
            "and nothing would be found in it; use credentials of the stack's account"
        )


def _lists(raw: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return which accounts a stack's configuration allows, and which it forbids."""
    return listed(raw.get(_ALLOWED)), listed(raw.get(_FORBIDDEN))


def _is_excluded(account: str, allowed: Sequence[str], forbidden: Sequence[str]) -> bool:
    return bool(allowed and account not in allowed) or account in forbidden


def listed(value: Any) -> list[str]:
    """Accounts as the provider's configuration lists them, whether Pulumi wrote it or a person.

    Raises:
        InputError: One is no account, for example a secret: it would exclude nothing.
    """
    try:
        found = json.loads(value) if isinstance(value, str) and value else value
    except ValueError:
        found = value
    accounts = [str(one) for one in (found if isinstance(found, list) else [found]) if one]
    if wrong := [one for one in accounts if not _ACCOUNT.fullmatch(one)]:
        raise InputError(
            f"{_ALLOWED} or {_FORBIDDEN} has {', '.join(wrong)}, which is no account, so it is not known which ones "
            "are excluded; write 12 digits in quotes, and not as a secret"
        )
    return accounts
