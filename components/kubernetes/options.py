"""Options of components whose children live in a cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi


def in_cluster(
    parent: pulumi.Resource, provider: pulumi.ProviderResource, depends_on: Sequence[pulumi.Resource] = ()
) -> pulumi.ResourceOptions:
    """Options of a component of `parent` whose children live in the cluster behind `provider`."""
    return pulumi.ResourceOptions(parent=parent, providers=[provider], depends_on=list(depends_on))
