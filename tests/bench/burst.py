"""What the recorder costs a burst: `make bench NAME=burst`, a thousand pods with the recorder and without.

In one run on one rehearsed EKS stack, in turns: 1,000 pods are asked for, and the time until each is ready is taken by
a watch of the Deployment, which is there both times. A burst keeps all cores busy, and the same one may take half as
long again a few minutes later: hence the many turns, and their order.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from kubernetes import client, watch

from karpstack.scale_test.recording.process import stop, wait_until_recorded
from karpstack.scale_test.scenarios.objects import objects
from karpstack.scale_test.scenarios.scenario import Scenario, load
from tests.bench.shared import columns, show, temporary, up
from tests.rehearsal.conftest import ROOT, RehearsedStack

STORY = "burst-1000"
_PATIENCE = 900
# Whether there is a recorder. Each comes as early as the other, so that it evens out when the machine gets slower, or
# the cluster, which keeps more after each burst. The first is not counted: it is the only one of a new cluster.
_TURNS = (False, False, True, True, False, True, False, False, True)
_PLAYBOOKS = ROOT / "playbooks"


def main() -> int:
    scenario = next(found for found in load(_PLAYBOOKS / "scenarios") if found.name == STORY).in_environment("eks")
    taken: dict[bool, list[float]] = {False: [], True: []}
    with temporary() as folder, up(folder) as stack:
        made = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects(scenario)})
        command = ["kubectl", "apply", "-f", "-"]
        subprocess.run(command, input=made, text=True, check=True, env=stack.variables, capture_output=True)
        for turn, recorded in enumerate(_TURNS):
            with recorder(stack, folder / f"{turn}.jsonl") if recorded else nullcontext():
                seconds, nodes = burst(stack, scenario)
            said = f"{'with' if recorded else 'without'} the recorder: {seconds:.1f} s, {nodes} nodes"
            print(said + ("" if turn else " (not counted)"), flush=True)
            if turn:
                taken[recorded].append(seconds)
    without, with_it = (statistics.median(taken[recorded]) for recorded in (False, True))
    table = columns("", "figure|with the recorder|without|ratio|aim")
    table.add_row("1,000 pods ready", f"{with_it:.1f} s", f"{without:.1f} s", f"{with_it / without:.2f}", "<= 1.05")
    show(table)
    return 0


@contextmanager
def recorder(stack: RehearsedStack, timeline: Path) -> Iterator[None]:
    """The module that records a scale test, in the background as the playbook has it."""
    arguments = {
        "timeline": str(timeline),
        "stack": stack.folder.stack,
        "stack_outputs": stack.outputs(),
        "metrics_url": stack.variables["KARPSTACK_METRICS_URL"],
        "owner": os.getpid(),
    }
    command = ["ansible", "localhost", "--playbook-dir", str(_PLAYBOOKS), "-m", "karpstack.scale_test.recorder"]
    background = ["--background", "3600", "--poll", "0", "-e", f"ansible_async_dir={timeline.parent / 'async'}"]
    given = [*command, "-a", json.dumps(arguments), *background]
    subprocess.run(given, cwd=ROOT, env=stack.variables, check=True, stdout=subprocess.DEVNULL)
    wait_until_recorded(timeline, 60)
    try:
        yield
    finally:
        stop(timeline, 30)


def burst(stack: RehearsedStack, scenario: Scenario) -> tuple[float, int]:
    """Seconds from the request until all pods are ready, and how many nodes they got; those are gone afterwards."""
    namespace, (name,) = scenario.workload.namespace, scenario.wanted_after(0)
    pods = scenario.replicas_after(0)
    started = time.monotonic()
    stack.scale(name, namespace, pods)
    deployments = client.AppsV1Api(stack.api())
    stream = watch.Watch()
    for event in stream.stream(deployments.list_namespaced_deployment, namespace, timeout_seconds=_PATIENCE):
        if event["object"].status.ready_replicas == pods:
            stream.stop()
            break
    else:
        raise TimeoutError(f"{pods} pods were not ready after {_PATIENCE} s")
    seconds = time.monotonic() - started
    stack.scale(name, namespace, 0)
    return seconds, wait_until_gone(stack)


def wait_until_gone(stack: RehearsedStack) -> int:
    """Return when no NodeClaim is left: how many there were."""

    def claims() -> list[str]:
        return stack.by_hand("kubectl", "get", "nodeclaims", "--output", "name").stdout.split()

    count = len(claims())
    while left := claims():
        waiting = ["kubectl", "wait", *left, "--for=delete", f"--timeout={_PATIENCE}s"]
        stack.by_hand(*waiting, timeout=_PATIENCE + 60).check_returncode()
    return count


if __name__ == "__main__":
    sys.exit(main())
