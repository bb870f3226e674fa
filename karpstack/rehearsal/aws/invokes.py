"""The data sources that a program reads before it creates anything: rows of functions.yaml, and code for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from botocore.exceptions import ClientError

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.attachment.values import Secret
from karpstack.rehearsal.aws.calls import Step, is_gone, search, steps
from karpstack.rehearsal.aws.eks.api import ADDONS
from karpstack.rehearsal.aws.iam.policy_document import policy_document
from karpstack.rehearsal.aws.tags import unpaired

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.account import Account

Invoke = Callable[[Mapping[str, Any]], Properties]


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A row of functions.yaml, see there."""

    name: str
    service: str
    read: Sequence[Step]
    takes: Sequence[str] = ()
    filters: Mapping[str, str] = field(default_factory=dict)
    only: str = ""
    reading: str = ""
    secrets: Sequence[str] = ()

    def __call__(self, account: Account, arguments: Mapping[str, Any]) -> Properties:
        given = _given(self.name, arguments, self.takes)
        prefix = f"arn:aws:{self.service}:{account.region}:{account.account_id}:"
        own = {"account": account.account_id, "region": account.region, "prefix": prefix}
        words: Properties = {**given, **own, "filters": self._filters(given)}
        results: Properties = {}
        for step in self.read:
            try:
                found = search(step.at, step.send(account.client(self.service), words), words)
            except ClientError as error:
                if not self.reading or not is_gone(error):
                    raise
                raise RefusedError(f"reading {self.reading.format(**given)}: couldn't find resource") from error
            if self.only and step is self.read[0]:
                found = _only(self.only, found)
            results |= {name: search(expression, found, words) for name, expression in step.take.items()}
            words["found"] = results
        if "tags" in results:
            results["tags"] = unpaired(results["tags"])
        results |= {name: Secret(results[name]) for name in self.secrets}
        return {**given, **results}

    def _filters(self, given: Properties) -> list[dict[str, Any]]:
        """EC2's filters, as boto3 wants them."""
        filters = {item["name"]: list(item["values"]) for item in given.get("filters") or []}
        filters |= {name: [given[argument]] for name, argument in self.filters.items() if given.get(argument)}
        filters |= {f"tag:{key}": [value] for key, value in (given.get("tags") or {}).items()}
        return [{"Name": name, "Values": values} for name, values in filters.items()]


def invokes(account: Account) -> dict[str, Invoke]:
    """The data sources by token; each takes the arguments of the call and answers what the provider would."""
    return {token: partial(source, account) for token, source in _DATA_SOURCES.items()}


def _given(name: str, arguments: Mapping[str, Any], known: Sequence[str]) -> Properties:
    """The arguments that are set; Pulumi's SDK sends the others as null.

    Raises:
        RefusedError: The rehearsal does not know one, so that it would change nothing.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    if unknown := sorted(given.keys() - set(known)):
        raise RefusedError(f"{name}: the rehearsal does not know the argument {', '.join(unknown)}; leave it out")
    return given


def _only(title: str, found: Sequence[Properties]) -> Properties:
    if not found:
        raise RefusedError(f"no matching {title} found")
    if len(found) > 1:
        raise RefusedError(
            f"multiple {title}s matched; use additional constraints to reduce matches to a single {title}"
        )
    return found[0]


def _region(account: Account, arguments: Mapping[str, Any]) -> Properties:
    given = _given("getRegion", arguments, ("region", "name"))
    asked = given.get("region") or given.get("name") or account.region
    if asked != account.region:
        raise RefusedError(
            f"getRegion of {asked!r}: the simulated account is in {account.region} alone; "
            f"set aws:region to {asked} or leave the argument out"
        )
    return {**dict.fromkeys(("name", "region", "id", "description"), asked), "endpoint": f"ec2.{asked}.amazonaws.com"}


def _addon_version(account: Account, arguments: Mapping[str, Any]) -> Properties:
    given = _given("getAddonVersion", arguments, ("addonName", "kubernetesVersion", "mostRecent"))
    name = given["addonName"]
    if name not in ADDONS:
        raise RefusedError(f"reading EKS Add-On version info ({name}): couldn't find resource")
    return {**given, "id": name, "version": ADDONS[name][-1 if given.get("mostRecent") else 0]}


def _cluster(account: Account, arguments: Mapping[str, Any]) -> Properties:
    """With EKS Auto Mode, of which moto's API says nothing."""
    seen = _ROWS["aws:eks/getCluster:getCluster"](account, arguments)
    return {**seen, "computeConfigs": [{"enabled": account.eks.records[seen["name"]].auto_mode}]}


def _cluster_auth(account: Account, arguments: Mapping[str, Any]) -> Properties:
    """No call of EKS: the token is signed on the spot, for a cluster that may not exist."""
    given = _given("getClusterAuth", arguments, ("name",))
    return {
        **given,
        "id": given["name"],
        "region": account.region,
        "token": Secret(account.cluster_token(given["name"])),
    }


def _oidc_provider(account: Account, arguments: Mapping[str, Any]) -> Properties:
    given = _given("getOpenIdConnectProvider", arguments, ("url",))
    found = account.roles.provider_for(given["url"])
    if found is None:
        raise RefusedError(f"reading IAM OIDC Provider ({given['url']}): couldn't find resource")
    return {**given, "id": found.arn, "arn": found.arn, "clientIdLists": list(found.client_id_list)}


_TABLE = yaml.load(Path(__file__).with_name("functions.yaml").read_bytes(), yaml.CSafeLoader)
_ROWS: Final[dict[str, _Source]] = {
    token: _Source(name=token.rpartition(":")[2], **{**row, "read": steps(row["read"])})
    for token, row in _TABLE.items()
}
_DATA_SOURCES: Final[Mapping[str, Callable[[Account, Mapping[str, Any]], Properties]]] = {
    **_ROWS,
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:eks/getCluster:getCluster": _cluster,
    "aws:eks/getClusterAuth:getClusterAuth": _cluster_auth,
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": _oidc_provider,
    "aws:iam/getPolicyDocument:getPolicyDocument": lambda account, arguments: policy_document(arguments),
    "aws:index/getRegion:getRegion": _region,
}
