"""Refuses a change of node provisioning that strands nodes, before Azure is asked.

What the cluster is like now is known to the engine only, so this is a hook of the update and no check of the
configuration. It runs at preview too.
"""

from __future__ import annotations

import pulumi

from ..documents.provisioning import stranding


def refuse_stranding(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Raises:
        RunError: The update takes provisioning away from nodes that may exist.
    """
    harm = stranding(
        (args.old_inputs or {}).get("nodeProvisioningProfile") or {},
        (args.new_inputs or {}).get("nodeProvisioningProfile") or {},
    )
    if harm:
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; its node provisioning would change: {harm}. When that is "
            "done, set karpstack:nodeProvisioning.allowStrandedNodes to true for one update"
        )


def guard(name: str) -> pulumi.ResourceHookBinding:
    """The binding for the cluster's options; the hook's `name` is unique in the program."""
    return pulumi.ResourceHookBinding(
        before_update=[pulumi.ResourceHook(name, refuse_stranding, pulumi.ResourceHookOptions(on_dry_run=True))]
    )
