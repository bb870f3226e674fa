"""A VPC, as `aws ec2 describe-...` would tell of it."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any, Final

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from karpstack.rehearsal.networks.network import Network, digits, parts

#: By which way nodes leave it, in words.
WAYS_OUT: Final = {"nat": "a NAT gateway", "transit-gateway": "a transit gateway of somebody else's"}
_OF_ITS_OWN: Final = ("zones", "natGateways", "flowLogRetentionDays", "endpoints")


_VPC: Final = {
    "Tags": [{"Key": "Name", "Value": "company"}],
    "EnableDnsSupport": True,
    "EnableDnsHostnames": True,
}


def make(stack: str, region: str, network: IPv4Network, zones: int, way_out: str) -> Network:
    """A VPC with a private subnet in each zone, small ones for the control plane, and a public one.

    Args:
        stack: Its name, which the IDs follow from.
        region: Where it is.
        network: Its range.
        zones: In how many zones nodes live.
        way_out: One of `WAYS_OUT`.

    Raises:
        ValueError: The region has not so many zones, or the range is too small.
    """
    names = _zones(region, zones)

    def id_of(kind: str, name: str = "") -> str:
        return f"{kind}-{digits(stack, kind, name)}"

    def subnet(
        name: str, zone: str, cidr: IPv4Network, tags: dict[str, str], *, public: bool = False
    ) -> dict[str, Any]:
        return {
            "SubnetId": id_of("subnet", name),
            "VpcId": vpc,
            "AvailabilityZone": zone,
            "CidrBlock": str(cidr),
            "MapPublicIpOnLaunch": public,
            "Tags": [{"Key": key, "Value": value} for key, value in {"Name": name, **tags}.items()],
        }

    def table(name: str, associations: list[dict[str, Any]], *routes: dict[str, str]) -> dict[str, Any]:
        return {
            "RouteTableId": id_of("rtb", name),
            "VpcId": vpc,
            "Associations": associations,
            "Routes": [{"DestinationCidrBlock": "0.0.0.0/0", **route} for route in routes],
        }

    vpc, internet, nat, transit = id_of("vpc"), id_of("igw"), id_of("nat"), id_of("tgw")
    blocks = parts(network)
    small = list(blocks[-2].subnets(new_prefix=27))
    internal = {"tier": "private", "kubernetes.io/role/internal-elb": "1"}
    private = [subnet(f"private-{zone[-1]}", zone, block, internal) for zone, block in zip(names, blocks, strict=False)]
    control = [subnet(f"control-plane-{zone[-1]}", zone, small[at], {}) for at, zone in enumerate(names[:2])]
    public = subnet(f"public-{names[0][-1]}", names[0], blocks[-1], {"kubernetes.io/role/elb": "1"}, public=True)
    by_nat = way_out == "nat"
    content = {
        "Vpcs": [{"VpcId": vpc, "CidrBlock": str(network), **_VPC}],
        "Subnets": [*private, *control, public],
        "InternetGateways": [{"InternetGatewayId": internet, "Attachments": [{"VpcId": vpc}]}],
        "NatGateways": [{"NatGatewayId": nat, "SubnetId": public["SubnetId"]}] if by_nat else [],
        "RouteTables": [
            table("private", [{"Main": True}], {"NatGatewayId": nat} if by_nat else {"TransitGatewayId": transit}),
            table("public", [{"SubnetId": public["SubnetId"]}], {"GatewayId": internet}),
            table("control-plane", [{"SubnetId": one["SubnetId"]} for one in control]),
        ],
    }
    settings = {
        "vpcId": vpc,
        "vpcCidr": str(network),
        "subnetIds": [one["SubnetId"] for one in private],
        "controlPlaneSubnetIds": [one["SubnetId"] for one in control],
    }
    words = f"a VPC with private subnets in {', '.join(names)}, which {WAYS_OUT[way_out]} leads out of"
    return Network(content, settings, _OF_ITS_OWN, {"privateAccessCidrs": [str(network)]}, words)


def _zones(region: str, zones: int) -> list[str]:
    """Return the first zones of a region."""
    known = sorted(zone.name for zone in RegionsAndZonesBackend.zones.get(region, []))
    if not 2 <= zones <= len(known):
        raise ValueError(
            f"--zones {zones}: a control plane needs two, and {region} has {len(known)} that are known here "
            f"({', '.join(known) or 'none'}); give a number between"
        )
    return known[:zones]
