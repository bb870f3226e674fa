"""karpstack.components.versions: the pins that can be held against what is installed."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from karpstack.components import versions
from karpstack.components.documents.charts import release
from karpstack.components.settings.version_checks import compatible
from karpstack.karpenter.releases import number, offered, releases
from tests.conftest import DAY
from tests.unit import example_stack
from tests.unit.programs import made


@pytest.mark.parametrize("resource", versions.AZURE_APIS)
def test_azure_api_versions_are_the_reviewed_ones(resource: str) -> None:
    module, name = resource.split(".")
    # Not inspect.getsource: it parses, and Python's parser fails now and then while another thread compiles.
    source = Path(inspect.getfile(getattr(import_module(f"pulumi_azure_native.{module}"), name))).read_text()
    assert re.findall(r"Uses Azure REST API version ([\w-]+)", source)[0] == versions.AZURE_APIS[resource]


@pytest.mark.parametrize("stack", ["aks-nap", "aks-self-hosted"])
def test_every_azure_resource_in_use_has_a_reviewed_api(stack: str) -> None:
    used = {
        each.type.removeprefix("azure-native:").replace(":", ".")
        for each in made(stack).resources.values()
        if each.type.startswith("azure-native:")
    }
    assert used <= set(versions.AZURE_APIS)


PAGE = example_stack.ROOT / "docs" / "reference" / "compatibility.md"
HEAD = """# Compatible versions

`make goldens` writes this page, from `COMPATIBILITY` in `components/versions.py` and from
[the facts](../../karpstack/karpenter/facts/README.md). `pulumi preview` reads the same tables:

- It refuses a Kubernetes version that Karpenter does not support.
- It warns if upstream does not test Cilium with the cluster's Kubernetes.
- It warns if upstream does not support the Karpenter release any more.

| component, from this release on | Kubernetes | upstream's support | source |
| --- | --- | --- | --- |
"""
CLOUDS = {"aws": "EKS", "azure": "AKS"}
PINNED = {
    "karpenter-aws": versions.KARPENTER_AWS,
    "karpenter-azure": versions.KARPENTER_AZURE,
    "cilium": versions.CILIUM,
    "metrics-server": versions.METRICS_SERVER,
    "aws-load-balancer-controller": versions.LOAD_BALANCER_CONTROLLER,
}


def page() -> str:
    lines = [HEAD.removesuffix("\n")]
    for what, rows in versions.COMPATIBILITY.items():
        default = f"; installed: {PINNED[what]}"
        for row in rows:
            known = f"{row.oldest} to {row.newest}" if row.newest else f"{row.oldest} or newer"
            source = versions.COMPATIBILITY_SOURCES[what]
            lines.append(f"| {what} {row.since}{default} | {known} | {row.support or 'not stated'} | {source} |")
            default = ""
    for cloud, title in CLOUDS.items():
        lines += ["", f"## Kubernetes on {title}", "", "| version | offered from | standard until | refused from |"]
        lines.append("| --- | --- | --- | --- |")
        for one in releases(cloud).values():
            planned = " (planned)" if one.planned else ""
            lines.append(f"| {one.version} | {one.begins}{planned} | {one.standard} | {one.extended} |")
    return "\n".join(
        [
            *lines,
            "",
            "*Standard until* is the first day without standard support, *refused from* the first without any. "
            "[Newer dates](../how-to/facts.md) come from your account.",
            "",
        ]
    )


def test_the_page_shows_the_table(request: pytest.FixtureRequest) -> None:
    written = page()
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written, f"{PAGE} differs; see --update-goldens"


def test_every_component_has_a_source_and_its_newest_release_first() -> None:
    assert versions.COMPATIBILITY.keys() == versions.COMPATIBILITY_SOURCES.keys() == PINNED.keys()
    for rows in versions.COMPATIBILITY.values():
        assert [row.since for row in rows] == sorted((row.since for row in rows), key=release, reverse=True)


@pytest.mark.parametrize("chart", ["metrics-server", "aws-load-balancer-controller"])
def test_charts_that_nobody_chooses_go_with_every_version_on_offer(chart: str) -> None:
    oldest = compatible(chart, PINNED[chart]).oldest
    assert all(number(version) >= number(oldest) for version in offered("aws", DAY))
