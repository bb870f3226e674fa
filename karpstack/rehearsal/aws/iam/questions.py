"""What IAM is asked about a request: which actions on which resources, under which values of condition keys.

One request can need several answers: CreateFleet launches with the rights of whoever asks, tags what it makes and
passes a role. Which resource types an action is asked for is what the Service Authorization Reference says; a resource
that a request makes is asked for as `<type>/*`, since it has no name yet. A resource that does not exist is not asked
for: the request fails by its name.

Here are the actions of Karpenter's controller. Of any other, `asked` knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from karpstack.rehearsal.recorded_rights import Context, Question

# Condition keys.
_REGION: Final = "aws:RequestedRegion"
_REQUEST_TAG: Final = "aws:RequestTag/"
_RESOURCE_TAG: Final = "aws:ResourceTag/"
_TAG_KEYS: Final = "aws:TagKeys"
_CREATE_ACTION: Final = "ec2:CreateAction"
#: IAM and the price list have one region, whatever the caller's is.
_GLOBAL: Final = "us-east-1"
_EC2: Final = "ec2.amazonaws.com"
_SPOT: Final = "spot.amazonaws.com"
#: Types of resources by what their ids begin with.
_TYPES: Final = {
    "eni": "network-interface",
    "fleet": "fleet",
    "i": "instance",
    "lt": "launch-template",
    "sir": "spot-instances-request",
    "vol": "volume",
}
#: Public parameters of Systems Manager belong to no account.
_PUBLIC: Final = "/aws/"

Tags = Mapping[str, str]


def questions_of_request(response: Any) -> list[Question] | None:
    """The questions about a request (moto's response object); None for an action that is not known here."""
    service = response.service_name
    asking = _ASKING.get(f"{service}:{response._get_action()}")
    return None if asking is None else list(asking(_Request(response)))


def get_products() -> Question:
    """About a request to the price list."""
    return Question("pricing:GetProducts", "*", {_REGION: _GLOBAL})


def get_managed_resource(arn: str) -> Question:
    """About the zonal shifts of the resource of an ARN."""
    return Question("arc-zonal-shift:GetManagedResource", arn, {"arc-zonal-shift:ResourceIdentifier": arn})


def make_spot_role(account_id: str) -> Question:
    """About EC2's making its service-linked role for spot instances."""
    return Question(
        "iam:CreateServiceLinkedRole",
        f"arn:aws:iam::{account_id}:role/aws-service-role/{_SPOT}/AWSServiceRoleForEC2Spot",
        {_REGION: _GLOBAL, "iam:AWSServiceName": _SPOT},
    )


class _Request:
    """A request with what moto's models know of the resources that it names."""

    def __init__(self, response: Any) -> None:
        self.account: str = response.current_account
        self.region: str = response.region
        self.action = f"{response.service_name}:{response._get_action()}"
        self._response = response

    def get(self, name: str) -> Any:
        """A parameter with the API's name; None where it was left out."""
        return self._response._get_param(name)

    def question(self, resource: str, *contexts: Context, action: str = "") -> Question:
        """About the request's own action, unless another one is given."""
        action = action or self.action
        context: dict[str, Any] = {_REGION: _GLOBAL if action.startswith("iam:") else self.region}
        for part in contexts:
            context.update(part)
        return Question(action, resource, context)

    def ec2(self, kind: str, name: str = "*", *, owned: bool = True) -> str:
        """ARN of a resource of EC2; images and snapshots name no account."""
        return f"arn:aws:ec2:{self.region}:{self.account if owned else ''}:{kind}/{name}"

    @property
    def _ec2(self) -> Any:
        from moto.ec2.models import ec2_backends

        return ec2_backends[self.account][self.region]

    @property
    def _iam(self) -> Any:
        from moto.iam.models import iam_backends

        return iam_backends[self.account]["aws"]

    def tags_of(self, identifier: str) -> Context:
        """`aws:ResourceTag/...` of a resource of EC2."""
        # moto's DescribeTags reads the tags of everything that there is.
        found = self._ec2.tags.get(identifier, {})
        return {f"{_RESOURCE_TAG}{key}": str(value) for key, value in found.items()}

    def template(self, wanted: Mapping[str, Any]) -> Any | None:
        """The launch template that a specification names by id or name; None where there is none."""
        backend = self._ec2
        by_name = backend.launch_template_name_to_ids.get(wanted.get("LaunchTemplateName"))
        return backend.launch_templates.get(wanted.get("LaunchTemplateId") or by_name)

    def has_instance(self, identifier: str) -> bool:
        """Whether there is such an instance."""
        return self._ec2.get_instance_by_id(identifier) is not None

    def profile(self, wanted: Mapping[str, Any]) -> Any | None:
        """The instance profile of a name or ARN."""
        profiles = list(self._iam.instance_profiles.values())
        return next(
            (one for one in profiles if one.name == wanted.get("Name") or one.arn == wanted.get("Arn")),
            None,
        )

    def role_arn(self, name: str) -> str:
        """ARN of a role, whether it exists or not."""
        found = next((role.arn for role in list(self._iam.roles.values()) if role.name == name), None)
        return found or f"arn:aws:iam::{self.account}:role/{name}"


def _anything(request: _Request) -> Iterator[Question]:
    """An action that knows no resources."""
    yield request.question("*")


def _run_instances(request: _Request) -> Iterator[Question]:
    # Karpenter's only launch of its own is the one with which it tries its rights, and it names its template.
    template = request.template(request.get("LaunchTemplate") or {})
    data = _data(template, request.get("LaunchTemplate") or {})
    interfaces = request.get("NetworkInterfaces") or data.get("NetworkInterfaces") or []
    spot = (request.get("InstanceMarketOptions") or {}).get("MarketType") == "spot"
    yield from _launch(
        request,
        request.action,
        template=template,
        images={request.get("ImageId") or data.get("ImageId")},
        subnets={request.get("SubnetId"), *(one.get("SubnetId") for one in interfaces)},
        groups=_groups(data, interfaces) | set(request.get("SecurityGroupIds") or ()),
        mappings=request.get("BlockDeviceMappings") or data.get("BlockDeviceMappings") or [],
        tags=_tagged(request.get("TagSpecifications"), data),
        spot=spot,
    )
    yield from _passing(request, data.get("IamInstanceProfile") or request.get("IamInstanceProfile") or {})


def _create_fleet(request: _Request) -> Iterator[Question]:
    spot = (request.get("TargetCapacitySpecification") or {}).get("DefaultTargetCapacityType") == "spot"
    given = request.get("TagSpecifications") or []
    own = _tagged(given, {})
    fleet = own.get("fleet", {})
    yield request.question(request.ec2("fleet"), _requested(fleet))
    yield from _tagging(request, {"fleet": fleet})
    for config in request.get("LaunchTemplateConfigs") or []:
        wanted = config.get("LaunchTemplateSpecification") or {}
        template = request.template(wanted)
        data = _data(template, wanted)
        overrides = config.get("Overrides") or [{}]
        # What only the template names is asked for with RunInstances, not with CreateFleet.
        images = {one.get("ImageId") for one in overrides}
        subnets = {one.get("SubnetId") for one in overrides}
        tags = _tagged(given, data)
        for kind in ("instance", "volume"):
            yield request.question(request.ec2(kind), _requested(tags.get(kind, {})))
        for image in sorted(filter(None, images)):
            yield request.question(request.ec2("image", image, owned=False), request.tags_of(image))
        for subnet in sorted(filter(None, subnets)):
            yield request.question(request.ec2("subnet", subnet), request.tags_of(subnet))
        if template is not None:
            yield request.question(request.ec2("launch-template", template.id), request.tags_of(template.id))
        yield from _launch(
            request,
            "ec2:RunInstances",
            template=template,
            images={image or data.get("ImageId") for image in images},
            subnets=subnets,
            groups=_groups(data, data.get("NetworkInterfaces") or []),
            mappings=data.get("BlockDeviceMappings") or [],
            tags={kind: one for kind, one in tags.items() if kind != "fleet"},
            spot=spot,
        )
        yield from _passing(request, data.get("IamInstanceProfile") or {})


def _launch(
    request: _Request,
    action: str,
    *,
    template: Any | None,
    images: Iterable[str | None],
    subnets: Iterable[str | None],
    groups: Iterable[str | None],
    mappings: Iterable[Mapping[str, Any]],
    tags: Mapping[str, Tags],
    spot: bool,
) -> Iterator[Question]:
    """RunInstances: what is used, what is made, and its tags."""
    for kind, names, owned in (
        ("image", images, False),
        ("snapshot", ((one.get("Ebs") or {}).get("SnapshotId") for one in mappings), False),
        ("subnet", subnets, True),
        ("security-group", groups, True),
    ):
        for name in sorted(filter(None, names)):
            yield request.question(request.ec2(kind, name, owned=owned), request.tags_of(name), action=action)
    if template is not None:
        arn = request.ec2("launch-template", template.id)
        yield request.question(arn, request.tags_of(template.id), action=action)
    for kind in ("instance", "network-interface", "volume", *(("spot-instances-request",) if spot else ())):
        yield request.question(request.ec2(kind), _requested(tags.get(kind, {})), action=action)
    yield from _tagging(request, tags)


def _tagging(request: _Request, tags: Mapping[str, Tags]) -> Iterator[Question]:
    """CreateTags, which a request needs that tags what it makes."""
    creating = {_CREATE_ACTION: request.action.partition(":")[2]}
    for kind, wanted in tags.items():
        if wanted:
            yield request.question(request.ec2(kind), _requested(wanted), creating, action="ec2:CreateTags")


def _passing(request: _Request, wanted: Mapping[str, Any]) -> Iterator[Question]:
    """PassRole, which a launch needs for the roles of its instance profile."""
    profile = request.profile(wanted) if wanted else None
    for role in profile.roles if profile else ():
        yield request.question(role.arn, {"iam:PassedToService": _EC2}, action="iam:PassRole")


def _create_launch_template(request: _Request) -> Iterator[Question]:
    tags = _tagged(request.get("TagSpecifications"), {}).get("launch-template", {})
    yield request.question(request.ec2("launch-template"), _requested(tags))
    yield from _tagging(request, {"launch-template": tags})


def _delete_launch_template(request: _Request) -> Iterator[Question]:
    names = {name: request.get(name) for name in ("LaunchTemplateId", "LaunchTemplateName")}
    if template := request.template(names):
        yield request.question(request.ec2("launch-template", template.id), request.tags_of(template.id))


def _terminate_instances(request: _Request) -> Iterator[Question]:
    for identifier in request.get("InstanceIds") or ():
        if request.has_instance(identifier):
            yield request.question(request.ec2("instance", identifier), request.tags_of(identifier))


def _create_tags(request: _Request) -> Iterator[Question]:
    tags = _pairs(request.get("Tags"))
    for identifier in request.get("Resources") or ():
        kind = _TYPES.get(identifier.partition("-")[0], "*")
        yield request.question(request.ec2(kind, identifier), request.tags_of(identifier), _requested(tags))


def _create_instance_profile(request: _Request) -> Iterator[Question]:
    path = request.get("Path") or "/"
    arn = f"arn:aws:iam::{request.account}:instance-profile{path}{request.get('InstanceProfileName')}"
    yield request.question(arn, _requested(_pairs(request.get("Tags"))))


def _instance_profile(request: _Request, *contexts: Context) -> Iterator[Question]:
    """An action on an instance profile, which is asked for by its bare name where it does not exist."""
    name = request.get("InstanceProfileName")
    profile = request.profile({"Name": name})
    arn = profile.arn if profile else f"arn:aws:iam::{request.account}:instance-profile/{name}"
    tags = {f"{_RESOURCE_TAG}{key}": value for key, value in _pairs(profile.tags if profile else ()).items()}
    yield request.question(arn, tags, *contexts)


def _tag_instance_profile(request: _Request) -> Iterator[Question]:
    yield from _instance_profile(request, _requested(_pairs(request.get("Tags"))))


def _add_role_to_instance_profile(request: _Request) -> Iterator[Question]:
    yield from _instance_profile(request)
    passed = {"iam:PassedToService": _EC2}
    yield request.question(request.role_arn(request.get("RoleName")), passed, action="iam:PassRole")


def _get_parameter(request: _Request) -> Iterator[Question]:
    name = str(request.get("Name"))
    account = "" if name.startswith(_PUBLIC) else request.account
    yield request.question(f"arn:aws:ssm:{request.region}:{account}:parameter/{name.removeprefix('/')}")


def _queue(request: _Request) -> Iterator[Question]:
    name = request.get("QueueName") or str(request.get("QueueUrl")).rpartition("/")[2]
    yield request.question(f"arn:aws:sqs:{request.region}:{request.account}:{name}")


def _describe_cluster(request: _Request) -> Iterator[Question]:
    yield request.question(f"arn:aws:eks:{request.region}:{request.account}:cluster/{request.get('name')}")


_ASKING: Final[Mapping[str, Callable[[_Request], Iterable[Question]]]] = {
    **{
        f"ec2:Describe{what}": _anything
        for what in (
            "CapacityReservations",
            "Images",
            "InstanceStatus",
            "InstanceTypeOfferings",
            "InstanceTypes",
            "Instances",
            "LaunchTemplates",
            "PlacementGroups",
            "SecurityGroups",
            "SpotPriceHistory",
            "Subnets",
        )
    },
    "ec2:CreateFleet": _create_fleet,
    "ec2:CreateLaunchTemplate": _create_launch_template,
    "ec2:CreateTags": _create_tags,
    "ec2:DeleteLaunchTemplate": _delete_launch_template,
    "ec2:RunInstances": _run_instances,
    "ec2:TerminateInstances": _terminate_instances,
    "eks:DescribeCluster": _describe_cluster,
    "iam:AddRoleToInstanceProfile": _add_role_to_instance_profile,
    "iam:CreateInstanceProfile": _create_instance_profile,
    "iam:DeleteInstanceProfile": _instance_profile,
    "iam:GetInstanceProfile": _instance_profile,
    "iam:ListInstanceProfiles": _anything,
    "iam:RemoveRoleFromInstanceProfile": _instance_profile,
    "iam:TagInstanceProfile": _tag_instance_profile,
    "sqs:DeleteMessage": _queue,
    "sqs:GetQueueUrl": _queue,
    "sqs:ReceiveMessage": _queue,
    "ssm:GetParameter": _get_parameter,
}


def _requested(tags: Tags) -> Context:
    """Keys of the tags that a request sets."""
    if not tags:
        return {}
    return {_TAG_KEYS: sorted(tags), **{f"{_REQUEST_TAG}{key}": value for key, value in tags.items()}}


def _tagged(specifications: Iterable[Mapping[str, Any]] | None, data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Tags by type of resource: of a launch template's data, and of the request, which go over them."""
    found: dict[str, dict[str, str]] = {}
    for one in [*(data.get("TagSpecifications") or ()), *(specifications or ())]:
        # moto keeps the tags of the template itself in the data of its first version, too.
        if one.get("ResourceType") != "launch-template" or not data:
            found.setdefault(str(one.get("ResourceType")), {}).update(_pairs(one.get("Tags")))
    return found


def _pairs(tags: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in tags or ()}


def _data(template: Any | None, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a version of a launch template says."""
    if template is None:
        return {}
    data: Mapping[str, Any] = template.get_version(wanted.get("Version") or "$Default").data
    return data


def _groups(data: Mapping[str, Any], interfaces: Iterable[Mapping[str, Any]]) -> set[str | None]:
    return {*(data.get("SecurityGroupIds") or ()), *(group for one in interfaces for group in one.get("Groups") or ())}
