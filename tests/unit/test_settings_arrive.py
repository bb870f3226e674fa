"""Each setting reaches the cloud: another value of it changes an input of a resource, so no hand-over can be lost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from components import aks, eks, settings
from components.aks import node_bootstrap
from tests.unit.example_stack import example
from tests.unit.made_certificates import certificate
from tests.unit.mock_engine import SUBSCRIPTION, deploy

NAP, SELF_HOSTED, EKS = "aks-nap", "aks-self-hosted", "eks"

#: Those that have no value of their own to hand over: the program is chosen by one, another says again that there is a
#: section `karpenter` or none, and the last two consent to something (test_replacement.py, test_old_facts.py).
CHOOSING = {"cloud", "mode", "allowReplacement", "acceptOldFacts"}

ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
POOL = {"template": {"spec": {"requirements": [ON_DEMAND]}}}
MINE = {"template": {"spec": {"nodeClassRef": {"name": "mine"}}}}
IMAGES = {"amiSelectorTerms": [{"alias": "al2023@v20260714"}]}
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/hub/subnets"

#: A VPC that is there, instead of what the example says of its own.
EXISTING: dict[str, Any] = {
    "network.vpcId": "vpc-00000001",
    "network.zones": None,
    "network.natGateways": None,
    "network.flowLogRetentionDays": None,
    "network.subnetIds": ["subnet-0000000a", "subnet-0000000b"],
    "cluster.privateAccessCidrs": ["10.0.0.0/16"],
}

WORKSPACES = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/logs/providers/Microsoft.OperationalInsights/workspaces"

#: AKS wants both of its addresses.
PROXY = {"proxy.http": "http://proxy:3128", "proxy.https": "http://proxy:3128"}

STORES = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft"

#: What the examples say otherwise here, so that each setting can be changed by itself.
GIVEN: dict[str, dict[str, Any]] = {
    EKS: {"nodePools": {"default": POOL}, "nodeClasses": {"default": IMAGES}},
    NAP: {"nodeClasses": {"mine": {}}, "nodePools": {"mine": MINE}},
    SELF_HOSTED: {},
}
#: The same for one setting.
GIVEN_WITH: dict[str, dict[str, Any]] = {
    # A type whose architecture the facts do not know: of any other, one of the two images is refused.
    "systemNodes.amiType": {"systemNodes.instanceType": "g4ad.xlarge"},
    "cluster.logCategories": {"cluster.logWorkspaceId": f"{WORKSPACES}/one"},
    "addons.containerInsights": {"cluster.logWorkspaceId": f"{WORKSPACES}/one"},
    "addons.logWorkspaceLocation": {"cluster.logWorkspaceId": f"{WORKSPACES}/one", "addons.containerInsights": True},
    "addons.metricsWorkspaceId": {"addons.prometheus": True},
    "addons.metricsWorkspaceLocation": {
        "addons.prometheus": True,
        "addons.metricsWorkspaceId": f"{STORES}.Monitor/accounts/shared",
    },
    "addons.vaultIds": {"addons.secretsProvider": True},
    "addons.secretRotation": {"addons.secretsProvider": True},
    "proxy.http": PROXY,
    "proxy.https": PROXY,
    "proxy.noProxy": PROXY,
    "network.subnetIds": EXISTING,
    "network.subnetTags": EXISTING | {"network.subnetIds": [], "network.subnetTags": {"tier": "private"}},
    "network.tagSubnets": EXISTING,
    "network.controlPlaneSubnetIds": EXISTING,
    "network.nodeSecurityGroupIds": EXISTING,
    "network.subnetId": {"network.subnetCidr": None, "network.subnetId": f"{HUB}/one"},
    "cluster.apiServerSubnetId": {"network.subnetCidr": None, "network.subnetId": f"{HUB}/one"},
}
#: Another value of each setting.
OTHER: dict[str, dict[str, Any]] = {
    EKS: {
        "aws:region": "us-west-2",
        "aws:profile": "platform",
        "aws:assumeRoles": [{"roleArn": "arn:aws:iam::123456789012:role/deployer"}],
        "name": "other",
        "tags": {"owner": "others"},
        "network.vpcCidr": "10.1.0.0/16",
        "network.podCidr": "10.245.0.0/16",
        "network.podCidrMaskSize": 25,
        "network.serviceCidr": "172.21.0.0/16",
        "network.zones": 2,
        "network.natGateways": "per-zone",
        "network.endpoints": ["s3"],
        "network.flowLogRetentionDays": 7,
        "network.subnetIds": ["subnet-0000000a", "subnet-0000000c"],
        "network.subnetTags": {"tier": "nodes"},
        "network.tagSubnets": True,
        "network.controlPlaneSubnetIds": ["subnet-0000000c", "subnet-0000000d"],
        "network.nodeSecurityGroupIds": ["sg-00000001"],
        "cluster.version": "1.35",
        "cluster.publicAccessCidrs": ["1.1.1.0/24"],
        "cluster.privateAccessCidrs": ["10.9.0.0/16"],
        "cluster.admins": ["arn:aws:iam::123456789012:role/admin"],
        "cluster.logTypes": ["audit"],
        "cluster.logRetentionDays": 7,
        "cluster.addonVersions": {"coredns": "v1.13.9-eksbuild.1"},
        "cluster.deletionProtection": False,
        "cluster.supportType": "standard",
        "systemNodes.instanceType": "m5.xlarge",
        "systemNodes.amiType": "AL2023_ARM_64_STANDARD",
        "systemNodes.releaseVersion": "1.36.2-20260714",
        "systemNodes.minSize": 1,
        "systemNodes.desiredSize": 3,
        "systemNodes.maxSize": 11,
        "systemNodes.diskSize": 60,
        "cilium.chartVersion": "1.19.6",
        "cilium.hubble": True,
        "cilium.encryption": "wireguard",
        "cilium.defaultDeny": True,
        "addons.ebsCsi": True,
        "addons.metricsServer": True,
        "addons.loadBalancerController": True,
        "karpenter.chartVersion": "1.14.3",
        "karpenter.identity": "irsa",
        "karpenter.interruptionQueue": False,
        "karpenter.serviceMonitor": True,
        "karpenter.replicas": 1,
        "karpenter.featureGates.reservedCapacity": False,
        "karpenter.featureGates.spotToSpotConsolidation": False,
        "karpenter.featureGates.nodeRepair": True,
        "karpenter.featureGates.nodeOverlay": True,
        "karpenter.featureGates.staticCapacity": True,
        "karpenter.featureGates.capacityBuffer": True,
        "karpenter.featureGates.terminateFirstDrift": True,
        "karpenter.featureGates.terminateFirstRepair": True,
        "karpenter.featureGates.podDeletionCostManagement": True,
        "karpenter.settings": {"batchIdleDuration": "2s"},
        "karpenter.resources.requests": {"cpu": "500m"},
        "karpenter.resources.limits": {"cpu": "2"},
        "images.mirrors": {"quay.io": "registry.example.com/quay"},
        "images.nodeMirrors": {"docker.io": "mirror.example.com/hub"},
        "proxy.http": "http://proxy.corp.example:3128",
        "proxy.https": "http://proxy.corp.example:3128",
        "proxy.noProxy": [".corp.example"],
        "trustedCertificates": [certificate()],
        "nodeClasses": {"default": IMAGES | {"detailedMonitoring": True}},
        "nodePools": {"default": POOL | {"weight": 2}},
    },
    NAP: {
        "azure-native:location": "eastus",
        "azure-native:subscriptionId": "22222222-2222-2222-2222-222222222222",
        "name": "other",
        "tags": {"owner": "others"},
        "network.vnetCidr": "10.224.0.0/15",
        "network.subnetCidr": "10.224.16.0/20",
        "network.subnetId": f"{HUB}/other",
        "network.outboundType": "userAssignedNATGateway",
        "network.podCidr": "10.200.0.0/16",
        "network.serviceCidr": "10.1.0.0/16",
        "cluster.version": "1.35",
        "cluster.tier": "Free",
        "cluster.publicAccessCidrs": ["1.1.1.0/24"],
        "cluster.apiServerSubnetId": f"{HUB}/api-server",
        "cluster.privateDnsZone": "none",
        "cluster.localAccounts": True,
        "cluster.kubelogin": "msi",
        "cluster.deployerRole": "ServicePrincipal",
        "cluster.admins": ["22222222-2222-2222-2222-222222222222"],
        "cluster.logWorkspaceId": f"{WORKSPACES}/other",
        "cluster.logCategories": ["kube-audit-admin", "karpenter-events"],
        "cluster.deletionProtection": False,
        "systemNodes.vmSize": "Standard_D8s_v5",
        "systemNodes.count": 3,
        "systemNodes.zones": [1],
        "systemNodes.osSKU": "AzureLinux",
        "systemNodes.diskSize": 256,
        "nodeProvisioning.defaultNodePools": "None",
        "nodeProvisioning.allowStrandedNodes": True,
        "cilium.hubble": True,
        "cilium.advancedPolicies": "L7",
        "cilium.defaultDeny": True,
        "addons.logRetentionDays": 90,
        "addons.containerInsights": True,
        "addons.logWorkspaceLocation": "eastus",
        "addons.prometheus": True,
        "addons.metricsWorkspaceId": f"{STORES}.Monitor/accounts/shared",
        "addons.metricsWorkspaceLocation": "eastus",
        "addons.registryIds": [f"{STORES}.ContainerRegistry/registries/shared"],
        "addons.secretsProvider": True,
        "addons.vaultIds": [f"{STORES}.KeyVault/vaults/shared"],
        "addons.secretRotation": "1h",
        "proxy.http": "http://other:3128",
        "proxy.https": "http://other:3128",
        "proxy.noProxy": [".corp.example"],
        "trustedCertificates": [certificate()],
        "nodeClasses": {"mine": {"maxPods": 100}},
        "nodePools": {"mine": MINE | {"weight": 2}},
    },
    SELF_HOSTED: {
        "karpenter.chartVersion": "1.14.3",
        "karpenter.sshPublicKey": "ssh-rsa " + "A" * 60,
        "images.mirrors": {"mcr.microsoft.com": "registry.example.com/mcr"},
        "karpenter.bootstrapTokenGeneration": 2,
        "karpenter.bootstrapTokenDays": 30,
        "karpenter.replicas": 1,
        "karpenter.featureGates.reservedCapacity": True,
        "karpenter.featureGates.spotToSpotConsolidation": True,
        "karpenter.featureGates.nodeRepair": True,
        "karpenter.featureGates.nodeOverlay": True,
        "karpenter.featureGates.staticCapacity": True,
        "karpenter.settings": {"batchIdleDuration": "2s"},
        "karpenter.resources.requests": {"cpu": "500m"},
        "karpenter.resources.limits": {"cpu": "2"},
    },
}


def keys(model: type[BaseModel]) -> Iterator[str]:
    """The settings below a section, as in a stack's file."""
    for field in model.model_fields.values():
        key = str(field.validation_alias)
        # A list of sections is one setting.
        branches = () if get_origin(field.annotation) is list else (field.annotation, *get_args(field.annotation))
        section = next((one for one in branches if isinstance(one, type) and issubclass(one, BaseModel)), None)
        yield from (f"{key}.{deeper}" for deeper in keys(section)) if section else (key,)


def inputs(stack: str, changes: dict[str, Any]) -> dict[str, Any]:
    """What the engine would be asked for, by URN."""

    def program() -> None:
        match settings.load(example(stack, **{key.replace(".", "__"): value for key, value in changes.items()})):
            case settings.EksSettings() as args:
                eks.Environment("eks", args)
            case settings.AksSettings() as args:
                aks.Environment("aks", args)

    with pytest.MonkeyPatch.context() as patch:
        # The bootstrap token is drawn anew each time; here it must not be a change.
        patch.setattr(node_bootstrap, "secrets", SimpleNamespace(choice=min))
        resources = deploy(program).resources.values()
    return {
        each.urn: (each.inputs, str(each.request.hooks), each.request.protect)
        for each in resources
        if each.request.custom
    }


@cache
def unchanged(stack: str, key: str) -> dict[str, Any]:
    """The same of the example; `key` where something is given with that setting."""
    return inputs(stack, GIVEN[stack] | GIVEN_WITH.get(key, {}))


CASES = [(stack, key) for stack, changes in OTHER.items() for key in changes]


@pytest.mark.parametrize(("stack", "key"), CASES)
def test_another_value_changes_an_input(stack: str, key: str) -> None:
    changed = inputs(stack, GIVEN[stack] | GIVEN_WITH.get(key, {}) | {key: OTHER[stack][key]})
    assert changed != unchanged(stack, key if key in GIVEN_WITH else ""), (
        f"{key} changes nothing: it is accepted, and lost on its way to the resources"
    )


@pytest.mark.parametrize("stack", OTHER)
def test_without_another_value_nothing_changes(stack: str) -> None:
    assert inputs(stack, GIVEN[stack]) == unchanged(stack, "")


def test_every_setting_has_another_value_here() -> None:
    # Resources name the subnets of a VPC that is there, never itself; test_existing_vpc.py has what it chooses.
    assert {*OTHER[EKS], *CHOOSING - {"mode"}, "network.vpcId"} == {*keys(settings.EksSettings)}
    assert {*OTHER[NAP], *OTHER[SELF_HOSTED], *CHOOSING} == {*keys(settings.AksSettings)}
