"""Nodes: how machines are launched, by Karpenter's node classes and by launch templates.

Does not judge images, subnets or sizes.
"""

from typing import Any

from pulumi_policy import Severity

from .rule import Judgement, Properties, ResourceRule, section
from .tokens import EC2_NODE_CLASS, LAUNCH_TEMPLATE, NODE_GROUP


def _node_class_metadata(node_class: Properties, judgement: Judgement) -> None:
    options = section(node_class, "spec", "metadataOptions")
    _metadata("spec.metadataOptions", options, "required", judgement)  # the default of Karpenter's CRD


def _launch_template_metadata(template: Properties, judgement: Judgement) -> None:
    # EC2's default, unless the account or the image says otherwise.
    _metadata("metadataOptions", section(template, "metadataOptions"), "optional", judgement)


def _metadata(path: str, options: Properties, default_tokens: str, judgement: Judgement) -> None:
    if options.get("httpEndpoint") == "disabled":
        return
    with judgement.part():
        tokens = options.get("httpTokens") or default_tokens
        if tokens != "required":
            judgement.violation(f"{path}.httpTokens is {tokens}, not required.")
    with judgement.part():
        # Numbers arrive as floats.
        hops = int(options.get("httpPutResponseHopLimit") or 1)
        largest = int(judgement.settings["largestHopLimit"])
        if hops > largest:
            judgement.violation(f"{path}.httpPutResponseHopLimit is {hops}, more than {largest}.")


def _node_class_volumes(node_class: Properties, judgement: Judgement) -> None:
    spec = section(node_class, "spec")
    mappings = spec.get("blockDeviceMappings") or []
    # Karpenter's default volumes are encrypted; for the family Custom it has none, and takes the image's.
    if not mappings and spec.get("amiFamily") == "Custom":
        judgement.violation("spec.blockDeviceMappings is not set, and the AMI family Custom has no defaults.")
    _volumes("spec.blockDeviceMappings", mappings, judgement)


def _launch_template_volumes(template: Properties, judgement: Judgement) -> None:
    mappings = template.get("blockDeviceMappings") or []
    if not mappings:
        judgement.violation("blockDeviceMappings is not set: volumes are the image's, and not encrypted.")
    _volumes("blockDeviceMappings", mappings, judgement)


def _volumes(path: str, mappings: Any, judgement: Judgement) -> None:
    for index in range(len(mappings)):
        with judgement.part():
            ebs = mappings[index].get("ebs")
            if ebs is None:
                continue  # an instance store, or a device that is taken away
            encrypted = ebs.get("encrypted")
            if encrypted not in (True, "true"):  # a boolean in Karpenter's API, text in the launch template's
                found = "not set" if encrypted is None else encrypted
                judgement.violation(f"{path}[{index}].ebs.encrypted is {found}, not true.")


def _node_group_volumes(node_group: Properties, judgement: Judgement) -> None:
    if not node_group.get("launchTemplate"):
        judgement.violation("launchTemplate is not set: EKS makes one, with an unencrypted volume.")


NODE_IMDSV2 = ResourceRule(
    name="node-imdsv2",
    description="Nodes require IMDSv2, and its answers do not reach pods.",
    rationale=(
        "The metadata service hands out the node role's credentials. Version 2 asks for a session token "
        "first, and a hop limit of 1 ends its answers at the node."
    ),
    consequence="A pod, or a request that it is tricked into making, gets the node role's credentials.",
    remediation="Set httpTokens to required and httpPutResponseHopLimit to 1 in the metadata options.",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
    severity=Severity.HIGH,
    settings={"largestHopLimit": {"type": "integer", "minimum": 1, "maximum": 64, "default": 1}},
    checks={EC2_NODE_CLASS: _node_class_metadata, LAUNCH_TEMPLATE: _launch_template_metadata},
)

NODE_VOLUMES_ENCRYPTED = ResourceRule(
    name="node-volumes-encrypted",
    description="Every volume of a node is encrypted.",
    rationale="Images, logs, emptyDir volumes and mounted files of pods lie on the volumes of the node.",
    consequence="Who gets hold of a snapshot or a detached volume reads what the pods wrote.",
    remediation=(
        "Set ebs.encrypted to true in each block device mapping, and give a managed node group a launch "
        "template that has such a mapping."
    ),
    url="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html",
    severity=Severity.HIGH,
    checks={
        EC2_NODE_CLASS: _node_class_volumes,
        LAUNCH_TEMPLATE: _launch_template_volumes,
        NODE_GROUP: _node_group_volumes,
    },
)
