"""EC2's launch template, as a managed node group uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import Properties
from karpstack.rehearsal.aws.resource import AwsResource, capital
from karpstack.rehearsal.aws.tags import pairs, unpaired

#: What is beside a version's data.
_OUTSIDE: Final = frozenset({"name", "namePrefix", "description", "updateDefaultVersion", "tags"})
#: Flags of a block device, which the provider writes as text so that they can be left out.
_TEXT_FLAGS = frozenset({"encrypted", "deleteOnTermination"})


class LaunchTemplate(AwsResource):
    """A launch template. A change makes a new version; with `updateDefaultVersion` it becomes the default one."""

    type = "aws:ec2/launchTemplate:LaunchTemplate"

    def words(self, id: str, state: Mapping[str, Any]) -> Properties:
        """With what goes into a version, as `data`."""
        data = {name: value for name, value in state.items() if name in self.accepts - _OUTSIDE}
        data["securityGroupIds"] = data.pop("vpcSecurityGroupIds", None)
        return {**super().words(id, state), "data": _to_api(data)}

    def describe(self, id: str, state: Properties) -> Properties | None:
        """The template and its latest version."""
        seen = super().describe(id, state)
        if seen is None:
            return None
        data = dict.fromkeys(self.accepts - _OUTSIDE) | _from_api(seen.pop("data"))
        data["vpcSecurityGroupIds"] = data.pop("securityGroupIds", None)
        if data["metadataOptions"]:
            data["metadataOptions"] = {"httpProtocolIpv6": "", "instanceMetadataTags": "", **data["metadataOptions"]}
        # moto keeps the template's own tags in the data of its first version, too.
        data["tagSpecifications"] = [
            block for block in data["tagSpecifications"] or [] if block["resourceType"] != "launch-template"
        ] or None
        return {**seen, **{name: value for name, value in data.items() if name in self.accepts and value is not None}}

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """A change of what a version holds gives numbers that are not known yet."""
        seen = self.read(id, {}) if id else None
        if seen is None or self.differs(seen, inputs) - {"updateDefaultVersion"}:
            state = {name: value for name, value in state.items() if name not in ("latestVersion", "defaultVersion")}
        return super().preview(inputs, id=id, state=state)


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
