"""Warns of a cluster that whoever makes it cannot reach: one without a public endpoint, in a network not yet there."""

from __future__ import annotations

import pulumi


def warns_of_no_way(name: str, *, fix: str) -> pulumi.ResourceHook:
    """Hook before the creation of such a cluster: it speaks at the first preview and `up`, and never again.

    Args:
        name: Of the hook; unique in the program.
        fix: What to do, in this cloud.
    """

    def warn(created: pulumi.ResourceHookArgs) -> None:
        pulumi.log.warn(
            "karpstack:cluster.publicAccessCidrs = []\n"
            f"    {created.name} will have no public endpoint, and its network is made with it: from outside nobody "
            "reaches the API server, so `up` fails after network and control plane, before Cilium and Karpenter\n"
            f"    fix: {fix}"
        )

    return pulumi.ResourceHook(name, warn, pulumi.ResourceHookOptions(on_dry_run=True))
