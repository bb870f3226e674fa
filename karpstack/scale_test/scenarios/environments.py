"""The kinds of environment that a scenario can be written for, and what differs between them.

Tables and nothing else: which kind a stack is follows from its outputs, never from its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_never

from karpstack.karpenter.offers import Offers

from .actions import Fault
from .formats import instead


@dataclass(frozen=True)
class Environment:
    """One kind of environment.

    Attributes:
        kind: What scenario files call it under `stacks`.
        cloud: Value of the stack output `cloud`.
        managed: Whether the cloud itself runs Karpenter: value `managed` of the stack output `karpenterVersion`.
        node_class_api: API group and version of its node classes.
        node_class_kind: Kind of its node classes.
        node_class_plural: Their name in the API's paths.
    """

    kind: str
    cloud: str
    managed: bool
    node_class_api: str
    node_class_kind: str
    node_class_plural: str

    @property
    def node_class(self) -> dict[str, str]:
        """Kind and path in the API of its node classes."""
        return {"kind": self.node_class_kind, "path": f"/apis/{self.node_class_api}/{self.node_class_plural}"}


_AWS = ("karpenter.k8s.aws/v1", "EC2NodeClass", "ec2nodeclasses")
_AZURE = ("karpenter.azure.com/v1beta1", "AKSNodeClass", "aksnodeclasses")

ENVIRONMENTS = (
    Environment("eks", "aws", False, *_AWS),
    Environment("aks-nap", "azure", True, *_AZURE),
    Environment("aks-self-hosted", "azure", False, *_AZURE),
)
KINDS = tuple(environment.kind for environment in ENVIRONMENTS)

_NEEDED = ("cloud", "karpenterVersion", "nodeClasses", "nodePools")
# Where the cloud runs Karpenter, it may bring NodePools of its own.
_NEEDED_IF_MANAGED = (*_NEEDED, "defaultNodePools")


class StackError(ValueError):
    """The stack's outputs are not those of an environment that can be scale-tested."""


class Stack(NamedTuple):
    """A stack: its name, and its outputs as `pulumi stack output --json` prints them."""

    name: str
    outputs: Mapping[str, Any]


#: The outputs that a run is judged by; none of them is a secret.
JUDGED_BY = ("cloud", "region", "clusterName", "karpenterVersion", "interruptionQueue")


def environment_of_outputs(outputs: Mapping[str, Any]) -> Environment | None:
    """The kind of environment that a stack's outputs show; None where they show none of these."""
    traits = (outputs.get("cloud"), outputs.get("karpenterVersion") == "managed")
    return next((kind for kind in ENVIRONMENTS if (kind.cloud, kind.managed) == traits), None)


def environment_of(outputs: Mapping[str, Any]) -> Environment:
    """The kind of environment that a stack is.

    Args:
        outputs: What `pulumi stack output --json` printed.

    Raises:
        StackError: An output is missing, or no scenario can suit the cloud.
    """
    managed = outputs.get("karpenterVersion") == "managed"
    missing = [name for name in (_NEEDED_IF_MANAGED if managed else _NEEDED) if name not in outputs]
    if missing:
        raise StackError(
            f"stack outputs: {', '.join(missing)} missing, so the scale test cannot know what it may expect; "
            "finish `pulumi up` of the stack, or add them to the file given as stack_outputs"
        )
    if environment := environment_of_outputs(outputs):
        return environment
    raise StackError(
        f"stack output cloud: {outputs['cloud']!r} has no scenarios{' where it runs Karpenter itself' * managed}, so "
        f"nothing would be tested; use a stack that is one of: {', '.join(KINDS)}"
    )


def environment_of_kind(kind: str) -> Environment:
    """The environment of a kind that is one of `KINDS`."""
    return next(known for known in ENVIRONMENTS if known.kind == kind)


def missing_zone(cloud: str, zone: str) -> dict[str, str]:
    """Words of the finding that nothing can ever be in a zone: its region is known and has no such zone.

    Empty where it may have one.
    """
    zones = Offers.load(cloud).zones
    region = max((name for name in zones if zone.startswith(name)), key=len, default="")
    # Local zones have longer names and are in no list; whether a stack is in the region is seen when one is chosen.
    if not region or len(zone) > len(region) + 2 or Offers.load(cloud).zone(zone, region) != "wrong":
        return {}
    return {"region": region, "instead": instead(zone, zones[region])}


def fault_refusal(fault: Fault, environment: Environment, outputs: Mapping[str, Any], *, rehearsed: bool) -> str:
    """Return why an environment cannot inject a fault; empty if it can.

    Args:
        fault: The fault.
        environment: The kind of environment.
        outputs: The stack's outputs.
        rehearsed: Whether the cloud is a rehearsal's.
    """
    match fault.needs:
        case "controller":
            why = "the cloud runs the controller, out of its users' reach" if environment.managed else ""
        case "queue" if environment.cloud != "aws":
            why = "Karpenter hears of interruptions on AWS alone"
        case "queue":
            queue = outputs.get("interruptionQueue")
            why = "" if queue else "the stack has no interruption queue (karpstack:karpenter.interruptionQueue)"
        case "rehearsal":
            why = "" if rehearsed else f"{fault.why} on a real cluster; only a rehearsal can (KARPSTACK_REHEARSAL_URL)"
        case _ as unknown:
            assert_never(unknown)
    return f"{fault.kind}: {why}" if why else ""
