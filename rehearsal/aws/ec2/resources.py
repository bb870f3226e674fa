"""EC2: the shape that most of its types share, and `ec2.Tag`.

Nearly every EC2 type is created, described and deleted by calls that are named after its noun; `Ec2Resource`
holds that shape, so that a type lists only its properties and what is particular to it.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties
from rehearsal.aws.resource import AwsRefusalError, AwsResource, api, properties
from rehearsal.aws.tags import pairs, unpaired


class Ec2Resource(AwsResource):
    """A type with create_X, describe_Xs and delete_X; inputs carry the API's names but for the capital."""

    service = "ec2"
    #: The API's noun, `RouteTable` for example: calls, parameters and tag type are named after it.
    noun: ClassVar[str]
    #: The parameter and answer that hold the ID, where it is not `<noun>Id`.
    id_key: ClassVar[str] = ""
    #: The noun's plural, where it is not `<noun>s`, and what tags and ARNs call the type, where it is not the noun.
    plural: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    #: Properties that go into the request of creation.
    at_creation: ClassVar[frozenset[str]] = frozenset()
    #: Properties that the description answers under the same names.
    reported: ClassVar[frozenset[str]] = frozenset()

    def make(self, inputs: Properties) -> str:
        """create_X with the tags."""
        answer = self.call("create", **self.request(inputs), **self.tagging(inputs))
        return str(answer.get(self.noun, answer)[self._id_key])

    def request(self, inputs: Properties) -> dict[str, Any]:
        """Parameters of the creation."""
        return api(inputs, self.at_creation)

    def look(self, id: str, state: Properties) -> Properties | None:
        """describe_Xs of the one ID."""
        described = self.describe(id)
        return (
            None
            if described is None
            else {
                **properties(described, self.reported),
                "tags": unpaired(described.get("Tags", [])),
                **self.outputs(id, described),
            }
        )

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """What a type answers beyond `reported`."""
        return {"arn": self.arn("ec2", f"{self._kind}/{id}"), "ownerId": self.account.account_id}

    def describe(self, id: str) -> dict[str, Any] | None:
        """The description, or None when the account does not know the ID."""
        plural = self.plural or f"{self.noun}s"
        found = getattr(self.client, f"describe_{_snake(plural)}")(**{f"{self._id_key}s": [id]})[plural]
        return found[0] if found else None

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_X."""
        self.call("delete", **{self._id_key: id})

    def retag(self, id: str, state: Properties, put: dict[str, str], drop: list[str]) -> None:
        """create_tags and delete_tags."""
        if drop:
            self.client.delete_tags(Resources=[id], Tags=[{"Key": key} for key in drop])
        if put:
            self.client.create_tags(Resources=[id], Tags=pairs(put))

    def call(self, verb: str, **parameters: Any) -> dict[str, Any]:
        """One of the calls that are named after the noun."""
        answer: dict[str, Any] = getattr(self.client, f"{verb}_{_snake(self.noun)}")(**parameters)
        return answer

    def tagging(self, inputs: Properties) -> dict[str, Any]:
        """The parameter that tags at creation."""
        tags = self.tags(inputs)
        return {"TagSpecifications": [{"ResourceType": self._kind, "Tags": pairs(tags)}]} if tags else {}

    @property
    def _id_key(self) -> str:
        return self.id_key or f"{self.noun}Id"

    @property
    def _kind(self) -> str:
        return self.kind or _snake(self.noun).replace("_", "-")


class Tag(AwsResource):
    """One tag on something that another stack, or AWS itself, made. ID: `<resource>,<key>`."""

    token = "aws:ec2/tag:Tag"
    title = "EC2 Tag"
    service = "ec2"
    accepts = required = frozenset({"resourceId", "key", "value"})
    replace_on = frozenset({"resourceId", "key"})

    def make(self, inputs: Properties) -> str:
        """create_tags; refused for what does not exist, which moto does not check for every kind."""
        known = self.client.describe_tags(Filters=[{"Name": "resource-id", "Values": [inputs["resourceId"]]}])["Tags"]
        if not known:
            self._must_exist(inputs["resourceId"])
        self.client.create_tags(Resources=[inputs["resourceId"]], Tags=pairs({inputs["key"]: inputs["value"]}))
        return f"{inputs['resourceId']},{inputs['key']}"

    def look(self, id: str, state: Properties) -> Properties | None:
        """describe_tags of the resource and key."""
        resource, _, key = id.partition(",")
        found = self.client.describe_tags(
            Filters=[{"Name": "resource-id", "Values": [resource]}, {"Name": "key", "Values": [key]}]
        )["Tags"]
        return {"resourceId": resource, "key": key, "value": found[0]["Value"]} if found else None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Overwrite the value."""
        self.client.create_tags(Resources=[new["resourceId"]], Tags=pairs({new["key"]: new["value"]}))

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_tags; a resource that is gone has no tags."""
        resource, _, key = id.partition(",")
        self.client.delete_tags(Resources=[resource], Tags=[{"Key": key}])

    def _must_exist(self, resource: str) -> None:
        checks = {
            "sg-": ("describe_security_groups", "GroupIds"),
            "subnet-": ("describe_subnets", "SubnetIds"),
            "vpc-": ("describe_vpcs", "VpcIds"),
            "rtb-": ("describe_route_tables", "RouteTableIds"),
        }
        for prefix, (call, parameter) in checks.items():
            if resource.startswith(prefix):
                getattr(self.client, call)(**{parameter: [resource]})
                return
        raise AwsRefusalError("InvalidID", f"The ID '{resource}' is not valid")


def _snake(noun: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", noun).lower()
