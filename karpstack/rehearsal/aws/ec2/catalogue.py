"""The catalogue of instance types, answered fast.

moto holds it (1,395 types and where each is offered) and serialises it attribute by attribute, which takes
seconds; Karpenter reads all of it before it is ready. Here each type is written once and kept, and only the
offerings of the account's own region are loaded, which saves about 100 MB.

Replaces in moto: the answers to `DescribeInstanceTypes` and `DescribeInstanceTypeOfferings` (same content; the
dry run that Karpenter begins with is honoured), and the loading of the offerings of other regions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from karpstack.rehearsal.aws.patching import Patches

_EBS_KEY = "alias/aws/ebs"
_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


def load_region_only(region: str) -> None:
    """Import moto's EC2 models with the offerings of one region; without effect when they are imported already."""
    if "moto.ec2.models" in sys.modules:
        return
    from moto.utilities import utils

    load = utils.load_resource

    def load_resource(resource: str) -> Any:
        other = "instance_type_offerings" in resource and f"{region}.json" not in resource
        return [] if other else load(resource)

    utils.load_resource = load_resource
    try:
        import moto.ec2.models  # noqa: F401
    finally:
        utils.load_resource = load


def patch(patches: Patches) -> None:
    """Install the fast answers."""
    from moto.core.utils import get_service_model
    from moto.ec2.responses.elastic_block_store import ElasticBlockStore
    from moto.ec2.responses.instances import InstanceResponse

    output = get_service_model("ec2").operation_model("DescribeInstanceTypes").output_shape
    shape = output.members["InstanceTypes"].member
    written: dict[str, str] = {}

    def describe_instance_types(response: Any) -> str:
        response.error_on_dryrun()
        types = response.ec2_backend.describe_instance_types(
            response._get_param("InstanceTypes", []), response._filters_from_querystring()
        )
        items = []
        for instance_type in types:
            name = instance_type["InstanceType"]
            if name not in written:
                written[name] = xml("item", shape, instance_type)
            items.append(written[name])
        return _answer("DescribeInstanceTypes", "instanceTypeSet", items)

    # moto sets this key and does not tell it.
    patches.set(ElasticBlockStore, "get_ebs_default_kms_key_id", _get_ebs_default_kms_key_id)
    for call in ("describe", "modify"):
        patches.set(ElasticBlockStore, f"{call}_vpc_block_public_access_options", _block_public_access)
    patches.set(InstanceResponse, "describe_instance_types", describe_instance_types)
    patches.set(InstanceResponse, "describe_instance_type_offerings", _describe_instance_type_offerings)


def _get_ebs_default_kms_key_id(response: Any) -> Any:
    from moto.core.responses import ActionResult
    from moto.kms.models import kms_backends

    response.error_on_dryrun()
    backend = response.ec2_backend
    kms, key = kms_backends[backend.account_id][backend.region_name], backend.default_kms_key_id
    # With the first encrypted volume moto makes AWS's own key the default, by its ARN.
    is_own = not key or (kms.alias_exists(_EBS_KEY) and kms.describe_key(_EBS_KEY).arn == key)
    return ActionResult({"KmsKeyId": _EBS_KEY if is_own else key})


def _block_public_access(response: Any) -> Any:
    # moto has neither of the two calls.
    from moto.core.responses import ActionResult

    response.error_on_dryrun()
    backend, mode = response.ec2_backend, response._get_param("InternetGatewayBlockMode")
    backend.internet_gateway_block_mode = mode or getattr(backend, "internet_gateway_block_mode", "off")
    options = {"InternetGatewayBlockMode": backend.internet_gateway_block_mode, "State": "update-complete"}
    return ActionResult({"VpcBlockPublicAccessOptions": options})


def _describe_instance_type_offerings(response: Any) -> str:
    response.error_on_dryrun()
    offerings = response.ec2_backend.describe_instance_type_offerings(
        response._get_param("LocationType"), response._filters_from_querystring()
    )
    return _answer(
        "DescribeInstanceTypeOfferings",
        "instanceTypeOfferingSet",
        [
            f"<item><instanceType>{offering['InstanceType']}</instanceType>"
            f"<locationType>{offering['LocationType']}</locationType>"
            f"<location>{offering['Location']}</location></item>"
            for offering in offerings
        ],
    )


def xml(name: str, shape: Any, value: Any) -> str:
    """Write a value in EC2's XML, by the shape that botocore has of it; members without a value are left out."""
    if shape.type_name == "structure":
        content = "".join(
            xml(member.serialization.get("name", key), member, value[key])
            for key, member in shape.members.items()
            if _given(value, key)
        )
    elif shape.type_name == "list":
        item = shape.member.serialization.get("name", "item")
        content = "".join(xml(item, shape.member, element) for element in value)
    elif isinstance(value, bool):
        content = "true" if value else "false"
    else:
        content = escape(str(value))
    return f"<{name}>{content}</{name}>"


def _given(value: Mapping[str, Any], key: str) -> bool:
    return value.get(key) is not None


def _answer(action: str, set_name: str, items: list[str]) -> str:
    return (
        f'<{action}Response xmlns="{_NAMESPACE}"><requestId>00000000-0000-0000-0000-000000000000</requestId>'
        f"<{set_name}>{''.join(items)}</{set_name}></{action}Response>"
    )
