"""Load balancers of Services, as EKS's cloud controller makes them: classic ones, each with a security group.

From kubernetes/cloud-provider-aws (pkg/providers/v1): names, tags, the group and the rule that lets it through to the
nodes; subnets by their role's tag. What is made stays in the VPC until the Service goes: interfaces, whose subnets
cannot be deleted meanwhile, and the group, with which the VPC cannot.

Simplified: a subnet without the tag of its role is not chosen, even if it is public; no health checks, no targets.

Change in moto: a request of no known version is answered as one of the classic API, and not by a server error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from rehearsal.aws.patching import Patches
from rehearsal.cluster.cloud import LoadBalancerError

_INTERNAL: Final = "service.beta.kubernetes.io/aws-load-balancer-internal"
_TYPE: Final = "service.beta.kubernetes.io/aws-load-balancer-type"
_PUBLIC_ROLE, _INTERNAL_ROLE = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"
_NEWER: Final = "2015-12-01"
_LONGEST_NAME: Final = 32
_NO_SUBNETS: Final = "could not find any suitable subnets for creating the ELB"
_NO_OTHER: Final = f"{_TYPE}={{type}}: the rehearsal plays classic load balancers only; leave the annotation out"


def patch(patches: Patches) -> None:
    """Install it. Both APIs of Elastic Load Balancing have one address; a request's version tells them apart."""
    from moto.elb import urls
    from moto.elb.responses import ELBResponse
    from moto.elbv2.responses import ELBV2Response

    class EitherApi:
        """Where moto finds the answers, as at its own classes."""

        @classmethod
        def dispatch(cls, request: Any, *arguments: Any, **options: Any) -> Any:
            api = ELBV2Response if request.values.get("Version") == _NEWER else ELBResponse
            return api.dispatch(request, *arguments, **options)

    patches.set(urls, "url_paths", dict.fromkeys(urls.url_paths, EitherApi.dispatch))


class ClassicLoadBalancers:
    """Implements `rehearsal.cluster.cloud.LoadBalancers` for one cluster of the account.

    Args:
        cluster_name: Name of the cluster.
        client: Gives the account's boto3 client of a service.
    """

    def __init__(self, cluster_name: str, client: Callable[[str], Any]) -> None:
        self._cluster_name = cluster_name
        self._client = client

    def ensure(self, service: Mapping[str, Any]) -> str:
        """Make a Service's load balancer unless it is there; its DNS name.

        Raises:
            LoadBalancerError: There is no subnet for it, or it is of a type that is not played.
        """
        annotations = service["metadata"].get("annotations", {})
        if annotations.get(_TYPE):
            raise LoadBalancerError(_NO_OTHER.format(type=annotations[_TYPE]))
        name = _name(service)
        found = self._described(name)
        if found is None:
            self._make(name, service, is_internal=annotations.get(_INTERNAL) == "true")
            found = self._described(name)
        return str((found or {})["DNSName"])

    def remove(self, service: Mapping[str, Any]) -> None:
        """Remove a Service's load balancer with all that was made for it; nothing happens when there is none."""
        name = _name(service)
        self._client("elb").delete_load_balancer(LoadBalancerName=name)
        ec2 = self._client("ec2")
        for interface in ec2.describe_network_interfaces(Filters=_by("description", f"ELB {name}"))[
            "NetworkInterfaces"
        ]:
            ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        for group in ec2.describe_security_groups(Filters=_by("group-name", f"k8s-elb-{name}"))["SecurityGroups"]:
            ec2.revoke_security_group_ingress(
                GroupId=self._network()["clusterSecurityGroupId"], IpPermissions=_everything_from(group["GroupId"])
            )
            ec2.delete_security_group(GroupId=group["GroupId"])

    def _make(self, name: str, service: Mapping[str, Any], *, is_internal: bool) -> None:
        ec2, network = self._client("ec2"), self._network()
        subnets = self._subnets(network["vpcId"], _INTERNAL_ROLE if is_internal else _PUBLIC_ROLE)
        of = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
        tags = [
            {"Key": f"kubernetes.io/cluster/{self._cluster_name}", "Value": "owned"},
            {"Key": "kubernetes.io/service-name", "Value": of},
        ]
        group = ec2.create_security_group(
            GroupName=f"k8s-elb-{name}",
            Description=f"Security group for Kubernetes ELB {name} ({of})",
            VpcId=network["vpcId"],
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags[:1]}],
        )["GroupId"]
        ec2.authorize_security_group_ingress(
            GroupId=network["clusterSecurityGroupId"], IpPermissions=_everything_from(group)
        )
        self._client("elb").create_load_balancer(
            LoadBalancerName=name,
            Listeners=[_listener(port) for port in service["spec"]["ports"]],
            Subnets=subnets,
            SecurityGroups=[group],
            Tags=tags,
            **({"Scheme": "internal"} if is_internal else {}),
        )
        for subnet in subnets:
            ec2.create_network_interface(SubnetId=subnet, Groups=[group], Description=f"ELB {name}")

    def _described(self, name: str) -> Mapping[str, Any] | None:
        try:
            found = self._client("elb").describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "LoadBalancerNotFound":
                raise
            return None
        first: Mapping[str, Any] = found[0]
        return first

    def _network(self) -> Mapping[str, Any]:
        cluster = self._client("eks").describe_cluster(name=self._cluster_name)["cluster"]
        network: Mapping[str, Any] = cluster["resourcesVpcConfig"]
        return network

    def _subnets(self, vpc: str, role: str) -> list[str]:
        """One of each zone."""
        filters = [*_by("vpc-id", vpc), *_by("tag-key", role)]
        subnets = self._client("ec2").describe_subnets(Filters=filters)["Subnets"]
        of_zone = {each["AvailabilityZone"]: each["SubnetId"] for each in sorted(subnets, key=lambda s: s["SubnetId"])}
        if not of_zone:
            raise LoadBalancerError(_NO_SUBNETS)
        return list(of_zone.values())


def _name(service: Mapping[str, Any]) -> str:
    return ("a" + str(service["metadata"]["uid"]).replace("-", ""))[:_LONGEST_NAME]


def _listener(port: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Protocol": "TCP",
        "LoadBalancerPort": port["port"],
        "InstanceProtocol": "TCP",
        "InstancePort": port.get("nodePort") or port["port"],
    }


def _everything_from(group: str) -> list[dict[str, Any]]:
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]


def _by(name: str, value: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": [value]}]
