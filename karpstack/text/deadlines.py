"""Time limits for calls that a server can hold up. Standard library only, as `files` is.

A socket's timeout starts again with each byte. A server that sends single bytes can make one read last forever.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

_Value = TypeVar("_Value")


def started(act: Callable[[], _Value]) -> Future[_Value]:
    """Run a function in a daemon thread, and return the future of its result."""
    future: Future[_Value] = Future()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as error:  # it is raised where the result is awaited
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def within(seconds: float, act: Callable[[], _Value]) -> _Value:
    """Return the result of a function that waits for a server.

    Args:
        seconds: How long the function may take.
        act: The function. When the time is over, its thread runs on, and its result is lost.

    Raises:
        TimeoutError: The time is over.
    """
    future = started(act)
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the function's own
            raise
        raise TimeoutError(f"the answer takes longer than {seconds:g} s") from None
