"""Whose subscription this is, whether it is the stack's, and what it is registered to use there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.components.naming import AksNames
from karpstack.components.settings import AksSettings, ExistingAksSettings

from ..finding import Finding, NotAskedError, UnknowableError, finding
from ..stack import State, not_read
from . import credentials
from .api_versions import CONTAINER_SERVICE, RESOURCES, SUBSCRIPTIONS
from .asking import Azure
from .subject import GROUP, StackSubject, Subject

_FEATURES: Final = "2021-07-01"
_READ: Final = "Microsoft.Resources/subscriptions/read"
_GROUPS: Final = "Microsoft.Resources/subscriptions/resourceGroups/read"
_CLUSTERS: Final = "Microsoft.ContainerService/managedClusters/read"
_OF_ID: Final = re.compile("/subscriptions/([^/]+)/", re.IGNORECASE)
_LOCATIONS: Final = "Microsoft.Resources/subscriptions/locations/read"
_PROVIDERS: Final = "Microsoft.Resources/subscriptions/providers/read"
_FEATURE: Final = "Microsoft.Features/providers/features/read"

#: Resource providers that Pulumi's provider asks itself: it registers them at their first refusal, if it may.
_ASKED: Final[Mapping[str, str]] = {
    "Microsoft.ContainerService": "the cluster",
    "Microsoft.ManagedIdentity": "the identities",
    "Microsoft.Network": "the network",
}
#: Those that AKS asks, for whom nobody registers them.
_BEHIND: Final[Mapping[str, str]] = {"Microsoft.Compute": "the nodes", "Microsoft.Storage": "volumes and images"}
_IDENTITIES: Final = "Microsoft.ManagedIdentity"
_INSIGHTS: Final = "Microsoft.Insights"
_WORKSPACES: Final = "Microsoft.OperationalInsights"
_METRICS: Final = "Microsoft.Monitor"


def subscription(subject: StackSubject) -> Iterator[Finding]:
    """Who asks, where; a subscription that is not enabled; a state that could not be read."""
    told = subject.told
    yield finding(
        "asked-as-on-azure",
        _READ,
        words=subject.azure.words,
        display_name=told.get("displayName"),
        subscription=subject.azure.subscription,
        tenant_id=told.get("tenantId"),
        region=subject.region,
    )
    yield from not_read(subject.state)
    yield from _tenant(subject)
    if told.get("state") != "Enabled":
        yield finding("subscription-not-enabled", _READ, state=told.get("state"))


def connect(raw: Mapping[str, Any], made: State | None = None) -> Azure | None:
    """Return the stack's subscription as its provider sees it, None where nothing says which; another one is refused.

    In another subscription, nothing of the stack would be found, which looks as if nothing were in the way.

    Args:
        raw: The stack's configuration, with `azure-native:` keys.
        made: What Pulumi's state holds, where it is known: the id of its resource group names the subscription.

    Raises:
        UnknowableError: The subscription is not the stack's, or there is no login.
    """
    named = credentials.subscription(raw)
    if not named:
        return None
    ensure_subscription_of_state(named, made or State())
    return Azure(named, credentials.login(raw))


def ensure_subscription_of_state(named: str, made: State) -> None:
    """See that a subscription is that of what Pulumi has made, by the id of the resource group in its state.

    Raises:
        UnknowableError: It is another one.
    """
    groups = [_OF_ID.match(name) for kind, name in made.resources if kind == GROUP]
    own = {found[1].lower() for found in groups if found}
    if own and named.lower() not in own:
        raise UnknowableError(
            f"the stack's resources are in the subscription {', '.join(sorted(own))}, and azure-native:subscriptionId "
            f"or ARM_SUBSCRIPTION_ID names {named}, so nothing is asked there; give the stack's subscription"
        )


def ensure_subscription_has_cluster(azure: Azure, names: AksNames) -> None:
    """See that a subscription has a cluster that answers, or the resource group of its nodes.

    Raises:
        UnknowableError: It does not, so that it is not the stack's.
    """
    try:
        if azure.find(_GROUPS, azure.group(names.node_resource_group), RESOURCES) is not None:
            return
        path = f"{azure.scope}/providers/Microsoft.ContainerService/managedClusters"
        clusters = [str(one.get("name")).lower() for one in azure.all(_CLUSTERS, path, CONTAINER_SERVICE)]
    except NotAskedError:  # as each check says
        return
    if names.cluster.lower() not in clusters:
        raise UnknowableError(
            f"the subscription {azure.subscription} has no cluster {names.cluster}, so it is not the stack's, and "
            "nothing would be found in it; give the stack's subscription as azure-native:subscriptionId or "
            "ARM_SUBSCRIPTION_ID"
        )


def _tenant(subject: StackSubject) -> Iterator[Finding]:
    """A login of another tenant than the cluster's, whose API server does not take its tokens."""
    settings, own = subject.settings, str(subject.told.get("tenantId", "")).lower()
    uses_entra = isinstance(settings, AksSettings | ExistingAksSettings) and not settings.cluster.local_accounts
    tenant = subject.azure.tenant()
    if uses_entra and tenant and tenant != own:
        yield finding("login-of-another-tenant", _READ, words=subject.azure.words, tenant=tenant, own=own)


def providers(subject: StackSubject) -> Iterator[Finding]:
    """Resource providers that the subscription is not registered to use."""
    asked, behind = {**_ASKED}, {**_BEHIND}
    if isinstance(subject, Subject):
        asked |= _monitoring(subject.settings)
    else:  # a cluster that is there has the rest
        asked, behind = ({_IDENTITIES: _ASKED[_IDENTITIES]} if subject.makes_group else {}), {}
    for namespace, needed_for in {**asked, **behind}.items():
        found = subject.azure.ask(_PROVIDERS, f"{subject.azure.scope}/providers/{namespace}", RESOURCES)
        state = found.get("registrationState")
        if state == "Registered":
            continue
        by_pulumi = namespace in asked
        yield finding(
            "resource-provider-registered-in-passing" if by_pulumi else "resource-provider-not-registered",
            _PROVIDERS,
            namespace=namespace,
            state=state,
            needed_for=f"{needed_for} need" if needed_for.endswith("s") else f"{needed_for} needs",
            subscription=subject.azure.subscription,
        )


def _monitoring(settings: AksSettings) -> dict[str, str]:
    """What monitoring needs beside."""
    addons = settings.addons
    found = {}
    if settings.cluster.log_workspace_id or addons.log_retention_days:
        found[_INSIGHTS] = "the control plane's logs"
    if addons.log_retention_days:
        found[_WORKSPACES] = "the workspace for logs"
    if addons.prometheus:
        found |= {_INSIGHTS: "data collection rules", _METRICS: "the metrics"}
    return found


def features(subject: StackSubject) -> Iterator[Finding]:
    """Features that node classes ask for and the subscription is not registered for."""
    wanted = [
        name
        for name, spec in subject.settings.node_classes.items()
        if (spec.get("security") or {}).get("encryptionAtHost")
    ]
    if not wanted:
        return
    path = f"{subject.azure.scope}/providers/Microsoft.Features/providers/Microsoft.Compute/features/EncryptionAtHost"
    found = subject.azure.find(_FEATURE, path, _FEATURES)
    state = ((found or {}).get("properties") or {}).get("state", "NotRegistered")
    if state != "Registered":
        yield finding(
            "encryption-at-host-not-registered",
            _FEATURE,
            state=state,
            wanted=wanted,
            subscription=subject.azure.subscription,
        )


def region(subject: Subject) -> Iterator[Finding]:
    """A location that the subscription has not, or that AKS is not in."""
    found = subject.azure.all(_LOCATIONS, f"{subject.azure.scope}/locations", SUBSCRIPTIONS)
    known = sorted(one["name"] for one in found)
    if subject.region not in known:
        yield finding("location-not-available", _LOCATIONS, region=subject.region, known=known)
        return
    aks = subject.azure.ask(_PROVIDERS, f"{subject.azure.scope}/providers/Microsoft.ContainerService", RESOURCES)
    offered = {
        # Here Azure writes the locations' display names, West US 2.
        name.replace(" ", "").lower()
        for kind in aks.get("resourceTypes", ())
        if kind["resourceType"].lower() == "managedclusters"
        for name in kind.get("locations", ())
    }
    if offered and subject.region not in offered:
        yield finding("aks-not-offered", _PROVIDERS, region=subject.region, offered=sorted(offered))
