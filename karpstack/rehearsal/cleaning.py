"""`make clean` and `make clean-cache`: say what goes, and remove what has the project's marker, and nothing else.

A cache of a tool goes by the tool's tag and a name that the project gives that tool. What an older version made without
a marker stays, and is listed.

Only what stops a stack that runs needs the Python environment; the rest is standard library.
"""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from karpstack.rehearsal.engines import LOCK, cache_folder, named_cache_folder
from karpstack.rehearsal.state.ancestors import ExposedError
from karpstack.text.codes import say_error
from karpstack.text.files import is_ours
from karpstack.text.shown import visible

PROJECT = Path(__file__).resolve().parents[2]
_STATE = "karpstack-rehearsal"  # of `karpstack.rehearsal.state.folder`, which has marked each stack's folder
# Folders of stacks: those of what-ifs, and of the candidates that another machine sent here.
_STACKS = (".rehearsal/*", "build/whatif/*/*/state/*", "build/sweep-of/*/answers/*/state/*")
_CACHE = "karpstack"  # the name of the usual cache folder
# Tools mark their caches, and those of other programs do too, so names decide: https://bford.info/cachedir
_TAG = ("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
_TOOLS = ("karpstack.egg-info", ".ansible", ".mypy_cache", ".pytest_cache", ".ruff_cache")
_CACHES = ("mypy", "uv")  # the Makefile's, in the cache folder


def main(arguments: list[str]) -> int:
    """Clean `checkout` or `cache`; 1 if something could not be stopped or is not ours."""
    try:
        if arguments == ["cache"]:
            return clean_cache(cache_folder(), linked=named_cache_folder().is_symlink())
        return clean_checkout(PROJECT)
    except ExposedError as error:
        say_error(error)
        return 1


def clean_checkout(root: Path, stop: Callable[[Path], bool] | None = None) -> int:
    """Stop the stacks of a checkout, then remove what the project made in it, its Python environment last.

    Args:
        stop: Stops what runs of a stack, and returns whether nothing does any more (default: `karpstack down --force`).
    """
    root = root.resolve()
    stacks = [path for pattern in _STACKS for path in sorted(root.glob(pattern)) if _is_stack(path)]
    running = [path for path in stacks if not (stop or _stopped)(path)]
    made = [path for path in stacks if path.parent == root / ".rehearsal" and path not in running]
    others = [path for path in _inside(root / ".rehearsal") if path not in stacks]
    for folder in _inside(root / "build"):
        busy = any(path.is_relative_to(folder) for path in running)
        (made if _is_marked(folder) and not busy else others).append(folder)
    tools = [path for path in (*(root / name for name in _TOOLS), root / ".venv") if path.exists() or path.is_symlink()]
    for path in tools:
        (made if _is_marked(path) or _is_tagged(path) else others).append(path)
    _remove(made, root)
    for folder in (root / ".rehearsal", root / "build"):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
    _keep([path for path in others if not any(one.is_relative_to(path) for one in running)], root)
    return 1 if running else 0


def clean_cache(cache: Path, *, linked: bool = False) -> int:
    """Remove what the project put into the cache folder: the parts of it with a marker.

    The folder goes too if nothing else was in it.

    Args:
        cache: The folder, without links.
        linked: Whether a link names the folder. The user made both, so both stay.
    """
    parts = _inside(cache)
    # In another folder than the usual one, a user's cache, tools of that user may have the same names and tags as ours.
    is_usual = cache.name == _CACHE
    made = [
        path
        for path in parts
        if _is_lock(path) or _is_marked(path) or (is_usual and path.name in _CACHES and _is_tagged(path))
    ]
    others = [path for path in parts if path not in made]
    if all(map(_is_lock, made)):
        made, others = [], parts
    _remove(made, cache.parent)
    if made and not others and not linked:
        cache.rmdir()
    _keep(others, cache.parent)
    return 1 if others else 0


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _is_lock(path: Path) -> bool:
    """Whether a path is the lock of the builds, which is an empty file."""
    status = path.lstat()
    return path.name == LOCK and stat.S_ISREG(status.st_mode) and not status.st_size


def _is_stack(path: Path) -> bool:
    """Whether a folder is a stack's, and no link leads to it."""
    return path.resolve() == path and (path / _STATE).is_file()


def _is_marked(path: Path) -> bool:
    """Whether a folder, and no link to one, was made by the project."""
    return not path.is_symlink() and path.is_dir() and is_ours(path)


def _is_tagged(path: Path) -> bool:
    """Whether a folder, and no link to one, has the tag of any tool's cache."""
    name, beginning = _TAG
    tag = path / name
    return not path.is_symlink() and tag.is_file() and tag.read_bytes()[: len(beginning)] == beginning.encode()


def _stopped(stack: Path) -> bool:
    """Stop what runs of a stack; whether nothing does any more."""
    try:
        from karpstack.rehearsal import commands
    except ImportError as error:
        print(f"{_line(stack)}: is kept, for it cannot be seen whether it runs ({error}); run: make environment")
        return False
    return commands.down(commands.Target(stack.name, stack.parent, command="down"), force=True) == 0


def _remove(paths: Iterable[Path], root: Path) -> None:
    if there := list(paths):
        print("Removing what the project made:", *_listed(there, root), sep="\n", flush=True)
    for path in there:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _keep(paths: Iterable[Path], root: Path) -> None:
    if there := list(paths):
        print("Kept, because the project's marker is missing; remove by hand what you do not need:")
        print(*_listed(there, root), sep="\n")


def _listed(paths: Iterable[Path], root: Path) -> list[str]:
    return [f"  {_line(path.relative_to(root))}" for path in paths]


def _line(path: Path) -> str:
    """A path on one line, whatever its name has."""
    return visible(path).replace("\n", r"\n").replace("\t", r"\t")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
