"""The regular expressions of the CRDs' schemas in words: what a value has to be, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_AMOUNT: Final = "an amount like 100, 500m or 4Gi"
_LABEL: Final = "63 letters, digits, '-', '_' and '.' at most, with a letter or digit at both ends"

#: Pattern -> what it takes, to be read after "is not". A test says whether all patterns of the schemas are here.
WORDS: Final[Mapping[str, str]] = {
    r"ami-[0-9a-z]+": "the ID of an image, like ami-0123456789abcdef0",
    r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|"
    r"64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$": "a size from 1Gi to 59000Gi, like 50Gi",
    r"^cr-[0-9a-z]+$": "the ID of a capacity reservation, like cr-0123456789abcdef0",
    r"^[0-9]{12}$": "the number of an account, of 12 digits",
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|"
    r"(\.[0-9]+))))?$": _AMOUNT,
    r"^pg-[0-9a-z]+$": "the ID of a placement group, like pg-0123456789abcdef0",
    r"sg-[0-9a-z]+": "the ID of a security group, like sg-0123456789abcdef0",
    r"subnet-[0-9a-z]+": "the ID of a subnet, like subnet-0123456789abcdef0",
    r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$": "a time of hours and minutes, like 8h or 1h30m",
    r"^((100|[0-9]{1,2})%|[0-9]+)$": "a number of nodes, or a share from 0% to 100%",
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$": (
        "a schedule of five fields, like `0 9 * * mon-fri`, or a name like @daily"
    ),
    r"^(([0-9]+(s|m|h))+|Never)$": "a time of hours, minutes and seconds, like 720h or 1h30m, or Never",
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$": f"a label's value: {_LABEL}",
    r"^[^/]*$": "a name without /",
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?"
    r"[A-Za-z0-9]$": f"a label's name like team or example.com/team: {_LABEL}",
    r"^([0-9]+(s|m|h))+$": "a time of hours, minutes and seconds, like 1h or 1h30m",
    r"^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$": "an amount with its unit, like 50Mi",
    r"^\d+(\.\d+)?$": "a price like 0.05",
    r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$": (
        "a signed change of a price, like -0.05, +10% or -15%"
    ),
    r"^\d+ \d+$": "two ports, like `32768 60999`",
    r"^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$": (
        "a zone of the DNS, like cluster.local, or . for all"
    ),
    r"(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/"
    r"Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$": "the resource ID of a subnet",
}
