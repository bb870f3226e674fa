"""CreateFleet, with AWS's choice among the instance types it is given.

moto takes the first override and forgets security groups, profile and zone, so an instance is not what Karpenter
asked for. The stand-in owns instant fleets (Karpenter uses no other) over moto's own instances:

- on demand, `lowest-price`: the cheapest pool by the price table; `prioritized`: the lowest priority number.
- spot, `price-capacity-optimized`: AWS prefers the pools with most spare capacity and takes the cheapest of those.
  Spare capacity is simulated by a fixed rule: a pool (instance type and zone) is scarce when the first number of
  the SHA-256 of `capacity/<instance type>/<zone>` lies in the lowest quarter; the cheapest pool that is not scarce
  wins, and scarce ones come last. `lowest-price` ignores scarcity, `capacity-optimized-prioritized` takes the
  lowest priority number among those that are not scarce.

Pools are tried in that order. Each that fails adds an error to the answer, as in AWS, until the target is met.
`Fleets` keeps a log of calls and takes errors to inject; `reset` clears both.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from karpstack.karpenter.instance_types import share
from karpstack.rehearsal.aws.ec2.instances import MOST_AT_ONCE
from karpstack.rehearsal.aws.ec2.prices import PriceTable
from karpstack.rehearsal.aws.errors import answer, refused
from karpstack.rehearsal.aws.iam.roles import SPOT_ROLE, Roles
from karpstack.rehearsal.aws.patching import Patches

_SCARCE = 0.25
_NO_PRICE = float("inf")


_NO_CAPACITY = (
    "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). "
    "Our system will be working on provisioning additional capacity."
)
_NO_SPOT_CAPACITY = "There is no Spot capacity available that matches your request."
_NO_SPOT_ROLE = (
    "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances."
)
_NOT_OFFERED = (
    "Your requested instance type ({type}) is not supported in your requested Availability Zone ({zone}). "
    "Please retry your request by choosing another Availability Zone."
)
_WRONG_ZONE = "The Availability Zone {zone} is not that of the subnet {subnet} ({actual})."
_NO_SUBNET = "The subnet ID '{id}' does not exist"
_NO_IMAGE = "The image id '[{id}]' does not exist"
_NO_GROUP = "The security group '{id}' does not exist"
_NETWORKS = "Security group {group} and subnet {subnet} belong to different networks."
_ARCHITECTURE = (
    "The architecture '{type}' of the specified instance type does not match the architecture '{image}' "
    "of the specified AMI. Specify an instance type and an AMI that have matching architectures."
)
_NO_PROFILE = "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
_EMPTY_PROFILE = (
    "Value ({name}) for parameter iamInstanceProfile.name is invalid. IAM Instance Profile '{name}' has "
    "no associated IAM Roles"
)
_NO_ADDRESSES = "There are not enough free addresses in subnet '{id}' to satisfy the requested number of instances."


@dataclass
class Shortage:
    """A lack of capacity, to inject into launches.

    Attributes:
        instance_type: The type that it hits; every type when empty.
        zone: The zone that it hits; every zone when empty.
        capacity_type: `spot`, `on-demand`, or both when empty.
        met: Launches that it has refused.
    """

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    met: int = 0

    def hits(self, pool: Pool) -> bool:
        """Whether a launch from this pool meets the error now."""
        return (
            self.instance_type in ("", pool.instance_type)
            and self.zone in ("", pool.zone)
            and self.capacity_type in ("", pool.capacity_type)
        )


@dataclass
class Throttle:
    """RequestLimitExceeded for the next calls.

    Attributes:
        remaining: Calls that it will still refuse.
        met: Calls that it has refused.
    """

    remaining: int
    met: int = 0


@dataclass(frozen=True)
class Pool:
    """One place where an instance could be launched: an override with its launch template's data."""

    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    capacity_type: str
    priority: float
    template: Mapping[str, Any] = field(repr=False)
    specification: Mapping[str, Any] = field(repr=False)
    override: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class FleetCall:
    """What one CreateFleet call asked for and got.

    Attributes:
        capacity_type: `spot` or `on-demand`.
        candidates: `<instance type>/<zone>` in the order in which they would be tried.
        launched: Instance ids.
        instance_types: Of those instances.
        errors: Codes of the errors in the answer.
    """

    capacity_type: str
    candidates: tuple[str, ...]
    launched: tuple[str, ...]
    instance_types: tuple[str, ...]
    errors: tuple[str, ...]


class _LaunchError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Fleets:
    """The account's instant fleets."""

    def __init__(self, prices: PriceTable, roles: Roles) -> None:
        self._prices = prices
        self._roles = roles
        self._lock = threading.RLock()
        self._throttles: list[Throttle] = []
        self.shortages: list[Shortage] = []
        self.calls: list[FleetCall] = []

    def inject(self, shortage: Shortage) -> None:
        """Make launches fail from now on."""
        with self._lock:
            self.shortages.append(shortage)

    def throttle(self, calls: int) -> Throttle:
        """Answer so many calls with RequestLimitExceeded, after those that are throttled already."""
        throttle = Throttle(calls)
        with self._lock:
            self._throttles.append(throttle)
        return throttle

    def end_errors(self) -> None:
        """Forget injected errors."""
        with self._lock:
            self.shortages.clear()
            self._throttles.clear()

    def reset(self) -> None:
        """Forget injected errors and logged calls."""
        self.end_errors()
        self.calls.clear()

    def patch(self, patches: Patches) -> None:
        """Answer moto's CreateFleet."""
        from moto.core.responses import ActionResult
        from moto.ec2.responses.fleets import Fleets as FleetResponse

        names = (
            "LaunchTemplateConfigs",
            "TargetCapacitySpecification",
            "SpotOptions",
            "OnDemandOptions",
            "TagSpecifications",
            "Type",
        )

        def create_fleet(response: Any) -> Any:
            response.error_on_dryrun()
            request = {name: response._get_param(name) for name in names if response._get_param(name) is not None}
            return ActionResult(self.create(response.ec2_backend, request, response.get_access_key()))

        patches.set(FleetResponse, "create_fleet", create_fleet)

    def create(self, backend: Any, request: Mapping[str, Any], caller: str) -> dict[str, Any]:
        """Launch an instant fleet.

        Args:
            backend: moto's EC2 backend.
            request: The parameters of CreateFleet, with the API's names.
            caller: Access key of who asks.

        Returns:
            The API's answer: FleetId, Instances and Errors.
        """
        with self._lock:
            throttle = next((throttle for throttle in self._throttles if throttle.remaining > 0), None)
            if throttle:
                throttle.remaining -= 1
                throttle.met += 1
                raise refused("throttled")
        if request.get("Type") != "instant":
            raise answer(
                "InvalidParameterValue",
                f"The rehearsal launches fleets of type instant only, not {request.get('Type', 'maintain')}",
            )
        target = request.get("TargetCapacitySpecification") or {}
        capacity_type = target.get("DefaultTargetCapacityType") or "on-demand"
        wanted = int(target.get("TotalTargetCapacity") or 0)
        if not 0 < wanted <= MOST_AT_ONCE:
            raise refused("bad capacity", wanted=wanted, most=MOST_AT_ONCE)
        fleet_id = f"fleet-{secrets.token_hex(4)}-{secrets.token_hex(2)}-{secrets.token_hex(2)}-{secrets.token_hex(6)}"
        with self._lock:
            pools = self.order(list(_pools(backend, request, capacity_type)), capacity_type, request)
            groups: list[dict[str, Any]] = []
            errors: list[dict[str, Any]] = []
            for pool in pools:
                ids: list[str] = []
                try:
                    while wanted:
                        ids.append(self._launch(backend, pool, request, fleet_id, caller))
                        wanted -= 1
                except _LaunchError as error:
                    errors.append(
                        {
                            "LaunchTemplateAndOverrides": _chosen(pool),
                            "Lifecycle": capacity_type,
                            "ErrorCode": error.code,
                            "ErrorMessage": str(error),
                        }
                    )
                if ids:
                    groups.append(
                        {
                            "LaunchTemplateAndOverrides": _chosen(pool),
                            "Lifecycle": capacity_type,
                            "InstanceIds": ids,
                            "InstanceType": pool.instance_type,
                        }
                    )
                if not wanted:
                    break
            self.calls.append(
                FleetCall(
                    capacity_type,
                    tuple(f"{pool.instance_type}/{pool.zone}" for pool in pools),
                    tuple(instance for group in groups for instance in group["InstanceIds"]),
                    tuple(group["InstanceType"] for group in groups for _ in group["InstanceIds"]),
                    tuple(error["ErrorCode"] for error in errors),
                )
            )
        return {"FleetId": fleet_id, "Instances": groups, "Errors": errors}

    def order(self, pools: list[Pool], capacity_type: str, request: Mapping[str, Any]) -> list[Pool]:
        """The pools in the order in which the allocation strategy tries them; see the module."""
        options = request.get("SpotOptions" if capacity_type == "spot" else "OnDemandOptions") or {}
        strategy = options.get("AllocationStrategy") or "lowest-price"

        def rank(pool: Pool) -> tuple[bool, float, str, str]:
            prioritized = strategy.endswith("prioritized")
            scarce = capacity_type == "spot" and strategy != "lowest-price" and is_scarce(pool.instance_type, pool.zone)
            return (scarce, pool.priority if prioritized else self.price(pool), pool.instance_type, pool.zone)

        return sorted(pools, key=rank)

    def price(self, pool: Pool) -> float:
        """Dollars per hour of an instance from this pool; infinite when there is no price."""
        price = (
            self._prices.spot(pool.instance_type, pool.zone)
            if pool.capacity_type == "spot"
            else self._prices.on_demand(pool.instance_type)
        )
        return _NO_PRICE if price is None else price

    def _launch(self, backend: Any, pool: Pool, request: Mapping[str, Any], fleet_id: str, caller: str) -> str:
        if pool.capacity_type == "spot":
            self._need_spot_role(caller)
        self._check_capacity(pool)
        profile = self._profile(pool)
        groups = _check_network(backend, pool)
        _check_image(backend, pool)
        tags = _tags(pool, request)
        interface = dict(next(iter(pool.template.get("NetworkInterfaces") or []), {}))
        reservation = backend.run_instances(
            pool.image_id,
            1,
            None,
            [],
            instance_type=pool.instance_type,
            is_instance_type_default=False,
            region_name=backend.region_name,
            subnet_id=pool.subnet_id,
            security_group_ids=groups,
            nics=[
                {
                    "DeviceIndex": 0,
                    "DeleteOnTermination": True,
                    "Groups": [],
                    "AssociatePublicIpAddress": bool(interface.get("AssociatePublicIpAddress")),
                }
            ],
            launch_template={
                "LaunchTemplateId": pool.specification["LaunchTemplateId"],
                "Version": pool.specification["Version"],
            },
            block_device_mappings=_volumes(pool.template),
            tags=tags,
            key_name=pool.template.get("KeyName"),
            metadata_options=pool.template.get("MetadataOptions") or {},
            monitoring_state="enabled" if (pool.template.get("Monitoring") or {}).get("Enabled") else "disabled",
            lifecycle="spot" if pool.capacity_type == "spot" else None,
            placement=None,
        )
        instance = reservation.instances[0]
        instance.add_tags({"aws:ec2:fleet-id": fleet_id})
        if pool.capacity_type == "spot":
            instance.spot_instance_request_id = f"sir-{secrets.token_hex(4)}"
        for nic in instance.nics.values():
            nic.add_tags(tags.get("network-interface", {}))
        if profile is not None:
            backend.associate_iam_instance_profile(instance_id=instance.id, iam_instance_profile_name=profile.name)
        return str(instance.id)

    def _need_spot_role(self, caller: str) -> None:
        """EC2 makes its role for spot at an account's first request, with the rights of whoever sends it."""
        if self._roles.by_name(SPOT_ROLE) is not None:
            return
        if not self._roles.may_make_spot_role(caller):
            raise _LaunchError("AuthFailure.ServiceLinkedRoleCreationNotPermitted", _NO_SPOT_ROLE)
        self._roles.make_spot_role()

    def _check_capacity(self, pool: Pool) -> None:
        for shortage in self.shortages:
            if shortage.hits(pool):
                shortage.met += 1
                text = _NO_SPOT_CAPACITY if pool.capacity_type == "spot" else _NO_CAPACITY
                raise _LaunchError("InsufficientInstanceCapacity", text.format(type=pool.instance_type, zone=pool.zone))

    def _profile(self, pool: Pool) -> Any | None:
        wanted = pool.template.get("IamInstanceProfile") or {}
        name, arn = wanted.get("Name", ""), wanted.get("Arn", "")
        if not name and not arn:
            return None
        profile = self._roles.profile(name, arn)
        if profile is None:
            raise _LaunchError("InvalidParameterValue", _NO_PROFILE.format(name=name or arn))
        if not profile.roles:
            raise _LaunchError("InvalidParameterValue", _EMPTY_PROFILE.format(name=profile.name))
        return profile


def is_scarce(instance_type: str, zone: str) -> bool:
    """Whether a spot pool counts as short of capacity, by the rule of this module."""
    return share(f"capacity/{instance_type}/{zone}") < _SCARCE


def _pools(backend: Any, request: Mapping[str, Any], capacity_type: str) -> Iterator[Pool]:
    for config in request.get("LaunchTemplateConfigs") or []:
        wanted = config["LaunchTemplateSpecification"]
        template = (
            backend.get_launch_template(wanted["LaunchTemplateId"])
            if wanted.get("LaunchTemplateId")
            else backend.get_launch_template_by_name(wanted["LaunchTemplateName"])
        )
        version = template.get_version(wanted.get("Version") or "$Default")
        specification = {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": str(version.number),
        }
        for override in config.get("Overrides") or [{}]:
            merged = {**version.data, **override}
            interfaces = merged.get("NetworkInterfaces") or [{}]
            subnet_id = merged.get("SubnetId") or interfaces[0].get("SubnetId") or ""
            zone = merged.get("AvailabilityZone") or _zone_of(backend, subnet_id)
            yield Pool(
                merged.get("InstanceType", ""),
                zone,
                subnet_id,
                merged.get("ImageId", ""),
                capacity_type,
                float(merged.get("Priority") or 0),
                version.data,
                specification,
                override,
            )


def _zone_of(backend: Any, subnet_id: str) -> str:
    subnet = _find_subnet(backend, subnet_id)
    return subnet.availability_zone if subnet else ""


def _find_subnet(backend: Any, subnet_id: str) -> Any | None:
    return next((subnets[subnet_id] for subnets in backend.subnets.values() if subnet_id in subnets), None)


def _chosen(pool: Pool) -> dict[str, Any]:
    return {"LaunchTemplateSpecification": dict(pool.specification), "Overrides": dict(pool.override)}


def _check_network(backend: Any, pool: Pool) -> list[str]:
    subnet = _find_subnet(backend, pool.subnet_id)
    if subnet is None:
        raise _LaunchError("InvalidSubnetID.NotFound", _NO_SUBNET.format(id=pool.subnet_id))
    if subnet.availability_zone != pool.zone:
        raise _LaunchError(
            "InvalidParameterValue",
            _WRONG_ZONE.format(zone=pool.zone, subnet=subnet.id, actual=subnet.availability_zone),
        )
    offered = backend.describe_instance_type_offerings(
        "availability-zone", {"instance-type": [pool.instance_type], "location": [pool.zone]}
    )
    if not offered:
        raise _LaunchError("Unsupported", _NOT_OFFERED.format(type=pool.instance_type, zone=pool.zone))
    if subnet.available_ip_address_count < 1:
        raise _LaunchError("InsufficientFreeAddressesInSubnet", _NO_ADDRESSES.format(id=subnet.id))
    interfaces = pool.template.get("NetworkInterfaces") or []
    primary: dict[str, Any] = next((nic for nic in interfaces if int(nic.get("DeviceIndex") or 0) == 0), {})
    ids = [*(primary.get("Groups") or []), *(pool.template.get("SecurityGroupIds") or [])]
    for name in ids:
        group = backend.get_security_group_from_id(name)
        if group is None:
            raise _LaunchError("InvalidGroup.NotFound", _NO_GROUP.format(id=name))
        if group.vpc_id != subnet.vpc_id:
            raise _LaunchError("InvalidParameter", _NETWORKS.format(group=name, subnet=subnet.id))
    return ids


def _check_image(backend: Any, pool: Pool) -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    image = backend.amis.get(pool.image_id)
    if image is None:
        raise _LaunchError("InvalidAMIID.NotFound", _NO_IMAGE.format(id=pool.image_id))
    architectures = INSTANCE_TYPES[pool.instance_type]["ProcessorInfo"]["SupportedArchitectures"]
    if image.architecture not in architectures:
        raise _LaunchError(
            "InvalidParameterValue", _ARCHITECTURE.format(type=",".join(architectures), image=image.architecture)
        )


def _tags(pool: Pool, request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for specification in [*(pool.template.get("TagSpecifications") or []), *(request.get("TagSpecifications") or [])]:
        tags = {tag.get("Key", ""): tag.get("Value", "") for tag in specification.get("Tags") or []}
        found.setdefault(specification.get("ResourceType", ""), {}).update(tags)
    return found


def _volumes(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Volumes of a launch; EC2's images say that their volumes go with the instance."""
    mappings = template.get("BlockDeviceMappings") or [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20}}]
    return [
        {
            "DeviceName": mapping["DeviceName"],
            "Ebs": {"DeleteOnTermination": True, "VolumeSize": 20, "VolumeType": "gp3", **_given(mapping["Ebs"])},
        }
        for mapping in mappings
        if mapping.get("Ebs")
    ]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
