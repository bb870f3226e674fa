"""What a GET tells of the subscription as a whole: what it is, may have, has in use, and is registered for.

Shapes are those of Azure's REST documentation, shortened to what somebody here reads. Quotas of networks are Azure's
published defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from rehearsal.azure.arm.errors import refused
from rehearsal.azure.arm.identifiers import ResourceId, group_id
from rehearsal.azure.arm.kind import at
from rehearsal.azure.arm.rows import ROWS
from rehearsal.azure.clusters import CLUSTER_TYPE, rules
from rehearsal.azure.context import Context
from rehearsal.azure.identity.access import Access
from rehearsal.azure.machines.catalogue import ZONES
from rehearsal.azure.machines.quotas import DEFAULT_QUOTA, usage
from rehearsal.azure.network.networks import INTERFACE_TYPE, LOAD_BALANCER_TYPE, NETWORK_TYPE, SECURITY_GROUP_TYPE

_COMPUTE_VERSIONS: Final = (
    "2021-07-01",
    "2022-08-01",
    "2025-03-03",
    "2025-04-01",
    "2025-11-01",
    "2026-03-01",
)
_RESOURCES_VERSIONS: Final = ("2021-04-01", "2022-12-01", "2024-03-01", "2025-04-01")
_PERMISSIONS_VERSIONS: Final = ("2015-07-01", "2018-07-01", "2022-04-01")
_FEATURES_VERSIONS: Final = ("2015-12-01", "2021-07-01")
#: Resource providers, and the type that a region has or has not.
_PROVIDERS: Final = {
    "Microsoft.Authorization": "roleAssignments",
    "Microsoft.Compute": "virtualMachines",
    "Microsoft.ContainerService": "managedClusters",
    "Microsoft.Insights": "diagnosticSettings",
    "Microsoft.ManagedIdentity": "userAssignedIdentities",
    "Microsoft.Monitor": "accounts",
    "Microsoft.Network": "virtualNetworks",
    "Microsoft.OperationalInsights": "workspaces",
    "Microsoft.Storage": "storageAccounts",
}
#: What is counted of networks, by the name that Azure has for it: its type, and the default of the quota.
_COUNTED: Final = {
    "VirtualNetworks": (NETWORK_TYPE, 1000),
    "NetworkSecurityGroups": (SECURITY_GROUP_TYPE, 5000),
    "NetworkInterfaces": (INTERFACE_TYPE, 65536),
    "LoadBalancers": (LOAD_BALANCER_TYPE, 1000),
}
_ADDRESSES, _MOST_ADDRESSES = "PublicIPAddresses", 1000
#: What a list of resources tells of each.
_LISTED: Final = frozenset({"id", "name", "type", "location", "tags"})
_SUBSCRIPTION: Final = r"/subscriptions/(?P<subscription>[^/]+)"
_WHOLE: Final = "Microsoft.Resources/subscriptions"
_IN_GROUP: Final = "/resourceGroups/(?P<group>[^/]+)/resources"
_NETWORK_USAGES: Final = r"/providers/Microsoft\.Network/locations/[^/]+/usages"
_COMPUTE_REGION: Final = r"/providers/Microsoft\.Compute/locations/[^/]+"


Found = dict[str, Any]
_Row = tuple[str, str, Collection[str], Callable[[Mapping[str, str], str], Found]]


class Lookups:
    """Answers such requests."""

    def __init__(self, context: Context, access: Access) -> None:
        self._context = context
        self._access = access
        network, clusters = ROWS[NETWORK_TYPE].versions, ROWS[CLUSTER_TYPE].versions
        galleries = r"communityGalleries/(?P<gallery>[^/]+)/images/(?P<image>[^/]+)/versions"
        galleries_action = "Microsoft.Compute/locations/communityGalleries/images/versions"
        features = r"/providers/Microsoft\.Features/providers/(?P<namespace>[^/]+)/features/(?P<feature>[^/]+)"
        permissions = r"(?P<scope>(/.+)?)/providers/Microsoft\.Authorization/permissions"
        aks = r"/providers/Microsoft\.ContainerService/locations/[^/]+/kubernetesVersions"
        compute, resources = _COMPUTE_VERSIONS, _RESOURCES_VERSIONS
        # The path below the subscription, what is read, the API versions that it takes, and what answers it.
        rows: tuple[_Row, ...] = (
            ("", _WHOLE, resources, self._subscription),
            ("/locations", f"{_WHOLE}/locations", resources, self._locations),
            (r"/providers/(?P<namespace>[^/]+)", f"{_WHOLE}/providers", resources, self._provider),
            (features, "Microsoft.Features/providers/features", _FEATURES_VERSIONS, self._feature),
            (permissions, "Microsoft.Authorization/permissions", _PERMISSIONS_VERSIONS, self._permissions),
            (_IN_GROUP, f"{_WHOLE}/resourceGroups/resources", resources, self._in_group),
            (r"/providers/Microsoft\.Compute/skus", "Microsoft.Compute/skus", compute, self._skus),
            (f"{_COMPUTE_REGION}/usages", "Microsoft.Compute/locations/usages", compute, self._usages),
            (f"{_COMPUTE_REGION}/{galleries}", galleries_action, compute, self._images),
            (_NETWORK_USAGES, "Microsoft.Network/locations/usages", network, self._network_usages),
            (aks, "Microsoft.ContainerService/locations/kubernetesVersions", clusters, self._kubernetes_versions),
        )
        self._rows = [
            (re.compile(_SUBSCRIPTION + path, re.IGNORECASE), what, versions, answer)
            for path, what, versions, answer in rows
        ]

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
        counts = {name: (len(list(store.of_type(kind))), most) for name, (kind, most) in _COUNTED.items()}
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
