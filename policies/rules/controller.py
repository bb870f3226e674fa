"""Karpenter's controller: how it is wired into the stack. Does not judge its permissions (identity.py)."""

import re
from typing import Any

from pulumi_policy import PolicyResource, Severity
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UnknownValueError

from .rule import Judgement, Properties, StackRule, section
from .tokens import HELM_RELEASE, NODE_POOL

# As a name, an OCI reference, a folder or an archive; not karpenter-crd.
_CHART = re.compile(r"(.*/)?karpenter(-\d[^/]*\.tgz)?")


def _spot_interruption_queue(resources: list[PolicyResource], judgement: Judgement) -> None:
    pools = []
    for resource in resources:
        with judgement.part():
            if (
                resource.resource_type == NODE_POOL
                and _on_ec2(spec := _output(resource, "spec"))
                and _allows_spot(spec)
            ):
                pools.append(resource.name)
    if not pools:
        return
    for resource in resources:
        with judgement.part():
            if resource.resource_type == HELM_RELEASE and _CHART.fullmatch(_output(resource, "chart")):
                _wired(resource, pools, judgement)


def _wired(release: PolicyResource, pools: list[str], judgement: Judgement) -> None:
    if not section(release.props, "values", "settings").get("interruptionQueue"):
        judgement.violation(
            f"values.settings.interruptionQueue of {release.name} is not set, and spot instances are allowed "
            f"by {', '.join(pools)}.",
            release.urn,
        )


def _on_ec2(spec: Properties) -> bool:
    """Whether the pool's nodes are EC2's; Azure announces evictions on the machine, and there is no queue."""
    reference = section(spec, "template", "spec").get("nodeClassRef") or {}
    return bool(reference.get("group") != "karpenter.azure.com")


def _allows_spot(spec: Properties) -> bool:
    """Whether Karpenter may launch spot instances; a pool that names no capacity type allows each."""
    allowed = True
    for requirement in section(spec, "template", "spec").get("requirements") or []:
        if requirement.get("key") == "karpenter.sh/capacity-type":
            named = "spot" in (requirement.get("values") or [])
            match requirement.get("operator"):
                case "In":
                    allowed = allowed and named
                case "NotIn":
                    allowed = allowed and not named
    return allowed


def _output(resource: PolicyResource, name: str) -> Any:
    """An output that such a resource always has.

    Where its provider can't be asked at preview, because the kubeconfig is not known yet, the engine shows
    the resource without any outputs. Then it is as unknown as if it said so.
    """
    if name not in set(resource.props):
        raise UnknownValueError(UNKNOWN_OBJECT_VALUE, [resource.name, name])
    return resource.props[name]


SPOT_INTERRUPTION_QUEUE = StackRule(
    name="spot-interruption-queue",
    description="Karpenter listens to an interruption queue when a NodePool allows spot instances.",
    rationale="EC2 announces an interruption two minutes ahead; only the queue brings that to Karpenter.",
    consequence="Spot instances vanish without being drained, and their pods with them.",
    remediation=(
        "Set settings.interruptionQueue in the values of Karpenter's release to the name of the queue, or "
        "limit the NodePools to on-demand with the requirement karpenter.sh/capacity-type."
    ),
    url="https://karpenter.sh/docs/concepts/disruption/#interruption",
    severity=Severity.HIGH,
    check=_spot_interruption_queue,
)
