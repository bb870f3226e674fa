"""What keeps a rehearsed stack from being removed: what the look before `pulumi destroy` finds, and draining nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from karpstack.karpenter.selectors import is_about
from karpstack.rehearsal.host.processes import with_parent
from karpstack.rehearsal.session.terminal import print_message

#: What a NodeClaim goes through when it is deleted, in this order; each a condition of it.
_DRAINED: Final = "Drained"
_STEPS: Final = (_DRAINED, "VolumesDetached", "InstanceTerminating")
#: When Karpenter deletes the pods of a NodeClaim whatever holds them, by its terminationGracePeriod.
_UNTIL: Final = "karpenter.sh/nodeclaim-termination-timestamp"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_SECONDS_BETWEEN_LOOKS: Final = 15.0
_LONGEST_LOOK: Final = 600.0
_NAMED: Final = 5

_Object = Mapping[str, Any]


class NotCheckedError(Exception):
    """The checks before `destroy` could not run; the text says why."""


def find_blockers(stack: str, configuration: Path, project: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the findings of `karpstack preflight destroy` that block or delay a removal, errors first.

    Raises:
        NotLookedError: It could not be asked.
    """
    command = [
        sys.executable,
        "-m",
        "karpstack",
        "preflight",
        "destroy",
        stack,
        "--config-file",
        str(configuration),
        "--format",
        "json",
    ]
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
        raise NotCheckedError(f"the look took longer than {_LONGEST_LOOK:.0f} s") from error
    except (ValueError, LookupError, TypeError) as error:
        raise NotCheckedError(looked.stderr.strip() or f"the look ended with {looked.returncode}") from error
    told = [one for severity in ("error", "warning") for one in found if one["severity"] == severity]
    return [
        f"{one['severity']}: {one['check']}: {one['what']}: {one['consequence']}"
        + (f"; fix: {one['fix']}" if one["fix"] else "")
        for one in told
    ]


def draining(kubectl: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """NodeClaims that are being deleted, each with what it waits for and what helps; none where no cluster answers."""
    kinds = "nodeclaims.karpenter.sh,pods,poddisruptionbudgets.policy"
    command = [*kubectl, "--request-timeout=5s", "get", kinds, "--all-namespaces", "--output", "json"]
    answer = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    try:
        items = json.loads(answer.stdout)["items"]
    except (ValueError, LookupError, TypeError):
        return []
    claims, pods, budgets = (
        [one for one in items if one["kind"] == kind] for kind in ("NodeClaim", "Pod", "PodDisruptionBudget")
    )
    return [_waits_for(claim, pods, budgets) for claim in claims if claim["metadata"].get("deletionTimestamp")]


def _waits_for(claim: _Object, pods: Iterable[_Object], budgets: Iterable[_Object]) -> str:
    conditions = {one["type"]: one for one in (claim.get("status") or {}).get("conditions") or ()}
    steps = (conditions[step] for step in _STEPS if step in conditions and conditions[step].get("status") != "True")
    now: Mapping[str, Any] = next(steps, {})
    name = str(claim["metadata"]["name"])
    said = str(now.get("message") or now.get("reason") or "")
    told = f"{name} ({said})" if said else name
    if now.get("type") != _DRAINED:
        return told
    node = (claim.get("status") or {}).get("nodeName")
    left = [pod for pod in pods if pod["spec"].get("nodeName") == node and _is_drained(pod)]
    if not left:
        return told
    held = [*_held(left, budgets)]
    until = (claim["metadata"].get("annotations") or {}).get(_UNTIL)
    return "; ".join(
        [
            f"{told}: its node has {_listed([_name(pod) for pod in left])}",
            *held,
            *([f"Karpenter deletes them in spite of that at {until}"] if held and until else []),
        ]
    )


def _held(pods: Sequence[_Object], budgets: Iterable[_Object]) -> Iterator[str]:
    """What lets pods of a node not go, and what helps."""
    for budget in budgets:
        metadata = budget["metadata"]
        none = not (budget.get("status") or {}).get("disruptionsAllowed")
        if none and any(is_about(budget, pod) for pod in pods):
            yield (
                f"the PodDisruptionBudget {_name(budget)} lets none go now: scale its workload to 0, or kubectl delete "
                f"poddisruptionbudget --namespace {metadata['namespace']} {metadata['name']}"
            )
    for pod in pods:
        if (pod["metadata"].get("annotations") or {}).get(_DO_NOT_DISRUPT) == "true":
            yield (
                f"{_name(pod)} has {_DO_NOT_DISRUPT}: scale its workload to 0, or kubectl annotate pod --namespace "
                f"{pod['metadata']['namespace']} {pod['metadata']['name']} {_DO_NOT_DISRUPT}-"
            )


def _is_drained(pod: _Object) -> bool:
    """Whether Karpenter evicts it: not what a DaemonSet or the node itself runs, nor what is done."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
    return not owners & {"DaemonSet", "Node"} and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _name(item: _Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


class Progress:
    """Tells of nodes that a removal waits for, every now and then."""

    def __init__(self, ask: Callable[[], Sequence[str]]) -> None:
        """`ask` gives what is waited for."""
        self._ask = ask
        self._began = self._told = time.monotonic()

    def print_progress(self) -> None:
        """Tell, if it is time; to be called often."""
        now = time.monotonic()
        if now - self._told < _SECONDS_BETWEEN_LOOKS:
            return
        if waiting := self._ask():
            more = [f"and {len(waiting) - _NAMED} more"] if len(waiting) > _NAMED else []
            print_message(
                "\n  ".join(
                    [
                        f"After {now - self._began:.0f} s NodeClaims are left. Karpenter takes the finalizer of each "
                        "away when its node is drained and its instance is gone:",
                        *waiting[:_NAMED],
                        *more,
                    ]
                )
            )
        self._told = time.monotonic()
