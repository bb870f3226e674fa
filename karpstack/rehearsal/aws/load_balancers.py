"""Load balancers of Services, as EKS's cloud controller makes them: classic ones, each with a security group.

From kubernetes/cloud-provider-aws (pkg/providers/v1/aws.go): names, tags, the group and the rule that lets it through
to the nodes; which subnets it lies in; which Services are refused, and in which words. What is made stays in the VPC
until the Service goes: interfaces, whose subnets cannot be deleted meanwhile, and the group, with which the VPC cannot.

Simplified: of the annotations only those of type and of internal ones count; no health checks, no targets; where each
subnet belongs to another cluster there is none, not even the node's own.

Change in moto: a request of no known version is answered as one of the classic API, and not by a server error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import ClientError

from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.cluster.cloud import LoadBalancerError

_INTERNAL: Final = "service.beta.kubernetes.io/aws-load-balancer-internal"
_TYPE: Final = "service.beta.kubernetes.io/aws-load-balancer-type"
_PUBLIC_ROLE, _INTERNAL_ROLE = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"
_CLUSTER_TAG: Final = "kubernetes.io/cluster/"
_NEWER: Final = "2015-12-01"
_LONGEST_NAME: Final = 32
_NO_SUBNETS: Final = "could not find any suitable subnets for creating the ELB"
_NO_AFFINITY: Final = "unsupported load balancer affinity: {}"
_NO_MIXTURE: Final = "mixed protocol is not supported for LoadBalancer"
_NO_PROTOCOL: Final = "Protocol {} not supported by LoadBalancer"
_NO_ADDRESS: Final = "LoadBalancerIP cannot be specified for AWS ELB"
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
    """Implements `karpstack.rehearsal.cluster.cloud.LoadBalancers` for one cluster of the account.

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
            LoadBalancerError: The Service asks for what classic ones have not, or for a type that is not played; there
                is no subnet for it; or the account refuses something.
        """
        if refusal := _refusal(service):
            raise LoadBalancerError(refusal)
        name = _name(service)
        with _refusals_told():
            found = self._described(name)
            if found is None:
                self._make(name, service)
                found = self._described(name)
        return str((found or {})["DNSName"])

    def remove(self, service: Mapping[str, Any]) -> None:
        """Remove a Service's load balancer with all that was made for it; nothing happens when there is none.

        Raises:
            LoadBalancerError: The account refuses something: the group is in use elsewhere.
        """
        name = _name(service)
        with _refusals_told():
            self._client("elb").delete_load_balancer(LoadBalancerName=name)
            ec2 = self._client("ec2")
            for interface in self._interfaces(name):
                ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
            for group in self._groups("group-name", f"k8s-elb-{name}"):
                for reached in self._groups("ip-permission.group-id", group):
                    ec2.revoke_security_group_ingress(GroupId=reached, IpPermissions=_everything_from(group))
                ec2.delete_security_group(GroupId=group)

    def _make(self, name: str, service: Mapping[str, Any]) -> None:
        """Make all of it, or what is missing after a try that was refused midway."""
        ec2, network = self._client("ec2"), self._network()
        is_internal = service["metadata"].get("annotations", {}).get(_INTERNAL, "") not in ("", "false")
        subnets = self._subnets(network["vpcId"], is_internal=is_internal)
        of = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
        tags = [
            {"Key": f"{_CLUSTER_TAG}{self._cluster_name}", "Value": "owned"},
            {"Key": "kubernetes.io/service-name", "Value": of},
        ]
        group = next(iter(self._groups("group-name", f"k8s-elb-{name}")), None) or str(
            ec2.create_security_group(
                GroupName=f"k8s-elb-{name}",
                Description=f"Security group for Kubernetes ELB {name} ({of})",
                VpcId=network["vpcId"],
                TagSpecifications=[{"ResourceType": "security-group", "Tags": tags[:1]}],
            )["GroupId"]
        )
        if not self._groups("ip-permission.group-id", group):
            ec2.authorize_security_group_ingress(
                GroupId=network["clusterSecurityGroupId"], IpPermissions=_everything_from(group)
            )
        for subnet in set(subnets) - {interface["SubnetId"] for interface in self._interfaces(name)}:
            ec2.create_network_interface(SubnetId=subnet, Groups=[group], Description=f"ELB {name}")
        self._client("elb").create_load_balancer(
            LoadBalancerName=name,
            Listeners=[_listener(port) for port in service["spec"]["ports"]],
            Subnets=subnets,
            SecurityGroups=[group],
            Tags=tags,
            **({"Scheme": "internal"} if is_internal else {}),
        )

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

    def _interfaces(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Those of a load balancer."""
        filters = _by("description", f"ELB {name}")
        found: Sequence[Mapping[str, Any]] = self._client("ec2").describe_network_interfaces(Filters=filters)[
            "NetworkInterfaces"
        ]
        return found

    def _groups(self, filter_name: str, value: str) -> list[str]:
        """Ids of the security groups that a filter finds."""
        found = self._client("ec2").describe_security_groups(Filters=_by(filter_name, value))["SecurityGroups"]
        return [group["GroupId"] for group in found]

    def _subnets(self, vpc: str, *, is_internal: bool) -> list[str]:
        """One of each zone: rather with the role's tag, then rather with the cluster's, then the first by its id."""
        ec2, filters = self._client("ec2"), _by("vpc-id", vpc)
        tables = ec2.describe_route_tables(Filters=filters)["RouteTables"]
        role, ours = _INTERNAL_ROLE if is_internal else _PUBLIC_ROLE, f"{_CLUSTER_TAG}{self._cluster_name}"
        found = []
        for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]:
            name, tags = subnet["SubnetId"], {tag["Key"] for tag in subnet.get("Tags", [])}
            is_anothers = ours not in tags and any(tag.startswith(_CLUSTER_TAG) for tag in tags)
            if not is_anothers and (is_internal or _is_public(tables, name)):
                found.append((role not in tags, ours not in tags, name, subnet["AvailabilityZone"]))
        if not found:
            raise LoadBalancerError(_NO_SUBNETS)
        of_zone = {zone: name for _, _, name, zone in sorted(found, reverse=True)}  # the last one, the best, counts
        return [of_zone[zone] for zone in sorted(of_zone)]


def _refusal(service: Mapping[str, Any]) -> str:
    """Why a classic load balancer cannot do what a Service asks for; empty when it can."""
    spec, wanted = service["spec"], service["metadata"].get("annotations", {}).get(_TYPE)
    if wanted:
        return _NO_OTHER.format(type=wanted)
    if spec["sessionAffinity"] != "None":
        return _NO_AFFINITY.format(spec["sessionAffinity"])
    protocols = {port["protocol"] for port in spec["ports"]}
    if len(protocols) > 1:
        return _NO_MIXTURE
    if others := protocols - {"TCP"}:
        return _NO_PROTOCOL.format(*others)
    return _NO_ADDRESS if spec.get("loadBalancerIP") else ""


def _is_public(tables: Sequence[Mapping[str, Any]], subnet: str) -> bool:
    """Whether a subnet's route table, its own or the VPC's main one, has a route to an internet gateway."""
    own = [table for table in tables if any(one.get("SubnetId") == subnet for one in table["Associations"])]
    main = [table for table in tables if any(one.get("Main") for one in table["Associations"])]
    return any(route.get("GatewayId", "").startswith("igw") for table in own or main for route in table["Routes"])


@contextmanager
def _refusals_told() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise LoadBalancerError(str(error)) from error


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
