"""The data sources that a program reads before it creates anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rehearsal.attachment.resource import Properties, RefusedError

if TYPE_CHECKING:
    from rehearsal.aws.account import Account

Invoke = Callable[[Mapping[str, Any]], Properties]


def invokes(account: Account) -> dict[str, Invoke]:
    """The data sources by token; each takes the arguments of the call and answers what the provider would."""

    def caller_identity(arguments: Mapping[str, Any]) -> Properties:
        _takes("getCallerIdentity", arguments, set())
        identity = account.client("sts").get_caller_identity()
        return {
            "accountId": identity["Account"],
            "arn": identity["Arn"],
            "userId": identity["UserId"],
            "id": identity["Account"],
        }

    def partition(arguments: Mapping[str, Any]) -> Properties:
        _takes("getPartition", arguments, set())
        return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws", "id": "aws"}

    def region(arguments: Mapping[str, Any]) -> Properties:
        _takes("getRegion", arguments, {"region", "name"})
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

    def availability_zones(arguments: Mapping[str, Any]) -> Properties:
        _takes(
            "getAvailabilityZones",
            arguments,
            {"state", "filters", "excludeNames", "excludeZoneIds", "allAvailabilityZones"},
        )
        filters = [{"Name": item["name"], "Values": list(item["values"])} for item in arguments.get("filters") or []]
        if arguments.get("state"):
            filters.append({"Name": "state", "Values": [arguments["state"]]})
        # moto knows no opt-in status; every zone that it has needs none.
        asked = [item for item in filters if item["Name"] != "opt-in-status"]
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
            **{key: value for key, value in arguments.items() if value is not None},
        }

    return {
        "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
        "aws:index/getPartition:getPartition": partition,
        "aws:index/getRegion:getRegion": region,
        "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    }


def _takes(name: str, arguments: Mapping[str, Any], known: set[str]) -> None:
    # Pulumi's SDK sends arguments that are not set as null.
    unknown = sorted(key for key, value in arguments.items() if value is not None and key not in known)
    if unknown:
        raise RefusedError(f"{name}: the rehearsal does not know the argument {', '.join(unknown)}; leave it out")
