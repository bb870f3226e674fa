"""Documents that are broken somewhere: a strategy for property tests, with a right document as its seed."""

from __future__ import annotations

import copy
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from hypothesis import strategies
from hypothesis.strategies import DrawFn, SearchStrategy

from karpstack.text.shown import visible

T = TypeVar("T")

# What nobody would write, and what somebody may have written on purpose. Each is given as a copy.
STRANGE: list[Any] = [
    None,
    True,
    "",
    " ",
    "word",
    "x" * 10_000,
    "7",
    "\x00\x1b[31mred\x1b[0m\x9b\r",
    "\u202egnp.exe\u2066\u200f",
    "\ud800",
    "[/red] [bold]",
    "<script>alert(1)</script>",
    "2026-11-21T13:55:37",
    "x\n---\nkind: ClusterRoleBinding",
    "{{ lookup('pipe', 'touch mutated') }}",
    "../../etc",
    0,
    -1,
    1.5,
    10**30,
    math.nan,
    math.inf,
    [],
    {},
    [None],
    ["word"],
    {"": None},
    {"word": {"word": []}},
]
DEEP = 200
_MOST_BYTES = 100 * 2**20


def mutations(seed: Any, most: int = 3) -> SearchStrategy[Any]:
    """Documents that differ from a seed in some places.

    Each difference is one of: a value replaced by a strange one or nested deeply, a value wrapped into a list, an entry
    deleted, an entry of a list told twice, a key renamed.

    Args:
        seed: A document of dicts, lists and scalars, as JSON has them. It is not changed.
        most: Differences at most; there is one at least.
    """

    @strategies.composite
    def mutated(draw: DrawFn) -> Any:
        root = {"document": copy.deepcopy(seed)}  # so that the document itself can be replaced like any other value
        for _ in range(draw(strategies.integers(1, most))):
            _mutate(root, draw)
        return root["document"]

    return mutated()


def taken(call: Callable[[], T], refusal: type[Exception], *, names: str = "", most: int = 12_000) -> T | None:
    """Return what a parser makes of a broken document, or None where it refuses it.

    A refusal must be short, and nothing in it may act on a terminal. Any other error passes, as any other failure.

    Args:
        call: The parser with its document.
        refusal: What it raises for a wrong document.
        names: What a refusal names, the file for example.
        most: Characters of a refusal.
    """
    try:
        return call()
    except refusal as error:
        said = str(error)
        assert 0 < len(said) < most
        assert visible(said) == said
        assert names in said
    return None


@contextmanager
def within_limits(
    about: object, *, seconds: float = 5.0, clock: Callable[[], float] = time.process_time
) -> Iterator[None]:
    """Fail where what is done meanwhile takes long or much memory: what grows with the square of its input does.

    Args:
        about: What was given, for the error.
        seconds: By the clock, while memory is traced; enough for a slow machine.
        clock: CPU time; or another.
    """
    tracemalloc.start()
    started = clock()
    try:
        yield
        used, (_, most) = clock() - started, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < seconds, about
    assert most < _MOST_BYTES, about


def _mutate(root: dict[str, Any], draw: DrawFn) -> None:
    path = draw(strategies.sampled_from(_paths(root["document"])))
    holder: Any = root
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    actions = ["replace", "wrap", "nest"]
    if holder is not root:
        actions += ["delete", "repeat"] if isinstance(holder, list) else ["delete", "rename"]
    match draw(strategies.sampled_from(actions)):
        case "replace":
            holder[key] = copy.deepcopy(draw(strategies.sampled_from(STRANGE)))
        case "wrap":
            holder[key] = [holder[key]]
        case "nest":
            for _ in range(DEEP):
                holder[key] = [holder[key]]
        case "delete":
            del holder[key]
        case "repeat":
            holder.insert(key, copy.deepcopy(holder[key]))
        case "rename":
            name = draw(strategies.sampled_from(["word", f"{key}s", "", "\x1b[31m", "x" * 10_000]))
            holder[name] = holder.pop(key)


def _paths(document: Any) -> list[tuple[Any, ...]]:
    """The place of a document and of each value within it, as keys and indexes from the root."""
    places: list[tuple[tuple[Any, ...], Any]] = [(("document",), document)]
    for path, value in places:  # grows meanwhile
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        places += [((*path, key), inner) for key, inner in entries]
    return [path for path, _ in places]
