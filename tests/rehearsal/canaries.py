"""Secrets that are known to a test, and a search for them in all that a rehearsal writes, in the usual encodings."""

from __future__ import annotations

import base64
import gzip
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psutil
import yaml

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import IN_THE_ENVIRONMENT, RehearsedStack, descendants

#: Where a secret of the run must be, below the folder that only its owner can enter, and why.
WHERE_THEY_BELONG = {
    "kubeconfig": "the administrator's: what else would kubectl log in with",
    "control-plane": "etcd's data, the API server's keys and its file of tokens",
    "deployer-token": "what the cloud's plugin hands out to kubectl, in place of a login",
    "controller": "what the kubelet would mount into the controller's pods, and the kubeconfig that stands for it",
    "daemon.json": "what `env` prints: keys of the simulated account, the control endpoint's token",
}


def plant(stack: RehearsedStack, key: str, secret: str) -> None:
    """Give a stack a secret setting, as `pulumi config set --secret` makes one; the next `up` takes it back.

    In the copy that Pulumi reads: into the user's own file no secret of a rehearsal is written.
    """
    copy = ("--config-file", str(stack.folder.stack_configuration))
    for command in (
        ("config", "set", "--secret", "--path", key, secret),
        ("up", "--yes", "--skip-preview", "--suppress-outputs"),
    ):
        stack.done("pulumi", *command, *copy, "--non-interactive")


def leaks(
    stack: RehearsedStack, planted: Mapping[str, str], seen: CommandLines, printed: str, *folders: Path
) -> list[str]:
    """Where a secret is that must not be there: in the stack's folder and others, in what was printed and started."""
    secrets = {**IN_THE_ENVIRONMENT, **of_the_run(stack), **planted}
    forms = {name: encodings(value) for name, value in secrets.items()}
    told = [*find(secrets, stack.folder.root, *folders, owner=stack.folder)]
    told += [f"{name} was printed, {form}" for name, form in within(forms, printed.encode())]
    told += [f"{name} is in the command line {line!r}" for line in seen.seen for name, _ in within(forms, line)]
    if stack.folder.root.stat().st_mode & 0o077:
        told.append(f"{stack.folder.root} may be entered by others")
    if sys.platform == "linux":
        told += [
            f"{one.name()} may leave a core file"
            for one in descendants(stack.info)
            if one.rlimit(psutil.RLIMIT_CORE)[0]
        ]
    return told


def of_the_run(stack: RehearsedStack) -> dict[str, str]:
    """The run's own secrets, by what they are."""
    (user,) = yaml.safe_load(stack.folder.kubeconfig.read_text())["users"]
    found = {"the administrator's token": user["user"]["token"]}
    found |= {
        f"the run's {name}": value
        for name, value in stack.info.variables.items()
        if name.endswith(("_TOKEN", "_SECRET", "_SECRET_ACCESS_KEY"))
    }
    for path in (stack.folder.root / "controller").rglob("*token*"):
        if path.is_file():
            found[str(path)] = path.read_text().strip()
    return {name: value for name, value in found.items() if len(value) >= 12}


def find(secrets: Mapping[str, str], *folders: Path, owner: StackFolder) -> list[str]:
    """Every place below the folders that holds a secret and is none where it belongs, a sentence each."""
    forms = {name: encodings(value) for name, value in secrets.items()}
    belongs = tuple(owner.root / name for name in WHERE_THEY_BELONG)
    found = []
    for path in (path for folder in folders for path in folder.rglob("*")):
        if not path.is_file() or path.is_symlink() or any(path.is_relative_to(place) for place in belongs):
            continue
        found += [f"{name} is in {path}, {form}" for name, form in within(forms, path.read_bytes())]
    return found


def within(forms: Mapping[str, Mapping[str, bytes]], content: bytes) -> Iterator[tuple[str, str]]:
    """Names of the secrets that some bytes hold, and how they are written there."""
    for text, packed in ((content, ""), (_unpacked(content), " in gzip")):
        for name, encoded in forms.items():
            yield from ((name, form + packed) for form, value in encoded.items() if value in text)


def encodings(secret: str) -> dict[str, bytes]:
    """The ways in which a secret may be written, by their names; base64 wherever in a text it stands."""
    raw = secret.encode()
    found = {"plain": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + raw)
        # The first and last characters depend on the neighbours too.
        found[f"base64 at {offset}"] = whole[(offset * 8 + 5) // 6 : len(whole) - 4 if whole.endswith(b"=") else None]
    found["url"] = quote(secret, safe="").encode()
    return found


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return b""
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return b""


@dataclass
class CommandLines:
    """All command lines that the machine's processes had while it was looked."""

    seen: set[bytes] = field(default_factory=set)


@contextmanager
def command_lines() -> Iterator[CommandLines]:
    """Look at the command lines of all processes until the block ends, three times a second."""
    lines, ended = CommandLines(), threading.Event()

    def look() -> None:
        while not ended.wait(0.3):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended
                    lines.seen.add((process / "cmdline").read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lines
    finally:
        ended.set()
        thread.join()
