"""Runs `pulumi preview` with the pack, or reads what an update left, and keeps what the engine said.

Nothing is created or changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from .engine import (
    Digest,
    EngineError,
    PolicyEvent,
    check_update,
    is_judged,
    policy_events,
    read_digest,
    read_log,
    read_state,
)

# It would make `--json` write something else.
_STREAMING = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"
_LAST_WORD = "error: preview failed"
# Without it the flag --event-log does not exist; Pulumi's own automation API sets it for the same reason.
_EVENT_LOG = {"PULUMI_DEBUG_COMMANDS": "true"}
_DESCRIPTION = "PulumiPolicy.yaml"
_WRITES_IT = "`PULUMI_DEBUG_COMMANDS=true pulumi up --policy-pack policies --event-log FILE` writes it"
_NO_PULUMI = "there is no program `pulumi` on PATH, so nothing was {}: install Pulumi, or rehearse without --live"


@dataclass(frozen=True)
class Preview:
    """What a preview said.

    Attributes:
        code: The exit code of Pulumi; not 0 also where a mandatory policy was violated.
        digest: Resources and diagnostics; empty where the preview did not come so far.
        events: What the policies reported.
        messages: What Pulumi wrote on its standard error, and on its output where that is no digest.
    """

    code: int
    digest: Digest
    events: list[PolicyEvent]
    messages: str = ""

    @property
    def refused(self) -> bool:
        """Whether a mandatory policy was violated."""
        return any(event.level == "mandatory" for event in self.events)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the preview itself failed; empty where it ran to its end, whatever the policies found."""
        said = [diagnostic.message.strip() for diagnostic in self.digest.diagnostics if diagnostic.severity == "error"]
        # The engine's last word, which it says of a violated policy too.
        errors = [message for message in dict.fromkeys(said) if message and message != _LAST_WORD]
        if errors or self.code == 0 or self.refused:
            return tuple(errors)
        return (self.messages.strip() or f"pulumi preview ended with the exit code {self.code} and said nothing",)


def preview(
    project: Path, pack: Path, configuration: Path | None, stack: str = "", variables: Mapping[str, str] | None = None
) -> Preview:
    """Preview a stack of the project.

    Args:
        project: Folder with Pulumi.yaml.
        pack: Folder of the policy pack.
        configuration: Configuration of the pack; None is the baseline.
        stack: Name of the stack; empty is the one that is selected.
        variables: The environment, instead of this process's.

    Raises:
        EngineError: There is no `pulumi`, or it said what can't be read.
    """
    environment = {**(os.environ if variables is None else variables), **_EVENT_LOG}
    environment.pop(_STREAMING, None)
    with tempfile.TemporaryDirectory(prefix="karpstack-review-") as folder:
        log = Path(folder) / "events.jsonl"
        command = ["pulumi", "preview", "--non-interactive", "--json", "--show-sames", "--event-log", str(log)]
        command += ["--policy-pack", str(_runnable(pack, Path(folder)))]
        if configuration is not None:
            command += ["--policy-pack-config", str(configuration)]
        if stack:
            command += ["--stack", stack]
        try:
            result = subprocess.run(
                command,
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except FileNotFoundError as error:
            raise EngineError(_NO_PULUMI.format("previewed")) from error
        lines = log.read_text(encoding="utf-8", errors="backslashreplace").split("\n") if log.is_file() else []
    if result.returncode == 0 and not is_judged(read_log(lines)):
        raise EngineError(
            "pulumi preview succeeded, and the pack did not judge it, so nothing is known of the change; see that "
            "`pulumi` on PATH is Pulumi itself, and that it takes --policy-pack and --event-log"
        )
    return recorded(result.returncode, result.stdout, lines, result.stderr)


def _runnable(pack: Path, into: Path) -> Path:
    """Return the pack as Pulumi can run it: its description names the Python environment of a checkout.

    Where there is none, as in an installed package, the pack is run by this Python.
    """
    described = yaml.safe_load((pack / _DESCRIPTION).read_text(encoding="utf-8"))
    if (pack / described["runtime"]["options"]["virtualenv"]).exists():
        return pack
    copy = into / pack.name
    link_pack(pack, copy)
    return copy


def link_pack(pack: Path, folder: Path) -> None:
    """Make a folder in which Pulumi runs the pack with this Python: a description, and links to the rest.

    Raises:
        OSError: The folder exists, or cannot be made; nothing of it is left then.
    """
    described = yaml.safe_load((pack / _DESCRIPTION).read_text(encoding="utf-8"))
    options = described["runtime"]["options"]
    if sys.prefix == sys.base_prefix:
        del options["virtualenv"]  # Pulumi takes the Python of PATH
    else:
        options["virtualenv"] = sys.prefix
    folder.mkdir(mode=0o755, parents=True)
    try:
        for path in pack.iterdir():
            if path.name != _DESCRIPTION:
                (folder / path.name).symlink_to(path)
        (folder / _DESCRIPTION).write_text(yaml.safe_dump(described), encoding="utf-8")
    except OSError:  # a file system without links, for example
        shutil.rmtree(folder)
        raise


def made(project: Path, events: Path, stack: str) -> Preview:
    """What an update has made and what the pack said of it: as a preview would tell it that changes nothing.

    All that a preview cannot know is known, and the program does not run again.

    Args:
        project: Folder with Pulumi.yaml.
        events: What `pulumi up --event-log` wrote.
        stack: Name of the stack.

    Raises:
        EngineError: There is no `pulumi`, or no such file, or what was said can't be read.
    """
    if not events.is_file():
        raise EngineError(f"there is no file {events}, so it is not known what the pack said; {_WRITES_IT}")
    lines = events.read_text(encoding="utf-8", errors="backslashreplace").split("\n")
    try:
        log = read_log(lines)
        check_update(log, stack)
    except EngineError as error:
        raise EngineError(f"{events}: {error}") from error
    command = ["pulumi", "stack", "export", "--non-interactive", "--stack", stack]
    try:
        state = subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
    except FileNotFoundError as error:
        raise EngineError(_NO_PULUMI.format("read")) from error
    if state.returncode:
        raise EngineError(f"`{' '.join(command)}` failed: {state.stderr.strip()}")
    return Preview(0, read_state(state.stdout), policy_events(log))


def recorded(code: int, digest: str, events: list[str], messages: str = "") -> Preview:
    """A preview from what was written of it.

    Raises:
        EngineError: It can't be read, though Pulumi succeeded.
    """
    try:
        return Preview(code, read_digest(digest), policy_events(read_log(events)), messages)
    except EngineError:
        if code == 0:
            raise
        # What goes wrong before the engine starts is said in words.
        return Preview(code, Digest(), [], "\n".join(filter(None, (digest.strip(), messages.strip()))))
