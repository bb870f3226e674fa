"""What the rehearsal's control endpoint does to the simulated AWS account.

Interruptions are emitted on the account's event bus and reach a queue by the stack's own rules alone. When the notice
(`Timing.spot_notice`) is over, EC2 terminates the instance, whatever has become of its node.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from karpstack.karpenter import clock
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.aws.ec2.fleet import Shortage
from karpstack.rehearsal.control import Body, Hits, refusal

# Karpenter tags what it makes with the pool, and an instance with its claim once its node has joined.
_POOL_TAG = "karpenter.sh/nodepool"
_CLAIM_TAG = "karpenter.sh/nodeclaim"
_GONE = ("terminated", "shutting-down")
_NO_EVENT = "no event would be sent"
_log = logging.getLogger(__name__)


class AwsControl:
    """Implements `karpstack.rehearsal.control.Cloud` for an account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._ends: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def instance_types(self) -> Collection[str]:
        """The types that are offered in the region."""
        pages = self._ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="region")
        return {offering["InstanceType"] for page in pages for offering in page["InstanceTypeOfferings"]}

    def zones(self) -> Collection[str]:
        """`us-east-1a`, ..."""
        return [zone["ZoneName"] for zone in self._ec2.describe_availability_zones()["AvailabilityZones"]]

    def out_of_capacity(self, instance_type: str, capacity_type: str, zone: str) -> Hits:
        """CreateFleet answers InsufficientInstanceCapacity for these pools; a hit is a pool that was tried."""
        shortage = Shortage(instance_type, zone, capacity_type)
        self._account.fleet.inject(shortage)
        return lambda: shortage.met

    def throttle(self, calls: int) -> Hits:
        """CreateFleet answers RequestLimitExceeded; the SDK's own retries are calls too."""
        throttle = self._account.fleet.throttle(calls)
        return lambda: throttle.met

    def end_faults(self) -> None:
        """Let CreateFleet succeed."""
        self._account.fleet.end_errors()

    def interrupt(self, kind: str, instance: str) -> Sequence[Body]:
        """EC2's spot interruption warning or rebalance recommendation for a running spot instance."""
        identifier = instance.rsplit("/", 1)[-1]
        described = self._instance(identifier)
        if described is None or described["State"]["Name"] in _GONE:
            state = "does not exist" if described is None else f"is {described['State']['Name']}"
            raise refusal(
                "instance",
                instance,
                f"{_NO_EVENT}, for the instance {state}",
                "give one that runs: spec.providerID of a node",
                404,
            )
        if described.get("InstanceLifecycle") != "spot":
            raise refusal(
                "instance",
                instance,
                f"{_NO_EVENT}, for EC2 takes back spot instances only and this one is on demand",
                "give the node of a NodePool whose karpenter.sh/capacity-type is spot",
            )
        events = self._account.events
        deliveries = events.interrupt(identifier) if kind == "interruption" else events.rebalance(identifier)
        if kind == "interruption":
            self._end_later(identifier)
        return [{"queue": delivery.queue, "problem": delivery.problem} for delivery in deliveries]

    def publish_image(self) -> Sequence[str]:
        """The next release of Amazon Linux 2023 and of Bottlerocket, of which Karpenter hears within a day."""
        return self._account.images.publish()

    def resources(self) -> Body:
        """Instances that are not terminated, launch templates and network interfaces with Karpenter's tags."""
        instances = [
            {"id": instance["InstanceId"], "nodeclaim": tags.get(_CLAIM_TAG, "")}
            for reservation in self._all("describe_instances", "Reservations")
            for instance in reservation["Instances"]
            if instance["State"]["Name"] != "terminated" and _POOL_TAG in (tags := _tags(instance.get("Tags")))
        ]
        return {
            "instances": instances,
            "launchTemplates": [
                template["LaunchTemplateName"]
                for template in self._all("describe_launch_templates", "LaunchTemplates")
                if _POOL_TAG in _tags(template.get("Tags"))
            ],
            "networkInterfaces": [
                interface["NetworkInterfaceId"]
                for interface in self._all("describe_network_interfaces", "NetworkInterfaces")
                if _POOL_TAG in _tags(interface.get("TagSet"))
            ],
        }

    def stop(self) -> None:
        """Let the instances whose notice runs live."""
        with self._lock:
            for cancelled in self._ends.values():
                cancelled.set()
            self._ends.clear()

    @property
    def _ec2(self) -> Any:
        return self._account.client("ec2")

    def _all(self, operation: str, name: str) -> Iterable[Mapping[str, Any]]:
        for page in self._ec2.get_paginator(operation).paginate():
            yield from page[name]

    def _instance(self, identifier: str) -> Mapping[str, Any] | None:
        try:
            reservations = self._ec2.describe_instances(InstanceIds=[identifier])["Reservations"]
        except ClientError as error:
            if not error.response["Error"]["Code"].startswith("InvalidInstanceID"):
                raise
            return None
        instance: Mapping[str, Any] = reservations[0]["Instances"][0]
        return instance

    def _end_later(self, identifier: str) -> None:
        with self._lock:
            # A second warning does not put off the end.
            if identifier not in self._ends:
                self._ends[identifier] = clock.after(self._account.timing.spot_notice, lambda: self._end(identifier))

    def _end(self, identifier: str) -> None:
        with self._lock:
            if self._ends.pop(identifier, None) is None:
                return
        try:
            # Without effect, and without an event, where Karpenter was faster.
            self._ec2.terminate_instances(InstanceIds=[identifier])
        except Exception:
            _log.exception("the spot instance %s was not terminated at the end of its notice", identifier)


def _tags(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in tags or ()}
