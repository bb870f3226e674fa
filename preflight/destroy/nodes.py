"""Karpenter's own objects and instances: those that the stack does not know, and how long the known ones take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding
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
            yield Finding(
                "error",
                f"the NodePool {name_of(pool)} is not the stack's",
                _LEFT_BEHIND,
                f"{kubectl('delete', 'nodepool', pool)}, and wait until its nodes are gone",
                f"GET {NODE_POOLS}",
            )


def node_claims(subject: Subject) -> Iterator[Finding]:
    """NodeClaims of no NodePool: those of one go with it."""
    if subject.is_managed:
        return
    pools = {name_of(pool) for pool in subject.cluster.list(NODE_POOLS)}
    for claim in subject.cluster.list(NODE_CLAIMS):
        if labels_of(claim).get(POOL_LABEL) not in pools:
            yield Finding(
                "error",
                f"the NodeClaim {name_of(claim)} is of no NodePool",
                _LEFT_BEHIND,
                f"{kubectl('delete', 'nodeclaim', claim)}, and wait until it is gone",
                f"GET {NODE_CLAIMS}",
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
            yield Finding(
                "error",
                f"the {kind} {name_of(node_class)} is not the stack's",
                "destroy removes Karpenter before it: it keeps its finalizer, and the CRDs' removal hangs",
                f"{kubectl('delete', kind.lower(), node_class)}, after the NodePools that use it",
                f"GET {path}",
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
                yield Finding(
                    "error",
                    f"the instance {instance['InstanceId']} ({instance['InstanceType']}) has Karpenter's tags, and no "
                    "NodeClaim names it",
                    "nobody will terminate it: it costs on, and its network interface keeps subnet and security "
                    "group, so that pulumi destroy fails with DependencyViolation",
                    f"aws ec2 terminate-instances --region {subject.aws.region} --instance-ids "
                    f"{instance['InstanceId']}",
                    "ec2:DescribeInstances",
                )


def how_long(subject: Subject) -> Iterator[Finding]:
    """How long each of the stack's NodePools can take at most."""
    for pool in subject.cluster.list(NODE_POOLS):
        grace = subject.grace(name_of(pool))
        claims = [
            claim for claim in subject.cluster.list(NODE_CLAIMS) if labels_of(claim).get(POOL_LABEL) == name_of(pool)
        ]
        endless = grace == FOR_EVER and bool(claims)
        yield Finding(
            "warning" if endless else "note",
            f"the {len(claims)} nodes of {name_of(pool)} can be held by their pods {_at_most(grace)}",
            "a NodeClaim or its NodePool has no terminationGracePeriod: a pod that will not go holds its node"
            if grace == FOR_EVER
            else "then Karpenter deletes the pods in spite of budgets, and the instance ends some minutes later",
            "set terminationGracePeriod and have the nodes replaced, or remove the pods that would not go"
            if endless
            else "",
            f"GET {NODE_CLAIMS if claims else NODE_POOLS}",
        )


def _at_most(grace: str) -> str:
    return FOR_EVER if grace == FOR_EVER else f"for {grace} at most"
