"""Runs a Pulumi program against Pulumi's own mocks and remembers what it registered. No engine, no provider."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unittest import mock

import pulumi
from pulumi.runtime import mocks, rpc
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.proto import source_pb2

PARTITION, ACCOUNT, REGION = "aws", "123456789012", "us-east-1"
SUBSCRIPTION = "12345678-1234-1234-1234-123456789012"
#: Resource providers of a resource group that is not the stack's.
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers"
#: Range of Services of EKS clusters that are there already: the example's.
SERVICES = "172.20.0.0/16"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]
#: Subnets that are there: those that are asked for by ID, each in the zone that its last digit says; by tags, these.
TAGGED_SUBNETS = ["subnet-0000000a", "subnet-0000000b"]
VPCS = ["vpc-00000001", "vpc-00000002"]


@dataclass
class Registered:
    """One resource as the engine would receive it; secrets in `inputs` are unwrapped, their names in `secrets`."""

    urn: str
    type: str
    name: str
    parent: str
    inputs: dict[str, Any]
    secrets: frozenset[str]
    dependencies: frozenset[str]
    request: Any


@dataclass
class Deployment:
    resources: dict[str, Registered] = field(default_factory=dict)
    hooks: list[str] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, type_: str) -> list[Registered]:
        return [resource for resource in self.resources.values() if resource.type == type_]

    def one(self, name: str, type_: str = "") -> Registered:
        found = [
            resource for resource in self.resources.values() if resource.name == name and type_ in ("", resource.type)
        ]
        assert len(found) == 1, f"{len(found)} resources are called {name}"
        return found[0]

    def needs(self, resource: Registered, other: Registered) -> bool:
        """Whether `other` exists before `resource` and is deleted after it, by dependencies and parents."""
        return other.urn in set(self._before(resource.urn, set()))

    def _before(self, urn: str, seen: set[str]) -> Iterator[str]:
        resource = self.resources.get(urn)
        if resource is None or urn in seen:
            return
        seen.add(urn)
        for earlier in {*resource.dependencies, resource.parent}:
            yield earlier
            yield from self._before(earlier, seen)


class _Cloud(mocks.Mocks):
    def __init__(
        self,
        preview: bool,
        log_groups: Sequence[str],
        clusters: Sequence[str],
        told: Mapping[str, Any],
        errors: Mapping[str, str],
        last: Mapping[str, Any],
        exports: bool,
    ) -> None:
        self._preview = preview
        self._errors = errors
        self.last = last
        self._exports = exports
        # What ARM says otherwise of its clusters.
        self.told = told
        # What the AWS account has already.
        self.log_groups = log_groups
        self.clusters = clusters

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if not args.custom:  # a component has the outputs of the last state, until it registers its own
            before = (one for urn, one in self.last.items() if urn.endswith(f"{args.typ}::{args.name}"))
            return "", next((dict(one["outputs"]) for one in before), {})
        made, outputs = self._made(args)
        if self._preview:  # of a stack that is not there: nothing is known but what was declared
            declared = {name for name, value in args.inputs.items() if value is not None}
            outputs = {name: value if name in declared else rpc.UNKNOWN for name, value in outputs.items()}
        return made, outputs

    def _made(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        outputs = {"name": args.name, "arn": f"arn:{args.name}", **args.inputs}
        match args.typ:
            case "aws:eks/cluster:Cluster":
                outputs |= {
                    "endpoint": "https://ABC.gr7.us-east-1.eks.amazonaws.com",
                    "certificateAuthority": {"data": "Q0E="},
                    "identities": [{"oidcs": [{"issuer": "https://oidc.eks.us-east-1.amazonaws.com/id/ABC"}]}],
                    "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"},
                }
            case "aws:ec2/launchTemplate:LaunchTemplate":
                outputs["latestVersion"] = 1
            case "aws:sqs/queue:Queue":
                outputs["url"] = f"https://sqs/{args.inputs['name']}"
            case _ if args.typ.startswith("azure-native:"):
                return _azure(args, outputs)
        return f"{args.name}-id", outputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        if error := self._errors.get(args.token.rpartition(":")[2]):
            return {}, [("", error)]
        kind, _, name = args.token.rpartition(":")
        if kind.startswith("aws:ec2/get"):
            return _network(name, args.args), []
        if kind.startswith(("azure-native:network", "azure-native:privatedns")) and name.startswith("get"):
            return _azure_network(name, args.args), []
        if name == "getManagedCluster" and args.args["resourceName"] not in self.clusters:
            return {}, [("", 'Status=404 Code="ResourceNotFound" Message="The Resource was not found."')]
        if name not in self._answers:
            raise NotImplementedError(args.token)
        return self._answers[name](args.args), []

    @property
    def _answers(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """What each function answers, by its name."""
        return {
            "readStackOutputs": lambda _: {"outputs": {"cloud": "any"} if self.last and self._exports else {}},
            "readStackResourceOutputs": lambda _: {"outputs": self.last},
            "getPartition": lambda _: {"partition": PARTITION},
            "getCallerIdentity": lambda _: {"accountId": ACCOUNT},
            "getAvailabilityZones": lambda _: {"names": ZONES},
            "getLogGroups": lambda _: {"logGroupNames": self.log_groups},
            "getClusters": lambda _: {"names": self.clusters},
            "getCluster": lambda given: _cluster(given["name"]),
            "getNodeGroups": lambda _: {"names": ["blue", "green"]},
            "getNodeGroup": lambda given: {"subnetIds": TAGGED_SUBNETS[: 1 + (given["nodeGroupName"] == "green")]},
            "getAddon": lambda _: {"serviceAccountRoleArn": "", "podIdentityAssociations": []},
            "getOpenIdConnectProvider": lambda given: {"url": given["url"]},
            "getAddonVersion": lambda given: {
                "version": f"default of {given['addonName']} for {given['kubernetesVersion']}"
            },
            "getParameter": lambda given: {"insecureValue": f"text of {given['name']}"},
            "getClientConfig": lambda _: {"objectId": "deployer", "tenantId": "tenant"},
            "getManagedCluster": lambda given: {**_aks_cluster(given["resourceName"]), **self.told},
            "listManagedClusterUserCredentials": lambda given: _kubeconfig("user", given),
            "listManagedClusterAdminCredentials": lambda given: _kubeconfig("admin", given),
        }


def _cluster(name: str) -> dict[str, Any]:
    """A cluster that is there, with two managed node groups."""
    return {
        "name": name,
        "arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{name}",
        "status": "ACTIVE",
        "version": "1.36",
        "endpoint": "https://DEF.gr7.us-east-1.eks.amazonaws.com",
        "certificateAuthorities": [{"data": "Q0E="}],
        "identities": [{"oidcs": [{"issuer": "https://oidc.eks.us-east-1.amazonaws.com/id/DEF"}]}],
        "accessConfigs": [{"authenticationMode": "API_AND_CONFIG_MAP"}],
        "computeConfigs": [],
        "kubernetesNetworkConfigs": [{"ipFamily": "ipv4", "serviceIpv4Cidr": SERVICES}],
        "vpcConfig": {"vpcId": VPCS["moved" in name], "clusterSecurityGroupId": "sg-cluster"},
    }


def _aks_cluster(name: str) -> dict[str, Any]:
    """A cluster on AKS that is there, with node auto provisioning and two pools."""
    subnet = f"{HUB}/Microsoft.Network/virtualNetworks/hub/subnets/one"
    pool = {"mode": "User", "osType": "Linux", "enableAutoScaling": False, "vnetSubnetID": subnet}
    nodes = "MC_shop_Shop_1_westus2"
    identities = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{nodes}/providers/Microsoft.ManagedIdentity"
    return {
        "id": f"id-of-{name}",
        "name": name,
        "location": "westus2",
        "provisioningState": "Succeeded",
        "powerState": {"code": "Running"},
        "kubernetesVersion": "1.36",
        "currentKubernetesVersion": "1.36.3",
        "fqdn": f"{name}-ijklmnop.hcp.westus2.azmk8s.io",
        "identity": {"type": "SystemAssigned", "principalId": "principal", "tenantId": "tenant"},
        "nodeResourceGroup": nodes,
        "nodeProvisioningProfile": {"mode": "Auto", "defaultNodePools": "None"},
        "networkProfile": {
            "networkPlugin": "azure",
            "networkPluginMode": "overlay",
            "networkDataplane": "cilium",
            "networkPolicy": "cilium",
            "ipFamilies": ["IPv4"],
        },
        "aadProfile": {"managed": True},
        "disableLocalAccounts": True,
        "oidcIssuerProfile": {"enabled": True, "issuerURL": "https://westus2.oic.prod-aks.azure.com/t/there/"},
        "securityProfile": {"workloadIdentity": {"enabled": True}},
        "identityProfile": {
            "kubeletidentity": {
                "clientId": "kubelet-there",
                "resourceId": f"{identities}/userAssignedIdentities/{name}-agentpool",
            }
        },
        "agentPoolProfiles": [
            {**pool, "name": "system", "mode": "System"},
            {**pool, "name": "general"},
        ],
    }


def _network(function: str, args: Any) -> dict[str, Any]:
    """Two VPCs of the same range, in which every subnet and security group is that is asked for."""
    asked = {one["name"]: one["values"] for one in args.get("filters") or []}
    match function:
        case "getVpcs":
            return {"ids": [one for one in asked["vpc-id"] if one in VPCS]}
        case "getVpc":
            return {
                "id": args["id"],
                "region": REGION,
                "cidrBlockAssociations": [{"cidrBlock": "10.0.0.0/16", "state": "associated"}],
                "enableDnsSupport": True,
                "enableDnsHostnames": True,
                "mainRouteTableId": "rtb-main",
            }
        case "getSubnets":
            return {"ids": asked.get("subnet-id", TAGGED_SUBNETS)}
        case "getSubnet":
            zone = int(args["id"][-1], 16) % len(ZONES)
            return {
                "vpcId": VPCS[0],
                "availabilityZone": ZONES[zone],
                "availabilityZoneId": f"use1-az{zone + 4}",
                "availableIpAddressCount": 4091,
                "tags": {},
            }
        case "getRouteTables":
            return {"ids": []}
        case "getRouteTable":
            return {"associations": [], "routes": [{"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"}]}
        case "getSecurityGroups":
            return {"ids": asked["group-id"], "vpcIds": [VPCS[0] for _ in asked["group-id"]]}
    raise NotImplementedError(function)


#: Subnets that each existing network of Azure's has, with every way out; the last is for API servers.
AZURE_SUBNETS = ("aks", "one", "other", "batch", "api-server")


def _azure_network(function: str, args: Any) -> dict[str, Any]:
    """Networks in westus2, each with the same subnets."""
    hub = f"{HUB}/Microsoft.Network"
    match function:
        case "getVirtualNetwork":
            ways = {"natGateway": {"id": f"{hub}/natGateways/nat"}, "routeTable": {"id": f"{hub}/routeTables/routes"}}
            delegation = {"name": "aks", "serviceName": "Microsoft.ContainerService/managedClusters"}
            return {
                "location": "westus2",
                "resourceGuid": f"guid-of-{args['virtualNetworkName']}",
                "addressSpace": {"addressPrefixes": ["10.224.0.0/16"]},
                "subnets": [
                    {
                        "name": name,
                        "addressPrefix": f"10.224.{index}.0/24",
                        **({"delegations": [delegation]} if name == "api-server" else ways),
                    }
                    for index, name in enumerate(AZURE_SUBNETS)
                ],
            }
        case "getNatGateway":
            return {"publicIpAddresses": [{"id": f"{hub}/publicIPAddresses/nat"}]}
        case "getPublicIPAddress":
            return {"ipAddress": "20.0.0.1"}
        case "getRouteTable":
            return {"routes": [{"addressPrefix": "0.0.0.0/0", "nextHopType": "VirtualAppliance"}]}
        case "getPrivateZone":
            return {"name": args["privateZoneName"]}
    raise NotImplementedError(function)


def _azure(args: mocks.MockResourceArgs, outputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What ARM computes, in shapes in which it can be told apart."""
    match args.typ:
        case "azure-native:resources:ResourceGroup":
            outputs["name"] = args.inputs["resourceGroupName"]
        case "azure-native:network:VirtualNetwork":
            outputs |= {"name": args.inputs["virtualNetworkName"], "resourceGuid": "vnet-guid"}
        case "azure-native:network:PublicIPAddress":
            outputs["ipAddress"] = "20.0.0.2"
        case "azure-native:managedidentity:UserAssignedIdentity":
            name = args.inputs["resourceName"]
            outputs |= {"name": name, "principalId": f"principal-of-{name}", "clientId": f"client-of-{name}"}
        case "azure-native:containerservice:ManagedCluster":
            name = args.inputs["resourceName"]
            outputs |= {
                "name": name,
                "identity": {
                    "type": "UserAssigned",
                    "userAssignedIdentities": {each: {} for each in args.inputs["identity"]["userAssignedIdentities"]},
                },
                "fqdn": f"{name}-abcdefgh.hcp.westus2.azmk8s.io",
                "privateFQDN": f"{name}-abcdefgh.privatelink.westus2.azmk8s.io",
                "oidcIssuerProfile": {"enabled": True, "issuerURL": "https://westus2.oic.prod-aks.azure.com/t/i/"},
                "identityProfile": {
                    "kubeletidentity": {
                        "clientId": "kubelet-client",
                        "objectId": "kubelet-object",
                        "resourceId": "kubelet-id",
                    }
                },
                "addonProfiles": {
                    addon: {
                        **profile,
                        "identity": {"objectId": f"object-of-{addon}", "clientId": "", "resourceId": f"id-of-{addon}"},
                    }
                    for addon, profile in (args.inputs.get("addonProfiles") or {}).items()
                },
            }
    return f"{args.name}-id", outputs


def _kubeconfig(whose: str, args: Any) -> dict[str, Any]:
    text = (
        f"apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: Q0E=\n    server: "
        f"https://{args['resourceName']}.example:443\n  name: {whose}\n"
    )
    return {"kubeconfigs": [{"name": whose, "value": base64.b64encode(text.encode()).decode()}]}


class _Monitor(mocks.MockMonitor):
    def __init__(self, cloud: _Cloud) -> None:
        super().__init__(cloud)
        self.deployment = Deployment()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 gRPC's name
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        if request.type != "pulumi:pulumi:Stack":
            # Said for the threads of the mock engine, which do not know whether this is a preview.
            properties = rpc.deserialize_properties(request.object, keep_unknowns=True)
            self.deployment.resources[response.urn] = Registered(
                urn=response.urn,
                type=request.type,
                name=request.name,
                parent=request.parent,
                inputs={name: rpc.unwrap_rpc_secret(value) for name, value in properties.items()},
                secrets=frozenset(name for name, value in properties.items() if rpc.is_rpc_secret(value)),
                dependencies=frozenset(request.dependencies),
                request=request,
            )
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 gRPC's name
        properties = rpc.deserialize_properties(request.outputs)
        self.deployment.outputs[request.urn] = {
            name: rpc.unwrap_rpc_secret(value) for name, value in properties.items()
        }
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


class _Callbacks:
    """Where hooks register; the mock monitor cannot call them."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def register_resource_hook(self, hook: pulumi.ResourceHook) -> None:
        self._deployment.hooks.append(hook.name)

    def register_error_hook(self, hook: pulumi.ErrorHook) -> None:
        self._deployment.hooks.append(hook.name)


def accepted(kubeconfig: str) -> Any:
    """No cluster is asked."""
    return kubeconfig


def deploy(
    program: Callable[[], object],
    preview: bool = False,
    *,
    log_groups: Sequence[str] = (),
    clusters: Sequence[str] = (),
    told: Mapping[str, Any] | None = None,
    errors: Mapping[str, str] | None = None,
    last: Mapping[str, Any] | None = None,
    exports: bool = True,
) -> Deployment:
    """Run `program` as a stack would be, or previewed before there is any of it, and return what it registered.

    Args:
        program: What to run.
        preview: Whether nothing is there yet.
        log_groups: Names of those that the AWS account has already.
        clusters: The same of clusters, on either cloud.
        told: What ARM says of its clusters otherwise than mostly, by its names.
        errors: What functions answer that fail, by their names.
        last: Resources of the stack's last state by URN, each with `type` and `outputs`.
        exports: Whether the program exports anything.
    """
    cloud = _Cloud(preview, log_groups, clusters, told or {}, errors or {}, last or {}, exports)
    monitor = _Monitor(cloud)
    mocks.set_mocks(cloud, project="karpstack", stack="test", preview=preview, monitor=monitor)
    runtime_settings.SETTINGS.callbacks = cast(Any, _Callbacks(monitor.deployment))
    # Where in the program a resource comes from is shown by a real engine; to find out costs a fifth of a run.
    with (
        mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace),
        mock.patch("karpstack.components.aks.objects.wait_until_accepted", lambda kubeconfig: accepted(kubeconfig)),
        mock.patch("karpstack.components.kubernetes.live.wait_until_served"),
        mock.patch.dict("os.environ", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}),
    ):
        pulumi.runtime.test(lambda: program() and None)()  # type: ignore[no-untyped-call]
    return monitor.deployment


def unknown(value: Any, path: str = "") -> Iterator[str]:
    """The places of what is not known in a value: `settings.clusterEndpoint`."""
    if isinstance(value, pulumi.output.Unknown):
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from unknown(entry, f"{path}.{key}".lstrip("."))
