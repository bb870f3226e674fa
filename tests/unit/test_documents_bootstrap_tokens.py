"""What a bootstrap token's Secret holds, and when something is to be done about it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from karpstack.components.documents import bootstrap_tokens

NOW = datetime(2026, 11, 22, 15, 30, tzinfo=UTC)


def test_the_secret_is_complete() -> None:
    assert bootstrap_tokens.token(token_id="abcdef", secret="0123456789abcdef", now=NOW, days=90) == {
        "description": "Machines that Karpenter makes join with this token.",
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "expiration": "2027-02-20T00:00:00Z",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:karpstack",
    }


def test_the_expiration_is_in_utc() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=12)))
    assert bootstrap_tokens.token(token_id="a", secret="b", now=there, days=1)["expiration"] == "2026-11-23T00:00:00Z"


def test_the_api_server_takes_the_group() -> None:
    # kubernetes, staging/src/k8s.io/cluster-bootstrap/token/api: BootstrapGroupPattern
    assert re.fullmatch(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", bootstrap_tokens.GROUP)


@pytest.mark.parametrize(
    ("expiration", "text"),
    [
        ("2026-12-23T00:00:00Z", ""),
        ("2026-12-22T00:00:00Z", "expires at 2026-12-22T00:00:00Z"),
        ("2026-11-22T15:30:00Z", "expired at 2026-11-22T15:30:00Z"),
        ("", "never expires"),
    ],
)
def test_when_something_is_to_be_done(expiration: str, text: str) -> None:
    found = bootstrap_tokens.token_problem(expiration, NOW)
    assert (text in found and "bootstrapTokenGeneration" in found) if text else found == ""
