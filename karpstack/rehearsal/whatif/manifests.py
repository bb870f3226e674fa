"""Sides of a what-if that are Karpenter's own manifests: a folder, a file, a git ref of one, or what a command prints.

`karpstack snapshot stack-file` applies them to the snapshot, and makes of it the stack file that is rehearsed.
"""

from __future__ import annotations

import os
import resource
import selectors
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.offline import take_internet
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.text import json_file, refusals
from karpstack.text.json_file import FileError
from karpstack.text.names import folder_name
from karpstack.text.packaged import PROGRAM
from karpstack.text.projects import KUSTOMIZATIONS, SELF_HOSTED, STACKS
from karpstack.text.shown import visible
from karpstack.text.yaml_file import YamlError, parse_all

from .sources import Source, SourceError, check_meaning, folder_of_ref, side_name

#: What the base is called that a snapshot is.
SNAPSHOT: Final = "snapshot"
#: The environment of `kubectl kustomize`: nothing may be fetched. A kustomization hands git the text behind a URL, and
#: with it any command (`?ref=--upload-pack=...`). No proxy is asked for loopback addresses: see `take_internet`.
_CLOSED: Final = {
    "PATH": "",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "GOTRACEBACK": "none",  # of an end for want of memory, the first line is enough
}
_FETCHES: Final = (
    " (for a folder nothing is fetched and no chart rendered; if you trust it, give the command 'kubectl kustomize "
    "FOLDER', with --enable-helm for charts)"
)
#: Folder of what commands printed. It may hold secrets, as a plan of Terraform does.
PRINTED: Final = ".printed"
_OF_KUSTOMIZE: Final = "kustomize"
_NOTE: Final = "note: "
_UNSEEN: Final = "not seen: "
_MOST: Final = 16 * 2**20  # bytes
_MOST_SAID: Final = 2**16  # bytes of an error


@dataclass(frozen=True)
class Limits:
    """Limits of programs that print manifests. A few small files can ask Kustomize for days and all memory.

    Attributes:
        seconds: For a command that a person gave.
        kustomize: Seconds for Kustomize.
        memory: Bytes for Kustomize.
        cpu: Seconds of CPU time for Kustomize, in case this process ends before it.
    """

    seconds: float = 600.0
    kustomize: float = 60.0
    memory: int = 4 * 2**30
    cpu: int = 120

    def confine(self) -> None:
        """Take the internet, memory and time without end from a program; to be called between fork and exec."""
        take_internet()
        if sys.platform == "linux":
            for kind, most in ((resource.RLIMIT_AS, self.memory), (resource.RLIMIT_CPU, self.cpu)):
                hard = resource.getrlimit(kind)[1]
                least = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(kind, (least, least))


@dataclass(frozen=True)
class Cluster:
    """A snapshot, and where its sides are made.

    Attributes:
        snapshot: The file.
        stack: Name of the stack.
        project: Folder with the stack files, in the repository whose refs are meant.
        into: Folder below which sides are written. Each has a name of its own there.
        limits: Limits of programs that print manifests.
    """

    snapshot: Path
    stack: str
    project: Path
    into: Path
    limits: Limits = Limits()

    def base(self) -> Source:
        """Return the side that the snapshot is.

        Raises:
            SourceError: No stack file can be made of it.
        """
        return self._side(SNAPSHOT, "", {})

    def before(self, given: str) -> Source:
        """Return the side that manifests before a change are.

        Args:
            given: See `are_manifests`.

        Raises:
            SourceError: As of `side`.
        """
        name, path = self._path(given)
        return self._side(name, str(path), {"instead-of": path})

    def side(self, given: str, before: Path | None = None) -> Source:
        """Return the side that manifests are.

        Args:
            given: See `are_manifests`.
            before: The manifests of the base; None if the base is the snapshot.

        Raises:
            SourceError: They cannot be read, or no stack file can be made of them.
        """
        name, path = self._path(given)
        if before and _is_built(before) != _is_built(path) and (before.is_dir() or path.is_dir()):
            raise SourceError(
                f"{given!r}: only one of base and change has a kustomization, so what is applied of the folder is not "
                "known: its files, or what Kustomize prints; give 'kubectl kustomize FOLDER' for the side that has it"
            )
        return self._side(name, str(path), {"manifests": path, **({"instead-of": before} if before else {})})

    def _path(self, given: str) -> tuple[str, Path]:
        path = Path(given)
        if _exists(path):
            check_meaning(given, self.project)
            path = path.resolve()
            return folder_name(path.name if path.is_dir() else path.stem), self._built(path, given)
        if _is_command(given):
            return side_name(given), self._printed(_words(given), given)
        return side_name(given), self._built(folder_of_ref(self.project, given, self.into), given)

    def _built(self, path: Path, given: str) -> Path:
        """Return where the manifests of a path are: of a folder with a kustomization, what Kustomize prints."""
        if not any((path / one).is_file() for one in KUSTOMIZATIONS):
            return path
        kubectl = str(EngineSet.current().program("kubectl"))
        return self._printed([kubectl, "kustomize", str(path)], given, _CLOSED)

    def _printed(self, command: list[str], given: str, environment: dict[str, str] | None = None) -> Path:
        """Return a file with what a command prints."""
        seconds = self.limits.seconds if environment is None else self.limits.kustomize
        confine = None if environment is None else self.limits.confine
        try:
            code, printed, said = _output(command, environment, seconds, confine)
        except OSError as error:
            raise SourceError(
                f"{given!r}: {command[0]} cannot be run ({error.strerror}), so the change is not known; name a file or "
                "folder of manifests, or a command that prints them"
            ) from error
        if len(printed) > _MOST:
            raise SourceError(
                f"{given!r} prints more than {_MOST >> 20} MiB, so the change is not known; let it print NodePools and "
                "node classes alone"
            )
        closed = environment is not None
        if code is None:
            program = "Kustomize" if closed else "the command"
            raise SourceError(
                f"{given!r}: {program} did not end within {seconds:g} s and was stopped, so the change is not known; "
                "make it smaller, or give a file or folder with what it prints"
            )
        if code:
            raise SourceError(
                f"{given!r} ended with exit code {code}, so the change is not known; correct it"
                f"{_FETCHES if closed else ''}:\n{_quoted(said)}"
            )
        path = self.into / PRINTED / (_OF_KUSTOMIZE if closed else "") / f"{side_name(given)}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(printed)
        return path

    def _side(self, name: str, given: str, manifests: Mapping[str, Path]) -> Source:
        own = self.project / f"Pulumi.{self.stack}.yaml"
        like = own if own.is_file() else PROGRAM / own.name
        if not like.is_file():
            raise SourceError(
                f"{self.stack}: there is no {own}, so nothing says what the cluster has besides NodePools; name one "
                f"of karpstack's stacks: {', '.join(sorted({*STACKS.values(), SELF_HOSTED}))}"
            )
        made = self.into / f"Pulumi.{name}.yaml"
        made.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        options = [part for key, path in manifests.items() for part in (f"--{key}", str(path))]
        # Whether the program takes it is asked of all sides at once.
        command = ["snapshot", "stack-file", str(self.snapshot), "--like", str(like), "--output", str(made)]
        command += ["--unchecked", *options]
        refused, printed = refusals.answer(*command)
        if refused:
            raise SourceError(refused)
        notes, unseen = (
            tuple(line.removeprefix(heading) for line in printed.splitlines() if line.startswith(heading))
            for heading in (_NOTE, _UNSEEN)
        )
        return Source(
            name,
            given,
            PROGRAM,
            StackFile.load(made),
            manifests=next(iter(manifests.values()), None),
            notes=(*notes, *unseen),
            unseen=unseen,
        )


def _is_built(path: Path) -> bool:
    """Whether manifests are what Kustomize printed of a folder."""
    return (path.parent.parent.name, path.parent.name) == (PRINTED, _OF_KUSTOMIZE)


def _quoted(said: str) -> str:
    """What a program said of its error. GitHub obeys a line that begins with `::`, so none does."""
    return "\n".join(f"| {line}" for line in visible(said.strip()).split("\n"))


def _output(
    command: list[str], environment: dict[str, str] | None, seconds: float, confine: Callable[[], None] | None
) -> tuple[int | None, bytes, str]:
    """Return the exit code of a command, what it prints, and what it says of errors; both not at length.

    The exit code of a command that takes too long is None.
    """
    until = time.monotonic() + seconds
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            preexec_fn=confine,
        ) as process,
    ):
        try:
            printed = _read(process, until)
            if len(printed) > _MOST:
                _kill(process)
            code = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            return None, b"", ""
        errors.seek(0)
        return code, printed, errors.read(_MOST_SAID).decode(errors="replace")


def _read(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return what a process prints, of too much only the beginning.

    Raises:
        TimeoutExpired: It prints, or waits, for too long.
    """
    printed = b""
    if process.stdout:
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while len(printed) <= _MOST:
                if not ready.select(until - time.monotonic()):
                    raise subprocess.TimeoutExpired(process.args, 0)
                if not (part := os.read(process.stdout.fileno(), 2**20)):
                    break
                printed += part
    return printed


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for one in started:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def are_manifests(given: str) -> bool:
    """Whether a side is given as manifests, and not as a stack file or a git ref of a project.

    That is a folder, a file of objects of Kubernetes, `REF:PATH` as of `git show`, or a command that prints them.
    """
    path = Path(given)
    if not given or not _exists(path):
        return ":" in given or _is_command(given)
    if path.is_dir():
        return True
    try:
        found = parse_all(json_file.content(path, most=_MOST), _MOST)
    except (FileError, YamlError):
        return False  # the stack file's own reader says what is wrong
    return not any(isinstance(one, dict) and "config" in one for one in found)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False


def _is_command(given: str) -> bool:
    return len(given.split()) > 1


def _words(given: str) -> list[str]:
    try:
        return shlex.split(given)
    except ValueError as error:
        raise SourceError(f"{given!r} is no command ({error}), so the change is not known; close the quotes") from error
