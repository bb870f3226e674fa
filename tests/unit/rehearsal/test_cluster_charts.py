"""The catalogue of charts and the values that a chart does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karpstack.components import versions
from karpstack.rehearsal.cluster.charts import Chart, ChartNotFoundError, Charts
from karpstack.rehearsal.engines import EngineSet, manifest

KARPENTER = "oci://public.ecr.aws/karpenter/karpenter"
VALUES = """
replicas: 2
nodeSelector: {kubernetes.io/os: linux}
tolerations: []
additionalLabels: {}
priorityClassName:
settings:
  clusterName: ""
  featureGates: {spotToSpotConsolidation: false}
"""


@pytest.fixture
def charts(tmp_path: Path) -> Charts:
    engines = EngineSet(tmp_path)
    for part, name, values in (
        ("karpenter-aws", "karpenter", VALUES),
        ("karpenter-aws", "karpenter-crd", ""),
        ("karpenter-azure", "karpenter", VALUES),
        ("karpenter-azure", "karpenter-crd", ""),
        ("karpenter-azure-1.10", "karpenter-crd", ""),
        ("charts", "cilium", "ipam: {mode: x}"),
    ):
        chart = engines.chart(part, name)
        chart.mkdir(parents=True)
        (chart / "values.yaml").write_text(values)
    (engines.chart("charts", "cilium") / "values.schema.json").write_text(
        '{"properties": {"ipam": {"properties": {"extra": {}}}, "hidden": {}}}'
    )
    manifest.write(engines.part("karpenter-azure-1.10"))
    return Charts(engines)


def karpenter(charts: Charts) -> Chart:
    return charts.find(KARPENTER, versions.KARPENTER_AWS, None)


@pytest.mark.parametrize(
    ("chart", "version", "repository", "name"),
    [
        (KARPENTER, versions.KARPENTER_AWS, None, "karpenter"),
        (f"{KARPENTER}-crd", versions.KARPENTER_AWS, None, "karpenter-crd"),
        ("oci://mcr.microsoft.com/aks/karpenter/karpenter", versions.KARPENTER_AZURE, None, "karpenter"),
        ("oci://mcr.microsoft.com/aks/karpenter/karpenter-crd", versions.KARPENTER_AZURE, None, "karpenter-crd"),
        ("oci://mcr.microsoft.com/aks/karpenter/karpenter-crd", "1.10.2", None, "karpenter-crd"),
        ("cilium", "1.20.2", "https://helm.cilium.io", "cilium"),
        ("cilium", "v1.20.2", "https://helm.cilium.io/", "cilium"),
    ],
)
def test_charts_are_found_as_releases_name_them(
    charts: Charts, chart: str, version: str, repository: str | None, name: str
) -> None:
    found = charts.find(chart, version, repository)
    assert (found.name, found.version) == (name, version.removeprefix("v"))


@pytest.mark.parametrize(
    ("chart", "version", "repository", "text"),
    [
        ("nginx", "1.0.0", "https://charts.example.com", "no chart nginx of https://charts.example.com"),
        ("karpenter", versions.KARPENTER_AWS, None, "no chart karpenter,"),
        ("cilium", "1.20.2", "https://helm.example.com", "no chart cilium of"),
        (KARPENTER, "1.14.0", None, "no version 1.14.0 of the chart karpenter"),
        (KARPENTER, None, None, f"set version to {versions.KARPENTER_AWS}"),
        (
            "oci://mcr.microsoft.com/aks/karpenter/karpenter",
            "1.13.0",
            None,
            rf"no version 1.13.0.*ask for {versions.KARPENTER_AZURE} or 1.10.2",
        ),
        (KARPENTER, "1.14.3", None, r"is not built yet; run .*engines build FILE"),
    ],
)
def test_another_chart_or_version_is_refused_by_name(
    charts: Charts, chart: str, version: str | None, repository: str | None, text: str
) -> None:
    with pytest.raises(ChartNotFoundError, match=text):
        charts.find(chart, version, repository)


def test_an_earlier_release_that_is_not_as_it_was_built_is_not_used(charts: Charts) -> None:
    address = "oci://mcr.microsoft.com/aks/karpenter/karpenter-crd"
    (charts.find(address, "1.10.2", None).folder / "values.yaml").write_text("other: 1")
    with pytest.raises(ChartNotFoundError, match=r"karpenter-crd 1\.10\.2 is not as it was built; run"):
        charts.find(address, "1.10.2", None)


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 1, "settings": {"clusterName": "x", "featureGates": {"spotToSpotConsolidation": True}}},
        {
            "nodeSelector": {"a": "b"},
            "additionalLabels": {"a": "b"},
            "tolerations": [{"key": "x"}],
            "priorityClassName": "x",
        },
    ],
)
def test_known_values_and_what_is_free_below_them(charts: Charts, values: dict[str, Any]) -> None:
    assert charts.unknown_values(karpenter(charts), values) == []


def test_unknown_values_are_named_with_their_path(charts: Charts) -> None:
    values = {"replica": 1, "settings": {"clusterNam": "x", "featureGates": {"spot": True}}}
    assert charts.unknown_values(karpenter(charts), values) == [
        "replica",
        "settings.clusterNam",
        "settings.featureGates.spot",
    ]


def test_the_schema_of_a_chart_counts_too(charts: Charts) -> None:
    cilium = charts.find("cilium", "1.20.2", "https://helm.cilium.io")
    assert charts.unknown_values(cilium, {"ipam": {"extra": 1, "nope": 1}, "hidden": 1}) == ["ipam.nope"]


def test_a_chart_without_values_takes_none(charts: Charts) -> None:
    assert charts.unknown_values(charts.find(f"{KARPENTER}-crd", versions.KARPENTER_AWS, None), {"x": 1}) == ["x"]
