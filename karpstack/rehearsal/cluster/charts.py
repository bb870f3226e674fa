"""The charts that can be rehearsed: the real ones, of the pinned releases, from the engine set.

Nothing is fetched from a registry, and a chart or a version that is not here is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from karpstack.rehearsal.engines import EngineSet, releases


@dataclass(frozen=True)
class _Source:
    """Where users get a chart, and which part of the engine set has its newest release.

    Attributes:
        name: Its name.
        repository: URL.
        part: The part.
        version: Of the only release that the part has, where its module is not numbered like the chart.
    """

    name: str
    repository: str
    part: str
    version: str = ""

    @property
    def releases(self) -> Mapping[str, str]:
        """Version of each release -> the part that has it, the newest first."""
        return {self.version: self.part} if self.version else releases(self.part)

    @property
    def oci(self) -> bool:
        return self.repository.startswith("oci://")


_AWS, _AZURE = "oci://public.ecr.aws/karpenter", "oci://mcr.microsoft.com/aks/karpenter"
_CATALOGUE = (
    _Source("cilium", "https://helm.cilium.io", "charts"),
    _Source("karpenter", _AWS, "karpenter-aws"),
    _Source("karpenter-crd", _AWS, "karpenter-aws"),
    _Source("karpenter", _AZURE, "karpenter-azure"),
    _Source("karpenter-crd", _AZURE, "karpenter-azure"),
    _Source("metrics-server", "https://kubernetes-sigs.github.io/metrics-server", "addons", "3.13.1"),
    _Source("aws-load-balancer-controller", "https://aws.github.io/eks-charts", "addons", "3.3.0"),
    # EKS installs it as an add-on, with what the chart makes of the add-on's configuration.
    _Source("aws-ebs-csi-driver", "https://kubernetes-sigs.github.io/aws-ebs-csi-driver", "addons", "2.62.0"),
)

# Keys that take a piece of a pod's manifest: whatever the default is, the API server knows what may be in there.
_FREE = frozenset(
    {
        "affinity",
        "annotations",
        "labels",
        "nodeSelector",
        "podAnnotations",
        "podLabels",
        "podSecurityContext",
        "resources",
        "rollingUpdate",
        "securityContext",
        "strategy",
        "updateStrategy",
    }
)


class ChartNotFoundError(LookupError):
    """There is no such chart in the rehearsal; the text says which there are."""


@dataclass(frozen=True)
class Chart:
    """A chart in the engine set.

    Attributes:
        name: For example `karpenter`.
        version: Version of the chart, and of what it installs.
        folder: The unpacked chart.
    """

    name: str
    version: str
    folder: Path


class Charts:
    """The catalogue of one engine set."""

    def __init__(self, engines: EngineSet) -> None:
        self._engines = engines

    def find(self, chart: str, version: str | None, repository: str | None) -> Chart:
        """Find a chart as a Helm release names it.

        Args:
            chart: Its name, or its whole `oci://` address.
            repository: URL of its repository; None for an `oci://` address.

        Raises:
            ChartNotFoundError: There is none of this name, address or version.
        """
        source = _source(chart, repository)
        if source is None:
            known = ", ".join(
                f"{each.repository}/{each.name}" if each.oci else f"{each.name} of {each.repository}"
                for each in _CATALOGUE
            )
            where = f"{chart} of {repository}" if repository else chart
            raise ChartNotFoundError(
                f"the rehearsal has no chart {where}, so nothing could be installed; it has: {known}"
            )
        versions = source.releases
        if not version:
            raise ChartNotFoundError(
                f"the chart {source.name} is asked for without a version, so each deployment could install another; "
                f"set version to {next(iter(versions))}, which the rehearsal has"
            )
        number = version.removeprefix("v")
        if number not in versions:
            raise ChartNotFoundError(
                f"the rehearsal has no version {version} of the chart {source.name}, so something else would be "
                f"rehearsed; ask for {' or '.join(versions)}, or move the pin (karpstack/rehearsal/engines/README.md)"
            )
        part = versions[number]
        if part != source.part and (fault := self._engines.fault(part)):
            raise ChartNotFoundError(f"the chart {source.name} {number} {fault}")
        return Chart(source.name, number, self._engines.chart(part, source.name))

    def unknown_values(self, chart: Chart, values: Mapping[str, Any]) -> list[str]:
        """Paths of values that the chart does not have, which would therefore have no effect.

        A value is known when the chart's values.yaml or its schema has it. Below an empty or absent default
        anything goes, and so it does below the keys that take a piece of a pod's manifest.
        """
        defaults, schema = _known(chart.folder)
        return sorted(_unknown(values, defaults, schema, ""))


def _source(chart: str, repository: str | None) -> _Source | None:
    repository = (repository or "").rstrip("/")
    for source in _CATALOGUE:
        if source.oci and not repository and chart.rstrip("/") == f"{source.repository}/{source.name}":
            return source
        if not source.oci and (chart, repository) == (source.name, source.repository):
            return source
    return None


@cache
def _known(folder: Path) -> tuple[Any, Any]:
    values, schema = folder / "values.yaml", folder / "values.schema.json"
    return (
        yaml.load(values.read_text(), yaml.CSafeLoader) or {} if values.exists() else {},
        yaml.load(schema.read_text(), yaml.CSafeLoader) if schema.exists() else {},
    )


def _unknown(values: Mapping[str, Any], defaults: Any, schema: Any, path: str) -> list[str]:
    found = []
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for key, value in values.items():
        name = f"{path}.{key}" if path else str(key)
        if key not in defaults and key not in properties:
            found.append(name)
            continue
        below, described = defaults.get(key), properties.get(key, {})
        # An empty map at the top is a chart without values (karpenter-crd): there, nothing goes.
        if isinstance(value, Mapping) and isinstance(below, dict) and below and key not in _FREE:
            found.extend(_unknown(value, below, described, name))
    return found
