"""What an environment tells those who use it, on either cloud: stated here once.

The component registers it, the program exports it as the stack's outputs, and docs/reference/outputs.md lists it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import pulumi
from pydantic.alias_generators import to_camel
from typing_extensions import Doc

_Text = pulumi.Output[str]
_Names = pulumi.Output[list[str]]


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Outputs of an environment; as the stack's they are called the same, in camelCase."""

    cloud: Annotated[_Text, Doc("`aws` or `azure`")]
    region: Annotated[_Text, Doc("region or location of all resources")]
    cluster_name: Annotated[_Text, Doc("name of the cluster")]
    cluster_endpoint: Annotated[_Text, Doc("URL of the API server, as nodes use it")]
    kubeconfig: Annotated[_Text, Doc("kubeconfig for the deployer and the administrators; a secret")]
    interruption_queue: Annotated[
        _Text, Doc("name of the queue for interruption events; empty if there is none, and on Azure")
    ]
    karpenter_version: Annotated[_Text, Doc("version of the controller; `managed` if AKS runs it")]
    karpenter_namespace: Annotated[_Text, Doc("namespace of the controller; empty if AKS runs it")]
    feature_gates: Annotated[
        _Names, Doc("enabled feature gates of Karpenter, by their names in the chart; empty if AKS runs it")
    ]
    node_pools: Annotated[_Names, Doc("names of the stack's own NodePools")]
    node_classes: Annotated[_Names, Doc("names of the stack's own node classes")]
    default_node_pools: Annotated[
        _Names, Doc("names of AKS's default NodePools, each with a node class of the same name; empty on other stacks")
    ]

    def named(self) -> dict[str, pulumi.Output[Any]]:
        """The outputs by the names that the engine gets."""
        return {to_camel(field.name): getattr(self, field.name) for field in fields(self)}


def descriptions() -> Mapping[str, str]:
    """What each output is, by the name that the engine gets."""
    hints = get_type_hints(Outputs, include_extras=True)
    return {to_camel(name): hint.__metadata__[0].documentation for name, hint in hints.items()}
