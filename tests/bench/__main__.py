"""`make bench`: the figures that docs/contributing/figures.md quotes, measured in one run and printed as ratios.

Not a test: nothing fails when a machine is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karpstack.components import versions
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.cluster.charts import Charts
from karpstack.rehearsal.cluster.control_plane import Clusters
from karpstack.rehearsal.cluster.controller_endpoint import ControllerEndpoint
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import Engines, wait_until
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.timing import Timing
from karpstack.scale_test.reports import page
from karpstack.text.packaged import IMPORT_ROOT
from tests.bench.shared import columns, show, temporary
from tests.rehearsal.conftest import RehearsedStack, descendants, new_stack
from tests.unit.scale_test.example_report import Example

_AKS = ("aks-nap", "aks-self-hosted")
_PREVIEWS = 3
_FLAT = IMPORT_ROOT / "tests" / "bench" / "flat"


@contextmanager
def stopwatch(times: dict[str, float], name: str) -> Iterator[None]:
    """Put the seconds that the block takes into `times`."""
    started = time.monotonic()
    yield
    times[name] = time.monotonic() - started


def main() -> int:
    times: dict[str, float] = {}
    with temporary() as folder:
        with stopwatch(times, "check"):
            subprocess.run(
                [sys.executable, "-m", "karpstack.rehearsal.engines"], cwd=IMPORT_ROOT, check=True, capture_output=True
            )
        resident = resources = 0.0
        for name in ("eks", *_AKS):
            stack = new_stack(folder, name)
            try:
                with stopwatch(times, name):
                    stack.succeed("up")
                if name == "eks":
                    resident = sum(process.memory_info().rss for process in descendants(stack.info)) / 2**30
                    with stopwatch(times, "unchanged"):
                        pulumi(stack, "up", "--yes", "--skip-preview")
                    times |= previews(stack)
                    resources = len(json.loads(pulumi(stack, "stack", "export"))["deployment"]["resources"])
                    flat(stack, folder, int(resources), times)
            finally:
                stack.command("down", "--force")
        bare(folder / "bare", times)
    report = Example(pods=5000, nodes=400).report()
    with stopwatch(times, "page"):
        page.render(report)
    measured = subprocess.run(
        [sys.executable, "-m", "tests.bench.numbers"], cwd=IMPORT_ROOT, check=True, capture_output=True, text=True
    )  # in a process of its own, since its memory is measured
    numbers = json.loads(measured.stdout)
    table = columns(f"{os.cpu_count()} cores, {resources:g} resources", "figure|measured|against|ratio|aim")
    for figure, one, against, base, aim in (
        ("rehearsal up, nothing to Karpenter ready", "eks", "bare engines", "bare", 3.0),
        ("unchanged pulumi up", "unchanged", "flat program", "flat", 1.5),
        *((f"rehearsal up {name}", name, "up eks", "eks", 1.5) for name in _AKS),
        ("pulumi preview with the policies", "judged", "without", "preview", 1.25),
    ):
        ratio = f"{times[one] / times[base]:.2f}"
        table.add_row(figure, f"{times[one]:.1f} s", f"{against}: {times[base]:.1f} s", ratio, f"<= {aim:g}")
    for figure, value, most in (
        ("check of built engines", f"{times['check']:.2f} s", "2 s"),
        ("report.html, two stories of 5,000 pods each", f"{times['page']:.1f} s", "10 s"),
        ("resident memory", f"{resident:.2f} GiB", "1.5 GB"),
        ("recorder's memory, 5,000 pods", f"{numbers['recorder_mib']:.0f} MiB", "300 MB"),
        ("report.json of 5,000 pods", f"{numbers['report_seconds']:.1f} s", "5 s"),
    ):
        table.add_row(figure, value, "", "", f"< {most}")
    show(table)
    return 0


def pulumi(stack: RehearsedStack, *arguments: str) -> str:
    done = stack.by_hand("pulumi", *arguments, "--non-interactive")
    done.check_returncode()
    return done.stdout


def previews(stack: RehearsedStack) -> dict[str, float]:
    """Time previews with the policy pack and without, in turns; the median of each, for they differ by tenths."""
    taken: dict[str, list[float]] = {"preview": [], "judged": []}
    packs = {"preview": [], "judged": ["--policy-pack", "policies"]}
    variables = stack.variables
    # The first of each reads everything from disk.
    for name in ("preview", "judged") * (_PREVIEWS + 1):
        command = ["pulumi", "preview", "--non-interactive", *packs[name]]
        started = time.monotonic()
        subprocess.run(command, cwd=IMPORT_ROOT, env=variables, check=True, capture_output=True)
        taken[name].append(time.monotonic() - started)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def flat(stack: RehearsedStack, folder: Path, resources: int, times: dict[str, float]) -> None:
    """Time an unchanged update of a program without components that registers as many resources."""
    program = folder / "flat"
    shutil.copytree(_FLAT, program)
    file = str(program / "Pulumi.flat.yaml")
    variables = {**stack.variables, "PULUMI_STACK": "flat", "PULUMI_OPTION_CONFIG_FILE": file}

    def run(*arguments: str) -> None:
        command = ["pulumi", *arguments, "--non-interactive"]
        subprocess.run(command, cwd=program, env=variables, check=True, capture_output=True)

    run("stack", "init", "flat")
    run("config", "set", "aws:region", stack.info.region)
    run("config", "set", "count", str(resources))
    run("config", "set", "kubeconfig", stack.folder.kubeconfig.read_text())
    run("up", "--yes", "--skip-preview")
    with stopwatch(times, "flat"):
        run("up", "--yes", "--skip-preview")


def bare(root: Path, times: dict[str, float]) -> None:
    """Time etcd, API server and Karpenter alone: no Pulumi, no nodes, nothing provisioned."""
    folder = StackFolder("bare", root).create()
    engines, engine_set, timing = Engines(folder), EngineSet.current(), Timing()
    account = Account("us-east-1", engine_set.prices("aws"), timing)
    clusters = Clusters(folder, engines, engine_set, timing)
    endpoint = ControllerEndpoint(folder)
    account.start()
    try:
        with stopwatch(times, "bare"):
            cluster = clusters.start(
                "bare",
                version="1.36",
                service_cidr="172.20.0.0/16",
                issuer="https://oidc.example",
                cloud=account.cloud("bare"),
            )
            crds = Charts(engine_set).find(versions.KARPENTER_AWS_CRD_CHART, versions.KARPENTER_AWS, None)
            cluster.releases.install("karpenter-crd", "kube-system", crds, {})
            variables = {
                **account.administrator_environment,
                **{"PATH": os.environ["PATH"], "HOME": str(folder.root), "KUBECONFIG": str(folder.kubeconfig)},
                **{"CLUSTER_NAME": "bare", "CLUSTER_ENDPOINT": cluster.endpoint, "SYSTEM_NAMESPACE": "kube-system"},
                "DISABLE_LEADER_ELECTION": "true",
                **endpoint.variables,
            }
            program = engine_set.program("karpenter-aws")
            controller = engines.start("karpenter-bare", [program], environment=variables)
            wait_until(endpoint.ready, "Karpenter", 60, engines=[controller])
    finally:
        clusters.stop_all()
        engines.stop_all()
        endpoint.close()
        account.stop()


if __name__ == "__main__":
    sys.exit(main())
