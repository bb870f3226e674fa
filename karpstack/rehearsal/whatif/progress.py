"""Tells how far a what-if is: what the playbook's modules write into a file, for Ansible shows nothing of a module."""

from __future__ import annotations

from pathlib import Path

from karpstack.rehearsal.session.terminal import print_message


class Progress:
    """Tells the lines of a file as they come.

    Args:
        path: The file; it may not be there yet, and may be begun again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = 0

    def print_progress(self) -> None:
        """Tell what is new; to be called often."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return
        if len(content) < self._told:
            self._told = 0
        whole = content[self._told :].rpartition(b"\n")[0]
        if whole:
            self._told += len(whole) + 1
            print_message(whole.decode(errors="replace"))
