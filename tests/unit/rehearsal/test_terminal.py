"""What comes from elsewhere is shown on a terminal as it is, and steers nothing."""

from __future__ import annotations

import pytest

from karpstack.rehearsal.session.terminal import plain, print_message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\tb", "a\n\tb"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", r"\x1b]0;title\x07x"),
        ("\r\x08\x00\x9b31mx", r"\r\x08\x00\x9b31mx"),
        ("admin\u202egpj.exe\u2066\u200b", r"admin\u202egpj.exe\u2066\u200b"),
        ("half \ud800 of one", r"half \ud800 of one"),
        ("größe 図 ✅", "größe 図 ✅"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["x[/y]", "[/healthz] failed", "[aws:///us-east-1a/i-1]", "[bold]not bold", ":cloud:"])
def test_nothing_that_is_told_is_markup(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_message(text, heading="error:")
    assert capsys.readouterr().err == f"error: {text}\n"
