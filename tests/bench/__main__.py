"""`make bench`: the figures that README.md quotes, measured in one run and printed as ratios.

Not a test: nothing fails when a machine is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from components import versions
from rehearsal.aws.account import Account
from rehearsal.cluster.charts import Charts
from rehearsal.cluster.control_plane import Clusters
from rehearsal.cluster.controller_endpoint import ControllerEndpoint
from rehearsal.engines import EngineSet
from rehearsal.host.processes import Engines, wait_until
from rehearsal.session import daemon
from rehearsal.session.deployment import PROJECT, environment
from rehearsal.state.folder import StackFolder
from rehearsal.timing import Timing
from scale_test.reports import page
from tests.rehearsal.conftest import RehearsedStack, descendants, new_stack
from tests.unit.scale_test.example_report import Example

_AKS = ("aks-nap", "aks-self-hosted")
_PREVIEWS = 3
_FLAT = PROJECT / "tests" / "bench" / "flat"


@contextmanager
def stopwatch(times: dict[str, float], name: str) -> Iterator[None]:
    """Put the seconds that the block takes into `times`."""
    started = time.monotonic()
    yield
    times[name] = time.monotonic() - started


def main() -> int:
    """Measure and print."""
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with stopwatch(times, "check"):
            subprocess.run([sys.executable, "-m", "rehearsal.engines"], cwd=PROJECT, check=True, capture_output=True)
        stack = new_stack(folder)
        try:
            with stopwatch(times, "up"):
                stack.succeed("up")
            resident = sum(process.memory_info().rss for process in descendants(stack.info)) / 2**30
            with stopwatch(times, "unchanged"):
                stack.by_hand("pulumi", "up", "--yes", "--skip-preview", "--non-interactive").check_returncode()
            previews(stack, times)
            resources = count(stack)
            flat(stack, folder, times)
        finally:
            stack.command("down", "--force")
        for name in _AKS:
            up_alone(folder, name, times)
        bare(folder / "bare", times)
    report = Example(pods=5000, nodes=400).report()
    with stopwatch(times, "page"):
        page.render(report)
    table = Table(title=f"{os.cpu_count()} cores, {resources} resources", title_justify="left")
    for column in ("figure", "measured", "against", "ratio", "aim"):
        table.add_column(column)
    ratio(table, "rehearsal up, nothing to Karpenter ready", times["up"], "bare engines", times["bare"], 3.0)
    ratio(table, "unchanged pulumi up", times["unchanged"], "flat program", times["flat"], 1.5)
    for name in _AKS:
        ratio(table, f"rehearsal up {name}", times[name], "up eks", times["up"], 1.5)
    ratio(table, "pulumi preview with the policies", times["judged"], "without", times["preview"], 1.25)
    table.add_row("check of built engines", f"{times['check']:.2f} s", "", "", "< 2 s")
    table.add_row("report.html, two stories of 5,000 pods each", f"{times['page']:.1f} s", "", "", "< 10 s")
    table.add_row("resident memory", f"{resident:.2f} GiB", "", "", "< 1.5 GB")
    numbers = of_five_thousand_pods()
    table.add_row("recorder's memory, 5,000 pods", f"{numbers['recorder_mib']:.0f} MiB", "", "", "< 300 MB")
    table.add_row("report.json of 5,000 pods", f"{numbers['report_seconds']:.1f} s", "", "", "< 5 s")
    Console(width=120).print(table)
    return 0


def up_alone(folder: Path, name: str, times: dict[str, float]) -> None:
    """Time `up` of another stack from nothing, with no other stack beside it."""
    stack = new_stack(folder, name)
    try:
        with stopwatch(times, name):
            stack.succeed("up")
    finally:
        stack.command("down", "--force")


def ratio(table: Table, name: str, measured: float, against: str, base: float, aim: float) -> None:
    """Add a row with a ratio."""
    table.add_row(name, f"{measured:.1f} s", f"{against}: {base:.1f} s", f"{measured / base:.2f}", f"<= {aim:g}")


def of_five_thousand_pods() -> dict[str, float]:
    """What recorder and report take for as many; in a process of their own, since its memory is measured."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.bench.numbers"], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    return dict(json.loads(result.stdout))


def count(stack: RehearsedStack) -> int:
    """Number of resources in the stack."""
    state = json.loads(stack.by_hand("pulumi", "stack", "export", "--non-interactive").stdout)
    return len(state["deployment"]["resources"])


def previews(stack: RehearsedStack, times: dict[str, float]) -> None:
    """Time previews with the policy pack and without, in turns; the median of each, for they differ by tenths."""
    variables = stack.variables
    taken: dict[str, list[float]] = {"preview": [], "judged": []}
    packs = {"preview": [], "judged": ["--policy-pack", "policies"]}
    # The first of each reads everything from disk.
    for name in ("preview", "judged") * (_PREVIEWS + 1):
        started = time.monotonic()
        subprocess.run(
            ["pulumi", "preview", "--non-interactive", *packs[name]],
            cwd=PROJECT,
            env=variables,
            check=True,
            capture_output=True,
        )
        taken[name].append(time.monotonic() - started)
    times.update({name: statistics.median(seconds[1:]) for name, seconds in taken.items()})


def flat(stack: RehearsedStack, folder: Path, times: dict[str, float]) -> None:
    """Time an unchanged update of a program without components that registers as many resources."""
    info = daemon.require(stack.folder)
    program = folder / "flat"
    shutil.copytree(_FLAT, program)
    variables = {
        **os.environ,
        **environment(stack.folder, EngineSet.current(), info),
        "PULUMI_STACK": "flat",
        "PULUMI_OPTION_CONFIG_FILE": str(program / "Pulumi.flat.yaml"),
    }

    def run(*arguments: str) -> None:
        subprocess.run(
            ["pulumi", *arguments, "--non-interactive"], cwd=program, env=variables, check=True, capture_output=True
        )

    run("stack", "init", "flat")
    for key, value in (
        ("aws:region", info.region),
        ("count", str(count(stack))),
        ("kubeconfig", stack.folder.kubeconfig.read_text()),
    ):
        run("config", "set", key, value)
    run("up", "--yes", "--skip-preview")
    with stopwatch(times, "flat"):
        run("up", "--yes", "--skip-preview")


def bare(root: Path, times: dict[str, float]) -> None:
    """Time etcd, API server and Karpenter alone: no Pulumi, no nodes, nothing provisioned."""
    folder = StackFolder("bare", root).create()
    engines = Engines(folder)
    engine_set = EngineSet.current()
    timing = Timing()
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
            controller = engines.start(
                "karpenter-bare",
                [engine_set.program("karpenter-aws")],
                environment={
                    **account.administrator_environment,
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder.root),
                    "KUBECONFIG": str(folder.kubeconfig),
                    "CLUSTER_NAME": "bare",
                    "CLUSTER_ENDPOINT": cluster.endpoint,
                    "SYSTEM_NAMESPACE": "kube-system",
                    "DISABLE_LEADER_ELECTION": "true",
                    **endpoint.variables,
                },
            )
            wait_until(endpoint.ready, "Karpenter", 60, engines=[controller])
    finally:
        clusters.stop_all()
        engines.stop_all()
        endpoint.close()
        account.stop()


if __name__ == "__main__":
    sys.exit(main())
