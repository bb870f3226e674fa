"""EC2's launch template, as a managed node group uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties
from rehearsal.aws.ec2.resources import Ec2Resource
from rehearsal.aws.resource import api, capital
from rehearsal.aws.tags import pairs, unpaired

#: Flags of a block device, which the provider writes as text so that they can be left out.
_TEXT_FLAGS = frozenset({"encrypted", "deleteOnTermination"})


class LaunchTemplate(Ec2Resource):
    """A launch template. A change makes a new version; with `updateDefaultVersion` it becomes the default one."""

    token = "aws:ec2/launchTemplate:LaunchTemplate"
    title, noun = "EC2 Launch Template", "LaunchTemplate"
    #: What goes into a version.
    data = frozenset(
        {
            "imageId",
            "instanceType",
            "keyName",
            "userData",
            "metadataOptions",
            "blockDeviceMappings",
            "iamInstanceProfile",
            "monitoring",
            "vpcSecurityGroupIds",
            "tagSpecifications",
        }
    )
    accepts = data | {"name", "description", "updateDefaultVersion", "tags"}
    replace_on = frozenset({"name"})
    computed = frozenset(
        {
            "metadataOptions",
            *(f"metadataOptions.{name}" for name in ("httpEndpoint", "httpProtocolIpv6", "httpPutResponseHopLimit")),
            *(f"metadataOptions.{name}" for name in ("httpTokens", "instanceMetadataTags")),
            *(f"blockDeviceMappings.ebs.{name}" for name in ("iops", "throughput", "volumeSize", "volumeType")),
        }
    )
    name_property, name_limit = "name", 125
    unset: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(
            (
                "description",
                "ebsOptimized",
                "imageId",
                "instanceInitiatedShutdownBehavior",
                "instanceType",
                "kernelId",
                "keyName",
                "namePrefix",
                "ramDiskId",
                "userData",
            ),
            "",
        ),
        "blockDeviceMappings": [],
        "disableApiStop": False,
        "disableApiTermination": False,
        "licenseSpecifications": [],
        "networkInterfaces": [],
        "securityGroupNames": [],
        "tagSpecifications": [],
        "vpcSecurityGroupIds": [],
    }

    def request(self, inputs: Properties) -> dict[str, Any]:
        """Name and first version."""
        return {
            "LaunchTemplateName": inputs["name"],
            "LaunchTemplateData": self._data(inputs),
            **({"VersionDescription": inputs["description"]} if inputs.get("description") else {}),
        }

    def describe(self, id: str) -> dict[str, Any] | None:
        """The template, with its tags of now: moto describes it with those of its creation."""
        described = super().describe(id)
        if described is not None:
            described["Tags"] = self.client.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
        return described

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """The template and its latest version."""
        versions = self.client.describe_launch_template_versions(LaunchTemplateId=id, Versions=["$Latest"])
        version = versions["LaunchTemplateVersions"][0]
        data = dict.fromkeys(self.data) | _from_api(version["LaunchTemplateData"])
        data["vpcSecurityGroupIds"] = data.pop("securityGroupIds", None)
        if data["metadataOptions"]:
            data["metadataOptions"] = {"httpProtocolIpv6": "", "instanceMetadataTags": "", **data["metadataOptions"]}
        # moto keeps the template's own tags in the data of its first version, too.
        data["tagSpecifications"] = [
            block for block in data["tagSpecifications"] or [] if block["resourceType"] != "launch-template"
        ] or None
        return {
            "arn": self.arn("ec2", f"launch-template/{id}"),
            "name": described["LaunchTemplateName"],
            "defaultVersion": described["DefaultVersionNumber"],
            "latestVersion": described["LatestVersionNumber"],
            **{name: value for name, value in data.items() if name in self.data and value is not None},
            "description": version.get("VersionDescription"),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """A new version, unless only `updateDefaultVersion` differs."""
        if self.differs(old, new) - {"updateDefaultVersion"}:
            request = self.request(new)
            del request["LaunchTemplateName"]
            created = self.client.create_launch_template_version(LaunchTemplateId=id, **request)
            latest = created["LaunchTemplateVersion"]["VersionNumber"]
        else:
            latest = (self.describe(id) or {})["LatestVersionNumber"]
        if new.get("updateDefaultVersion"):
            self.client.modify_launch_template(LaunchTemplateId=id, DefaultVersion=str(latest))

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """A change of what a version holds gives numbers that are not known yet."""
        seen = self._seen(id, {}) if id else None
        if seen is None or self.differs(seen, inputs) - {"updateDefaultVersion"}:
            state = {name: value for name, value in state.items() if name not in ("latestVersion", "defaultVersion")}
        return super().preview(inputs, id=id, state=state)

    def _data(self, inputs: Properties) -> dict[str, Any]:
        plain = api(
            {**inputs, "securityGroupIds": inputs.get("vpcSecurityGroupIds")},
            (self.data | {"securityGroupIds"}) - {"vpcSecurityGroupIds"},
        )
        data: dict[str, Any] = _to_api(plain)
        return data


def _to_api(value: Any) -> Any:
    """A block as the API wants it: capitals, flags, tags in pairs."""
    if isinstance(value, list):
        return [_to_api(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        if item is None:
            continue
        if name == "tags":
            result["Tags"] = pairs(item)
        else:
            result[capital(name)] = item == "true" if name in _TEXT_FLAGS else _to_api(item)
    return result


def _from_api(value: Any) -> Any:
    """The opposite of `_to_api`."""
    if isinstance(value, list):
        return [_from_api(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: Properties = {}
    for key, item in value.items():
        name = key[:1].lower() + key[1:]
        if name == "tags":
            result["tags"] = unpaired(item)
        else:
            result[name] = str(item).lower() if name in _TEXT_FLAGS else _from_api(item)
    return result
