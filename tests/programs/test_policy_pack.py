"""The policy pack in a process of its own: as the engine starts it, and put together for `pulumi policy publish`."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from karpstack.scale_test.version import version
from tests.programs.test_package import link, needed

ROOT = Path(__file__).resolve().parents[2]
PACK = ROOT / "policies"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pack's rules, in its order."""
    monkeypatch.syspath_prepend(str(PACK))
    return [rule.name for rule in runpy.run_path(str(PACK), run_name="pack")["RULES"]]


@pytest.fixture
def analyzer() -> Iterator[Any]:
    """The pack, started as a language host does it."""
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:0", str(PACK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


def judged(analyzer: Any, properties: dict[str, Any]) -> dict[str, Any]:
    """What the pack says of a NodePool, by the rule's name."""
    given = struct_pb2.Struct()
    given.update(properties)
    answer = analyzer.Analyze(analyzer_pb2.AnalyzeRequest(type=NODE_POOL, name="pool", properties=given))
    return {diagnostic.policyName: diagnostic for diagnostic in answer.diagnostics}


def test_starts_as_the_engine_starts_it(analyzer: Any, rules: list[str]) -> None:
    info = analyzer.GetAnalyzerInfo(empty_pb2.Empty())
    # The engine tells the version of the file; the SDK's own word is used where there is none.
    assert yaml.safe_load((PACK / "PulumiPolicy.yaml").read_text())["version"] == version()
    assert [policy.name for policy in info.policies] == rules

    found = judged(analyzer, {"spec": {"limits": {"cpu": "100"}}})
    assert found["node-pool-cilium-startup-taint"].enforcementLevel == analyzer_pb2.MANDATORY
    assert "node-pool-limits" not in found

    found = judged(analyzer, {"spec": {"limits": {"cpu": "lots"}, "template": "none"}})
    assert 'spec.limits.cpu is not a quantity such as 100, 500m or 4000Gi and can\'t be judged: "lots".' in (
        found["node-pool-limits"].message
    )
    assert "spec.template is not an object" in found["node-pool-architecture"].message


def test_a_pack_that_is_put_together_is_complete(tmp_path: Path, rules: list[str]) -> None:
    source, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere" / "pack"
    for name in ("policies", "karpstack/karpenter"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("karpstack/__init__.py", "Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(["make", "--no-print-directory", "pack"], cwd=source, check=True, capture_output=True)
    shutil.copytree(source / "build" / "pack", elsewhere)
    shutil.rmtree(source)
    # It has what `pulumi policy publish` would install, and no SDK of a cloud.
    libraries = [metadata.distribution(line.split("==")[0]) for line in (elsewhere / "requirements.txt").open()]
    (tmp_path / "libraries").mkdir()
    link(tmp_path / "libraries", [*libraries, *(each for library in libraries for each in needed(library))])
    assert not list((tmp_path / "libraries").glob("pulumi_aws"))
    template = {"spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws"}}}
    spec = {"limits": {"cpu": 10}, "template": template}
    code = (
        "import runpy, sys\n"
        f"sys.path[:1] = {[str(elsewhere), str(tmp_path / 'libraries')]!r}\n"
        f"print(len(runpy.run_path({str(elsewhere)!r}, run_name='pack')['RULES']))\n"
        "import karpstack.karpenter\n"
        "from rules.node_pool_types import ceiling\n"
        f"print(karpstack.karpenter.__file__, ceiling({spec!r}).usd)"
    )
    # Isolated from the checkout, which PYTHONPATH or the working folder would bring back.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env=environment | {"AWS_REGION": "us-east-1"},  # prices are a region's
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    count, found, usd = result.stdout.split()
    assert int(count) == len(rules)
    assert Path(found) == elsewhere / "karpstack" / "karpenter" / "__init__.py"
    assert float(usd) > 0


def test_rules_are_not_put_where_others_could_exchange_them(tmp_path: Path) -> None:
    (tmp_path / "of-all").mkdir()
    (tmp_path / "of-all").chmod(0o777)
    command = [sys.executable, "-m", "karpstack", "pack", str(tmp_path / "of-all" / "rules")]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"error: {tmp_path}/of-all can be written by others (mode 0777, group {os.getegid()}), who could exchange the "
        f"policies, which Pulumi runs; run `chmod go-w {tmp_path}/of-all`, or name another folder\n",
    )
    assert not (tmp_path / "of-all" / "rules").exists()
