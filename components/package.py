"""Environments as components of a Pulumi package, for programs in every language that Pulumi has.

Pulumi reads the package's schema from the annotations and docstrings of these classes (schema.json, a test compares
them). So this module evaluates its annotations.

Arguments are the keys of a stack file without their namespace; the cloud's own, such as aws:region, stay configuration
of the stack. They are plain values: they decide which resources there are, so an output of a resource is refused.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from typing import Any, NoReturn, NotRequired, TypedDict, cast

import pulumi
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError
from pydantic.alias_generators import to_camel

from . import settings
from .outputs import Outputs
from .problems import key_of


class EksEnvironmentArgs(TypedDict):
    """Arguments of an EKS environment."""

    name: str
    """prefix of all resource names; also the name of a cluster that the stack creates, not of an existing one"""
    cluster: dict[str, Any]
    """the control plane"""
    node_pools: dict[str, Any]
    """NodePool specs by name"""
    node_overlays: NotRequired[dict[str, Any]]
    """NodeOverlay specs by name"""
    node_classes: dict[str, Any]
    """EC2NodeClass specs by name"""
    network: NotRequired[dict[str, Any]]
    """address ranges and zones"""
    system_nodes: NotRequired[dict[str, Any]]
    """the managed node group"""
    karpenter: NotRequired[dict[str, Any]]
    """the controller"""
    cilium: NotRequired[dict[str, Any]]
    """Cilium, the network plugin"""
    addons: NotRequired[dict[str, Any]]
    """optional add-ons"""
    images: NotRequired[dict[str, Any]]
    """where images come from"""
    proxy: NotRequired[dict[str, Any]]
    """HTTP proxy of nodes and controllers"""
    trusted_certificates: NotRequired[list[str]]
    """certificates of authorities, in PEM, for nodes and controllers, in addition to the public ones"""
    tags: NotRequired[dict[str, str]]
    """tags of every resource"""
    allow_replacement: NotRequired[list[str]]
    """[cluster]: each `up` may delete the cluster and everything in it, until you remove this key"""
    accept_old_facts: NotRequired[bool]
    """true: accept facts that are older than 180 days"""


class AksEnvironmentArgs(TypedDict):
    """Arguments of an AKS environment."""

    name: str
    """prefix of all resource names; also the name of a cluster that the stack creates, not of an existing one"""
    mode: str
    """nap (AKS runs Karpenter) or self-hosted"""
    cluster: dict[str, Any]
    """the control plane"""
    node_pools: dict[str, Any]
    """NodePool specs by name"""
    node_overlays: NotRequired[dict[str, Any]]
    """NodeOverlay specs by name"""
    node_classes: dict[str, Any]
    """AKSNodeClass specs by name"""
    network: NotRequired[dict[str, Any]]
    """address ranges"""
    system_nodes: NotRequired[dict[str, Any]]
    """the system pool"""
    node_provisioning: NotRequired[dict[str, Any]]
    """node auto provisioning"""
    karpenter: NotRequired[dict[str, Any]]
    """the controller, in mode self-hosted"""
    cilium: NotRequired[dict[str, Any]]
    """optional features of Azure's Cilium"""
    addons: NotRequired[dict[str, Any]]
    """optional add-ons"""
    images: NotRequired[dict[str, Any]]
    """where images come from, in mode self-hosted"""
    proxy: NotRequired[dict[str, Any]]
    """HTTP proxy of nodes and pods, in mode nap"""
    trusted_certificates: NotRequired[list[str]]
    """certificates of authorities, in PEM, that nodes trust in addition to the public ones, in mode nap"""
    tags: NotRequired[dict[str, str]]
    """tags of every resource"""
    allow_replacement: NotRequired[list[str]]
    """[cluster]: each `up` may delete the cluster and everything in it, until you remove this key"""
    accept_old_facts: NotRequired[bool]
    """true: accept facts that are older than 180 days"""


class _Environment(pulumi.ComponentResource):
    """What both have; docs/reference/outputs.md explains the outputs."""

    cloud: pulumi.Output[str]
    region: pulumi.Output[str]
    cluster_name: pulumi.Output[str]
    cluster_endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    interruption_queue: pulumi.Output[str]
    karpenter_version: pulumi.Output[str]
    karpenter_namespace: pulumi.Output[str]
    feature_gates: pulumi.Output[list[str]]
    node_pools: pulumi.Output[list[str]]
    node_classes: pulumi.Output[list[str]]
    default_node_pools: pulumi.Output[list[str]]

    def _show(self, outputs: Outputs) -> None:
        for field in fields(outputs):
            setattr(self, field.name, getattr(outputs, field.name))
        self.register_outputs(outputs.named())


class EksEnvironment(_Environment):
    """An EKS cluster with Cilium as overlay, or an existing one (`cluster.existing`), with Karpenter and NodePools."""

    def __init__(self, name: str, args: EksEnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:index:EksEnvironment", name, {}, opts)
        from . import eks  # the SDK of one cloud is enough

        chosen = cast(settings.EksSettings | settings.ExistingEksSettings, _settings("aws", args))
        self._show(eks.Environment(name, chosen, pulumi.ResourceOptions(parent=self)).outputs)


class AksEnvironment(_Environment):
    """An AKS cluster with overlay and Cilium, or an existing one (`cluster.existing`), with Karpenter and NodePools."""

    def __init__(self, name: str, args: AksEnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:index:AksEnvironment", name, {}, opts)
        from . import aks  # the SDK of one cloud is enough

        chosen = cast(settings.AksSettings | settings.ExistingAksSettings, _settings("azure", args))
        child = pulumi.ResourceOptions(parent=self)
        if isinstance(chosen, settings.ExistingAksSettings):
            self._show(aks.ExistingEnvironment(name, chosen, child).outputs)
        else:
            self._show(aks.Environment(name, chosen, child).outputs)


class Provider(ComponentProvider):
    """Makes the components in a process of its own."""

    def __init__(self) -> None:
        super().__init__([EksEnvironment, AksEnvironment], "karpstack", None, version("karpstack"))

    def construct(self, *args: Any, **named: Any) -> ConstructResult:
        """Make a component. A refusal is shown without a traceback, as for karpstack's own program."""
        try:
            return super().construct(*args, **named)
        except ComponentInitError as error:
            if isinstance(error.inner, pulumi.RunError):
                raise pulumi.InputPropertiesError(str(error.inner), []) from error  # none: an AttributeError
            raise


def serve() -> None:
    """Be the provider that the engine has started, with its address as the argument."""
    main(Provider(), sys.argv[1:])


def _settings(cloud: str, args: Mapping[str, Any]) -> settings.Settings:
    given = {"cloud": cloud, **{to_camel(name): value for name, value in args.items()}}
    return settings.read({key_of(key): _text(key, value) for key, value in given.items()})


def _text(key: str, value: Any) -> str:
    """A value as the engine gives configuration."""

    def refuse(_: object) -> NoReturn:
        raise pulumi.RunError(
            f"{key}: is or holds an output or a secret; it decides which resources there are, so Pulumi must know it "
            "before it creates anything: pass a plain value, for example from the stack's configuration"
        )

    if isinstance(value, str):
        return value
    return json.dumps(json.loads(json.dumps(value, default=refuse), parse_float=_number))


def _number(text: str) -> int | float:
    """A number of JSON; Pulumi sends all of them as floats."""
    number = float(text)
    return int(number) if number.is_integer() else number
