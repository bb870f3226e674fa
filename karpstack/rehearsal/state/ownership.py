"""Whose a state folder is: nothing is written, believed or removed in one that the rehearsal has not made.

A marker file tells. Whoever has it made by hand, or puts files of his own beside it, has been told by its text.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from pathlib import Path

from karpstack.rehearsal.state import ancestors
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.files import make_results

_LOG = logging.getLogger(__name__)

_CHECKOUT = Path(__file__).resolve().parents[3]
_FORMAT = "karpstack rehearsal 1"
_TEXT = f"""\
{_FORMAT}
This folder belongs to `karpstack`, which removes all that is in it when the stack is brought up again.
"""
# What version 0.1 wrote into a state folder, which had no marker yet.
_BEFORE_MARKERS = {
    *("ansible", "azure", "control-plane", "controller", "daemon.json", "helm", "kubeconfig", "logs"),
    *("processes", "pulumi"),
}


class OwnershipError(Exception):
    """A folder cannot be used for a stack's state; the text says why, what would have happened, and the fix."""


def place(state: Path) -> Path:
    """The folder of all stacks without links; it need not exist yet. Only this path is used from then on.

    Raises:
        ancestors.ExposedError: Others could exchange it, or what is in it.
    """
    return unexposed(state, "the state of a stack, and so what your commands run", "name another folder with --state")


def place_results(folder: Path, option: str) -> Path:
    """The folder for what a command writes, made and without links.

    Args:
        option: With which another one can be named, for the error.

    Raises:
        ancestors.ExposedError: Others could lay links there, through which files of this user's would be overwritten.
        OwnershipError: Nothing can be written there.
    """
    content = "what is written there for links to your own files, which would be overwritten"
    instead = f"name another folder with {option}"
    found = unexposed(folder, content, instead)
    try:
        make_results(found)
    except OSError as error:
        raise OwnershipError(f"{found} cannot be made ({error.strerror}); {instead}") from error
    if not os.access(found, os.W_OK):
        raise OwnershipError(f"{found} cannot be written, so that all would be done for nothing; {instead}")
    return unexposed(found, content, instead)  # where it was not there, somebody else may have made it first


def unexposed(folder: Path, content: str, instead: str) -> Path:
    """A folder without links, which others could not exchange; `content` and `instead` as `ancestors.resolve` has them.

    In the checkout, what is above is not judged: whoever may write there may as well change the program. So a container
    that runs as root in somebody else's checkout, as CI has it, needs no --state.

    Raises:
        ancestors.ExposedError: They could.
    """
    below = _CHECKOUT if folder.absolute().is_relative_to(_CHECKOUT) else Path("/")
    return ancestors.resolve(folder, content, instead, below=below)


def claim(folder: StackFolder) -> None:
    """Make the state folder, private and with its marker; one that is there must be ours.

    Raises:
        OwnershipError: It is somebody else's.
        ancestors.ExposedError: Others could exchange it.
    """
    parent = place(folder.root.parent)
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place(parent)  # where it was not there, somebody else may have made it first
    folder.root.mkdir(exist_ok=True, mode=0o700)
    check(folder)
    if not _is_marked(folder):
        if folder.run_file.exists():
            _LOG.warning("%s was made by version 0.1; from now on it is this version's.", folder.root)
        folder.marker.touch(mode=0o600)
        folder.marker.write_text(_TEXT)
    folder.root.chmod(0o700)


def check(folder: StackFolder) -> bool:
    """Whether there is a state folder; one that is there must be ours.

    Raises:
        OwnershipError: It is a link or somebody else's, or holds what the rehearsal has not made.
    """
    try:
        found = folder.root.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise OwnershipError(
            f"{folder.root} is {kind}, so the state of {folder.stack} could lie, and be removed, anywhere; "
            "remove it, or name another folder with --state"
        )
    if found.st_uid != os.geteuid():
        raise OwnershipError(
            f"{folder.root} belongs to {ancestors.user_name(found.st_uid)}, who could read the keys of "
            f"{folder.stack} and exchange what its commands run; name another folder with --state"
        )
    if not _is_marked(folder):
        _check_unmarked(folder)
    return True


def clear(folder: StackFolder) -> None:
    """Remove what is in a state folder of ours, but not its marker and its lock; whoever calls holds the lock."""
    if not check(folder):
        return
    for path in folder.root.iterdir():
        if path in (folder.marker, folder.lock, folder.holder):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_marked(folder: StackFolder) -> bool:
    try:
        text = folder.marker.read_text(errors="replace")
    except FileNotFoundError:
        return False
    except IsADirectoryError as error:
        raise OwnershipError(
            f"{folder.marker} is a folder, so that {folder.root} is none of the rehearsal's and nothing in it is "
            "touched; remove it, or name another folder with --state"
        ) from error
    if not text:  # whoever made it was killed, or had no space, before it was written
        return False
    first = text.partition("\n")[0]
    if first != _FORMAT:
        raise OwnershipError(
            f"{folder.marker} begins with {first[:40]!r} and not with {_FORMAT!r}, so that another version of "
            f"karpstack made {folder.root}, and its processes would not be found; take the stack down with that "
            "version and remove the folder, or name another one with --state"
        )
    return True


def _check_unmarked(folder: StackFolder) -> None:
    names = {path.name for path in folder.root.iterdir()}
    foreign = sorted(names - {path.name for path in (folder.marker, folder.lock, folder.holder)})
    if not foreign or ("daemon.json" in foreign and _BEFORE_MARKERS.issuperset(foreign)):
        return
    shown = ", ".join(repr(name) for name in foreign[:5]) + (", ..." if len(foreign) > 5 else "")
    raise OwnershipError(
        f"{folder.root} was not made by the rehearsal (it holds {shown}), which would remove all that is in it; "
        "move it away, or name another folder with --state"
    )
