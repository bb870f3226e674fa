"""Nodes: how machines are launched, by Karpenter's node classes, launch templates and AKS's pools.

Does not judge sizes, nor how many pods fit (pod_addresses.py).
"""

import re
from contextlib import suppress
from typing import Any

from pulumi_policy import PolicyResource
from pulumi_policy.proxy import UnknownValueError

from . import graph
from .bottlerocket import image_family, is_bottlerocket
from .rule import PRODUCTION_ONLY, Judgement, NotKnownError, Properties, ResourceRule, StackRule, section
from .tokens import AKS_AGENT_POOL, AKS_CLUSTER, EC2_NODE_CLASS, LAUNCH_TEMPLATE, NODE_GROUP, with_patch

# Where images have their root volume; and the volume of images and containers, which Bottlerocket has beside it.
_ROOTS = ("/dev/xvda", "/dev/sda1")
_ROOT_OF_LINUX = ("/dev/xvda",)
_ROOT_OF_WINDOWS = ("/dev/sda1",)
_DATA = ("/dev/xvdb",)
# Families of images by Amazon whose root volume is known; Custom's is the image's own matter.
_LINUX = ("al2", "al2023", "bottlerocket")
# The full name of one image, with its date.
_DATED = re.compile(r"[^*?]*(?<!\d)20\d\d(0[1-9]|1[0-2])[0-3]\d(?!\d)[^*?]*")


def _node_class_metadata(node_class: Properties, judgement: Judgement) -> None:
    options = section(node_class, "spec", "metadataOptions")
    _metadata("spec.metadataOptions", options, judgement, tokens="required", hops=1)  # the defaults of Karpenter's CRD


def _launch_template_metadata(template: Properties, judgement: Judgement) -> None:
    # The account or the image says what is not set: tokens that are optional, or 2 hops, as images with IMDSv2 have.
    _metadata("metadataOptions", section(template, "metadataOptions"), judgement, tokens="optional", hops=None)


def _metadata(path: str, options: Properties, judgement: Judgement, *, tokens: str, hops: int | None) -> None:
    """Judge the options of the metadata service; `tokens` and `hops` are what holds where they do not say."""
    if options.get("httpEndpoint") == "disabled":
        return
    with judgement.part():
        found = options.get("httpTokens") or tokens
        if found != "required":
            judgement.violation(f"{path}.httpTokens is {found}, not required.")
    with judgement.part():
        # Numbers arrive as floats.
        limit = options.get("httpPutResponseHopLimit") or hops
        largest = int(judgement.settings["largestHopLimit"])
        if limit is None:
            judgement.violation(
                f"{path}.httpPutResponseHopLimit is not set: the image or the account says it, often 2."
            )
        elif int(limit) > largest:
            judgement.violation(f"{path}.httpPutResponseHopLimit is {int(limit)}, more than {largest}.")


def _node_class_volumes(node_class: Properties, judgement: Judgement) -> None:
    spec = section(node_class, "spec")
    mappings = spec.get("blockDeviceMappings") or []
    # Karpenter's default volumes are encrypted; for the family Custom it has none, and takes the image's.
    if not mappings and spec.get("amiFamily") == "Custom":
        judgement.violation("spec.blockDeviceMappings is not set, and the AMI family Custom has no defaults.")
    roots: tuple[str, ...] = _ROOTS
    with judgement.part():
        roots = _roots(image_family(spec))
    _volumes("spec.blockDeviceMappings", mappings, judgement, roots)
    if is_bottlerocket(spec):
        _images_volume("spec.blockDeviceMappings", mappings, _DATA, judgement)


def _roots(family: str) -> tuple[str, ...]:
    if family in _LINUX:
        return _ROOT_OF_LINUX
    return _ROOT_OF_WINDOWS if family.startswith("windows") else _ROOTS


def _launch_template_volumes(template: Properties, judgement: Judgement) -> None:
    mappings = template.get("blockDeviceMappings") or []
    if not mappings:
        judgement.violation("blockDeviceMappings is not set: volumes are the image's, and not encrypted.")
    _volumes("blockDeviceMappings", mappings, judgement)


def _volumes(path: str, mappings: Any, judgement: Judgement, roots: tuple[str, ...] = _ROOTS) -> None:
    for index in range(len(mappings)):
        with judgement.part():
            ebs = mappings[index].get("ebs")
            if ebs is None:
                continue  # an instance store, or a device that is taken away
            encrypted = ebs.get("encrypted")
            if encrypted not in (True, "true"):  # a boolean in Karpenter's API, text in the launch template's
                found = "not set" if encrypted is None else encrypted
                judgement.violation(f"{path}[{index}].ebs.encrypted is {found}, not true.")
    _images_volume(path, mappings, roots, judgement)


def _images_volume(path: str, mappings: Any, devices: tuple[str, ...], judgement: Judgement) -> None:
    """Find a volume of the image that no mapping names, so that it stays as the image has it."""
    named = set()
    for index in range(len(mappings)):
        with judgement.part():
            mapping = mappings[index]
            if mapping.get("ebs") is not None:
                # Where the root volume is called otherwise, by an image that is not known.
                is_root = devices == _ROOTS and mapping.get("rootVolume") is True
                named |= {mapping.get("deviceName"), _ROOTS[0] if is_root else None}
    if mappings and not named & set(devices) and judgement.complete:
        judgement.violation(f"{path} has no volume {' or '.join(devices)}: the image's own is not encrypted.")


def _node_group_template(node_group: Properties, judgement: Judgement) -> None:
    if not node_group.get("launchTemplate"):
        judgement.violation("launchTemplate is not set: EKS makes one, with an unencrypted volume.")


def _node_group_volumes(resources: list[PolicyResource], judgement: Judgement) -> None:
    templates = list(graph.of(resources, LAUNCH_TEMPLATE))
    for group in graph.of(resources, NODE_GROUP):
        with judgement.part():
            if group.props.get("launchTemplate"):
                for template in _templates_of(group, templates):
                    with judgement.part():
                        _fits(group, template, judgement)


def _templates_of(group: PolicyResource, templates: list[PolicyResource]) -> list[PolicyResource]:
    """Return the launch template that a node group names; all of the stack where its name and ID come later."""
    if found := list(graph.of(graph.sources(group, "launchTemplate"), LAUNCH_TEMPLATE)):
        return found
    names = _names(group.props["launchTemplate"])
    found = [template for template in templates if not names or names & _names(template.props)]
    if not found:
        named = f"is {', '.join(sorted(names))}" if names else "is unknown"
        what = f"launchTemplate of {group.name} {named}, and only those of this stack are judged"
        raise NotKnownError(what, group.name, "launchTemplate")
    return found


def _names(template: Properties) -> set[str]:
    """The ID and the name of a launch template, as far as they are known."""
    names = set()
    for key in ("id", "name"):
        with suppress(UnknownValueError):
            names |= {template[key]} if key in set(template) else set()
    return names - {None, ""}


def _fits(group: PolicyResource, template: PolicyResource, judgement: Judgement) -> None:
    """Judge whether a launch template maps the volumes that the node group's image has."""
    try:
        ami_type = group.props.get("amiType")
    except UnknownValueError:
        if graph.sources(group, "amiType"):
            raise
        ami_type = None  # not set: EKS decides it when it creates the node group
    # Since Kubernetes 1.30, EKS takes Amazon Linux 2023, unless the launch template has an image of its own.
    if not ami_type and template.props.get("imageId"):
        return
    family = (ami_type or "al2023").lower().partition("_")[0]
    needed = (*_root_of(family), *(_DATA if family == "bottlerocket" else ()))
    if needed and not set(needed) <= _mapped(template.props):
        judgement.violation(
            f"amiType of {group.name} is {ami_type or 'not set, so its image is Amazon Linux 2023'}, and "
            f"{template.name} does not map {' and '.join(needed)}: the image's own is not encrypted.",
            group.urn,
        )


def _root_of(family: str) -> tuple[str, ...]:
    """The root volume of a family of images; empty where it is not known."""
    return roots if len(roots := _roots(family)) == 1 else ()


def _mapped(template: Properties) -> set[str]:
    """The devices for which a launch template has volumes."""
    mappings = template.get("blockDeviceMappings") or []
    return {str(one.get("deviceName")) for one in mappings if one.get("ebs") is not None}


def _image(node_class: Properties, judgement: Judgement) -> None:
    terms = section(node_class, "spec").get("amiSelectorTerms") or []
    for index in range(len(terms)):
        with judgement.part():
            term, path = terms[index], f"spec.amiSelectorTerms[{index}]"
            if (
                term.get("id")
                or _DATED.fullmatch(term.get("name") or "")
                or _is_version(term.get("ssmParameter") or "")
            ):
                continue
            alias = term.get("alias")
            if alias is None:
                what = "selects by tags, or by a name or parameter without a version"
                judgement.violation(f"{path} {what}: whatever is newest is launched.")
            elif alias.partition("@")[2] in ("", "latest"):
                judgement.violation(f"{path}.alias is {alias}, which names no version.")


def _is_version(parameter: str) -> bool:
    """Return whether a parameter of SSM names one version: by a date, in a part of its path, or by its own version."""
    parts = parameter.split("/")
    return any(map(_DATED.fullmatch, parts)) or re.search(r"/\d+\.\d+\.\d+[\w.-]*/|:\d+$", parameter) is not None


def _node_class_public_ip(node_class: Properties, judgement: Judgement) -> None:
    if section(node_class, "spec").get("associatePublicIPAddress") is True:
        judgement.violation("spec.associatePublicIPAddress is true.")


def _launch_template_public_ip(template: Properties, judgement: Judgement) -> None:
    interfaces = template.get("networkInterfaces") or []
    for index in range(len(interfaces)):
        with judgement.part():
            # Text in the SDK, of which the provider takes several for true.
            if str(interfaces[index].get("associatePublicIpAddress") or "").lower() not in ("", "0", "f", "false"):
                judgement.violation(f"networkInterfaces[{index}].associatePublicIpAddress is true.")


def _aks_public_ip(cluster: Properties, judgement: Judgement) -> None:
    pools = cluster.get("agentPoolProfiles") or []
    for index in range(len(pools)):
        with judgement.part():
            if pools[index].get("enableNodePublicIP") is True:
                judgement.violation(f"agentPoolProfiles[{index}].enableNodePublicIP is true.")


def _agent_pool_public_ip(pool: Properties, judgement: Judgement) -> None:
    if pool.get("enableNodePublicIP") is True:
        judgement.violation("enableNodePublicIP is true.")


# What a patch leaves out stays as it is in the object; each rule here finds what is said, so a patch is judged alike.
_NODE_CLASSES = with_patch(EC2_NODE_CLASS)

NODE_IMAGE_PINNED = ResourceRule(
    name="node-image-pinned", enforcement=PRODUCTION_ONLY, checks=dict.fromkeys(_NODE_CLASSES, _image)
)

NODE_NO_PUBLIC_IP = ResourceRule(
    name="node-no-public-ip",
    checks={
        **dict.fromkeys(_NODE_CLASSES, _node_class_public_ip),
        LAUNCH_TEMPLATE: _launch_template_public_ip,
        AKS_CLUSTER: _aks_public_ip,
        AKS_AGENT_POOL: _agent_pool_public_ip,
    },
)

NODE_IMDSV2 = ResourceRule(
    name="node-imdsv2",
    settings={"largestHopLimit": {"type": "integer", "minimum": 1, "maximum": 64, "default": 1}},
    checks={**dict.fromkeys(_NODE_CLASSES, _node_class_metadata), LAUNCH_TEMPLATE: _launch_template_metadata},
)

NODE_VOLUMES_ENCRYPTED = ResourceRule(
    name="node-volumes-encrypted",
    checks={
        **dict.fromkeys(_NODE_CLASSES, _node_class_volumes),
        LAUNCH_TEMPLATE: _launch_template_volumes,
        NODE_GROUP: _node_group_template,
    },
)

NODE_GROUP_VOLUMES_ENCRYPTED = StackRule(name="node-group-volumes-encrypted", check=_node_group_volumes)
