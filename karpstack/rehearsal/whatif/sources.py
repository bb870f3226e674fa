"""The two sides of a what-if: each a stack file, or what a git ref of the user's own repository has."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.text import git, shown
from karpstack.text.names import folder_name
from karpstack.text.packaged import PROGRAM
from karpstack.text.projects import KUSTOMIZATIONS

#: What a change is called that is what the checkout holds now.
WORKING_TREE = "working-tree"
_LINK = b"120000"  # git's mode of a symbolic link
_SUBMODULE = b"160000"  # and of a submodule
_COMMIT = re.compile(r"^([0-9a-f]{12})[0-9a-f]+:")


class SourceError(ValueError):
    """Something is neither a stack file nor a git ref, or holds no such stack; the text says what to give instead."""


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
        notes: What of them is to be known: a sentence each.
    """

    name: str
    given: str
    program: Path
    stack_file: StackFile
    new_image: bool = False
    manifests: Path | None = None
    notes: tuple[str, ...] = ()


def source(given: str, stack: str, into: Path, project: Path = PROGRAM) -> Source:
    """What somebody means by a name.

    Args:
        given: A stack file, or a git ref of the project's repository; empty for the project as it is.
        into: Folder below which the files of a ref are laid down.
        project: Folder with the stack files. One without a program (Pulumi.yaml) has karpstack's.

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
    _lay_down(project, f"{commit}:{below}", laid_down)
    file = laid_down / own.name
    if not file.is_file():
        raise SourceError(
            f"{given!r} is a git ref of {project} ({commit[:12]}) without {own.name}, so there is nothing to rehearse; "
            "name a ref that has it, or a stack file, or run the command in the repository that has it"
        )
    missing = _submodules(project, f"{commit}:{below}")
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
    _lay_down(project, f"{commit}:{path}", target)
    if not any((target / one).is_file() for one in KUSTOMIZATIONS):
        if missing := _submodules(project, f"{commit}:{path}"):
            raise SourceError(
                f"{given!r} has submodules ({missing}), whose files are not in this repository, so not all manifests "
                "are known; give a folder without submodules, or a command that prints the manifests"
            )
        return target
    whole = into / commit[:12] / "repository"  # a kustomization may use folders beside its own
    _lay_down(project, commit, whole)
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


def _lay_down(project: Path, tree: str, target: Path) -> None:
    """Write the files of a tree, without touching the checkout or its list of work trees.

    Args:
        project: A folder in the repository.
        tree: `COMMIT:PATH`; the path is one from the root of the repository.
        target: The folder to make.
    """
    if target.is_dir():  # by the other side: the folder is this run's
        return
    archive = _archive(project, tree)
    target.mkdir(parents=True, mode=0o700)
    try:
        with tarfile.open(fileobj=archive) as files:
            files.extractall(target, filter="data")
    except (tarfile.TarError, OSError) as error:
        shutil.rmtree(target)
        raise SourceError(
            f"commit {tree[:12]} cannot be laid down, so it cannot be rehearsed: {error}; a link out of the "
            "repository is refused"
        ) from error


def _submodules(project: Path, tree: str) -> str:
    """The submodules in a tree, for people; empty if there are none."""
    listed = _read(project, tree, "ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")
    return ", ".join(
        shown.visible(os.fsdecode(one.partition(b"\t")[2])) for one in listed if one.startswith(_SUBMODULE)
    )


def _archive(project: Path, tree: str) -> BytesIO:
    """Return an archive of the files of a tree, without submodules.

    `git archive` is not asked: attributes in the tree (`export-ignore`, `export-subst`) decide what it leaves out and
    changes, and what is applied to a cluster would be something else.
    """
    listed = _read(project, tree, "ls-tree", "-r", "-z", "--full-tree", tree)
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    blobs = [(*about.split(), name) for about, _, name in entries if b" blob " in about]
    content = BytesIO(_read(project, tree, "cat-file", "--batch", given=b"".join(b"%b\n" % one[2] for one in blobs)))
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for mode, _, blob, name in blobs:
            _, found, *size = content.readline().split()
            if found != b"blob":
                raise SourceError(f"{tree}: the repository lacks {os.fsdecode(name)} ({blob.decode()}); fetch it first")
            text = content.read(int(size[0]))
            content.read(1)  # a line break
            file = tarfile.TarInfo(os.fsdecode(name))
            if mode == _LINK:
                file.type, file.linkname = tarfile.SYMTYPE, os.fsdecode(text)
            else:
                file.mode, file.size = int(mode, 8) & 0o777, len(text)
            archive.addfile(file, BytesIO(text))
    made.seek(0)
    return made


def _read(project: Path, tree: str, *arguments: str, given: bytes = b"") -> bytes:
    answer = git.git(project, *arguments, given=given)
    if answer.returncode:
        raise SourceError(f"git {arguments[0]} {tree}: {answer.stderr.decode(errors='replace').strip()}")
    return answer.stdout
