"""The two sides of a what-if: each a stack file, or what a git ref of the user's own repository has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, cast

from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.text import git, shown
from karpstack.text.names import folder_name
from karpstack.text.packaged import PROGRAM
from karpstack.text.projects import KUSTOMIZATIONS

#: What a change is called that is what the checkout holds now.
WORKING_TREE = "working-tree"
_LINK = b"120000"  # git's mode of a symbolic link
_SUBMODULE = b"160000"  # and of a submodule
_MOST_OF_FILE: Final = 16 * 2**20  # bytes of a file that a kustomization may use
_MOST_OF_LINK: Final = 4096  # bytes of the path
_COMMIT = re.compile(r"^([0-9a-f]{12})[0-9a-f]+:")


class SourceError(ValueError):
    """Something is neither a stack file nor a git ref, or holds no such stack; the text says what to give instead."""


@dataclass(frozen=True)
class Most:
    """What is laid down of a git ref at most, in bytes.

    Attributes:
        files: Of all files.
        file: Of a file; larger ones are left out.
        listed: Of the list of the files, which has about a hundred for each.
    """

    files: int = 2**30
    file: int = 2**30
    listed: int = 32 * 2**20


_MOST: Final = Most()


@dataclass(frozen=True)
class Source:
    """One side.

    Attributes:
        name: What people call it, good for a folder's name.
        given: As it was given, a file by its whole path; empty for the checkout as it is.
        program: Folder of the Pulumi program.
        stack_file: The stack's configuration.
        new_image: Whether the change is a newer image of nodes, which the cloud publishes, and nothing of the stack.
        manifests: Karpenter's own objects of which the stack file is made; None if it was written by a person.
        notes: What of it is to be known: a sentence each.
        unseen: Those of the notes that say what changes, or may change, without being seen.
    """

    name: str
    given: str
    program: Path
    stack_file: StackFile
    new_image: bool = False
    manifests: Path | None = None
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


def source(given: str, stack: str, into: Path, project: Path = PROGRAM, most: Most = _MOST) -> Source:
    """What somebody means by a name.

    Args:
        given: A stack file, or a git ref of the project's repository; empty for the project as it is.
        into: Folder below which the files of a ref are laid down.
        project: Folder with the stack files. One without a program (Pulumi.yaml) has karpstack's.
        most: What is laid down at most.

    Raises:
        SourceError: It is neither, or the ref has no such stack.
        StackFileError: The configuration cannot be rehearsed.
    """
    own = project / f"Pulumi.{stack}.yaml"
    if not given:
        return Source(WORKING_TREE, given, _program(project), StackFile.load(own))
    path = Path(given)
    if _is_file(path):
        check_meaning(given, project)
        return Source(folder_name(path.stem), str(path.resolve()), PROGRAM, StackFile.load(path.resolve()))
    commit = _commit(project, given)
    below = _below_root(project)
    laid_down = into / commit[:12] / folder_name(below)
    _lay_down(project, f"{commit}:{below}", laid_down, most)
    file = laid_down / own.name
    if not file.is_file():
        raise SourceError(
            f"{given!r} is a git ref of {project} ({commit[:12]}) without {own.name}, so there is nothing to rehearse; "
            "name a ref that has it, or a stack file, or run the command in the repository that has it"
        )
    missing = _submodules(project, f"{commit}:{below}", most)
    notes = (f"{shown.value(given)}: files of submodules are not included: {missing}",) if missing else ()
    return Source(folder_name(given), given, _program(laid_down), StackFile.load(file), notes=notes)


def check_meaning(given: str, project: Path) -> None:
    """Refuse a path that is also a git ref or a command: a branch that adds such a file would choose its own base.

    Args:
        given: A path that exists.
        project: A folder in the repository whose refs are meant.

    Raises:
        SourceError: It has two meanings.
    """
    path = f"write {'' if given.startswith('/') else './'}{given} for the path"
    if len(words := given.split()) > 1 and shutil.which(words[0]):
        raise SourceError(f"{given!r} is a path and a command, so it is unclear what to compare; {path}")
    if given.startswith(("/", ".")):
        return  # as no name of a ref does
    ref, *more = given.split(":", 1)
    try:
        commit = git.commit(project, ref)
    except (git.NoCommitError, FileNotFoundError):
        return
    raise SourceError(
        f"{given!r} is a path and a git ref of {project}, so it is unclear what to compare; {path}, or "
        f"{':'.join((commit, *more))} for the ref"
    )


def folder_of_ref(project: Path, given: str, into: Path) -> Path:
    """Lay down a folder of a git ref, and return where.

    Args:
        project: A folder in the repository.
        given: `REF:PATH`, as of `git show`: the path is one from the root of the repository.
        into: Folder below which the files are laid down.

    Raises:
        SourceError: There is no such ref, or it has no such folder, or the folder has a submodule.
    """
    ref, _, path = given.partition(":")
    commit = _commit(project, ref)
    target = into / commit[:12] / side_name(given)
    _lay_down(project, f"{commit}:{path}", target, _MOST)
    if not any((target / one).is_file() for one in KUSTOMIZATIONS):
        if missing := _submodules(project, f"{commit}:{path}"):
            raise SourceError(
                f"{given!r} has submodules ({missing}), whose files are not in this repository, so not all manifests "
                "are known; give a folder without submodules, or a command that prints the manifests"
            )
        return target
    whole = into / commit[:12] / "repository"  # a kustomization may use folders beside its own
    _lay_down(project, commit, whole, replace(_MOST, file=_MOST_OF_FILE))
    return whole / path


def side_name(given: str) -> str:
    """Return what a side is called that is a command or a folder of a git ref; of a commit the beginning is enough."""
    return folder_name(_COMMIT.sub(r"\1:", given))


def _program(folder: Path) -> Path:
    """The folder of the program of stack files: their own, or karpstack's where they have none beside them."""
    return folder if (folder / "Pulumi.yaml").is_file() else PROGRAM


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _commit(project: Path, given: str) -> str:
    """The commit that a ref means, in full."""
    try:
        return git.commit(project, given)
    except git.NoCommitError as error:
        raise SourceError(
            f"{given!r} is neither a file or folder nor a git ref of {project}{error}, so there is nothing to compare; "
            "name a stack file, for example Pulumi.eks.yaml, a folder of NodePools, or a ref, for example origin/main "
            "(in CI, fetch it first: a shallow clone has one commit)"
        ) from error
    except FileNotFoundError as error:
        raise SourceError("there is no git in PATH, so no ref can be read; name files instead") from error


def _below_root(project: Path) -> str:
    """Where the project is in its repository."""
    return git.git(project, "rev-parse", "--show-prefix").stdout.decode(errors="replace").strip()


def _lay_down(project: Path, tree: str, target: Path, most: Most) -> None:
    """Write the files of a tree, without touching the checkout or its list of work trees.

    Args:
        project: A folder in the repository.
        tree: `COMMIT:PATH`; the path is one from the root of the repository.
        target: The folder to make.
        most: What is laid down at most.
    """
    if target.is_dir():  # by the other side: the folder is this run's
        return
    target.mkdir(parents=True, mode=0o700)
    try:
        with tempfile.TemporaryFile(dir=target) as archive:
            _archive(project, tree, archive, most)
            archive.seek(0)
            with tarfile.open(fileobj=archive) as files:
                files.extractall(target, filter="data")
    except (tarfile.TarError, OSError, SourceError) as error:
        shutil.rmtree(target)
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"commit {tree[:12]} cannot be laid down, so it cannot be rehearsed: {error}; a link out of the "
            "repository is refused"
        ) from error


def _submodules(project: Path, tree: str, most: Most = _MOST) -> str:
    """The submodules in a tree, for people; empty if there are none."""
    listed = _read(project, tree, "ls-tree", "-r", "-z", "--full-tree", tree, most=most).split(b"\0")
    return ", ".join(
        shown.visible(os.fsdecode(one.partition(b"\t")[2])) for one in listed if one.startswith(_SUBMODULE)
    )


def _archive(project: Path, tree: str, into: IO[bytes], most: Most) -> None:
    """Write an archive of the files of a tree, without submodules and too large files.

    `git archive` is not asked: attributes in the tree (`export-ignore`, `export-subst`) decide what it leaves out and
    changes, and what is applied to a cluster would be something else.
    """
    listed = _read(project, tree, "ls-tree", "-r", "-l", "-z", "--full-tree", tree, most=most)
    blobs = []
    for about, _, path in (entry.partition(b"\t") for entry in listed.split(b"\0") if entry):
        mode, kind, blob, sized = about.split()
        size = int(sized) if sized.isdigit() else 0  # git knows none of what the repository lacks
        if kind == b"blob" and size <= (_MOST_OF_LINK if mode == _LINK else most.file):
            blobs.append((mode, blob, size, os.fsdecode(path)))
    if (total := sum(size for _, _, size, _ in blobs)) > most.files:
        raise SourceError(
            f"{tree} has {total / 2**20:.0f} MiB of files, so it is too large to be rehearsed (at most "
            f"{most.files / 2**20:.0f} MiB); name a smaller folder, or a folder of your checkout"
        )
    with tempfile.TemporaryFile() as asked:
        asked.writelines(b"%b\n" % blob for _, blob, _, _ in blobs)
        asked.seek(0)
        with (
            _printed(project, tree, "cat-file", "--batch", given=asked) as content,
            tarfile.open(fileobj=into, mode="w") as archive,
        ):
            for mode, blob, size, name in blobs:
                if content.readline() != b"%b blob %d\n" % (blob, size):
                    raise SourceError(f"{tree}: the repository lacks {name} ({blob.decode()}); fetch it first")
                file = tarfile.TarInfo(name)
                if mode == _LINK:
                    file.type, file.linkname = tarfile.SYMTYPE, os.fsdecode(content.read(size))
                else:
                    file.mode, file.size = int(mode, 8) & 0o777, size
                archive.addfile(file, content)
                content.read(1)  # a line break


def _read(project: Path, tree: str, *arguments: str, most: Most = _MOST) -> bytes:
    with _printed(project, tree, *arguments) as content:
        listed = content.read(most.listed + 1)
        if len(listed) > most.listed:
            raise SourceError(
                f"{tree} has too many files (their list is longer than {most.listed / 2**20:.0f} MiB), so it cannot "
                "be rehearsed; name a smaller folder, or a folder of your checkout"
            )
    return listed


@contextmanager
def _printed(project: Path, tree: str, *arguments: str, given: IO[bytes] | None = None) -> Iterator[IO[bytes]]:
    """Give what git prints, as it comes. Git is killed if not all of it is wanted."""
    command = ["git", "-C", str(project), *arguments]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdin=given or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            yield cast("IO[bytes]", process.stdout)
        except BaseException:
            process.kill()
            raise
        if process.wait():
            errors.seek(0)
            said = errors.read(2**16).decode(errors="replace").strip()
            raise SourceError(f"git {arguments[0]} {tree}: {said}")
