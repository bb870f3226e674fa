"""What a GET tells of the subscription as a whole: what it is, may have, has in use, and is registered for.

Shapes are those of Azure's REST documentation, shortened to what somebody here reads. Quotas of networks are Azure's
published defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, group_id
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.arm.rows import ROWS
from karpstack.rehearsal.azure.clusters import CLUSTER_TYPE, rules
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.access import Access
from karpstack.rehearsal.azure.machines.catalogue import ZONES
from karpstack.rehearsal.azure.machines.quotas import DEFAULT_QUOTA, usage

_TABLE: Final = yaml.load(Path(__file__).with_name("lookups.yaml").read_bytes(), yaml.CSafeLoader)
_PROVIDERS: Final[Mapping[str, str]] = _TABLE["providers"]
_ADDRESSES, _MOST_ADDRESSES = "PublicIPAddresses", 1000
#: What a list of resources tells of each.
_LISTED: Final = frozenset({"id", "name", "type", "location", "tags"})
_SUBSCRIPTION: Final = r"/subscriptions/(?P<subscription>[^/]+)"

Found = dict[str, Any]


class Lookups:
    """Answers such requests."""

    def __init__(self, context: Context, access: Access) -> None:
        self._context = context
        self._access = access
        self._rows: list[tuple[re.Pattern[str], str, Collection[str], Callable[[Mapping[str, str], str], Found]]] = []
        for name, row in _TABLE["lookups"].items():
            versions = ROWS[row["versions_of"]].versions if "versions_of" in row else row["versions"].split()
            pattern = re.compile(_SUBSCRIPTION + row["path"], re.IGNORECASE)
            self._rows.append((pattern, row["reads"], versions, getattr(self, f"_{name}")))

    def answer(self, path: str, version: str, caller: str) -> Found | None:
        """The answer to a GET; None where the path is of another kind.

        Raises:
            ArmError: It is refused.
        """
        for pattern, what, versions, answer in self._rows:
            if match := pattern.fullmatch(path):
                self._require(match["subscription"], what, version, versions, caller)
                with self._context.store.lock:
                    self._context.operations.settle()
                    return answer(match.groupdict(), caller)
        return None

    def _require(self, subscription: str, what: str, version: str, versions: Collection[str], caller: str) -> None:
        if subscription.lower() != self._context.subscription:
            raise refused("SubscriptionNotFound", id=subscription)
        if version not in versions:
            known = ", ".join(sorted(versions))
            raise refused("InvalidApiVersionParameter", given=version, known=known)
        with self._context.store.lock:
            self._access.require_subscription(caller, f"{what}/read", self._context.subscription)
        if error := self._context.faults.meet("GET", what, self._context.region):
            raise error

    def _subscription(self, asked: Mapping[str, str], caller: str) -> Found:
        return {
            "id": f"/subscriptions/{self._context.subscription}",
            "subscriptionId": self._context.subscription,
            "tenantId": self._context.directory.tenant,
            "displayName": "rehearsal",
            "state": "Enabled",
            "subscriptionPolicies": {"quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off"},
        }

    def _locations(self, asked: Mapping[str, str], caller: str) -> Found:
        region = self._context.region
        zones = [{"logicalZone": zone, "physicalZone": f"{region}-az{zone}"} for zone in ZONES]
        return _values(
            {
                "id": f"/subscriptions/{self._context.subscription}/locations/{region}",
                "name": region,
                "displayName": region,
                "availabilityZoneMappings": zones,
            }
        )

    def _provider(self, asked: Mapping[str, str], caller: str) -> Found:
        name = _spelt(asked["namespace"], _PROVIDERS)
        if name is None:
            raise refused("InvalidResourceNamespace", namespace=asked["namespace"])
        return {
            "id": f"/subscriptions/{self._context.subscription}/providers/{name}",
            "namespace": name,
            "registrationState": "NotRegistered" if name.lower() in self._context.unregistered else "Registered",
            "resourceTypes": [{"resourceType": _PROVIDERS[name], "locations": [self._context.region]}],
        }

    def _feature(self, asked: Mapping[str, str], caller: str) -> Found:
        feature = f"{asked['namespace']}/{asked['feature']}"
        if feature.lower() != "microsoft.compute/encryptionathost":
            raise refused("FeatureNotFound", feature=feature)
        registered = feature.lower() in {name.lower() for name in self._context.features}
        return {
            "id": f"/subscriptions/{self._context.subscription}/providers/Microsoft.Features/providers/{feature}",
            "name": feature,
            "type": "Microsoft.Features/providers/features",
            "properties": {"state": "Registered" if registered else "NotRegistered"},
        }

    def _permissions(self, asked: Mapping[str, str], caller: str) -> Found:
        scope = f"/subscriptions/{self._context.subscription}{asked['scope']}"
        group = ResourceId.parse(scope).group
        if group and self._context.get(group_id(self._context.subscription, group)) is None:
            raise refused("ResourceGroupNotFound", name=group)
        return _values(
            *(
                {
                    "actions": list(role.actions),
                    "notActions": list(role.not_actions),
                    "dataActions": list(role.data_actions),
                    "notDataActions": [],
                }
                for role in self._access.permissions(caller, scope)
            )
        )

    def _in_group(self, asked: Mapping[str, str], caller: str) -> Found:
        group = group_id(self._context.subscription, asked["group"])
        if self._context.get(group) is None:
            raise refused("ResourceGroupNotFound", name=asked["group"])
        return _values(
            *(
                {key: value for key, value in one.body.items() if key in _LISTED}
                for one in self._context.store.below(group)
                # What extends another resource, or is a part of one, is not listed.
                if len(one.id.names) == 1 and one.id.scope.lower() == group.lower() and "location" in one.body
            )
        )

    def _skus(self, asked: Mapping[str, str], caller: str) -> Found:
        context = self._context
        return _values(*(size.entry(context.region, context.zones_of(size)) for size in context.sizes))

    def _images(self, asked: Mapping[str, str], caller: str) -> Found:
        versions = self._context.images.versions(asked["gallery"], asked["image"], self._context.region)
        if versions is None:
            raise refused("CommunityGalleryImageNotFound", **asked)
        return _values(*versions)

    def _usages(self, asked: Mapping[str, str], caller: str) -> Found:
        names = ["cores", "lowPriorityCores", *dict.fromkeys(size.family.name for size in self._context.sizes)]
        limits = self._context.quotas
        return _values(*(_usage(name, usage(self._context, name), limits.get(name, DEFAULT_QUOTA)) for name in names))

    def _network_usages(self, asked: Mapping[str, str], caller: str) -> Found:
        store, limits = self._context.store, self._context.network_limits
        counts = {
            name: (len(list(store.of_type(f"Microsoft.Network/{kind}"))), most)
            for name, (kind, most) in _TABLE["counted"].items()
        }
        counts[_ADDRESSES] = (self._addresses(), _MOST_ADDRESSES)
        return _values(*(_usage(name, used, limits.get(name, most)) for name, (used, most) in counts.items()))

    def _addresses(self) -> int:
        """Public addresses: here only clusters have some, those through which their nodes go out."""
        path = "networkProfile.loadBalancerProfile.managedOutboundIPs.count"
        return sum(int(at(cluster.properties, path, 0)) for cluster in self._context.store.of_type(CLUSTER_TYPE))

    def _kubernetes_versions(self, asked: Mapping[str, str], caller: str) -> Found:
        return {
            "values": [
                {
                    "version": minor,
                    "isDefault": minor == rules.DEFAULT_VERSION,
                    "capabilities": {"supportPlan": ["KubernetesOfficial", "AKSLongTermSupport"]},
                    "patchVersions": {patch: {"upgrades": []}},
                }
                for minor, patch in rules.KUBERNETES_VERSIONS.items()
            ]
        }


def _values(*values: Found) -> Found:
    return {"value": list(values)}


def _usage(name: str, used: int, limit: int) -> Found:
    return {
        "unit": "Count",
        "currentValue": used,
        "limit": limit,
        "name": {"value": name, "localizedValue": name},
    }


def _spelt(name: str, names: Collection[str]) -> str | None:
    """A name as it is spelt among others; None where it is not."""
    return next((each for each in names if each.lower() == name.lower()), None)
