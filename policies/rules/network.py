"""Network: who can reach the cluster's API. Does not judge security groups or the pod network."""

from ipaddress import ip_network

from pulumi_policy import Severity

from .rule import Judgement, Properties, ResourceRule, section
from .tokens import CLUSTER


def _allow_list(cluster: Properties, judgement: Judgement) -> None:
    vpc = section(cluster, "vpcConfig")
    if vpc.get("endpointPublicAccess") is False:
        return
    cidrs = vpc.get("publicAccessCidrs")
    if not cidrs:
        judgement.violation("vpcConfig.publicAccessCidrs is not set; a public endpoint then takes 0.0.0.0/0.")
        return
    for index in range(len(cidrs)):
        with judgement.part():
            _cidr(f"vpcConfig.publicAccessCidrs[{index}]", cidrs[index], judgement)


def _cidr(path: str, cidr: str, judgement: Judgement) -> None:
    try:
        network = ip_network(cidr, strict=False)
    except ValueError as error:
        judgement.violation(f"{path} is not a CIDR: {error}.")
        return
    # Configured numbers arrive as floats.
    shortest = int(judgement.settings[f"shortestIPv{network.version}Prefix"])
    if network.prefixlen < shortest:
        judgement.violation(f"{path} is {cidr}, and anything wider than /{shortest} counts as the world.")


CLUSTER_ENDPOINT_ALLOW_LIST = ResourceRule(
    name="cluster-endpoint-allow-list",
    description="The API endpoint of a cluster is private, or public for a list of known networks.",
    rationale=(
        "AWS opens the endpoint to the world unless told otherwise, and the list is the only lock in front "
        "of the API server."
    ),
    consequence="Anybody on the internet can try stolen credentials and vulnerabilities on the API server.",
    remediation="Name your networks in vpcConfig.publicAccessCidrs, or set endpointPublicAccess to false.",
    url="https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html",
    severity=Severity.CRITICAL,
    settings={
        # More than a test for /0, because the world also fits into 0.0.0.0/1 and 128.0.0.0/1.
        "shortestIPv4Prefix": {"type": "integer", "minimum": 1, "maximum": 32, "default": 8},
        "shortestIPv6Prefix": {"type": "integer", "minimum": 1, "maximum": 128, "default": 16},
    },
    checks={CLUSTER: _allow_list},
)
