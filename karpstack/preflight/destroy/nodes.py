"""Karpenter's own objects and instances: those that the stack does not know, and how long the known ones take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding, finding
from .subject import (
    FOR_EVER,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_POOLS,
    POOL_LABEL,
    Subject,
    kubectl,
    labels_of,
    name_of,
)

_LEFT_BEHIND: Final = (
    "destroy removes Karpenter before it: it keeps its finalizer, the CRDs' removal hangs, and its instances run on "
    "when the cluster is gone"
)


def node_pools(subject: Subject) -> Iterator[Finding]:
    """NodePools that were made by hand."""
    known = subject.own("nodePools", "defaultNodePools")
    if subject.is_managed:
        return
    for pool in subject.cluster.list(NODE_POOLS):
        if name_of(pool) not in known:
            yield finding(
                "node-pool-of-others",
                f"GET {NODE_POOLS}",
                pool=name_of(pool),
                delete=kubectl("delete", "nodepool", pool),
            )


def node_claims(subject: Subject) -> Iterator[Finding]:
    """NodeClaims of no NodePool: those of one go with it."""
    if subject.is_managed:
        return
    pools = {name_of(pool) for pool in subject.cluster.list(NODE_POOLS)}
    for claim in subject.cluster.list(NODE_CLAIMS):
        if labels_of(claim).get(POOL_LABEL) not in pools:
            yield finding(
                "node-claim-of-no-pool",
                f"GET {NODE_CLAIMS}",
                claim=name_of(claim),
                delete=kubectl("delete", "nodeclaim", claim),
            )


def node_classes(subject: Subject) -> Iterator[Finding]:
    """Node classes that were made by hand."""
    if subject.is_managed or subject.cloud not in NODE_CLASSES:
        return
    node_classes = NODE_CLASSES[subject.cloud]
    kind, path = node_classes.kind, node_classes.path
    known = subject.own("nodeClasses", "defaultNodePools")
    for node_class in subject.cluster.list(path):
        if name_of(node_class) not in known:
            yield finding(
                "node-class-of-others",
                f"GET {path}",
                kind=kind,
                node_class=name_of(node_class),
                delete=kubectl("delete", kind.lower(), node_class),
            )


def instances(subject: Subject) -> Iterator[Finding]:
    """Instances that Karpenter launched for this cluster and that no NodeClaim names."""
    if subject.aws is None:
        return
    claimed = subject.claimed()
    cluster = str(subject.outputs.get("clusterName", ""))
    found = subject.aws.all(
        "ec2",
        "DescribeInstances",
        "Reservations",
        Filters=[
            {"Name": "tag-key", "Values": [POOL_LABEL]},
            {"Name": f"tag:kubernetes.io/cluster/{cluster}", "Values": ["owned"]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ],
    )
    for reservation in found:
        for instance in reservation["Instances"]:
            if instance["InstanceId"] not in claimed:
                yield finding(
                    "instance-without-node-claim",
                    "ec2:DescribeInstances",
                    instance_id=instance["InstanceId"],
                    instance_type=instance["InstanceType"],
                    region=subject.aws.region,
                )


def check_removal_time(subject: Subject) -> Iterator[Finding]:
    """Find how long the removal of each of the stack's NodePools can take at most."""
    for pool in subject.cluster.list(NODE_POOLS):
        grace = subject.grace(name_of(pool))
        claims = [
            claim for claim in subject.cluster.list(NODE_CLAIMS) if labels_of(claim).get(POOL_LABEL) == name_of(pool)
        ]
        endless = grace == FOR_EVER and bool(claims)
        code = "nodes-held-for-ever" if endless else "nodes-held-for-ever-later" if grace == FOR_EVER else "nodes-held"
        call = f"GET {NODE_CLAIMS if claims else NODE_POOLS}"
        yield finding(code, call, claims=len(claims), pool=name_of(pool), grace=grace)
