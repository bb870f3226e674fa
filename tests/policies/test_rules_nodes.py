"""rules/nodes.py: each rule one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.nodes import NODE_IMAGE_PINNED as IMAGE
from rules.nodes import NODE_IMDSV2 as IMDSV2
from rules.nodes import NODE_NO_PUBLIC_IP as PUBLIC_IP
from rules.nodes import NODE_VOLUMES_ENCRYPTED as VOLUMES

OPTIONS = ("spec", "metadataOptions")
MAPPINGS = ("spec", "blockDeviceMappings")


def node_class() -> Resource:
    return Resource(
        tokens.EC2_NODE_CLASS,
        {
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1.0},
                "blockDeviceMappings": [
                    {"deviceName": "/dev/xvda", "ebs": {"encrypted": True, "volumeSize": "20Gi"}},
                    {"deviceName": "/dev/xvdb", "ebs": {"encrypted": True, "volumeSize": "20Gi"}},
                ],
            }
        },
    )


def launch_template() -> Resource:
    return Resource(
        tokens.LAUNCH_TEMPLATE,
        {
            "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1.0},
            "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": "true", "volumeSize": 20}}],
        },
    )


def node_group() -> Resource:
    return Resource(tokens.NODE_GROUP, {"clusterName": "example", "launchTemplate": {"id": "lt-1", "version": "1"}})


CASES = [
    Case(name="a node class", rule=IMDSV2, given=node_class()),
    Case(name="a node class with Karpenter's defaults", rule=IMDSV2, given=node_class().without(*OPTIONS)),
    Case(name="a launch template", rule=IMDSV2, given=launch_template()),
    Case(
        name="a service that is off",
        rule=IMDSV2,
        given=launch_template().change("metadataOptions", to={"httpEndpoint": "disabled"}),
    ),
    Case(
        name="a node class that makes tokens optional",
        rule=IMDSV2,
        given=node_class().change(*OPTIONS, "httpTokens", to="optional"),
        violations=("spec.metadataOptions.httpTokens is optional",),
    ),
    Case(
        name="a node class that lets answers reach pods",
        rule=IMDSV2,
        given=node_class().change(*OPTIONS, "httpPutResponseHopLimit", to=2.0),
        violations=("spec.metadataOptions.httpPutResponseHopLimit is 2, more than 1",),
    ),
    Case(
        name="a launch template with EC2's defaults",
        rule=IMDSV2,
        given=launch_template().without("metadataOptions"),
        violations=("metadataOptions.httpTokens is optional",),
    ),
    Case(
        name="a launch template that makes tokens optional",
        rule=IMDSV2,
        given=launch_template().change("metadataOptions", "httpTokens", to="optional"),
        violations=("metadataOptions.httpTokens is optional",),
    ),
    Case(
        name="a launch template that lets answers reach pods",
        rule=IMDSV2,
        given=launch_template().change("metadataOptions", "httpPutResponseHopLimit", to=2.0),
        violations=("metadataOptions.httpPutResponseHopLimit is 2, more than 1",),
    ),
    Case(
        name="a larger hop limit is allowed",
        rule=IMDSV2,
        given=launch_template().change("metadataOptions", "httpPutResponseHopLimit", to=2.0),
        settings={"largestHopLimit": 2.0},
    ),
    Case(
        name="the tokens are unknown, the hop limit is not",
        rule=IMDSV2,
        given=launch_template().change("metadataOptions", to={"httpTokens": UNKNOWN, "httpPutResponseHopLimit": 2.0}),
        violations=("httpPutResponseHopLimit is 2",),
        unknown="metadataOptions.httpTokens",
    ),
    Case(
        name="tokens and hop limit are unknown",
        rule=IMDSV2,
        given=launch_template().change(
            "metadataOptions", to={"httpTokens": UNKNOWN, "httpPutResponseHopLimit": UNKNOWN}
        ),
        unknown="metadataOptions.httpTokens",
    ),
    Case(
        name="the options are unknown",
        rule=IMDSV2,
        given=node_class().change(*OPTIONS, to=UNKNOWN),
        unknown="spec.metadataOptions",
    ),
    Case(name="a node class", rule=VOLUMES, given=node_class()),
    Case(name="a node class with Karpenter's defaults", rule=VOLUMES, given=node_class().without(*MAPPINGS)),
    Case(name="a launch template", rule=VOLUMES, given=launch_template()),
    Case(name="a node group with a launch template", rule=VOLUMES, given=node_group()),
    Case(
        name="an instance store",
        rule=VOLUMES,
        given=node_class().change(*MAPPINGS, 1, to={"deviceName": "/dev/xvdb", "virtualName": "ephemeral0"}),
    ),
    Case(
        name="a node class that does not encrypt",
        rule=VOLUMES,
        given=node_class().change(*MAPPINGS, 1, "ebs", "encrypted", to=False),
        violations=("spec.blockDeviceMappings[1].ebs.encrypted is False",),
    ),
    Case(
        name="a node class that does not say",
        rule=VOLUMES,
        given=node_class().without(*MAPPINGS, 0, "ebs", "encrypted"),
        violations=("spec.blockDeviceMappings[0].ebs.encrypted is not set",),
    ),
    Case(
        name="a custom family without mappings",
        rule=VOLUMES,
        given=node_class().without(*MAPPINGS).change("spec", "amiFamily", to="Custom"),
        violations=("the AMI family Custom has no defaults",),
    ),
    Case(
        name="a launch template that does not encrypt",
        rule=VOLUMES,
        given=launch_template().change("blockDeviceMappings", 0, "ebs", "encrypted", to="false"),
        violations=("blockDeviceMappings[0].ebs.encrypted is false",),
    ),
    Case(
        name="a launch template without mappings",
        rule=VOLUMES,
        given=launch_template().without("blockDeviceMappings"),
        violations=("blockDeviceMappings is not set",),
    ),
    Case(
        name="a node group without a launch template",
        rule=VOLUMES,
        given=node_group().without("launchTemplate"),
        violations=("launchTemplate is not set",),
    ),
    Case(
        name="one mapping is unknown, another not encrypted",
        rule=VOLUMES,
        given=node_class()
        .change(*MAPPINGS, 0, "ebs", "encrypted", to=UNKNOWN)
        .change(*MAPPINGS, 1, "ebs", "encrypted", to=False),
        violations=("spec.blockDeviceMappings[1].ebs.encrypted",),
        unknown="spec.blockDeviceMappings.0.ebs.encrypted",
    ),
    Case(
        name="the mappings are unknown",
        rule=VOLUMES,
        given=launch_template().change("blockDeviceMappings", to=UNKNOWN),
        unknown="blockDeviceMappings",
    ),
    Case(
        name="the launch template's id is unknown",
        rule=VOLUMES,
        given=node_group().change("launchTemplate", "id", to=UNKNOWN),
    ),
]

TERMS = ("spec", "amiSelectorTerms")
BY_TAG = {"tags": {"karpenter.sh/discovery": "example"}}


CASES += [
    Case(name="a version", rule=IMAGE, given=node_class().change(*TERMS, 0, "alias", to="al2023@v20260714")),
    Case(name="one image", rule=IMAGE, given=node_class().change(*TERMS, 0, to={"id": "ami-1"})),
    Case(name="the newest", rule=IMAGE, given=node_class(), violations=("[0].alias is al2023@latest",)),
    Case(
        name="whatever has a tag",
        rule=IMAGE,
        given=node_class().change(*TERMS, 0, to=BY_TAG),
        violations=("[0] selects by tags, name or parameter",),
    ),
    Case(
        name="one is unknown, another is the newest",
        rule=IMAGE,
        given=node_class().change(*TERMS, to=[{"id": UNKNOWN}, {"alias": "al2023@latest"}]),
        violations=("[1].alias",),
        unknown="spec.amiSelectorTerms.0.id",
    ),
    Case(name="a node class", rule=PUBLIC_IP, given=node_class()),
    Case(name="a launch template", rule=PUBLIC_IP, given=launch_template()),
    Case(
        name="a node class with public addresses",
        rule=PUBLIC_IP,
        given=node_class().change("spec", "associatePublicIPAddress", to=True),
        violations=("associatePublicIPAddress is true",),
    ),
    Case(
        name="a launch template with public addresses",
        rule=PUBLIC_IP,
        given=launch_template().change("networkInterfaces", to=[{"associatePublicIpAddress": "true"}]),
        violations=("networkInterfaces[0].associatePublicIpAddress is true",),
    ),
    Case(
        name="an AKS pool with public addresses",
        rule=PUBLIC_IP,
        given=Resource(tokens.AKS_CLUSTER, {"agentPoolProfiles": [{}, {"enableNodePublicIP": True}]}),
        violations=("agentPoolProfiles[1].enableNodePublicIP is true",),
    ),
    Case(
        name="one interface is unknown",
        rule=PUBLIC_IP,
        given=launch_template().change(
            "networkInterfaces", to=[{"associatePublicIpAddress": UNKNOWN}, {"associatePublicIpAddress": "true"}]
        ),
        violations=("networkInterfaces[1]",),
        unknown="networkInterfaces.0.associatePublicIpAddress",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
