"""What the checks of an AWS account look at: the account, the stack's settings, and what the stack has made already."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from karpstack.components.documents.subnets import ZONES_WITHOUT_EKS
from karpstack.components.naming import EksNames
from karpstack.components.settings import EksSettings, ExistingEksSettings
from karpstack.components.settings.eks import EksStackSettings
from karpstack.components.settings.existing_cluster import FoundCluster, node_network
from karpstack.components.settings.existing_network import FoundNetwork

from ..finding import NotAskedError, UnknowableError
from ..stack import State
from . import existing_cluster, existing_network
from .asking import Aws

#: The tag that Karpenter gives its instances, beside the cluster's.
OF_KARPENTER: Final = "karpenter.sh/nodepool"
_ASSUMED: Final = re.compile(r"arn:[^:]+:sts::\d{12}:assumed-role/(?P<name>[^/]+)/.+")


@dataclass(frozen=True)
class Caller:
    """Who asks: the ARN that STS says, the account, and the partition."""

    arn: str
    account: str

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn` or `aws-us-gov`."""
        return self.arn.split(":")[1]

    @property
    def role(self) -> str:
        """Name of the role whose session this is; empty for any other caller."""
        found = _ASSUMED.fullmatch(self.arn)
        return found["name"] if found else ""


@dataclass(frozen=True)
class StackSubject(ABC):
    """The account, asked as `caller`; the stack's settings; `raw` has the configuration's other namespaces too."""

    aws: Aws
    caller: Caller
    settings: EksStackSettings
    raw: Mapping[str, Any]
    state: State

    @property
    @abstractmethod
    def names(self) -> EksNames:
        """Physical names of the stack."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The cluster's version of Kubernetes, `1.36`.

        Raises:
            NotAskedError: The account does not tell.
        """

    @abstractmethod
    def zones(self) -> list[str]:
        """The zones of the stack's nodes; fewer than it asks for where the region has no more.

        Raises:
            NotAskedError: The account does not tell.
        """

    @abstractmethod
    def owns(self, tags: Collection[str]) -> bool:
        """Whether an instance with tags of these keys is the stack's."""

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """An ARN in the account; `region` is the stack's if not said, and empty for IAM."""
        where = self.aws.region if region is None else region
        return f"arn:{self.caller.partition}:{service}:{where}:{self.caller.account}:{resource}"


@dataclass(frozen=True)
class Subject(StackSubject):
    """A stack that makes its cluster."""

    settings: EksSettings

    @property
    def names(self) -> EksNames:
        """Physical names of the stack."""
        return EksNames(self.settings.name)

    @property
    def version(self) -> str:
        """As the settings have it."""
        return self.settings.cluster.version

    def owns(self, tags: Collection[str]) -> bool:
        """System nodes, and Karpenter's."""
        return cluster_tag(self.names.cluster) in tags

    def zones(self) -> list[str]:
        """Those that the settings name or count, or those of the existing subnets."""
        if self.settings.network.vpc_id is not None:
            subnets = self.existing_network().node_subnets(self.settings.network)
            return sorted({subnet.zone for subnet in subnets})
        wanted = self.settings.network.zones
        offered = self.offered_zones()
        return offered[:wanted] if isinstance(wanted, int) else [zone for zone in wanted if zone in offered]

    def existing_network(self) -> FoundNetwork:
        """What the account says of the network that the stack does not make.

        Raises:
            NotAskedError: The account does not tell.
        """
        return existing_network.find(self.aws, self.settings.network, self.names.cluster)

    def offered_zones(self) -> list[str]:
        """The region's zones that take control planes, by name.

        Raises:
            NotAskedError: The account does not tell.
        """
        found = self.aws.all(
            "ec2",
            "DescribeAvailabilityZones",
            "AvailabilityZones",
            Filters=[
                {"Name": "state", "Values": ["available"]},
                {"Name": "opt-in-status", "Values": ["opt-in-not-required"]},
            ],
        )
        return sorted(zone["ZoneName"] for zone in found if zone["ZoneId"] not in ZONES_WITHOUT_EKS)


@dataclass(frozen=True)
class ExistingSubject(StackSubject):
    """A stack that puts Karpenter on a cluster that is there."""

    settings: ExistingEksSettings

    @property
    def names(self) -> EksNames:
        """Physical names of the stack."""
        return EksNames(self.settings.name, existing=self.settings.cluster.existing)

    @cached_property
    def cluster(self) -> FoundCluster | None:
        """What account and cluster say of it; None where there is none of that name.

        Raises:
            NotAskedError: The account does not tell.
        """
        return existing_cluster.find(self.aws, self.settings)

    @property
    def found(self) -> FoundCluster:
        """The same, where it is there.

        Raises:
            NotAskedError: It is not, or the account does not tell.
        """
        if self.cluster is None:
            what = f"the cluster {self.names.cluster} does not exist"
            raise NotAskedError(existing_cluster.CALL, what, refused=False)
        return self.cluster

    @property
    def version(self) -> str:
        """The cluster's own."""
        return self.found.version

    def owns(self, tags: Collection[str]) -> bool:
        """Karpenter's; those of managed node groups are their owner's."""
        return cluster_tag(self.names.cluster) in tags and OF_KARPENTER in tags

    def zones(self) -> list[str]:
        """Those of the subnets in which Karpenter's nodes are to live."""
        found = self.found
        subnets = found.network.node_subnets(node_network(self.settings, found.vpc_id, found.subnet_ids))
        return sorted({subnet.zone for subnet in subnets})


def cluster_tag(name: str) -> str:
    """The tag that instances of a cluster carry."""
    return f"kubernetes.io/cluster/{name}"


def identify_caller(aws: Aws) -> Caller:
    """Ask the account who we are.

    Raises:
        UnknowableError: It does not answer.
    """
    try:
        who = aws.ask("sts", "GetCallerIdentity")
    except NotAskedError as error:
        raise UnknowableError(
            f"{error.call}: {error}, so nothing can be asked; give AWS credentials, and see that the account has "
            f"the region {aws.region} enabled"
        ) from error
    arn, account = who.get("Arn"), who.get("Account")
    if not isinstance(arn, str) or not isinstance(account, str) or not arn.startswith("arn:"):
        raise UnknowableError(
            f"sts:GetCallerIdentity answers without an ARN and an account ({who}), so it is not AWS that answers; see "
            "what is between: a proxy, a network's login page, AWS_ENDPOINT_URL"
        )
    return Caller(arn, account)


def subject(aws: Aws, settings: EksSettings, raw: Mapping[str, Any], state: State) -> Subject:
    """Ask the account who we are.

    Raises:
        UnknowableError: It does not answer.
    """
    return Subject(aws, identify_caller(aws), settings, raw, state)


def existing_subject(aws: Aws, settings: ExistingEksSettings, raw: Mapping[str, Any], state: State) -> ExistingSubject:
    """The same for a cluster that is there.

    Raises:
        UnknowableError: It does not answer.
    """
    return ExistingSubject(aws, identify_caller(aws), settings, raw, state)
