"""By which fields nodes drift: upstream's own rules, and what is written otherwise and means the same."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.snapshot.drift import differing

DISK = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "1Ti", "encrypted": True}}
DATA = {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "20Gi"}}
CILIUM = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
OWN = {"key": "example.com/own", "effect": "NoSchedule"}
TERMS = [{"id": "subnet-1"}, {"tags": {"a": "b"}}]


def template(**spec: Any) -> dict[str, Any]:
    return {"template": {"spec": spec}}


@pytest.mark.parametrize(
    ("kind", "before", "after", "fields"),
    [
        ("NodePool", template(expireAfter="720h"), template(), set()),  # the API server's default
        ("NodePool", template(expireAfter="720h"), template(expireAfter="43200m"), set()),
        ("NodePool", template(expireAfter="720h"), template(expireAfter="Never"), {"template.spec.expireAfter"}),
        ("NodePool", template(taints=[CILIUM, OWN]), template(taints=[OWN, CILIUM]), set()),
        ("NodePool", template(taints=[OWN]), template(taints=[{**OWN, "value": ""}]), set()),
        ("NodePool", template(taints=[OWN]), template(taints=[CILIUM, OWN]), {"template.spec.taints"}),
        ("NodePool", template(requirements=[]), template(requirements=[OWN]), set()),
        ("NodePool", {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}, "weight": 3}, set()),
        ("NodePool", {}, {"template": {"metadata": {"labels": {"a": ""}}}}, {"template.metadata.labels"}),
        ("EC2NodeClass", {"blockDeviceMappings": [DISK, DATA]}, {"blockDeviceMappings": [DATA, DISK]}, set()),
        (
            "EC2NodeClass",
            {"blockDeviceMappings": [DISK]},
            {"blockDeviceMappings": [{**DISK, "rootVolume": False, "ebs": {**DISK["ebs"], "volumeSize": "1024Gi"}}]},  # type: ignore[dict-item]
            set(),
        ),
        ("EC2NodeClass", {"blockDeviceMappings": [DATA]}, {"blockDeviceMappings": [DISK]}, {"blockDeviceMappings"}),
        ("EC2NodeClass", {}, {"metadataOptions": {"httpTokens": "required"}}, set()),
        ("EC2NodeClass", {}, {"metadataOptions": {"httpTokens": "optional"}}, {"metadataOptions"}),
        ("EC2NodeClass", {"subnetSelectorTerms": TERMS}, {"subnetSelectorTerms": TERMS[::-1]}, set()),
        ("EC2NodeClass", {"subnetSelectorTerms": TERMS}, {"subnetSelectorTerms": TERMS[:1]}, {"subnetSelectorTerms"}),
        ("EC2NodeClass", {"ipPrefixCount": 1}, {"ipPrefixCount": 2}, set()),
        (
            "EC2NodeClass",
            {"amiSelectorTerms": [{"alias": "al2023@latest"}]},
            {"amiFamily": "AL2023"},
            {"amiSelectorTerms"},
        ),
        ("EC2NodeClass", {"amiSelectorTerms": [{"alias": "al2023@latest"}]}, {}, {"amiSelectorTerms"}),
        ("EC2NodeClass", {"kubelet": {"maxPods": 9}}, {"kubelet": {"maxPods": 8}}, {"kubelet"}),
        ("EC2NodeClass", {"kubelet": {}}, {}, {"kubelet"}),
        ("EC2NodeClass", {"tags": {"a": "b"}}, {}, {"tags"}),
        ("AKSNodeClass", {"tags": {"a": "b"}}, {}, set()),
        ("AKSNodeClass", {"imageFamily": "Ubuntu"}, {}, set()),
        ("AKSNodeClass", {"osDiskSizeGB": 64}, {}, {"osDiskSizeGB"}),
    ],
)
def test_nodes_drift_by_what_karpenters_hash_is_of(
    kind: str, before: dict[str, Any], after: dict[str, Any], fields: set[str]
) -> None:
    """The hashes are in nodepool.go, ec2nodeclass.go and aksnodeclass.go of Karpenter's API packages."""
    cloud = "azure" if kind == "AKSNodeClass" else "aws"
    assert differing(cloud, kind, before, after) == fields
    assert differing(cloud, kind, after, before) == fields
