"""The Pulumi program: one stack, one environment. What it is like is said by Pulumi.<stack>.yaml alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import pulumi

from karpstack.components import settings
from karpstack.components.replacement import keep_cloud

if TYPE_CHECKING:
    from karpstack.components import aks, eks


def environment(stack: settings.Settings) -> aks.Environment | aks.ExistingEnvironment | eks.Environment:
    """The stack's environment. Only its cloud is imported: the SDKs are large."""
    match stack:
        case settings.AksSettings():
            from karpstack.components import aks

            return aks.Environment("aks", stack)
        case settings.ExistingAksSettings():
            from karpstack.components import aks

            return aks.ExistingEnvironment("aks", stack)
        case settings.EksSettings() | settings.ExistingEksSettings():
            from karpstack.components import eks

            return eks.Environment("eks", stack)
    assert_never(stack)


chosen = settings.read()
keep_cloud(chosen.cloud, allowed=bool(chosen.allow_replacement))
for name, value in environment(chosen).outputs.named().items():
    pulumi.export(name, value)
