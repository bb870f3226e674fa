"""Whose subscription this is, and what it is registered to use there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from components.settings import AksSettings, ExistingAksSettings

from ..finding import Finding
from ..stack import not_read
from .api_versions import RESOURCES, SUBSCRIPTIONS
from .subject import StackSubject, Subject

_FEATURES: Final = "2021-07-01"
_READ: Final = "Microsoft.Resources/subscriptions/read"
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
    yield Finding(
        "note",
        f"asked as {subject.azure.words} in the subscription {told.get('displayName')} "
        f"({subject.azure.subscription}), tenant {told.get('tenantId')}, location {subject.region}",
        "the stack would be made there",
        "",
        _READ,
    )
    yield from not_read(subject.state)
    yield from _tenant(subject)
    if told.get("state") != "Enabled":
        yield Finding(
            "error",
            f"the subscription's state is {told.get('state')}",
            "Azure refuses to make anything: ReadOnlyDisabledSubscription, or SubscriptionNotFound",
            "enable it (az account show; the portal says what it waits for), or choose another in "
            "azure-native:subscriptionId",
            _READ,
        )


def _tenant(subject: StackSubject) -> Iterator[Finding]:
    """A login of another tenant than the cluster's, whose API server does not take its tokens."""
    settings, own = subject.settings, str(subject.told.get("tenantId", "")).lower()
    uses_entra = isinstance(settings, AksSettings | ExistingAksSettings) and not settings.cluster.local_accounts
    tenant = subject.azure.tenant()
    if uses_entra and tenant and tenant != own:
        yield Finding(
            "error",
            f"the login ({subject.azure.words}) is of the tenant {tenant}, and the subscription of the tenant {own}",
            "the cluster takes tokens of the subscription's tenant only: it answers each call of kubelogin with 401, "
            "and pulumi up fails after the control plane",
            f"az login --tenant {own}, or for an application ARM_TENANT_ID={own}",
            _READ,
        )


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
        yield Finding(
            "warning" if by_pulumi else "error",
            f"the resource provider {namespace} is {state}, and {needed_for} need it"
            if needed_for.endswith("s")
            else f"the resource provider {namespace} is {state}, and {needed_for} needs it",
            "pulumi up registers it in passing, which takes minutes and the right to; without that, it is refused: "
            "MissingSubscriptionRegistration"
            if by_pulumi
            else "AKS refuses the cluster after the network is made: MissingSubscriptionRegistration",
            f"az provider register --subscription {subject.azure.subscription} --namespace {namespace} --wait",
            _PROVIDERS,
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
        yield Finding(
            "error",
            f"the feature Microsoft.Compute/EncryptionAtHost is {state}, and karpstack:nodeClasses."
            f"{', '.join(wanted)} has security.encryptionAtHost",
            "Azure refuses each of its machines (InvalidParameter: securityProfile.encryptionAtHost), and no pod gets "
            "a node",
            f"az feature register --subscription {subject.azure.subscription} --namespace Microsoft.Compute --name "
            "EncryptionAtHost, and az provider register --namespace Microsoft.Compute once it is Registered",
            _FEATURE,
        )


def region(subject: Subject) -> Iterator[Finding]:
    """A location that the subscription has not, or that AKS is not in."""
    found = subject.azure.all(_LOCATIONS, f"{subject.azure.scope}/locations", SUBSCRIPTIONS)
    known = sorted(one["name"] for one in found)
    if subject.region not in known:
        yield Finding(
            "error",
            f"azure-native:location = {subject.region} is no location of this subscription",
            "the resource group is refused: LocationNotAvailableForResourceGroup",
            f"set it to one of {', '.join(known)}",
            _LOCATIONS,
        )
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
        yield Finding(
            "error",
            f"AKS is not offered to this subscription in {subject.region}",
            "the cluster is refused after the network is made: LocationNotAvailableForResourceType",
            f"set azure-native:location to one of {', '.join(sorted(offered))}",
            _PROVIDERS,
        )
