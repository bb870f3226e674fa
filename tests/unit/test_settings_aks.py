"""components.settings for AKS: what it takes, and each refusal with key, value, consequence and fix."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Any

import pytest

from components import settings, versions
from components.problems import Problem, SettingsError, shown
from tests.unit.example_stack import aks, example

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
SUBNET = "/subscriptions/{}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/shared/subnets/aks"
SUBSCRIPTION = "12345678-1234-1234-1234-123456789012"
DROP = object()
API_SERVER = SUBNET.format(SUBSCRIPTION).replace("/aks", "/api-server")
ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/privateDnsZones/{{}}"
#: A subnet that is there instead of one that the stack makes.
EXISTING: dict[str, Any] = {"network__subnetCidr": None, "network__subnetId": SUBNET.format(SUBSCRIPTION)}


def raw(stack: str, **changes: Any) -> dict[str, str]:
    """Like `example`; a change `location` or `subscription` is azure-native's."""
    azure = {
        key: changes.pop(name)
        for name, key in (("location", "azure-native:location"), ("subscription", "azure-native:subscriptionId"))
        if name in changes
    }
    return {key: value for key, value in {**example(stack, **changes), **azure}.items() if value is not DROP}


def problems(stack: str, **changes: Any) -> list[Problem]:
    with pytest.raises(SettingsError) as caught:
        settings.load(raw(stack, **changes))
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return list(caught.value.problems)


def test_the_examples_are_taken() -> None:
    nap, self_hosted = aks(NAP), aks(SELF_HOSTED)
    assert (nap.mode, self_hosted.mode) == ("nap", "self-hosted")
    assert nap.karpenter is None
    assert self_hosted.karpenter is not None
    assert nap.network.pod_cidr == IPv4Network("10.244.0.0/16")
    assert self_hosted.node_classes["default"]["imageFamily"] == "Ubuntu"


def test_defaults_are_the_safe_ones() -> None:
    loaded = aks(NAP, cluster={"version": "1.36"}, systemNodes=None, tags=None, nodeProvisioning=None)
    assert loaded.cluster.public_access_cidrs == []
    assert loaded.cluster.local_accounts is False
    assert loaded.system_nodes.zones == [1, 2, 3]
    assert not loaded.node_provisioning.allow_stranded_nodes


def pool(**node: Any) -> dict[str, Any]:
    return {"template": {"spec": node}}


#: Mode, what is changed, then the problem that must come of it: key, value, and parts of consequence and fix.
REFUSALS: dict[str, tuple[str, dict[str, Any], str, str, str, str]] = {
    "no subscription": (
        SELF_HOSTED,
        {"subscription": DROP},
        "azure-native:subscriptionId",
        "(not set)",
        "is required",
        "controller stops at start-up",
    ),
    "a subscription by name": (
        NAP,
        {"subscription": "production"},
        "azure-native:subscriptionId",
        '"production"',
        "is a GUID",
        "names do not work",
    ),
    "no location": (NAP, {"location": DROP}, "azure-native:location", "(not set)", "is required", "westus2"),
    "a location in words": (
        NAP,
        {"location": "West US 2"},
        "azure-native:location",
        '"West US 2"',
        "short form",
        "write it like westus2",
    ),
    "no mode": (NAP, {"mode": None}, "karpstack:mode", "(not set)", "is required", "nap (AKS runs Karpenter)"),
    "another mode": (NAP, {"mode": "manual"}, "karpstack:mode", '"manual"', "cannot be used", "self-hosted"),
    "Windows profile": (
        NAP,
        {"cluster__windowsProfile": {"adminUsername": "x"}},
        "karpstack:cluster.windowsProfile",
        '{"adminUsername": "x"}',
        "asks for Windows nodes",
        "cluster of its own",
    ),
    "a Windows pool": (
        NAP,
        {"systemNodes__osType": "Windows"},
        "karpstack:systemNodes.osType",
        '"Windows"',
        "Windows nodes",
        "remove it",
    ),
    "a NodePool for Windows": (
        SELF_HOSTED,
        {"nodePools__win": pool(requirements=[{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}])},
        "karpstack:nodePools.win.template.spec.requirements[0]",
        '{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}',
        "Windows nodes",
        "In [linux]",
    ),
    "a Windows image": (
        SELF_HOSTED,
        {"nodeClasses__default__imageFamily": "Windows2022"},
        "karpstack:nodeClasses.default.imageFamily",
        '"Windows2022"',
        "cannot make Windows nodes",
        "Ubuntu2204",
    ),
    "IPv6": (
        NAP,
        {"network__ipFamilies": ["IPv4", "IPv6"]},
        "karpstack:network.ipFamilies",
        '["IPv4", "IPv6"]',
        "asks for IPv6",
        "IPv4",
    ),
    "an IPv6 range": (
        NAP,
        {"network__podCidr": "fd00::/104"},
        "karpstack:network.podCidr",
        '"fd00::/104"',
        "is an IPv6 range",
        "use an IPv4 range",
    ),
    "a pool of the autoscaler's": (
        NAP,
        {"systemNodes__maxCount": 5},
        "karpstack:systemNodes.maxCount",
        "5",
        "two autoscalers fight",
        "set count",
    ),
    "the cluster autoscaler": (
        SELF_HOSTED,
        {"cluster__autoScalerProfile": {}},
        "karpstack:cluster.autoScalerProfile",
        "{}",
        "two autoscalers fight",
        "Karpenter scales",
    ),
    "a service principal": (
        NAP,
        {"cluster__servicePrincipalProfile": {"clientId": "x"}},
        "karpstack:cluster.servicePrincipalProfile",
        '{"clientId": "x"}',
        "need managed identities",
        "makes managed identities",
    ),
    "a disk encryption set": (
        NAP,
        {"cluster__diskEncryptionSetId": "/x"},
        "karpstack:cluster.diskEncryptionSetId",
        '"/x"',
        "node auto provisioning would take one",
        "encryptionAtHost",
    ),
    "stop": (
        SELF_HOSTED,
        {"cluster__powerState": "Stopped"},
        "karpstack:cluster.powerState",
        '"Stopped"',
        "asks to stop the cluster",
        "limits.cpu",
    ),
    "a gateway of AKS's": (
        NAP,
        {"network__outboundType": "managedNATGateway"},
        "karpstack:network.outboundType",
        '"managedNATGateway"',
        "ManagedNATGatewayWithCustomVNetNotAllowed",
        "write userAssignedNATGateway",
    ),
    "no way out": (
        SELF_HOSTED,
        {"network__outboundType": "none"},
        "karpstack:network.outboundType",
        '"none"',
        "unless a registry of yours holds what its nodes fetch",
        "write userDefinedRouting",
    ),
    "a way out that there is not": (
        NAP,
        {"network__outboundType": "natGateway"},
        "karpstack:network.outboundType",
        '"natGateway"',
        "cannot be used",
        "userAssignedNATGateway",
    ),
    "routes of a subnet that the stack makes": (
        NAP,
        {"network__outboundType": "userDefinedRouting"},
        "karpstack:network.outboundType",
        '"userDefinedRouting"',
        "ExistingRouteTableNotAssociatedWithSubnet",
        "name in karpstack:network.subnetId",
    ),
    "the profile of a gateway": (
        NAP,
        {"network__natGatewayProfile": {"idleTimeoutInMinutes": 4}},
        "karpstack:network.natGatewayProfile",
        '{"idleTimeoutInMinutes": 4}',
        "here it is always given one",
        "outboundType",
    ),
    "the profile of a load balancer": (
        NAP,
        {"network__loadBalancerProfile": {}},
        "karpstack:network.loadBalancerProfile",
        "{}",
        "standard load balancer",
        "outboundType",
    ),
    "no overlay": (
        NAP,
        {"network__networkPluginMode": "none"},
        "karpstack:network.networkPluginMode",
        '"none"',
        "never be ready",
        "always azure, overlay",
    ),
    "Calico": (
        NAP,
        {"network__networkPolicy": "calico"},
        "karpstack:network.networkPolicy",
        '"calico"',
        "overlay with Cilium",
        "cilium",
    ),
    "an unknown key": (
        NAP,
        {"cluster__localAcounts": True},
        "karpstack:cluster.localAcounts",
        "true",
        "is not a setting",
        "did you mean localAccounts?",
    ),
    "pods overlap the network": (
        NAP,
        {"network__podCidr": "10.224.128.0/17"},
        "karpstack:network.podCidr",
        '"10.224.128.0/17"',
        "overlaps vnetCidr 10.224.0.0/16",
        "outside 10.224.0.0/16",
    ),
    "services overlap the pods": (
        NAP,
        {"network__serviceCidr": "10.244.8.0/22"},
        "karpstack:network.serviceCidr",
        '"10.244.8.0/22"',
        "overlaps podCidr 10.244.0.0/16",
        "outside 10.244.0.0/16",
    ),
    "pods in a range of AKS's": (
        NAP,
        {"network__podCidr": "172.30.0.0/16"},
        "karpstack:network.podCidr",
        '"172.30.0.0/16"',
        "AKS keeps for itself",
        "outside 169.254.0.0/16",
    ),
    "services too large": (
        NAP,
        {"network__serviceCidr": "10.0.0.0/9"},
        "karpstack:network.serviceCidr",
        '"10.0.0.0/9"',
        "is refused by AKS",
        "/13 to /28",
    ),
    "one node's pods": (
        NAP,
        {"network__podCidr": "10.244.0.0/24"},
        "karpstack:network.podCidr",
        '"10.244.0.0/24"',
        "one node at most",
        "larger range",
    ),
    "fewer shares than nodes": (
        NAP,
        {"network__podCidr": "10.244.0.0/23"},
        "karpstack:network.podCidr",
        '"10.244.0.0/23"',
        "has room for 2 nodes",
        "larger podCidr",
    ),
    "a subnet outside the network": (
        NAP,
        {"network__subnetCidr": "10.225.0.0/20"},
        "karpstack:network.subnetCidr",
        '"10.225.0.0/20"',
        "lies outside vnetCidr",
        "a part of 10.224.0.0/16, or remove it where subnetId",
    ),
    "a subnet without room": (
        NAP,
        {"network__subnetCidr": "10.224.0.0/29"},
        "karpstack:network.subnetCidr",
        '"10.224.0.0/29"',
        "no address left",
        "a /20",
    ),
    "no subnet": (
        NAP,
        {"network__subnetCidr": None},
        "karpstack:network.subnetId",
        "(not set)",
        "leaves open which subnet",
        "exactly one",
    ),
    "two subnets": (
        NAP,
        {"network__subnetId": SUBNET.format(SUBSCRIPTION)},
        "karpstack:network.subnetId",
        json.dumps(SUBNET.format(SUBSCRIPTION))[:117] + "...",
        "leaves open which subnet",
        "exactly one",
    ),
    "no subnet's ID": (
        NAP,
        {"network__subnetCidr": None, "network__subnetId": "nodes"},
        "karpstack:network.subnetId",
        '"nodes"',
        "is no resource ID",
        "/subnets/<subnet>",
    ),
    "a subnet of another subscription": (
        NAP,
        {"network__subnetCidr": None, "network__subnetId": SUBNET.format("0" * 8)},
        "karpstack:network.subnetId",
        json.dumps(SUBNET.format("0" * 8)),
        "another subscription",
        "same subscription",
    ),
    "version too old": (
        SELF_HOSTED,
        {"cluster__version": "1.31"},
        "karpstack:cluster.version",
        '"1.31"',
        "resolve the images",
        "choose 1.32 to 1.36",
    ),
    "version without quotes": (
        NAP,
        {"cluster__version": 1.3},
        "karpstack:cluster.version",
        "1.3",
        "YAML reads 1.30 as 1.3",
        "in quotes",
    ),
    "open to the world": (
        NAP,
        {"cluster__publicAccessCidrs": ["0.0.0.0/0"]},
        "karpstack:cluster.publicAccessCidrs[0]",
        '"0.0.0.0/0"',
        "to the whole internet",
        "closes the public endpoint",
    ),
    "an administrator by name": (
        NAP,
        {"cluster__admins": ["platform-admins"]},
        "karpstack:cluster.admins[0]",
        '"platform-admins"',
        "is a GUID",
        "names do not work",
    ),
    "too few pods": (
        NAP,
        {"nodeClasses__batch__maxPods": 9},
        "karpstack:nodeClasses.batch.maxPods",
        "9",
        "from 10 to 250",
        "choose 10 to 250",
    ),
    "too many pods": (
        NAP,
        {"nodeClasses__batch__maxPods": 251},
        "karpstack:nodeClasses.batch.maxPods",
        "251",
        "from 10 to 250",
        "choose 10 to 250",
    ),
    "a disk too small": (
        NAP,
        {"nodeClasses__batch__osDiskSizeGB": 29},
        "karpstack:nodeClasses.batch.osDiskSizeGB",
        "29",
        "from 30 to 2048",
        "choose 30 to 2048",
    ),
    "a disk too large": (
        NAP,
        {"nodeClasses__batch__osDiskSizeGB": 2049},
        "karpstack:nodeClasses.batch.osDiskSizeGB",
        "2049",
        "from 30 to 2048",
        "choose 30 to 2048",
    ),
    "a disk with a unit": (
        NAP,
        {"nodeClasses__batch__osDiskSizeGB": "64Gi"},
        "karpstack:nodeClasses.batch.osDiskSizeGB",
        '"64Gi"',
        "is not a number",
        "choose 30 to 2048",
    ),
    "an image family that is gone": (
        SELF_HOSTED,
        {"nodeClasses__default__imageFamily": "Ubuntu2004"},
        "karpstack:nodeClasses.default.imageFamily",
        '"Ubuntu2004"',
        "ImagesReady",
        "Ubuntu2404",
    ),
    "FIPS, self-hosted": (
        SELF_HOSTED,
        {"nodeClasses__default": {"imageFamily": "AzureLinux", "fipsMode": "FIPS"}},
        "karpstack:nodeClasses.default.fipsMode",
        '"FIPS"',
        "no image resolves",
        "Disabled",
    ),
    "FIPS on an Ubuntu without it": (
        NAP,
        {"nodeClasses__batch": {"imageFamily": "Ubuntu2404", "fipsMode": "FIPS"}},
        "karpstack:nodeClasses.batch.fipsMode",
        '"FIPS"',
        "has no image in the family Ubuntu2404",
        "AzureLinux",
    ),
    "a pinned image": (
        NAP,
        {"nodeClasses__batch__imageVersion": "202511.01.0"},
        "karpstack:nodeClasses.batch.imageVersion",
        '"202511.01.0"',
        "never joined",
        "remove it",
    ),
    "a subnet that is none": (
        NAP,
        {"nodeClasses__batch__vnetSubnetID": "/x"},
        "karpstack:nodeClasses.batch.vnetSubnetID",
        '"/x"',
        "SubnetIDInvalid",
        "write /subscriptions/",
    ),
    "a subnet elsewhere, beside a network of the stack's own": (
        NAP,
        {"nodeClasses__batch__vnetSubnetID": SUBNET.format(SUBSCRIPTION)},
        "karpstack:nodeClasses.batch.vnetSubnetID",
        shown(SUBNET.format(SUBSCRIPTION)),
        "a network of the stack's own, which has one subnet",
        "network.subnetId instead of subnetCidr",
    ),
    "a subnet of another network": (
        NAP,
        EXISTING | {"nodeClasses__batch__vnetSubnetID": SUBNET.format(SUBSCRIPTION).replace("/shared/", "/other/")},
        "karpstack:nodeClasses.batch.vnetSubnetID",
        shown(SUBNET.format(SUBSCRIPTION).replace("/shared/", "/other/")),
        "another network than the cluster",
        "virtualNetworks/shared",
    ),
    "a subnet of a network in another spelling": (
        NAP,
        EXISTING | {"nodeClasses__batch__vnetSubnetID": SUBNET.format(SUBSCRIPTION).replace("/hub/", "/Hub/")},
        "karpstack:nodeClasses.batch.vnetSubnetID",
        shown(SUBNET.format(SUBSCRIPTION).replace("/hub/", "/Hub/")),
        "Karpenter tells upper from lower case",
        "resourceGroups/hub/",
    ),
    "an API server in a subnet that is none": (
        NAP,
        EXISTING | {"cluster__apiServerSubnetId": "api-server"},
        "karpstack:cluster.apiServerSubnetId",
        '"api-server"',
        "no resource ID of a subnet",
        "write /subscriptions/",
    ),
    "an API server in a subnet, nodes in a network of the stack's own": (
        NAP,
        {"cluster__apiServerSubnetId": API_SERVER},
        "karpstack:cluster.apiServerSubnetId",
        shown(API_SERVER),
        "must be in the network of the nodes",
        "network.subnetId instead of subnetCidr",
    ),
    "an API server in another network": (
        NAP,
        EXISTING | {"cluster__apiServerSubnetId": API_SERVER.replace("/shared/", "/other/")},
        "karpstack:cluster.apiServerSubnetId",
        shown(API_SERVER.replace("/shared/", "/other/")),
        "another network than the nodes",
        "virtualNetworks/shared",
    ),
    "an API server among nodes": (
        NAP,
        EXISTING | {"cluster__apiServerSubnetId": SUBNET.format(SUBSCRIPTION)},
        "karpstack:cluster.apiServerSubnetId",
        shown(SUBNET.format(SUBSCRIPTION)),
        "SubnetIsDelegated",
        "a /28 at least",
    ),
    "a zone that is none": (
        NAP,
        {"cluster__privateDnsZone": "privatelink.westus2.azmk8s.io"},
        "karpstack:cluster.privateDnsZone",
        '"privatelink.westus2.azmk8s.io"',
        "neither system nor none",
        "privateDnsZones/<name>",
    ),
    "a private zone of a public cluster": (
        NAP,
        {"cluster__privateDnsZone": "none", "cluster__publicAccessCidrs": ["1.1.1.0/24"]},
        "karpstack:cluster.privateDnsZone",
        '"none"',
        "is of a private cluster",
        "empty karpstack:cluster.publicAccessCidrs",
    ),
    "a zone of another location": (
        NAP,
        {"cluster__privateDnsZone": ZONE.format("privatelink.eastus.azmk8s.io")},
        "karpstack:cluster.privateDnsZone",
        shown(ZONE.format("privatelink.eastus.azmk8s.io")),
        "not named as AKS demands it in westus2",
        "name a zone privatelink.westus2.azmk8s.io",
    ),
    "a zone of private link, which an API server in a subnet has not": (
        NAP,
        EXISTING
        | {
            "cluster__apiServerSubnetId": API_SERVER,
            "cluster__privateDnsZone": ZONE.format("privatelink.westus2.azmk8s.io"),
        },
        "karpstack:cluster.privateDnsZone",
        shown(ZONE.format("privatelink.westus2.azmk8s.io")),
        "not named as AKS demands it",
        "name a zone private.westus2.azmk8s.io",
    ),
    "a node class of another cloud": (
        NAP,
        {"nodePools__batch": pool(nodeClassRef={"name": "batch", "kind": "EC2NodeClass"})},
        "karpstack:nodePools.batch.template.spec.nodeClassRef.kind",
        '"EC2NodeClass"',
        "is not this cloud's",
        "write AKSNodeClass",
    ),
    "a node class that is not there": (
        SELF_HOSTED,
        {"nodePools__general-purpose": pool(nodeClassRef={"name": "gpu"})},
        "karpstack:nodePools.general-purpose.template.spec.nodeClassRef.name",
        '"gpu"',
        "names no node class",
        "choose one of karpstack:nodeClasses: default",
    ),
    "another dataplane": (
        SELF_HOSTED,
        {"nodePools__x": {"template": {"metadata": {"labels": {"kubernetes.azure.com/ebpf-dataplane": "azure"}}}}},
        'karpstack:nodePools.x.template.metadata.labels["kubernetes.azure.com/ebpf-dataplane"]',
        '"azure"',
        "never be ready",
        "write cilium",
    ),
    "a NodePool that AKS brings": (
        NAP,
        {"nodePools__default": {}},
        "karpstack:nodePools.default",
        "(set)",
        "overwrite each other",
        "another name",
    ),
    "a node class that AKS brings": (
        NAP,
        {"nodeClasses__system-surge": {}},
        "karpstack:nodeClasses.system-surge",
        "(set)",
        "overwrite each other",
        "defaultNodePools to None",
    ),
    "default pools without NAP": (
        SELF_HOSTED,
        {"nodeProvisioning": {"defaultNodePools": "None"}},
        "karpstack:nodeProvisioning.defaultNodePools",
        '"None"',
        "has no effect in mode self-hosted",
        "mode to nap",
    ),
    "a controller beside AKS's": (
        NAP,
        {"karpenter": {"sshPublicKey": "ssh-rsa " + "A" * 60}},
        "karpstack:karpenter",
        "(set)",
        "AKS runs its own",
        "remove it",
    ),
    "no controller": (
        SELF_HOSTED,
        {"karpenter": None},
        "karpstack:karpenter",
        "(not set)",
        "is required in mode self-hosted",
        "sshPublicKey",
    ),
    "no SSH key": (
        SELF_HOSTED,
        {"karpenter__sshPublicKey": None},
        "karpstack:karpenter.sshPublicKey",
        "(not set)",
        "is required",
        "ssh-rsa",
    ),
    "a private key": (
        SELF_HOSTED,
        {"karpenter__sshPublicKey": "-----BEGIN OPENSSH PRIVATE KEY-----"},
        "karpstack:karpenter.sshPublicKey",
        "(secret)",
        "is no public key",
        "never the private half",
    ),
    "a bootstrap token": (
        SELF_HOSTED,
        {"karpenter__bootstrapToken": "abcdef.0123456789abcdef"},
        "karpstack:karpenter.bootstrapToken",
        '"abcdef.0123456789abcdef"',
        "gets old",
        "bootstrapTokenGeneration",
    ),
    "a queue": (
        SELF_HOSTED,
        {"karpenter__interruptionQueue": True},
        "karpstack:karpenter.interruptionQueue",
        "true",
        "is AWS's",
        "remove it",
    ),
    "a workspace by name": (
        NAP,
        {"cluster__logWorkspaceId": "logs"},
        "karpstack:cluster.logWorkspaceId",
        '"logs"',
        "after the cluster is made",
        "Microsoft.OperationalInsights/workspaces",
    ),
    "a setting that is AWS's": (
        SELF_HOSTED,
        {"karpenter__settings": {"isolatedVPC": True}},
        "karpstack:karpenter.settings",
        '{"isolatedVPC": true}',
        "Helm would ignore it",
        "batchIdleDuration",
    ),
    "a setting that the chart does not know yet": (
        SELF_HOSTED,
        {
            "cluster__version": "1.33",
            "cluster__tier": "Premium",
            "karpenter__chartVersion": "1.10.2",
            "karpenter__settings": {"preferencePolicy": "Ignore"},
        },
        "karpstack:karpenter.settings",
        '{"preferencePolicy": "Ignore"}',
        "the chart 1.10.2 does not know it",
        "batchIdleDuration",
    ),
    "a feature gate that the chart does not know yet": (
        SELF_HOSTED,
        {
            "cluster__version": "1.33",
            "cluster__tier": "Premium",
            "karpenter__chartVersion": "1.10.2",
            "karpenter__featureGates": {"reservedCapacity": True},
        },
        "karpstack:karpenter.featureGates",
        '{"reservedCapacity": true}',
        "switches reservedCapacity on: the chart 1.10.2 does not know it",
        versions.KARPENTER_AZURE,
    ),
    "a chart whose nodes may never join": (
        SELF_HOSTED,
        {"karpenter__chartVersion": "1.13.0", "cluster__version": "1.34"},
        "karpstack:karpenter.chartVersion",
        '"1.13.0"',
        "may make no node of Kubernetes 1.34",
        "1.13.1 or newer",
    ),
    "a chart from before its values are known": (
        SELF_HOSTED,
        {"karpenter__chartVersion": "1.7.2", "cluster__version": "1.33", "cluster__tier": "Premium"},
        "karpstack:karpenter.chartVersion",
        '"1.7.2"',
        "so old",
        "1.10.0 or newer",
    ),
    "a feature gate that is AWS's": (
        SELF_HOSTED,
        {"karpenter__featureGates": {"capacityBuffer": True}},
        "karpstack:karpenter.featureGates.capacityBuffer",
        "true",
        "is not a setting",
        "known here: nodeOverlay",
    ),
    "more controllers than nodes": (
        SELF_HOSTED,
        {"karpenter__replicas": 3},
        "karpstack:karpenter.replicas",
        "3",
        "never share a node",
        "raise count",
    ),
    "no zone of Azure's": (
        NAP,
        {"systemNodes__zones": [4]},
        "karpstack:systemNodes.zones[0]",
        "4",
        "cannot be used",
        "zones",
    ),
    "no VM size": (
        NAP,
        {"systemNodes__vmSize": "m5.large"},
        "karpstack:systemNodes.vmSize",
        '"m5.large"',
        "is no VM size",
        "Standard_D4s_v5",
    ),
    "name too long": (
        NAP,
        {"name": "n" * 55},
        "karpstack:name",
        f'"{"n" * 55}"',
        "DNS prefix",
        "at most 54 characters",
    ),
    "name with capitals": (
        NAP,
        {"name": "Karpstack"},
        "karpstack:name",
        '"Karpstack"',
        "cannot name a cluster",
        "lower-case",
    ),
    "a tag that Azure refuses": (
        NAP,
        {"tags": {"cost/centre": "0"}},
        'karpstack:tags["cost/centre"]',
        '"cost/centre"',
        "Azure refuses",
        "use none of",
    ),
    "a tag with a meaning": (
        NAP,
        {"tags": {"karpenter.azure.com_cluster": "x"}},
        'karpstack:tags["karpenter.azure.com_cluster"]',
        '"karpenter.azure.com_cluster"',
        "finds its machines",
        "does not begin with",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused(case: str) -> None:
    stack, changes, key, value, consequence, fix = REFUSALS[case]
    (problem,) = problems(stack, **changes)
    assert (problem.key, problem.value) == (key, value)
    assert consequence in problem.consequence
    assert fix in problem.fix


@pytest.mark.parametrize("mode", [NAP, SELF_HOSTED])
def test_several_errors_come_at_once(mode: str) -> None:
    found = problems(
        mode,
        name="Bad_Name",
        subscription=DROP,
        network__podCidr="10.224.0.0/17",
        cluster__httpProxyConfig={},
        systemNodes__enableAutoScaling=True,
        nodeClasses__odd={"maxPods": 500, "imageFamily": "Windows2022"},
        nodePools__odd=pool(nodeClassRef={"name": "gpu"}),
    )
    assert [problem.key for problem in found] == [
        "karpstack:name",
        "azure-native:subscriptionId",
        "karpstack:network.podCidr",
        "karpstack:cluster.httpProxyConfig",
        "karpstack:systemNodes.enableAutoScaling",
        "karpstack:nodeClasses.odd.maxPods",
        "karpstack:nodeClasses.odd.imageFamily",
        "karpstack:nodePools.odd.template.spec.nodeClassRef.name",
    ]


def test_node_pools_may_use_the_classes_that_aks_brings() -> None:
    aks(NAP, nodePools__mine=pool(), nodePools__more=pool(nodeClassRef={"name": "system-surge"}))


def test_without_its_default_pools_aks_brings_no_classes() -> None:
    changes = {"nodeProvisioning__defaultNodePools": "None", "nodePools__mine": pool()}
    (problem,) = problems(NAP, **changes)
    assert problem.key == "karpstack:nodePools.mine.template.spec.nodeClassRef.name"
    aks(NAP, nodeClasses__default={}, nodePools__default={}, **changes)


def test_an_existing_subnet_is_taken_whatever_its_spelling() -> None:
    for subnet in (SUBNET, SUBNET.replace("resourceGroups", "resourcegroups")):
        loaded = aks(NAP, network__subnetCidr=None, network__subnetId=subnet.format(SUBSCRIPTION.upper()))
        assert loaded.network.subnet_cidr is None


def test_linux_may_be_named_and_windows_excluded() -> None:
    for requirement in ({"operator": "In", "values": ["linux"]}, {"operator": "NotIn", "values": ["windows"]}):
        aks(SELF_HOSTED, nodePools__x=pool(requirements=[{"key": "kubernetes.io/os", **requirement}]))


@pytest.mark.parametrize(("cloud", "value"), [("gcp", '"gcp"'), (None, "(not set)")])
def test_another_cloud(cloud: str | None, value: str) -> None:
    (problem,) = problems(NAP, cloud=cloud)
    assert (problem.key, problem.value, problem.fix) == ("karpstack:cloud", value, "set it to aws or azure")


def test_a_stack_of_one_cloud_needs_nothing_of_the_other() -> None:
    assert {problem.key for problem in problems(NAP, cloud="aws")} >= {"aws:region", "karpstack:mode"}


def test_a_secret_key_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(example(SELF_HOSTED, karpenter__sshPublicKey="hush"), secret_keys={"karpstack:karpenter"})
    (problem,) = caught.value.problems
    assert problem.value == "(secret)"
    assert "hush" not in str(caught.value)
