"""The stand-in for pulumi-aws: the resource types and data sources that the program uses, over a simulated account.

Inputs are translated to calls of the AWS API and answers to outputs, as the real provider does; the account behind
it (`karpstack.rehearsal.aws`) decides. It knows exactly the types and properties of types.yaml.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from karpstack.rehearsal.attachment.resource import Properties, RefusedError, Resource
from karpstack.rehearsal.attachment.server import Configuration, Provider
from karpstack.rehearsal.aws.ec2 import resources as ec2
from karpstack.rehearsal.aws.ec2.launch_template import LaunchTemplate
from karpstack.rehearsal.aws.ec2.security_group_rules import SecurityGroup, SecurityGroupRule
from karpstack.rehearsal.aws.eks import resources as eks
from karpstack.rehearsal.aws.eks.node_group import NodeGroup
from karpstack.rehearsal.aws.iam import resources as iam
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.resource import ROWS, AwsResource, Session

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.account import Account
    from karpstack.rehearsal.cluster.control_plane import Clusters

PACKAGE: Final = "aws"
VERSION: Final = "7.51.1"

#: The settings that a provider may have. Those that skip checks change nothing in a simulated account, and pulumi-aws
#: adds two of them to every explicit provider.
SETTINGS: Final = frozenset(
    {
        *("allowedAccountIds", "assumeRoles", "defaultTags", "profile", "region"),
        *("skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation"),
    }
)

#: The types that have behaviour which no row can say; the others are rows alone.
_BEHAVIOUR: Final[Mapping[str, type[AwsResource]]] = {
    kind.type: kind
    for kind in (
        *(ec2.Route, ec2.RouteTable, ec2.RouteTableAssociation, ec2.VpcEndpoint, LaunchTemplate),
        *(SecurityGroup, SecurityGroupRule),
        *(eks.Cluster, eks.Addon, NodeGroup),
        *(iam.Role, iam.RolePolicy, iam.QueuePolicy, iam.OpenIdConnectProvider),
    )
}


def resources(
    account: Account,
    clusters: Clusters,
    default_tags: Mapping[str, str] | None = None,
    deployer: Mapping[str, str] | None = None,
) -> list[Resource]:
    """One of each type, for one instance of the provider; the arguments are those of `Session`."""
    session = Session(account, clusters, dict(default_tags or {}), dict(deployer or {}))
    return [_BEHAVIOUR.get(token, AwsResource)(session, token) for token in ROWS]


def configuration(account: Account, clusters: Clusters) -> Configuration:
    """What the provider takes as configuration: region and allowed accounts, which must be the account's, tags, who.

    A `profile` and `assumeRoles` are everybody's: there is one administrator. They count where a cluster is made.
    """

    def configure(given: Properties, cancelled: threading.Event) -> Provider:
        region = given.get("region")
        if not region:
            raise RefusedError(
                f"the AWS provider has no region, so no call can be made; run: pulumi config set "
                f"aws:region {account.region}"
            )
        if region != account.region:
            raise RefusedError(
                f"aws:region is {region!r}, but the simulated account is in {account.region}; start the "
                f"rehearsal with the stack's region, or set aws:region to {account.region}"
            )
        allowed = [str(one) for one in _nested(given.get("allowedAccountIds")) or [account.account_id]]
        if account.account_id not in allowed:
            raise RefusedError(
                f"AWS account ID not allowed: {account.account_id}; aws:allowedAccountIds is {allowed}. The rehearsal "
                "plays the one account that the stack's file named when it started: take it down, and bring it up again"
            )
        return Provider(
            resources(account, clusters, _default_tags(given.get("defaultTags")), _deployer(given)), invokes(account)
        )

    return Configuration(
        names=SETTINGS,
        configure=configure,
        replaces=lambda old, new: ["region"] if old.get("region") != new.get("region") else [],
    )


def _default_tags(given: Any) -> dict[str, str]:
    return dict((_nested(given) or {}).get("tags") or {})


def _deployer(given: Properties) -> dict[str, str]:
    roles = _nested(given.get("assumeRoles")) or []
    options = {"--profile": given.get("profile"), "--role-arn": roles[-1].get("roleArn") if roles else None}
    return {option: str(value) for option, value in options.items() if value}


def _nested(given: Any) -> Any:
    # The engine hands nested settings of a provider over as JSON.
    return json.loads(given) if isinstance(given, str) and given else given
