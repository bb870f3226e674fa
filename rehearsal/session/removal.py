"""What keeps a rehearsed stack from being removed: what the look before `pulumi destroy` finds, and draining nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rehearsal.host.processes import with_parent
from rehearsal.session.terminal import tell

#: What a NodeClaim goes through when it is deleted, in this order; each a condition of it.
_STEPS: Final = ("Drained", "VolumesDetached", "InstanceTerminating")
_SECONDS_BETWEEN_LOOKS: Final = 15.0
_LONGEST_LOOK: Final = 600.0
_NAMED: Final = 5


class NotLookedError(Exception):
    """Nobody could look; the text says why."""


def hindrances(stack: str, configuration: Path, project: Path, variables: Mapping[str, str]) -> list[str]:
    """What `python -m preflight destroy` finds that fails a removal or holds it up, errors first.

    Args:
        stack: Name of the stack.
        configuration: Its configuration.
        project: The checkout.
        variables: Environment of commands on the stack.

    Raises:
        NotLookedError: It could not be asked.
    """
    command = [sys.executable, "-m", "preflight", "destroy", stack, "--config-file", str(configuration), "--json"]
    command = [*with_parent(signal.SIGKILL), *command]  # whoever kills us does not wait for an answer
    try:
        looked = subprocess.run(
            command, cwd=project, env=variables, capture_output=True, text=True, timeout=_LONGEST_LOOK, check=False
        )
        found: list[dict[str, Any]] = [
            {**finding, "check": check["name"]}
            for check in json.loads(looked.stdout)["checks"]
            for finding in check["findings"]
        ]
    except subprocess.TimeoutExpired as error:
        raise NotLookedError(f"the look took longer than {_LONGEST_LOOK:.0f} s") from error
    except (ValueError, LookupError, TypeError) as error:
        raise NotLookedError(looked.stderr.strip() or f"the look ended with {looked.returncode}") from error
    told = [one for severity in ("error", "warning") for one in found if one["severity"] == severity]
    return [
        f"{one['severity']}: {one['check']}: {one['what']}: {one['consequence']}"
        + (f"; fix: {one['fix']}" if one["fix"] else "")
        for one in told
    ]


def draining(kubectl: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """NodeClaims that are being deleted, each with what it waits for; none where no cluster answers.

    Args:
        kubectl: The program, and how it reaches the cluster.
        variables: Environment of commands on the stack.
    """
    command = [*kubectl, "--request-timeout=5s", "get", "nodeclaims.karpenter.sh", "--output", "json"]
    answer = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    try:
        claims = json.loads(answer.stdout)["items"]
    except (ValueError, LookupError, TypeError):
        return []
    return [_waits_for(claim) for claim in claims if claim["metadata"].get("deletionTimestamp")]


def _waits_for(claim: Mapping[str, Any]) -> str:
    conditions = {one["type"]: one for one in (claim.get("status") or {}).get("conditions") or ()}
    steps = (conditions[step] for step in _STEPS if step in conditions and conditions[step].get("status") != "True")
    now: Mapping[str, Any] = next(steps, {})
    name = str(claim["metadata"]["name"])
    said = str(now.get("message") or now.get("reason") or "")
    return f"{name} ({said})" if said else name


class Progress:
    """Tells of nodes that a removal waits for, every now and then."""

    def __init__(self, ask: Callable[[], Sequence[str]]) -> None:
        """`ask` gives what is waited for."""
        self._ask = ask
        self._began = self._told = time.monotonic()

    def look(self) -> None:
        """Tell, if it is time; to be called often."""
        now = time.monotonic()
        if now - self._told < _SECONDS_BETWEEN_LOOKS:
            return
        if waiting := self._ask():
            more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
            tell(f"After {now - self._began:.0f} s NodeClaims are left: {', '.join(waiting[:_NAMED])}{more}.")
        self._told = time.monotonic()
