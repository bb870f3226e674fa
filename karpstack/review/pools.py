"""What each NodePool may launch and cost, computed by the pack's own rules from facts/."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pulumi_policy.proxy import UnknownValueError
from rules.clouds import Cloud
from rules.node_pool_types import NODE_POOL_COST_CEILING, STACK_COST_CEILING, ceiling, launchable
from rules.regions import Regions
from rules.requirements import cloud_of, requirements
from rules.rule import NotKnownError, Rule, section
from rules.shapes import shaped
from rules.tokens import AKS_CLUSTER, CLUSTER, EC2_NODE_CLASS, NODE_POOL
from rules.values import UnreadableError

from karpstack.karpenter import images
from karpstack.karpenter.fact_dates import old_prices, today
from karpstack.karpenter.instance_types import CAPACITY_TYPE, Region
from karpstack.karpenter.requirements import allows

from .engine import ONLY_THEN, Resource, is_known
from .model import Cost, Offer, Pool
from .places import Places

Known = Callable[[Cloud], Region]
_SETTING: Final = "usdPerHour"
#: Pulumi's packages, and what the facts call the clouds.
_CLOUDS: Final[Mapping[str, Cloud]] = {"aws": "aws", "azure-native": "azure"}


def pools(resources: Iterable[Resource], known: Known, places: Places, settings: Mapping[str, Any]) -> tuple[Pool, ...]:
    """The stack's NodePools; `settings` is the pack's configuration."""
    allowed = _allowed(NODE_POOL_COST_CEILING, settings)
    return tuple(
        _pool(resource, known, Pool(name=resource.name, urn=resource.urn, place=places.of(resource), allowed=allowed))
        for resource in resources
        if resource.token == NODE_POOL
    )


def cost(pools: Sequence[Pool], resources: Sequence[Resource], settings: Mapping[str, Any], regions: Regions) -> Cost:
    """What the NodePools can cost together."""
    packages = {resource.token.partition(":")[0] for resource in resources} if pools else set()
    notes = [
        old_prices(cloud, today(), min(regions.of(cloud), default=""))
        for package, cloud in _CLOUDS.items()
        if package in packages
    ]
    notes = [note for note in notes if note] + [
        f"AKS brings the NodePools default and system-surge to {resource.name} by itself; they are no resources of "
        "this stack, so that their types and cost are not in here."
        for resource in resources
        if resource.token == AKS_CLUSTER and _brings_pools(resource.inputs)
    ]
    return Cost(
        usd=sum(pool.usd or 0.0 for pool in pools),
        complete=all(pool.usd is not None for pool in pools),
        allowed=_allowed(STACK_COST_CEILING, settings),
        notes=tuple(notes),
    )


def assumed_images(resources: Iterable[Resource]) -> str:
    """Return a sentence on images of node classes that the facts do not know; empty without one."""
    aliases: list[str] = []
    version = ""
    for resource in resources:
        if resource.token == CLUSTER:
            version = str(resource.inputs.get("version") or "")
        elif resource.token == EC2_NODE_CLASS:
            spec = resource.inputs.get("spec")
            terms = spec.get("amiSelectorTerms") if isinstance(spec, Mapping) else ()
            aliases += [str(term["alias"]) for term in terms or () if isinstance(term, Mapping) and "alias" in term]
    return images.assumed(aliases, version, today())


def _pool(resource: Resource, known: Known, pool: Pool) -> Pool:
    try:
        spec = section(shaped(resource.token, resource.checked), "spec")
        wanted = requirements(spec)
        limits = section(spec, "limits")
        pool = pool.model_copy(
            update={
                "requirements": tuple(str(requirement) for requirement in wanted if not requirement.given),
                "limits": tuple(f"{name} {_plain(limits[name])}" for name in limits),
            }
        )
        region = known(cloud_of(spec)).name
        types = [
            Offer(
                name=type_.name,
                vcpus=type_.vcpus,
                gib=round(type_.memory / 2**30, 1),
                usd=type_.on_demand[region],
                capacity=tuple(kind for kind in sorted(type_.capacity_types) if allows(wanted, CAPACITY_TYPE, kind)),
            )
            for type_ in sorted(launchable(spec, known), key=lambda type_: (type_.on_demand[region], type_.name))
        ]
        bound = ceiling(spec, known)
    except NotKnownError as error:
        return pool.model_copy(update={"unknown": error.message})
    except UnknownValueError as error:
        return pool.model_copy(update={"unknown": f"{'.'.join(error.props)} is {ONLY_THEN}"})
    except UnreadableError as error:
        return pool.model_copy(update={"unknown": str(error)})
    return pool.model_copy(
        update={"types": tuple(types), "usd": bound.usd if bound else None, "of": bound.of if bound else ""}
    )


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _allowed(rule: Rule, settings: Mapping[str, Any]) -> float | None:
    """The ceiling that the rule enforces; None where the rule is off."""
    configured = settings.get(rule.name)
    level = configured.get("enforcementLevel") if isinstance(configured, Mapping) else configured
    if level == "disabled":
        return None
    own = configured.get(_SETTING) if isinstance(configured, Mapping) else None
    return float(rule.settings[_SETTING]["default"] if own is None else own)


def _brings_pools(cluster: Mapping[str, Any]) -> bool:
    profile = cluster.get("nodeProvisioningProfile")
    if not isinstance(profile, Mapping) or not is_known(profile):
        return False
    return profile.get("mode") == "Auto" and profile.get("defaultNodePools", "Auto") == "Auto"
