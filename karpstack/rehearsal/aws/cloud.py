"""The simulated AWS account as one EKS cluster sees it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from karpstack.rehearsal.aws.ec2.images import KUBELETS, Image
from karpstack.rehearsal.aws.eks.api import WEB_IDENTITY_AUDIENCE, Eks
from karpstack.rehearsal.aws.iam.pod_credentials import POD_IDENTITY_AUDIENCE
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.load_balancers import ClassicLoadBalancers
from karpstack.rehearsal.aws.server import credentials_path
from karpstack.rehearsal.cluster.bound import Bound
from karpstack.rehearsal.cluster.cloud import ControllerIdentityError, Machine
from karpstack.rehearsal.timing import Timing

POD_IDENTITY_AGENT = "eks-pod-identity-agent"
_AWS_AUTH = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
ROLE_ANNOTATION = "eks.amazonaws.com/role-arn"

_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_NO_IDENTITY = (
    "the service account {namespace}/{name} has no AWS identity in the cluster {cluster}, so the "
    "controller would crash for lack of credentials; create an EKS pod identity association for it before "
    f"the release, or annotate it with {ROLE_ANNOTATION}"
)
_TOO_EARLY = (
    "the pod of the service account {namespace}/{name} was admitted before its pod identity association was known in "
    "the cluster {cluster}, so it has no credentials, and no restart of its containers gives it any; wait 15 s between "
    "the association and the pod"
)
_NO_AGENT = (
    "the service account {namespace}/{name} has a pod identity association, but the add-on "
    f"{POD_IDENTITY_AGENT} of the cluster {{cluster}} {{state}}, so nothing answers the controller's request "
    "for credentials; create the add-on and wait for it before the release"
)
_NO_PROFILE = "the instance {id} has no instance profile, so its kubelet cannot authenticate; give it one with a role"
_ROLE_GONE = "the instance profile {name} of the instance {id} has no role, so its kubelet cannot authenticate; add one"
_NO_DESCRIBE = (
    "the role {role} of the node does not allow ec2:DescribeInstances, which the node needs to find its "
    "name; attach AmazonEKSWorkerNodePolicy"
)
_NO_ADDRESSES = (
    "You are not authorized to perform this operation: {role}, as which aws-node asks EC2 for addresses, is not "
    "allowed {action}; give its service account a role, or attach AmazonEKS_CNI_Policy to this one"
)
#: The API server's moments have no fractions.
_SECOND: Final = timedelta(seconds=1)
#: What aws-node cannot do without (AmazonEKS_CNI_Policy).
_NETWORK_ACTIONS = ("ec2:CreateNetworkInterface", "ec2:AttachNetworkInterface", "ec2:AssignPrivateIpAddresses")
_NO_ROUTE = (
    "the subnet {subnet} of the node has no route to the internet ({table}), so the node reaches neither the "
    "cluster's endpoint nor the image registry; add a route 0.0.0.0/0 through a NAT gateway"
)
#: Services that a node calls while it starts: EC2 for its own name, ECR and S3 for images (EKS user guide, "Deploy
#: private clusters with limited internet access").
_OF_NODES = ("ec2", "ecr.api", "ecr.dkr", "s3")
_NO_ENDPOINT = (
    "the subnet {subnet} of the node has no route to the internet, and its VPC no endpoint of {services}, so the node "
    "does not start; add what is missing"
)


class AwsCloud(Bound):
    """Implements `karpstack.rehearsal.cluster.cloud.Cloud` for one cluster of the account."""

    controller_engine = "karpenter-aws"
    controller_needs_pod_files = False
    #: Its interfaces are in the VPC, which knows nothing of an overlay's addresses.
    control_plane_reaches_pods = False

    def __init__(self, cluster_name: str, account: AccountView, client: Callable[[str], Any]) -> None:
        """`client` gives the account's boto3 client of a service."""
        super().__init__(cluster_name)
        self.cluster_name = cluster_name
        self.load_balancers = ClassicLoadBalancers(cluster_name, client)
        self._account = account
        # Namespace and name of a service account -> the role that its annotation named last.
        self._annotated: dict[tuple[str, str], str] = {}

    def machine(self, provider_id: str) -> Machine | None:
        """Describe the instance behind `aws:///<zone>/<instance id>`; None when it is gone.

        The refusal names what a real node would fail on: profile, role, access entry or route.
        """
        instance = self._instance(provider_id)
        if instance is None:
            return None
        zone = str(instance.availability_zone)
        architecture = _ARCHITECTURES[instance.architecture]
        name = str(instance.private_dns_name)
        return Machine(
            provider_id=provider_id,
            node_name=name,
            kubelet_version=self._kubelet_version(instance),
            labels={
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": architecture,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance.instance_type,
                "topology.kubernetes.io/zone": zone,
                "topology.kubernetes.io/region": self._account.region,
                "topology.k8s.aws/zone-id": self._account.zone_id(instance),
            },
            refusal=self._refusal(instance),
            internal_ip=str(instance.private_ip_address),
            **_resources(self._account.instance_type(instance)),
        )

    def has_machine(self, provider_id: str) -> bool:
        """Whether there is an instance behind the provider ID that has not ended."""
        return self._instance(provider_id) is not None

    def network_refusal(
        self, provider_id: str, namespace: str, service_account: str, annotations: Mapping[str, str]
    ) -> str:
        """EC2's answer to aws-node: its role is its pod identity association's, its annotation's, or the node's."""
        association = self._account.eks.association(self.cluster_name, namespace, service_account)
        named = association["roleArn"] if association else annotations.get(ROLE_ANNOTATION)
        if named:
            role = self._account.roles.by_arn(named)
            if role is None:
                return _NO_ADDRESSES.format(role=named, action="anything, for it does not exist")
        else:
            instance = self._instance(provider_id)
            attached = instance.iam_instance_profile if instance else None
            profile = self._account.roles.profile(arn=attached["Arn"]) if attached else None
            if profile is None or not profile.roles:
                return ""  # its kubelet has not joined, and says why
            role = profile.roles[0]
        refused = next((one for one in _NETWORK_ACTIONS if not self._account.roles.allows(role, one)), "")
        return _NO_ADDRESSES.format(role=role.arn, action=refused) if refused else ""

    def _known(self, association: Mapping[str, Any]) -> datetime:
        created: datetime = association["createdAt"]
        return created + timedelta(seconds=self._account.timing.association_known)

    def controller_environment(
        self,
        namespace: str,
        service_account: str,
        annotations: Mapping[str, str],
        token_folder: Path,
        labels: Mapping[str, str] | None = None,
        admitted: datetime | None = None,
    ) -> dict[str, str]:
        """Endpoints, region and the way to credentials, as EKS's admission gives them to a pod.

        A pod identity association goes before the annotation of IRSA, as it does in EKS. Whether the role lets
        itself be assumed is decided when the controller asks for credentials.

        Raises:
            ControllerIdentityError: The service account has neither, or the Pod Identity agent is not running.
        """
        names = {"namespace": namespace, "name": service_account, "cluster": self.cluster_name}
        if role := annotations.get(ROLE_ANNOTATION):
            self._annotated[namespace, service_account] = role
        association = self._account.eks.association(self.cluster_name, namespace, service_account)
        if association and admitted is not None and admitted < self._known(association) - _SECOND:
            # A pod keeps what it was admitted with.
            role, association = self._annotated.get((namespace, service_account)), None
            if not role:
                raise ControllerIdentityError(_TOO_EARLY.format(**names))
        if association:
            status = self._account.eks.addon_status(self.cluster_name, POD_IDENTITY_AGENT)
            if status != "ACTIVE":
                state = f"is {status}" if status else "does not exist"
                raise ControllerIdentityError(_NO_AGENT.format(state=state, **names))
            token = self._token(namespace, service_account, POD_IDENTITY_AUDIENCE, token_folder)
            uri = self._account.endpoint + credentials_path(self.cluster_name)
            identity = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}
        elif role:
            token = self._token(namespace, service_account, WEB_IDENTITY_AUDIENCE, token_folder)
            identity = {
                "AWS_ROLE_ARN": role,
                "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
                # AWS's SDK for Go sets up this way to credentials before it reads AWS_ENDPOINT_URL.
                "AWS_ENDPOINT_URL_STS": self._account.endpoint,
            }
        else:
            raise ControllerIdentityError(_NO_IDENTITY.format(**names))
        region = self._account.region
        return {
            "AWS_ENDPOINT_URL": self._account.endpoint,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            # Nothing else may give credentials: no instance metadata, no files of the person at the keyboard.
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            **identity,
        }

    def _token(self, namespace: str, service_account: str, audience: str, folder: Path) -> Path:
        path = folder / audience
        path.touch(mode=0o600)
        path.write_text(self.cluster.create_token(namespace, service_account, audience))
        return path

    def _instance(self, provider_id: str) -> Any | None:
        instance = self._account.instance(provider_id.rsplit("/", 1)[-1])
        return None if instance is None or instance.state in ("terminated", "shutting-down") else instance

    def _aws_auth(self) -> str:
        found = self.bound.objects.get(_AWS_AUTH) if self.bound else None
        return str(((found or {}).get("data") or {}).get("mapRoles", ""))

    def _kubelet_version(self, instance: Any) -> str:
        image: Image | None = self._account.images.get(instance.image_id)
        return image.kubelet_version if image else KUBELETS[self._account.eks.version(self.cluster_name)]

    def _refusal(self, instance: Any) -> str:
        association = instance.iam_instance_profile
        if not association:
            return _NO_PROFILE.format(id=instance.id)
        profile = self._account.roles.profile(arn=association["Arn"])
        if profile is None or not profile.roles:
            return _ROLE_GONE.format(name=association["Arn"], id=instance.id)
        role = profile.roles[0]
        refusal = self._account.eks.node_refusal(self.cluster_name, role, self._aws_auth)
        if refusal:
            return refusal
        if not self._account.roles.allows(role, "ec2:DescribeInstances"):
            return _NO_DESCRIBE.format(role=role.arn)
        table = self._account.missing_route(instance.subnet_id)
        if not table:
            return ""
        missing = self._account.missing_endpoints(instance.subnet_id)
        if missing == list(_OF_NODES):
            return _NO_ROUTE.format(subnet=instance.subnet_id, table=table)
        if missing:
            return _NO_ENDPOINT.format(subnet=instance.subnet_id, services=", ".join(missing))
        return ""


def _resources(instance_type: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Capacity and allocatable of a node as the AL2023 image's own start-up reckons them from the instance type.

    7.5 % of the memory is the hypervisor's; the reservations are nodeadm's (11 MiB a pod and 255 MiB; 6 % of the
    first CPU, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest), and 100 MiB is the eviction threshold.
    """
    cpus = int(instance_type["VCpuInfo"]["DefaultVCpus"])
    network = instance_type["NetworkInfo"]
    pods = int(network["MaximumNetworkInterfaces"]) * (int(network["Ipv4AddressesPerInterface"]) - 1) + 2
    memory = int(instance_type["MemoryInfo"]["SizeInMiB"]) * 925 // 1000
    first = sum(share for upto, share in ((0, 60), (1, 10), (2, 5), (3, 5)) if cpus > upto)
    reserved_cpu = first + max(cpus - 4, 0) * 5 // 2
    capacity = {"cpu": str(cpus), "memory": f"{memory}Mi", "pods": str(pods), "ephemeral-storage": "20Gi"}
    return {
        "capacity": capacity,
        "allocatable": {
            **capacity,
            "cpu": f"{cpus * 1000 - reserved_cpu}m",
            "memory": f"{memory - 11 * pods - 255 - 100}Mi",
            "ephemeral-storage": "17Gi",
        },
    }


class AccountView:
    """What `AwsCloud` needs of the account: its parts, and questions about moto's EC2."""

    def __init__(self, account_id: str, region: str, eks: Eks, roles: Roles, timing: Timing) -> None:
        self._account_id = account_id
        self.region = region
        self.eks = eks
        self.roles = roles
        self.timing = timing
        self.endpoint = ""
        self.images: Mapping[str, Image] = {}

    @property
    def _ec2(self) -> Any:
        from moto.ec2.models import ec2_backends

        return ec2_backends[self._account_id][self.region]

    def instance(self, instance_id: str) -> Any | None:
        """moto's instance, or None."""
        return self._ec2.get_instance_by_id(instance_id)

    def instance_type(self, instance: Any) -> Mapping[str, Any]:
        """EC2's description of an instance's type."""
        from moto.ec2.models.instance_types import INSTANCE_TYPES

        description: Mapping[str, Any] = INSTANCE_TYPES[instance.instance_type]
        return description

    def zone_id(self, instance: Any) -> str:
        """Zone id of an instance, `use1-az1`."""
        return str(self._ec2.get_subnet(instance.subnet_id).availability_zone_id)

    def missing_route(self, subnet_id: str) -> str:
        """The route table that lacks a way out of a subnet; empty when there is one."""
        backend = self._ec2
        vpc_id = backend.get_subnet(subnet_id).vpc_id
        tables = [table for table in list(backend.route_tables.values()) if table.vpc_id == vpc_id]
        own = [table for table in tables if any(item.get("SubnetId") == subnet_id for item in table.associations)]
        table = next(iter(own or [table for table in tables if table.main_association_id]), None)
        routes = table.routes if table else []
        if any(route.destination_cidr_block == "0.0.0.0/0" and _leads_out(route) for route in routes):
            return ""
        return str(table.id) if table else "no route table"

    def missing_endpoints(self, subnet_id: str) -> list[str]:
        """Services that a node of a subnet without a way out needs and has no endpoint of."""
        vpc_id = self._ec2.get_subnet(subnet_id).vpc_id
        there = {
            endpoint.service_name.removeprefix(f"com.amazonaws.{self.region}.")
            for endpoint in list(self._ec2.vpc_end_points.values())
            if endpoint.vpc_id == vpc_id and endpoint.state == "available"
        }
        return [service for service in _OF_NODES if service not in there]


def _leads_out(route: Any) -> bool:
    """Whether a route's target exists; the kinds that the rehearsal cannot judge are believed."""
    return route.state == "active" and (route.nat_gateway is None or route.nat_gateway.state == "available")
