"""The daemon's log: nothing that is logged steers a terminal or passes for a line of its own."""

from __future__ import annotations

import logging

from karpstack.rehearsal.host.log import Formatter


def formatted(message: str) -> str:
    return Formatter().format(logging.LogRecord("name", logging.INFO, "path", 1, "%s", (message,), None))


def test_a_plain_message_stays_as_it_is() -> None:
    assert formatted("POST /faults: 200, zu früh").endswith("INFO name: POST /faults: 200, zu früh")


def test_characters_that_steer_a_terminal_are_shown() -> None:
    assert formatted("\x1b]0;title\x07 \u202e").endswith(r"\x1b]0;title\x07 \u202e")


def test_only_a_records_first_line_begins_a_line() -> None:
    first, *rest = formatted("a\n2026-11-22 04:00:00,000 ERROR forged").splitlines()
    assert first.endswith(": a")
    assert all(line.startswith("    ") for line in rest)
