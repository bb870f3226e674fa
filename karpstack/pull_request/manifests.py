"""Folders of Karpenter's manifests that a change touches: the question of a repository that has no stack files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from karpstack.text import git, shown
from karpstack.text.names import folder_name, is_stack_name
from karpstack.text.projects import KUSTOMIZATIONS, ProjectError, stack_of

from .inputs import ENDINGS, file_for_stack
from .stacks import AffectedStack, Change, StacksError


def root(folder: Path) -> Path:
    """Return the root of a folder's git repository; the folder itself if it is in none."""
    found = git.git(folder, "rev-parse", "--show-toplevel")
    return folder if found.returncode else Path(found.stdout.decode(errors="surrogateescape").rstrip("\n"))


def affected(
    repository: Path, changed: Change, given: str, workloads: Path | None, *, every: bool
) -> list[AffectedStack]:
    """Return the folders to rehearse, each as a row of its own, like a stack.

    Both sides are read from commits, never from the checkout: links out of the repository are refused there.

    Args:
        repository: Root of the repository.
        changed: The change.
        given: Paths of folders from the root, separated by commas.
        workloads: A snapshot, or a folder with one for each folder of manifests.
        every: Whether folders that the change does not touch are rehearsed too.

    Raises:
        StacksError: A folder does not exist after the change, or it has no snapshot.
    """
    paths = [PurePosixPath(one.strip()).as_posix() for one in given.split(",") if one.strip()]
    found = {}
    for path in paths:
        if _names(repository, changed.head, path) is None or path != "".join(path.split()):
            raise StacksError(
                f"--manifests {shown.value(path)}: is no folder below the root of commit {changed.head[:12]}, or has a "
                "space in its path, so there is nothing to rehearse; give the path of a folder from the root"
            )
        # A kustomization, or a link, may use files of any name in any other folder.
        wide = _reaches_out(repository, changed.head, path)
        touching = (one for one in changed.paths if wide or one.startswith(f"{path}/"))
        if not (why := next(touching, "asked for" if every else "")):
            continue
        if (name := folder_name(path)) in found:
            raise StacksError(
                f"--manifests {given}: two folders would both be called {name}; give each a job of its own"
            )
        base = () if _names(repository, changed.base, path) is None else ("--base", f"{changed.base}:{path}")
        sides = ("--project", str(repository), *base, "--change", f"{changed.head}:{path}")
        found[name] = AffectedStack(name, why, "asked", sides, _like(name, workloads))
    return list(found.values())


def check_kept(repository: Path, changed: Change, touched: Sequence[AffectedStack], given: Mapping[str, str]) -> None:
    """Refuse a change of files that decide the answer about it: its author could choose the answer.

    Args:
        repository: Root of the repository.
        changed: The change.
        touched: The folders that are rehearsed.
        given: Option of the what-if -> its file or folder.

    Raises:
        StacksError: The change has one of the files, or the stack file from which all else is taken.
    """
    files = {f"--{name} {path}": Path(path) for name, path in given.items() if name in ENDINGS}
    files |= {name: repository / name for name in (f"Pulumi.{one.like}.yaml" for one in touched)}
    for name, file in files.items():
        inside = file.iterdir() if file.is_dir() else ()
        for place in (one for path in (file, *inside) for one in _places(path.absolute())):
            if place.is_relative_to(repository):
                path = place.relative_to(repository).as_posix()
                if any(_holds(one, path) or _holds(path, one) for one in changed.paths):
                    raise StacksError(
                        f"{shown.visible(name)}: is changed together with the manifests, so the change would choose "
                        "its own answer; change it in a pull request of its own"
                    )


def check_results(repository: Path, commit: str, results: Path) -> None:
    """Refuse a folder of results that is in a commit: its files would be shown as results.

    Raises:
        StacksError: The commit has it.
    """
    for place in {results.absolute(), results.resolve()}:
        if place.is_relative_to(repository) and _names(repository, commit, str(place.relative_to(repository))):
            raise StacksError(
                f"--results {shown.visible(results)}: commit {commit[:12]} has files there, which would be shown as "
                "results, so nothing is rehearsed; give a folder that is not in the repository"
            )


def _places(path: Path) -> Iterator[Path]:
    """Where a path leads: each link on the way, and what is at its end."""
    place, left = Path(path.anchor), list(reversed(path.parts[1:]))
    links = 40  # the kernel follows no more either
    while left and links:
        part = left.pop()
        place = place.parent if part == ".." else place / part
        if place.is_symlink():
            yield place
            links -= 1
            target = place.readlink()
            place = Path(target.anchor) if target.is_absolute() else place.parent
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    yield place


def _holds(path: str, other: str) -> bool:
    """Whether a path is another one, or above it, where a link may stand instead of a folder."""
    return other == path or other.startswith(f"{path}/")


def _names(repository: Path, commit: str, path: str) -> list[str] | None:
    """The names in a folder of a commit; None if there is no such folder."""
    listed = git.git(repository, "ls-tree", "--name-only", "-z", f"{commit}:{path}")
    return None if listed.returncode else listed.stdout.decode(errors="surrogateescape").split("\0")


def _reaches_out(repository: Path, commit: str, path: str) -> bool:
    """Whether something in a folder of a commit is a link or a kustomization."""
    listed = git.git(repository, "ls-tree", "-r", "-z", f"{commit}:{path}")
    entries = listed.stdout.decode(errors="surrogateescape").split("\0")
    return any(one.startswith(git.LINK) or re.split(r"[\t/]", one)[-1] in KUSTOMIZATIONS for one in entries)


def _like(name: str, workloads: Path | None) -> str:
    """The stack that makes clusters like that of a folder's snapshot."""
    if not (file := workloads and file_for_stack("workloads", workloads, name)):
        raise StacksError(
            f"{name}: --workloads names no snapshot, so there is no cluster whose NodePools could change; give a file, "
            f"or a folder with {name}{ENDINGS['workloads'][0]}: karpstack snapshot take --output cluster.json.gz"
        )
    try:
        stack = stack_of(file)
    except ProjectError as error:
        raise StacksError(str(error)) from error
    if not is_stack_name(stack):
        raise StacksError(f"{file}: {shown.value(stack)} is no cloud of karpstack; take the snapshot again")
    return stack
