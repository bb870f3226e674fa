"""The two sides of a what-if: each a stack file of this checkout, or the whole program as a git ref has it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from rehearsal.session.deployment import PROJECT
from rehearsal.session.stack_file import StackFile

#: What a change is called that is what the checkout holds now.
WORKING_TREE = "working-tree"
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60


class SourceError(Exception):
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
    """

    name: str
    given: str
    program: Path
    stack_file: StackFile
    new_image: bool = False


def source(given: str, stack: str, into: Path) -> Source:
    """What somebody means by a name.

    Args:
        given: A stack file, or a git ref; empty for the checkout as it is.
        stack: Name of the stack.
        into: Folder below which the files of a ref are laid down.

    Raises:
        SourceError: It is neither, or the ref has no such stack.
        StackFileError: The configuration cannot be rehearsed.
    """
    own = PROJECT / f"Pulumi.{stack}.yaml"
    if not given:
        return Source(WORKING_TREE, given, PROJECT, StackFile.load(own))
    path = Path(given)
    if _is_file(path):
        return Source(named(path.stem), str(path.resolve()), PROJECT, StackFile.load(path.resolve()))
    commit = _commit(given)
    program = into / commit[:12]
    _lay_down(commit, program)
    file = program / own.name
    if not file.is_file() or not (program / "Pulumi.yaml").is_file():
        missing = own.name if (program / "Pulumi.yaml").is_file() else "Pulumi.yaml"
        raise SourceError(
            f"{given!r} is a git ref ({commit[:12]}) without {missing}, so there is nothing to rehearse; name a ref "
            "that has it, or a stack file"
        )
    return Source(named(given), given, program, StackFile.load(file))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def named(text: str) -> str:
    """A name that a folder can have."""
    return _NAME.sub("-", text).strip(".-")[:_LONGEST_NAME] or "unnamed"


def _commit(given: str) -> str:
    """The commit that a ref means, in full."""
    found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    if found.returncode:
        why = found.stderr.decode(errors="replace").strip()
        raise SourceError(
            f"{given!r} is neither a stack file nor a git ref of {PROJECT}{f' ({why})' if why else ''}, so there is "
            "nothing to compare; name a file, for example Pulumi.eks.yaml, or a ref, for example origin/main (in CI, "
            "fetch it first: a shallow clone has one commit)"
        )
    return found.stdout.decode().strip()


def _lay_down(commit: str, target: Path) -> None:
    """Write a commit's files, without touching the checkout or its list of work trees."""
    if target.is_dir():
        return
    archive = _git("archive", "--format=tar", commit)
    if archive.returncode:
        raise SourceError(f"git archive {commit}: {archive.stderr.decode(errors='replace').strip()}")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Whole or not there: another candidate, or the next run, takes what it finds.
    unpacked = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(unpacked, filter="data")
    except (tarfile.TarError, OSError) as error:
        shutil.rmtree(unpacked)
        raise SourceError(
            f"commit {commit[:12]} cannot be laid down, so it cannot be rehearsed: {error}; a link out of the "
            "repository is refused"
        ) from error
    try:
        unpacked.rename(target)
    except OSError:
        shutil.rmtree(unpacked)
        if not target.is_dir():  # else another one was quicker
            raise


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(PROJECT), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise SourceError("there is no git in PATH, so no ref can be read; name stack files instead") from error
