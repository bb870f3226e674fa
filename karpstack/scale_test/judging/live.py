"""A timeline that is still being written: read once from its beginning, and then what comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from karpstack.karpenter import clock

from ..recording.process import LOOK_SECONDS
from ..recording.timeline import Reader, is_recorded
from .replay import Replay


class Live:
    """The state of the cluster by a timeline, as of the last look.

    Args:
        path: The timeline.

    Attributes:
        path: The same.
        replay: The state.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replay = Replay()
        self._reader = Reader(path)

    def read(self) -> bool:
        """Read what has come; whether the recorder wrote still when the reading began.

        Raises:
            TimelineError: A line cannot be read.
        """
        recorded = is_recorded(self.path)
        self.replay.apply(self._reader.new_lines())
        return recorded

    def poll(self) -> Iterator[bool]:
        """Look again and again, with a pause between; each time what `read` returns.

        Raises:
            TimelineError: A line cannot be read.
        """
        with clock.waiting():
            while True:
                yield self.read()
                time.sleep(LOOK_SECONDS)
