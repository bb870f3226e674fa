"""What is said of each release's chart is what that chart has: values, further settings, feature gates."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.components import versions
from karpstack.components.documents import charts as documents
from karpstack.components.settings.eks import FeatureGates
from karpstack.rehearsal.cluster.charts import Chart, Charts
from karpstack.rehearsal.engines import EngineSet, releases


def chart(part: str, version: str, name: str, repository: str | None) -> tuple[Charts, Chart]:
    engines = EngineSet.current()
    if not engines.complete(releases(part)[version]):
        pytest.skip(f"{name} {version} is built where a stack asks for it")
    charts = Charts(engines)
    return charts, charts.find(name, version, repository)


@pytest.mark.parametrize("version", releases("charts"))
def test_cilium(version: str) -> None:
    charts, found = chart("charts", version, versions.CILIUM_CHART, versions.CILIUM_REPOSITORY)
    values = documents.cilium(
        host="api", port=443, pod_cidr="10.244.0.0/16", pod_cidr_mask_size=24, operator_replicas=2
    )
    assert charts.unknown_values(found, values) == []


@pytest.mark.parametrize("version", releases("karpenter-aws"))
def test_karpenter_for_aws(version: str) -> None:
    charts, found = chart("karpenter-aws", version, versions.KARPENTER_AWS_CHART, None)
    lacking = documents.karpenter_aws_lacks_gates(version)
    gates = FeatureGates()

    def values(gates: dict[str, bool], settings: frozenset[str]) -> documents.Values:
        return documents.karpenter_aws(
            cluster_name="demo",
            region="us-east-1",
            endpoint="https://api",
            interruption_queue="demo",
            service_account="karpenter",
            replicas=2,
            feature_gates=gates,
            settings=dict.fromkeys(settings, "1"),
            resources={},
        )

    assert charts.unknown_values(found, values(gates.without(lacking), documents.karpenter_aws_settings(version))) == []
    # And of what is said to be lacking, nothing is there.
    newest = documents.karpenter_aws_settings(versions.KARPENTER_AWS)
    later = {f"settings.{key}" for key in newest - documents.karpenter_aws_settings(version)}
    assert set(charts.unknown_values(found, values(gates.without(()), newest))) == later | {
        f"settings.featureGates.{gate}" for gate in lacking
    }
    assert _image_tag(found.folder) == version


def _image_tag(folder: Path) -> str:
    (line,) = (line for line in (folder / "values.yaml").read_text().splitlines() if line.startswith("    tag:"))
    return line.partition(":")[2].strip()
