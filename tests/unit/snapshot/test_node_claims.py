"""The nodes of a snapshot as NodeClaims: what Karpenter would have made, and why some are not made."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.snapshot.node_claims import Claims, node_claims
from karpstack.snapshot.portability import Place
from tests.unit.snapshot.made import snapshot

PLACE = Place("aws", "us-east-1")


def node(name: str = "ip-1", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "nodePool": "web",
        "instanceType": "m5.large",
        "zone": "us-east-1a",
        "capacityType": "on-demand",
        **more,
    }


def pool(*requirements: dict[str, Any], replicas: int | None = None, **template: Any) -> dict[str, Any]:
    """A NodePool as the API server has it."""
    return {
        "metadata": {
            "name": "web",
            "uid": "u-1",
            "annotations": {"karpenter.sh/nodepool-hash": "17", "karpenter.sh/nodepool-hash-version": "v3", "a": "b"},
        },
        "spec": {
            **({"replicas": replicas} if replicas is not None else {}),
            "template": {
                "spec": {
                    "requirements": list(requirements),
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "expireAfter": "720h",
                    "startupTaints": [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}],
                },
                **template,
            },
        },
    }


def requirement(key: str, *values: str, operator: str = "In", **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def planned(
    *nodes: dict[str, Any], of: dict[str, Any] | None = None, zones: dict[str, set[str]] | None = None, **more: Any
) -> Claims:
    found = snapshot(nodes=list(nodes) or [node()], **more)
    return node_claims(found, PLACE, {"web": of or pool()}, zones or {})


def only(claims: Claims) -> dict[str, list[str]]:
    (claim,) = claims.claims
    return {one["key"]: one["values"] for one in claim["spec"]["requirements"] if one["operator"] == "In"}


def test_a_claim_is_as_karpenter_makes_it_of_the_node_pool() -> None:
    of = pool(
        requirement("karpenter.k8s.aws/instance-category", "c", "m", minValues=2),
        requirement("karpenter.k8s.aws/instance-generation", "4", operator="Gt"),
        requirement("karpenter.sh/capacity-type", "spot", "on-demand"),
        metadata={"labels": {"team": "blue"}, "annotations": {"owner": "us"}},
    )
    (claim,) = planned(node(nodeClaim="web-x7k2p"), of=of).claims
    assert claim["metadata"] == {
        "name": "web-x7k2p",
        "labels": {"team": "blue", "karpenter.sh/nodepool": "web", "karpenter.k8s.aws/ec2nodeclass": "default"},
        "annotations": {
            "owner": "us",
            "karpenter.sh/nodepool-hash": "17",
            "karpenter.sh/nodepool-hash-version": "v3",
            "karpstack.io/snapshot-node": "ip-1",
            "karpenter.sh/do-not-disrupt": "true",
        },
        "ownerReferences": [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "name": "web",
                "uid": "u-1",
                "blockOwnerDeletion": True,
            }
        ],
    }
    spec = of["spec"]["template"]["spec"]
    assert {key: value for key, value in claim["spec"].items() if key != "requirements"} == {
        key: value for key, value in spec.items() if key != "requirements"
    }
    assert claim["spec"]["requirements"] == [
        requirement("karpenter.k8s.aws/instance-category", "c", "m"),
        requirement("karpenter.k8s.aws/instance-generation", "4", operator="Gt"),
        requirement("team", "blue"),
        requirement("karpenter.sh/nodepool", "web"),
        requirement("karpenter.k8s.aws/ec2nodeclass", "default"),
        requirement("node.kubernetes.io/instance-type", "m5.large"),
        requirement("topology.kubernetes.io/zone", "us-east-1a"),
        requirement("karpenter.sh/capacity-type", "on-demand"),
    ]


def test_of_labels_among_which_the_pool_lets_choose_it_has_the_nodes() -> None:
    of = pool(requirement("team", "blue", "red"), requirement("tier", "one", "two"))
    claims = planned(node(labels={"team": "red"}), of=of)
    assert claims.claims[0]["metadata"]["labels"]["team"] == "red"
    assert only(claims)["team"] == ["red"]
    assert only(claims)["tier"] == ["one"]


@pytest.mark.parametrize(
    ("wanted", "has", "value"),
    [
        ([requirement("team", operator="Exists")], "shop", "shop"),
        ([requirement("team", operator="Exists")], None, "0"),
        ([requirement("team", "red", operator="NotIn")], "blue", "blue"),
        ([requirement("team", "3", operator="Gt")], "7", "7"),
        ([requirement("team", "3", operator="Gt")], "2", "4"),
        ([requirement("team", "blue", "red"), requirement("team", "blue", operator="NotIn")], None, "red"),
        ([requirement("team", "blue", "red"), requirement("team", "blue", operator="NotIn")], "blue", "red"),
    ],
)
@pytest.mark.parametrize("key", ["example.com/team", "node-restriction.kubernetes.io/team"])
def test_each_label_that_a_requirement_asks_for_has_a_value(
    wanted: list[dict[str, Any]], has: str | None, value: str, key: str
) -> None:
    of = pool(*({**one, "key": key} for one in wanted))
    claims = planned(node(labels={key: has} if has else {}), of=of)
    assert claims.claims[0]["metadata"]["labels"][key] == value
    assert [one for one in claims.claims[0]["spec"]["requirements"] if one["key"] == key] == [requirement(key, value)]


def test_a_label_that_must_not_be_or_is_the_machines_is_given_no_value() -> None:
    of = pool(requirement("team", operator="DoesNotExist"), requirement("kubernetes.io/arch", operator="Exists"))
    labels = planned(node(labels={"team": "blue"}), of=of).claims[0]["metadata"]["labels"]
    assert not {"team", "kubernetes.io/arch"} & labels.keys()


def test_a_label_of_which_no_value_is_left_is_told() -> None:
    of = pool(requirement("team", "blue"), requirement("team", "blue", operator="NotIn"))
    claims = planned(node(labels={"team": "blue"}), of=of)
    assert claims.claims == ()
    assert "NodePool web leaves no value of the label team (ip-1)" in claims.left_out[0]


def test_nodes_of_one_claim_are_one_and_the_others_are_told() -> None:
    claims = planned(*(node(name, nodeClaim="web-1") for name in ("a", "b", "c")), node("d"))
    assert len(claims.claims) == 2
    (sentence,) = claims.left_out
    assert sentence.startswith("2 of")
    assert sentence.endswith("NodeClaim web-1 is another node's of the snapshot (b, c)")


def test_nodes_without_a_claim_have_names_of_their_own() -> None:
    names = [claim["metadata"]["name"] for claim in planned(*(node(f"ip-{number}") for number in range(3000))).claims]
    assert len(set(names)) == 3000


def test_what_the_node_does_not_say_its_claim_does() -> None:
    bare = {"name": "ip-1", "instanceType": "m5.large", "zone": "us-east-1a"}
    claims = planned(bare, nodeClaims=[{"name": "web-1", "nodePool": "web", "capacityType": "spot", "node": "ip-1"}])
    assert only(claims)["karpenter.sh/capacity-type"] == ["spot"]
    assert claims.claims[0]["metadata"]["name"] == "web-1"


def test_one_without_a_claim_gets_a_name_that_stays() -> None:
    names = {planned(node()).claims[0]["metadata"]["name"] for _ in range(2)}
    assert len(names) == 1
    assert names.pop().startswith("web-")


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (node(nodePool=None), "of no NodePool"),
        (node(nodePool="batch"), "the base has no NodePool batch"),
        (node(zone=None), "not in the snapshot"),
        (node(zone="us-east-1d"), "has no subnet in us-east-1d"),
        (node(capacityType="spot"), "does not admit m5.large on spot"),
        (node(instanceType="c5.large"), "does not admit c5.large on on-demand"),
    ],
)
def test_what_cannot_be_made_is_told_with_the_reason(left: dict[str, Any], why: str) -> None:
    of = pool(
        requirement("karpenter.k8s.aws/instance-category", "m"), requirement("karpenter.sh/capacity-type", "on-demand")
    )
    found = planned(node("ip-2"), left, of=of, zones={"web": {"us-east-1a"}})
    assert [claim["metadata"]["annotations"]["karpstack.io/snapshot-node"] for claim in found.claims] == ["ip-2"]
    (sentence,) = found.left_out
    assert sentence.startswith("1 of the snapshot's nodes not made")
    assert why in sentence
    assert found.of == (1 if left["nodePool"] is None else 2)


def test_a_pool_of_a_fixed_size_makes_its_own() -> None:
    (sentence,) = planned(of=pool(replicas=3)).left_out
    assert "fixed number of nodes" in sentence


def test_nodes_of_another_region_have_no_zone_here() -> None:
    found = planned(cluster={"cloud": "aws", "region": "eu-west-1"})
    assert found.claims == ()
    assert "zones are not of us-east-1" in found.left_out[0]


def test_many_for_one_reason_are_one_sentence() -> None:
    (sentence,) = planned(*(node(f"ip-{number}", nodePool="batch") for number in range(5))).left_out
    assert sentence.startswith("5 of")
    assert sentence.endswith("(ip-0, ip-1, ip-2, ...)")


def test_a_state_that_a_node_does_not_keep_is_said() -> None:
    made = planned(node("ip-1", ready=False), node("ip-2", unschedulable=True), node("ip-3"))
    assert len(made.claims) == 3
    assert made.left_out == (
        "1 of the snapshot's nodes is not ready in the cluster, but ready in the rehearsal; in the cluster, each "
        "counts against the disruption budget of its NodePool (ip-1)",
        "1 of the snapshot's nodes is cordoned in the cluster, but not in the rehearsal, so pods can be placed there "
        "(ip-2)",
    )


GOING = "being deleted or replaced in the cluster"
TAINTED = "tainted in the cluster by others than Karpenter"
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("of_node", "of_claim", "said"),
    [
        ({}, {}, ""),
        ({}, {"conditions": ["Initialized", "Consolidatable"]}, ""),
        ({"deleting": True}, {}, GOING),
        ({}, {"deleting": True}, GOING),
        ({}, {"conditions": ["DisruptionReason", "Drifted"]}, GOING),
        ({}, {"conditions": ["InstanceTerminating"]}, GOING),
        ({"taints": [DISRUPTED]}, {}, GOING),
        ({}, {"conditions": ["Drifted"]}, "drifted already in the cluster"),
        ({"taints": [{"key": "maintenance", "effect": "NoExecute"}]}, {}, TAINTED),
        ({"taints": [{"key": "team", "value": "blue", "effect": "NoSchedule"}]}, {}, ""),
        ({"taints": [{"key": "team", "value": "blue", "effect": "NoExecute"}]}, {}, TAINTED),
        ({"taints": [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}]}, {}, ""),
        ({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}, {}, ""),
        ({"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]}, {}, TAINTED),
    ],
)
def test_a_node_on_its_way_out_or_tainted_is_said(of_node: dict[str, Any], of_claim: dict[str, Any], said: str) -> None:
    of = pool()
    of["spec"]["template"]["spec"]["taints"] = [{"key": "team", "value": "blue", "effect": "NoSchedule"}]
    made = planned(node(**of_node), of=of, nodeClaims=[{"name": "web-1", "node": "ip-1", **of_claim}])
    assert len(made.claims) == 1
    assert [said in one for one in made.left_out] == ([True] if said else [])


def test_a_node_claim_without_a_node_is_said() -> None:
    launching = [{"name": "web-2"}, {"name": "web-3", "node": "ip-9"}, {"name": "web-4", "deleting": True}]
    (sentence,) = planned(nodeClaims=[{"name": "web-1", "node": "ip-1"}, *launching]).left_out
    assert sentence.startswith("2 of the snapshot's NodeClaims not made: they have no node yet")
    assert sentence.endswith("(web-2, web-3)")
