"""What is called otherwise in AWS's other partitions than in the public one: China, and the European Sovereign Cloud.

The suffixes are those of the AWS SDKs (botocore/data/partitions.json). GovCloud has the public partition's. ARNs are no
matter of a region's name here: the provider says their partition. The isolated regions are refused with the regions
that do not exist, for the facts know none of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Suffixes(NamedTuple):
    """What names end with.

    Attributes:
        dns: Of host names, and of EC2 as a principal.
        dual_stack: Of host names of newer services.
    """

    dns: str
    dual_stack: str


_PUBLIC: Final = Suffixes("amazonaws.com", "api.aws")
#: How the names of a partition's regions begin.
_OTHERS: Final = {
    "cn-": Suffixes("amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    "eusc-": Suffixes("amazonaws.eu", "api.amazonwebservices.eu"),
}


def suffixes(region: str) -> Suffixes:
    """What names in a region end with."""
    return next((known for prefix, known in _OTHERS.items() if region.startswith(prefix)), _PUBLIC)


def ec2_principal(region: str) -> str:
    """EC2 as the service that takes the role of a node, as Karpenter's own template has it: `ec2.${AWS::URLSuffix}`."""
    return f"ec2.{suffixes(region).dns}"


def endpoint_services(service: str, region: str) -> list[str]:
    """Names that the endpoint service of a service may have.

    In China some have the public ones' and some are turned round with their suffix, `cn.com.amazonaws.cn-north-1.sts`.
    """
    dns = suffixes(region).dns
    turned = ".".join(reversed(dns.split(".")))
    return [f"{prefix}.{region}.{service}" for prefix in dict.fromkeys(("com.amazonaws", turned))]
