"""Why another command of karpstack refuses its arguments, in its own words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from .packaged import IMPORT_ROOT

_NOBODYS: Final = "123456789012"  # no account is asked


def refusal(*arguments: str, variables: Mapping[str, str] | None = None, codes: Collection[int] = ()) -> str:
    """Ask another of our commands; return why it refuses, or empty.

    Args:
        arguments: What follows `karpstack`.
        variables: The command's environment; this process's own if not given.
        codes: The exit codes of a refusal; every one but 0 if not given.
    """
    return answer(*arguments, variables=variables, codes=codes)[0]


def answer(*arguments: str, variables: Mapping[str, str] | None = None, codes: Collection[int] = ()) -> tuple[str, str]:
    """Ask another of our commands, as `refusal` does; return why it refuses, or empty, and what it prints."""
    asked = subprocess.run(
        [sys.executable, "-m", "karpstack", *arguments],
        cwd=IMPORT_ROOT,
        env=None if variables is None else dict(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    refused = asked.returncode in codes if codes else asked.returncode
    why = asked.stderr.strip().removeprefix("error: ") or f"{arguments[0]} refuses it"
    return why if refused else "", asked.stdout


def settings_refusal(file: Path, stack: str = "whatif", codes: Collection[int] = ()) -> str:
    """Return why the program would refuse a stack file, or empty; no cloud is asked."""
    return refusal("preflight", "rights", stack, "--account", _NOBODYS, "--config-file", str(file), codes=codes)
