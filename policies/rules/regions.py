"""The region of a stack's clusters, noted while its resources are judged.

Pulumi does not hand the stack's configuration to a policy pack in Python (pulumi-policy 1.21), and a NodePool does not
say where it is. But the cluster comes before it, and with it the provider that knows. Kept for the life of the pack's
process, which is one run of the engine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pulumi_policy import PolicyProviderResource
from pulumi_policy.proxy import UnknownValueError

from .clouds import CLOUDS, Cloud

_BY_PROVIDER: Final = {f"pulumi:providers:{traits.package}": cloud for cloud, traits in CLOUDS.items()}


class Regions:
    """Regions by cloud: those of clusters, and those of anything."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._clusters: dict[Cloud, set[str]] = {}
        self._any: dict[Cloud, set[str]] = {}

    def note(self, token: str, properties: Mapping[str, Any], provider: PolicyProviderResource | None) -> None:
        """Take the region from a resource, from its provider, or from one of a provider's own properties.

        One that is unknown is not taken. A stack on a cluster that is there may have a provider, which it asks, and no
        resource of it.
        """
        kind = provider.resource_type if provider else token
        if kind not in _BY_PROVIDER:
            return
        cloud = _BY_PROVIDER[kind]
        for source in (properties, provider.props if provider else {}):
            try:
                region = source.get(CLOUDS[cloud].region)
            except UnknownValueError:
                continue
            if region:
                normal = str(region).lower().replace(" ", "")
                self._any.setdefault(cloud, set()).add(normal)
                if token == CLOUDS[cloud].cluster:
                    self._clusters.setdefault(cloud, set()).add(normal)
                return

    def configured(self, cloud: Cloud, region: str) -> None:
        """Take the region from the stack's configuration, by somebody who can read it; a cluster's comes before it."""
        self._any.setdefault(cloud, set()).add(region.lower().replace(" ", ""))

    def of(self, cloud: Cloud) -> set[str]:
        """The regions of clusters, else of anything, else that of the environment; empty where nothing says it."""
        known = self._clusters.get(cloud) or self._any.get(cloud)
        return set(known) if known else {os.environ[name] for name in CLOUDS[cloud].variables if os.environ.get(name)}


#: What the pack's process has seen.
REGIONS = Regions()
