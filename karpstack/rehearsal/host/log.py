"""How the daemon's log is written: what comes from elsewhere steers no terminal, and begins no line of its own."""

from __future__ import annotations

import logging

from karpstack.text.shown import visible

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Formatter(logging.Formatter):
    """Shows characters that steer a terminal as escapes, and indents all lines of a record but its first."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """The record's text."""
        return visible(super().format(record)).replace("\n", "\n    ")


def configure() -> None:
    """Log to stderr, from level INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
