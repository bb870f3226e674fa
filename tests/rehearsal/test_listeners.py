"""Nobody else gets in: what listens is declared, and answers neither another user nor a page in a browser."""

from __future__ import annotations

from pathlib import Path

import urllib3

from karpstack.rehearsal.control import TOKEN_VARIABLE, URL_VARIABLE
from karpstack.rehearsal.session import listeners
from tests.chromium import needs_chromium
from tests.rehearsal.attacking_page import attack
from tests.rehearsal.conftest import RehearsedStack
from tests.rehearsal.listening import (
    SAYS_NOTHING,
    a_stranger_gets_nothing,
    needs_linux,
    needs_root,
    only_what_is_declared_listens,
)


@needs_linux
def test_only_what_is_declared_listens(eks: RehearsedStack) -> None:
    only_what_is_declared_listens(eks)


@needs_root
def test_a_stranger_gets_nothing(eks: RehearsedStack) -> None:
    a_stranger_gets_nothing(eks)


@needs_chromium
def test_a_page_gets_nothing(eks: RehearsedStack, tmp_path: Path) -> None:
    addresses = {address for _, address in listeners.open_sockets(eks.info) if not address.startswith("unix:")}
    with attack(tmp_path) as page:
        for address in sorted(addresses):
            page.attack(int(address.rpartition(":")[2]))
    assert 403 in page.statuses, "the attacks have reached no server"
    assert page.statuses <= {400, 401, 403, 404}
    assert {text.strip() for text in page.read if "nothing was done" not in text and "token" not in text} <= {
        *SAYS_NOTHING
    }
    variables = eks.info.variables
    headers = {"Authorization": f"Bearer {variables[TOKEN_VARIABLE]}"}
    assert urllib3.request("GET", f"{variables[URL_VARIABLE]}/faults", headers=headers).json() == {"faults": []}
