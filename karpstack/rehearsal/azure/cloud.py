"""The simulated Azure subscription as one AKS cluster sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.clusters import CLUSTER_TYPE
from karpstack.rehearsal.azure.clusters.agent_pool import node_identities, scale_set_id, subnet_of
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.entra import LOGIN, TOKEN_AUDIENCE
from karpstack.rehearsal.azure.machines import MACHINE_TYPE
from karpstack.rehearsal.azure.machines.bootstrap import Bootstrap
from karpstack.rehearsal.azure.machines.catalogue import Size
from karpstack.rehearsal.azure.wire.routes import IDENTITY_PATH
from karpstack.rehearsal.azure.wire.server import Server
from karpstack.rehearsal.cluster.bound import Bound
from karpstack.rehearsal.cluster.cloud import ControllerIdentityError, Machine
from karpstack.rehearsal.cluster.control_plane import Cluster
from karpstack.text.proxies import LOOPBACK

CLIENT_ANNOTATION = "azure.workload.identity/client-id"
USE_LABEL = "azure.workload.identity/use"
TOKEN_FILE = "azure-identity-token"

_PROVIDER = "azure://"
_ARCHITECTURES = {"x64": "amd64", "Arm64": "arm64"}
_NO_WEBHOOK = (
    "the cluster {cluster} has workload identity disabled, so no pod of the service account {account} gets an Azure "
    "identity and the controller would crash for lack of credentials; set oidcIssuerProfile.enabled and "
    "securityProfile.workloadIdentity.enabled on the cluster"
)
_NO_LABEL = (
    f"the controller's pod does not have the label {USE_LABEL} with the value true, so AKS gives it no Azure identity "
    "and it would crash for lack of credentials; set podLabels in the chart's values (service account {account}, "
    "cluster {cluster})"
)
_NO_CLIENT = (
    f"the service account {{account}} has no annotation {CLIENT_ANNOTATION}, so nothing says which managed identity "
    "the controller is; set serviceAccount.annotations in the chart's values to the identity's client id "
    "(cluster {cluster})"
)
_NO_SCRIPT = (
    "the VM {name} has no AKS bootstrap script as its custom data, so no kubelet starts; is it one of Karpenter's?"
)
_WRONG_SERVER = (
    "the VM {name} was told to join {given}, but the cluster's API server is {actual}; set CLUSTER_ENDPOINT of the "
    "controller to https://{actual}:443"
)
_OUTSIDE = "the kubelet of the VM {name} is not let in with its bootstrap token {id}: {why}"


class AzureCloud(Bound):
    """Implements `karpstack.rehearsal.cluster.cloud.Cloud` for one managed cluster of the subscription."""

    controller_engine = "karpenter-azure"
    controller_needs_pod_files = True
    #: By konnectivity, whose agents are pods.
    control_plane_reaches_pods = True
    load_balancers = None  # they go with the node resource group

    def __init__(
        self, cluster_id: str, context: Context, server: Server, identity_secret: Callable[[str], str]
    ) -> None:
        """`identity_secret` makes a secret for the managed identity endpoint from a principal's object id."""
        super().__init__(cluster_id)
        self.cluster_id = cluster_id
        self._context = context
        self._server = server
        self._identity_secret = identity_secret
        #: Whether AKS has brought NodePools of its own into the cluster.
        self.brings_node_pools = False

    def bind(self, cluster: Cluster) -> None:
        """Tell which running control plane makes and reviews tokens: from now on Entra trusts its issuer."""
        super().bind(cluster)
        issuer = at(self._resource.properties, "oidcIssuerProfile.issuerURL")
        if issuer:
            self._context.directory.trust(str(issuer), cluster)

    @property
    def issuer(self) -> str:
        """Issuer of the cluster's service account tokens; the API server's own name where the OIDC issuer is off."""
        return str(
            at(self._resource.properties, "oidcIssuerProfile.issuerURL")
            or f"https://{self._resource.properties['fqdn']}"
        )

    def machine(self, provider_id: str) -> Machine | None:
        """Describe the VM behind `azure:///subscriptions/...`; None when it is gone, going, or could not be allocated.

        An instance of an agent pool is described as `agent_pool` does. A VM of Karpenter's has the labels and the
        kubelet version that its bootstrap script asks for, and its refusal names what a real node would fail on: no
        script, another cluster's API server, or a bootstrap token with which the cluster lets nobody in.
        """
        with self._context.store.lock:
            self._context.operations.settle()
            if _is_of_pool(provider_id):
                return self._pool_machine(provider_id)
            vm = self._vm(provider_id)
            if vm is None:
                return None
            size = self._context.size(str(at(vm.properties, "hardwareProfile.vmSize")))
            name = str(at(vm.properties, "osProfile.computerName", vm.id.name)).lower()
            script = Bootstrap.read(str(vm.private.get("customData", "")))
            address = self._address(vm)
        if size is None:
            return None
        if script is None:
            return Machine(provider_id, name, refusal=_NO_SCRIPT.format(name=vm.id.name))
        zone = next((f"{self._context.region}-{zone}" for zone in vm.body.get("zones") or []), "0")
        return Machine(
            provider_id,
            name,
            labels={**script.labels, **self._labels(size, name, zone)},
            kubelet_version=f"v{script.kubernetes_version}",
            refusal=self._refusal(vm.id.name, script),
            internal_ip=address,
        )

    def has_machine(self, provider_id: str) -> bool:
        """Whether there is a VM or an instance behind the provider ID, and not on its way out."""
        with self._context.store.lock:
            self._context.operations.settle()
            machine = self._pool_machine(provider_id) if _is_of_pool(provider_id) else self._vm(provider_id)
        return machine is not None

    def agent_pool(self, name: str) -> list[Machine]:
        """The instances of an agent pool, for `Cluster.join`.

        Raises:
            ArmError: There is no such pool.
        """
        with self._context.store.lock:
            cluster = self._resource
            pool = next(
                (profile for profile in cluster.properties["agentPoolProfiles"] if profile["name"] == name), None
            )
            size = self._context.size(str(pool["vmSize"])) if pool else None
            if pool is None or size is None:
                raise _gone(f"{CLUSTER_TYPE}/agentPools", f"{cluster.id.name}/{name}", cluster.id.group)
            scale_set = scale_set_id(self._context, cluster, name)
            return [self._instance(cluster, pool, size, scale_set, number) for number in range(int(pool["count"]))]

    def controller_environment(
        self,
        namespace: str,
        service_account: str,
        annotations: Mapping[str, str],
        token_folder: Path,
        labels: Mapping[str, str] | None = None,
        admitted: datetime | None = None,
    ) -> dict[str, str]:
        """The way to the simulated Azure, and what AKS's workload identity webhook adds to a pod.

        Whether the identity exists, trusts the service account and may do anything is decided when the controller asks.

        Raises:
            ControllerIdentityError: The webhook would add nothing: workload identity is off, or the pod's label or the
                service account's annotation is missing.
        """
        names = {"account": f"{namespace}/{service_account}", "cluster": self._resource.id.name}
        if not at(self._resource.properties, "securityProfile.workloadIdentity.enabled"):
            raise ControllerIdentityError(_NO_WEBHOOK.format(**names))
        if (labels or {}).get(USE_LABEL) != "true":
            raise ControllerIdentityError(_NO_LABEL.format(**names))
        if not annotations.get(CLIENT_ANNOTATION):
            raise ControllerIdentityError(_NO_CLIENT.format(**names))
        token = token_folder / TOKEN_FILE
        token.touch(mode=0o600)
        token.write_text(self.cluster.create_token(namespace, service_account, TOKEN_AUDIENCE))
        return {
            **self._way(),
            "AZURE_CLIENT_ID": annotations[CLIENT_ANNOTATION],
            "AZURE_TENANT_ID": self._context.directory.tenant,
            "AZURE_FEDERATED_TOKEN_FILE": str(token),
            "AZURE_AUTHORITY_HOST": f"{LOGIN}/",
        }

    def provisioning_environment(self, bootstrap_token: str, public_key: str) -> dict[str, str]:
        """The whole environment of node auto provisioning's controller, which AKS runs with the cluster's identity.

        Args:
            bootstrap_token: One that the cluster knows; a secret.
            public_key: SSH public key for the nodes.
        """
        cluster = self._resource
        properties, context = cluster.properties, self._context
        kubelet = properties["identityProfile"]["kubeletidentity"]
        system = next(pool for pool in properties["agentPoolProfiles"] if pool.get("mode") == "System")
        subnet = subnet_of(context, cluster, system)
        network = context.get(ResourceId.parse(subnet).parent)
        profile = properties["networkProfile"]
        return {
            **self._way(),
            "IDENTITY_ENDPOINT": f"{self._server.url}{IDENTITY_PATH}",
            "IDENTITY_HEADER": self._identity_secret(str(cluster.private.get("principal", ""))),
            "AZURE_TENANT_ID": context.directory.tenant,
            "AZURE_SUBSCRIPTION_ID": context.subscription,
            "LOCATION": context.region,
            "ARM_RESOURCE_GROUP": cluster.id.group,
            "AZURE_NODE_RESOURCE_GROUP": str(properties["nodeResourceGroup"]),
            "CLUSTER_NAME": cluster.id.name,
            "CLUSTER_ENDPOINT": f"https://{self._host}:443",
            "KUBELET_BOOTSTRAP_TOKEN": bootstrap_token,
            "SSH_PUBLIC_KEY": public_key,
            "VNET_SUBNET_ID": subnet,
            "VNET_GUID": str(network.properties["resourceGuid"]) if network else "",
            "NODE_IDENTITIES": ",".join(node_identities(cluster)),
            "KUBELET_IDENTITY_CLIENT_ID": kubelet["clientId"],
            "NETWORK_PLUGIN": str(profile["networkPlugin"]),
            "NETWORK_PLUGIN_MODE": str(profile.get("networkPluginMode") or ""),
            "NETWORK_POLICY": str(profile.get("networkPolicy") or ""),
            "NETWORK_DATAPLANE": str(profile.get("networkDataplane") or ""),
            "DNS_SERVICE_IP": str(profile["dnsServiceIP"]),
        }

    def _vm(self, provider_id: str) -> Resource | None:
        vm = self._context.get(provider_id.removeprefix(_PROVIDER))
        gone = vm is None or vm.type != MACHINE_TYPE or vm.state in ("Deleting", "Failed")
        return None if gone else vm

    def _pool_machine(self, provider_id: str) -> Machine | None:
        """The instance of an agent pool behind a provider ID; None when its pool has shrunk or gone."""
        cluster = self._context.get(self.cluster_id)
        pools = cluster.properties["agentPoolProfiles"] if cluster else []
        return next(
            (
                machine
                for pool in pools
                for machine in self.agent_pool(pool["name"])
                if machine.provider_id.lower() == provider_id.lower()
            ),
            None,
        )

    @property
    def _resource(self) -> Resource:
        resource = self._context.get(self.cluster_id)
        if resource is None:
            identifier = ResourceId.parse(self.cluster_id)
            raise _gone(CLUSTER_TYPE, identifier.name, identifier.group)
        return resource

    def _way(self) -> dict[str, str]:
        """How a client gets to the simulated Azure and to nothing else."""
        return {
            "HTTPS_PROXY": self._server.url,
            "HTTP_PROXY": self._server.url,
            "NO_PROXY": ",".join(LOOPBACK),
            "SSL_CERT_FILE": str(self._server.authority),
            "SSL_CERT_DIR": str(self._server.authority.parent),
        }

    def _labels(self, size: Size, name: str, zone: str) -> dict[str, str]:
        """What a kubelet and the cloud's node manager set by themselves."""
        architecture = _ARCHITECTURES[size.architecture]
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": architecture,
            "kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": architecture,
            "beta.kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": size.name,
            "beta.kubernetes.io/instance-type": size.name,
            "topology.kubernetes.io/region": self._context.region,
            "topology.kubernetes.io/zone": zone,
        }

    def _instance(self, cluster: Resource, pool: Mapping[str, Any], size: Size, scale_set: str, number: int) -> Machine:
        zones = pool.get("availabilityZones") or []
        # A scale set spreads its instances over its zones; without zones the label is the fault domain.
        zone = f"{self._context.region}-{zones[number % len(zones)]}" if zones else str(number)
        name = f"{scale_set.rsplit('/', 1)[-1]}{number:06d}"
        profile = cluster.properties["networkProfile"]
        labels = {
            **self._labels(size, name, zone),
            **(pool.get("nodeLabels") or {}),
            "agentpool": pool["name"],
            "kubernetes.azure.com/agentpool": pool["name"],
            "kubernetes.azure.com/mode": str(pool["mode"]).lower(),
            "kubernetes.azure.com/role": "agent",
            "kubernetes.azure.com/cluster": str(cluster.properties["nodeResourceGroup"]),
            "kubernetes.azure.com/os-sku": str(pool["osSKU"]),
            "kubernetes.azure.com/scalesetpriority": str(pool["scaleSetPriority"]).lower(),
            "kubernetes.azure.com/kubelet-identity-client-id": cluster.properties["identityProfile"]["kubeletidentity"][
                "clientId"
            ],
        }
        if profile.get("networkDataplane") == "cilium":
            labels["kubernetes.azure.com/ebpf-dataplane"] = "cilium"
        if profile.get("networkPluginMode") == "overlay":
            labels |= {
                "kubernetes.azure.com/azure-cni-overlay": "true",
                "kubernetes.azure.com/podnetwork-type": "overlay",
            }
        capacity, allocatable = _resources(size, int(pool["maxPods"]), int(pool["osDiskSizeGB"]))
        return Machine(
            f"{_PROVIDER}{scale_set}/virtualMachines/{number}",
            name,
            labels=labels,
            kubelet_version=f"v{cluster.properties['currentKubernetesVersion']}",
            capacity=capacity,
            allocatable=allocatable,
        )

    def _address(self, vm: Resource) -> str:
        for item in at(vm.properties, "networkProfile.networkInterfaces") or []:
            interface = self._context.get(item["id"])
            if interface:
                return str(at(interface.properties["ipConfigurations"][0], "properties.privateIPAddress", ""))
        return ""

    @property
    def _host(self) -> str:
        """The API server's name for nodes."""
        properties = self._resource.properties
        return str(properties.get("privateFQDN") or properties["fqdn"])

    def _refusal(self, name: str, script: Bootstrap) -> str:
        # A private cluster has a public name too, which stands for the same address.
        if script.api_server.lower() not in (self._host, self._resource.properties["fqdn"]):
            return _WRONG_SERVER.format(name=name, given=script.api_server, actual=self._host)
        why = self.cluster.refused_bootstrap(script.token)
        return _OUTSIDE.format(name=name, id=script.token.partition(".")[0], why=why) if why else ""


def _gone(resource_type: str, name: str, group: str) -> ArmError:
    return refused("ResourceNotFound", resource_type=resource_type, name=name, group=group)


def _is_of_pool(provider_id: str) -> bool:
    return "/virtualmachinescalesets/" in provider_id.lower()


def _resources(size: Size, pods: int, disk: int) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable of a node as AKS reserves them.

    7.5 % of the memory is the hypervisor's, as Karpenter reckons. AKS keeps 60 m of the first CPU, 40 m of the second,
    20 m of the next two and 10 m of each more; 20 MB of memory for each pod and 50 MB, but at most a quarter; and
    100 MiB is the eviction threshold (https://aka.ms/aks/node-resource-reservations).
    """
    cpus, memory = size.vcpus, int(size.memory * 1024 * 0.925)
    reserved_cpu = (
        sum(share for upto, share in ((0, 60), (1, 40), (2, 20), (3, 20)) if cpus > upto) + max(cpus - 4, 0) * 10
    )
    reserved_memory = min((20 * pods + 50) * 10**6 // 2**20, memory // 4) + 100
    capacity = {"cpu": str(cpus), "memory": f"{memory}Mi", "pods": str(pods), "ephemeral-storage": f"{disk}G"}
    return capacity, {**capacity, "cpu": f"{cpus * 1000 - reserved_cpu}m", "memory": f"{memory - reserved_memory}Mi"}
