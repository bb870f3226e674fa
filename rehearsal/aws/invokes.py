"""The data sources that a program reads before it creates anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rehearsal.attachment.resource import Properties, RefusedError
from rehearsal.attachment.values import Secret
from rehearsal.aws.arguments import filters, given, takes
from rehearsal.aws.ec2 import data_sources
from rehearsal.aws.eks.api import ADDONS

if TYPE_CHECKING:
    from rehearsal.aws.account import Account

Invoke = Callable[[Mapping[str, Any]], Properties]


@contextmanager
def _reading(what: str, absent: type[Exception]) -> Iterator[None]:
    """Say as the provider does that there is no such thing, where the account says it by an error."""
    try:
        yield
    except absent as error:
        raise RefusedError(f"reading {what}: couldn't find resource") from error


def invokes(account: Account) -> dict[str, Invoke]:
    """The data sources by token; each takes the arguments of the call and answers what the provider would."""
    return {
        **data_sources.of_networks(account),
        **{token: partial(source, account) for token, source in _DATA_SOURCES.items()},
    }


def _caller_identity(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getCallerIdentity", arguments, set())
    identity = account.client("sts").get_caller_identity()
    return {
        "accountId": identity["Account"],
        "arn": identity["Arn"],
        "userId": identity["UserId"],
        "id": identity["Account"],
    }


def _partition(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getPartition", arguments, set())
    return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws", "id": "aws"}


def _region(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getRegion", arguments, {"region", "name"})
    asked = arguments.get("region") or arguments.get("name") or account.region
    if asked != account.region:
        raise RefusedError(
            f"getRegion of {asked!r}: the rehearsed account is in {account.region} alone; "
            f"set aws:region to {asked} or leave the argument out"
        )
    return {
        "name": asked,
        "region": asked,
        "id": asked,
        "endpoint": f"ec2.{asked}.amazonaws.com",
        "description": asked,
    }


def _availability_zones(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes(
        "getAvailabilityZones",
        arguments,
        {"state", "filters", "excludeNames", "excludeZoneIds", "allAvailabilityZones"},
    )
    wanted = filters(arguments)
    if arguments.get("state"):
        wanted.append({"Name": "state", "Values": [arguments["state"]]})
    # moto knows no opt-in status; every zone that it has needs none.
    asked = [item for item in wanted if item["Name"] != "opt-in-status"]
    zones = account.client("ec2").describe_availability_zones(Filters=asked)["AvailabilityZones"]
    kept = [
        zone
        for zone in zones
        if zone["ZoneName"] not in (arguments.get("excludeNames") or [])
        and zone["ZoneId"] not in (arguments.get("excludeZoneIds") or [])
    ]
    kept.sort(key=lambda zone: str(zone["ZoneName"]))
    return {
        "names": [zone["ZoneName"] for zone in kept],
        "zoneIds": [zone["ZoneId"] for zone in kept],
        "groupNames": [account.region],
        "id": account.region,
        "region": account.region,
        **given(arguments),
    }


def _addon_version(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getAddonVersion", arguments, {"addonName", "kubernetesVersion", "mostRecent"})
    name = arguments["addonName"]
    if name not in ADDONS:
        raise RefusedError(f"reading EKS Add-On version info ({name}): couldn't find resource")
    return {**given(arguments), "id": name, "version": ADDONS[name][-1 if arguments.get("mostRecent") else 0]}


def _cluster(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getCluster", arguments, {"name"})
    eks = account.client("eks")
    with _reading(f"EKS Cluster ({arguments['name']})", eks.exceptions.ResourceNotFoundException):
        seen = eks.describe_cluster(name=arguments["name"])["cluster"]
    return {
        **{key: seen[key] for key in ("name", "arn", "version", "status", "roleArn", "endpoint") if key in seen},
        "id": seen["name"],
        "accessConfigs": [seen["accessConfig"]],
        "certificateAuthorities": [{"data": seen["certificateAuthority"]["data"]}],
        "computeConfigs": [{"enabled": account.eks.records[seen["name"]].auto_mode}],
        "identities": [{"oidcs": [{"issuer": seen["identity"]["oidc"]["issuer"]}]}],
        "kubernetesNetworkConfigs": [seen["kubernetesNetworkConfig"]],
        "vpcConfig": seen["resourcesVpcConfig"],
    }


def _node_group(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getNodeGroup", arguments, {"clusterName", "nodeGroupName"})
    cluster, name = arguments["clusterName"], arguments["nodeGroupName"]
    eks = account.client("eks")
    with _reading(f"EKS Node Group ({cluster}:{name})", eks.exceptions.ResourceNotFoundException):
        seen = eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
    return {
        **given(arguments),
        "id": f"{cluster}:{name}",
        "arn": seen["nodegroupArn"],
        "instanceTypes": seen["instanceTypes"],
        "labels": seen.get("labels", {}),
        "nodeRoleArn": seen["nodeRole"],
        "scalingConfigs": [seen["scalingConfig"]],
        "status": seen["status"],
        "subnetIds": seen["subnets"],
        "taints": seen.get("taints", []),
        "version": seen["version"],
    }


def _node_groups(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getNodeGroups", arguments, {"clusterName"})
    names = account.client("eks").list_nodegroups(clusterName=arguments["clusterName"])["nodegroups"]
    return {**given(arguments), "id": arguments["clusterName"], "names": names}


def _addon(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getAddon", arguments, {"clusterName", "addonName"})
    cluster, name = arguments["clusterName"], arguments["addonName"]
    eks = account.client("eks")
    with _reading(f"EKS Add-On ({cluster}:{name})", eks.exceptions.ResourceNotFoundException):
        seen = eks.describe_addon(clusterName=cluster, addonName=name)["addon"]
    return {
        **given(arguments),
        "id": f"{cluster}:{name}",
        "addonVersion": seen["addonVersion"],
        "arn": seen["addonArn"],
        "configurationValues": seen.get("configurationValues", ""),
        "podIdentityAssociations": [],
        "serviceAccountRoleArn": seen.get("serviceAccountRoleArn", ""),
    }


def _oidc_provider(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getOpenIdConnectProvider", arguments, {"url"})
    found = account.roles.provider_for(arguments["url"])
    if found is None:
        raise RefusedError(f"reading IAM OIDC Provider ({arguments['url']}): couldn't find resource")
    return {**given(arguments), "id": found.arn, "arn": found.arn, "clientIdLists": list(found.client_id_list)}


def _clusters(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getClusters", arguments, set())
    return {"names": account.client("eks").list_clusters()["clusters"], "id": account.region}


def _log_groups(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getLogGroups", arguments, {"logGroupNamePrefix"})
    prefix = arguments.get("logGroupNamePrefix")
    pages = account.client("logs").get_paginator("describe_log_groups")
    found = [
        group
        for page in pages.paginate(**({"logGroupNamePrefix": prefix} if prefix else {}))
        for group in page["logGroups"]
    ]
    return {
        **given(arguments),
        "logGroupNames": [group["logGroupName"] for group in found],
        "arns": [group["arn"].removesuffix(":*") for group in found],
        "id": account.region,
    }


def _parameter(account: Account, arguments: Mapping[str, Any]) -> Properties:
    takes("getParameter", arguments, {"name", "withDecryption"})
    name = arguments["name"]
    ssm = account.client("ssm")
    with _reading(f"SSM Parameter ({name})", ssm.exceptions.ParameterNotFound):
        seen = ssm.get_parameter(Name=name)["Parameter"]
    return {
        **given(arguments),
        "id": name,
        "type": seen["Type"],
        "version": seen["Version"],
        "insecureValue": seen["Value"],
        # The real one is secret whatever the parameter's type.
        "value": Secret(seen["Value"]),
    }


_DATA_SOURCES: Final[dict[str, Callable[[Account, Mapping[str, Any]], Properties]]] = {
    "aws:cloudwatch/getLogGroups:getLogGroups": _log_groups,
    "aws:eks/getAddon:getAddon": _addon,
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:eks/getCluster:getCluster": _cluster,
    "aws:eks/getClusters:getClusters": _clusters,
    "aws:eks/getNodeGroup:getNodeGroup": _node_group,
    "aws:eks/getNodeGroups:getNodeGroups": _node_groups,
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": _oidc_provider,
    "aws:ssm/getParameter:getParameter": _parameter,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
}
