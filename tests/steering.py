"""Text that no terminal, page or document may show as it is."""

from __future__ import annotations

#: Text that steers a terminal, hides what is written, or cannot be written at all.
STEERING = [
    *("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "a\rb", "a\x08b", "\x00", "\x7f"),
    *("\u202egnp.exe", "\u2066x\u2069", "a\u200bb", "\u200e", "\ufeff", "\u2028", "\u2029", "\U000e0041", "\ud800"),
    *("\ufffe", "\u00ad"),
]
