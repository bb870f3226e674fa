"""How far the rehearsed base is from the real cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from karpstack.snapshot.objects import objects
from karpstack.whatif import markdown
from karpstack.whatif.accuracy import Load, RealNode
from karpstack.whatif.answer import Accuracy, SimulatedPeriod
from karpstack.whatif.conclusion import conclusion
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import read
from karpstack.whatif.prices import PriceFile
from tests.unit.snapshot.made import snapshot
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged

NODE = RealNode("m5.large", "us-east-1a", "on-demand", "a", 0.096, Load(1, 1.5, 2 * 2**30, 0.5, 2**30))


def distances(found: Accuracy) -> dict[str, float | None]:
    return {figure.what: figure.difference for figure in found.figures}


def test_real_nodes_have_the_prices_that_rehearsed_ones_have() -> None:
    made = Made()
    made.pool()
    made.node("one")
    given = PriceFile(on_demand={"m5.large": 0.2}, discounts={"m5": 0.5})
    found = judged(read(made.lines()), given=given, real=[NODE]).accuracy
    dollars = next(figure for figure in found.figures if figure.what == "dollars an hour")
    assert (dollars.real, dollars.rehearsed, dollars.difference) == (0.1, 0.1, 0.0)


@pytest.mark.parametrize(("made_up", "begins"), [(False, "Safe to merge"), (True, "No limit is exceeded")])
def test_no_change_is_safe_by_a_cluster_that_does_not_exist(made_up: bool, begins: str) -> None:
    made = Made()
    made.pool()
    made.node("one")
    assert conclusion(judged(read(made.lines()), real=[replace(NODE, pool="default")], made_up=made_up)).startswith(
        begins
    )


@pytest.mark.parametrize(
    ("seconds", "begins"), [(59.0, "Safe to merge"), (90.0, "No limit is exceeded")], ids=["short", "long"]
)
def test_no_change_is_safe_if_pods_wait_in_the_days_after_it(seconds: float, begins: str) -> None:
    made = Made()
    made.pool()
    made.node("one")
    days: dict[str, Any] = {"longest_without_node": seconds, "drifted_nodes": []}
    lived = {"simulated_period": SimulatedPeriod.model_construct(**days)}
    answer = judged(read(made.lines()), real=[replace(NODE, pool="default")]).model_copy(update=lived)
    assert conclusion(answer).startswith(begins)


def loaded(*pods: tuple[float, bool], others: dict[str, float] | None = None) -> Accuracy:
    """Of a base of one node with pods that request so many CPUs and a GiB each, some of them a DaemonSet's."""
    made = Made()
    made.pool()
    made.node("one")
    for number, (cpu, daemon) in enumerate(pods):
        labels = {"pod-template-generation": "1"} if daemon else {}
        made.pod(f"pod-{number}", "one", cpu=cpu, labels=labels)
    said = {"loaded": {"pods": 1, "leftOut": [], "others": others}} if others else {}
    return judged(read(made.lines(**said)), real=[NODE]).accuracy


@pytest.mark.parametrize(
    ("pods", "others", "away"),
    [
        ([(1.0, False), (0.5, True)], None, [0.0, 0.0, 0.0, 0.0, 0.0]),
        ([(1.0, False)], None, [0.0, 0.3333, 0.5, 1.0, 1.0]),  # a DaemonSet that was not loaded
        # More DaemonSets in the stack than in the real cluster: their requests count, and they are no pods of the user.
        ([(1.0, False)], {"nodes": 2, "pods": 6, "cpu": 1.0, "memory": 2 * 2**30}, [0.0, 0.0, 0.0, 0.0, 0.0]),
        ([(1.0, False)], {"nodes": 2, "pods": 2, "cpu": 1.0, "memory": 2 * 2**30}, [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_pods_and_requests_of_nodes_are_compared(
    pods: list[tuple[float, bool]], others: dict[str, float] | None, away: list[float]
) -> None:
    found = loaded(*pods, others=others)
    names = ["pods on them, without DaemonSets'", "CPUs that pods request", "GiB that pods request"]
    names += [f"{unit} that DaemonSets request per node" for unit in ("CPUs", "GiB")]
    assert [distances(found)[name] for name in names] == away
    assert "its pods request 1" in found.sentence
    assert "where the real ones request 1.5 and 2" in found.sentence


def test_a_node_pool_without_nodes_in_the_base_is_named_and_the_change_is_not_called_safe() -> None:
    made = Made()
    made.pool()
    for number in range(10):
        made.node(f"node-{number}")
    alike = replace(NODE, pool="default", load=None)
    limits = Limits(max_pods_unschedulable=0)
    near, without = (
        judged(read(made.lines()), limits=limits, real=[alike] * 10 + more) for more in ([], [replace(alike, pool="b")])
    )
    assert conclusion(near).startswith("Safe to merge")
    assert (
        conclusion(without)
        == "No limit is exceeded: as dear as before; no pod moves; but the base has no node of NodePool b"
    )
    assert (near.accuracy.empty_pools, without.accuracy.empty_pools) == ({}, {"b": 1})
    assert "NodePools without a node when the change begins: b (1 in the real cluster)." in without.accuracy.sentence


def test_a_base_that_is_not_like_the_cluster_is_in_the_first_line_and_takes_the_tick_away() -> None:
    made = Made()
    made.pool()
    for number in range(6):
        made.node(f"node-{number}")
    answer = judged(read(made.lines()), Limits(max_pods_unschedulable=0), real=[replace(NODE, pool="default")] * 8)
    first = markdown.render(answer).splitlines()[0]
    assert first.startswith("## ⚠️ No limit is exceeded")
    assert first.endswith("but the base is not like the cluster &#40;nodes: 6 instead of 8&#41;")


def test_what_is_not_known_of_the_cluster_keeps_an_answer_from_being_safe() -> None:
    made = Made()
    made.pool()
    made.node("one")
    spot = replace(NODE, pool="default", capacity_type="spot", usd_per_hour=None)
    said = conclusion(judged(read(made.lines()), real=[spot]))
    assert said.endswith("not called safe: dollars an hour of the cluster are not known (without a price: 1 real node)")


def test_a_kind_whose_list_was_refused_keeps_an_answer_from_being_safe() -> None:
    """Without PodDisruptionBudgets, a what-if evicts as if there were none."""
    made = Made()
    made.pool()
    made.node("one")
    refused = {"what": "kind PodDisruptionBudget", "why": "the cluster refused the list (403)", "count": 1}
    notes = objects(snapshot(leftOut=[refused]), {}).notes
    answer = judged(read(made.lines(loaded={"leftOut": [*notes]})), real=[replace(NODE, pool="default")])
    why = "the snapshot has no list of the kind PodDisruptionBudget (the cluster refused the list (403))"
    assert conclusion(answer).endswith(f"not called safe: {why}")
    assert any(text.endswith("refused the list (403)); this is as if there were none") for text in answer.unknown)


def test_kinds_without_a_list_are_named_each_with_its_own_reason() -> None:
    made = Made()
    made.pool()
    made.node("one")
    reasons = {"EC2NodeClass": "the cluster refused the list (403)", "NodePool": "there is no karpenter.sh/v1"}
    refused = [{"what": f"kind {kind}", "why": why, "count": 1} for kind, why in reasons.items()]
    notes = objects(snapshot(leftOut=refused), {}).notes
    said = conclusion(judged(read(made.lines(loaded={"leftOut": [*notes]})), real=[replace(NODE, pool="default")]))
    kinds = ", ".join(f"{kind} ({why})" for kind, why in reasons.items())
    assert said.endswith(f"not called safe: the snapshot has no list of the kinds {kinds}")


@pytest.mark.parametrize(
    ("cloud", "kinds"),
    [("aws", ["EC2NodeClass"]), ("azure", ["AKSNodeClass"]), (None, ["EC2NodeClass", "AKSNodeClass"])],
)
def test_a_refused_list_of_another_clouds_node_classes_lacks_nothing(cloud: str | None, kinds: list[str]) -> None:
    """Without the right to it, an API server answers 403 also where there is no such kind."""
    refused = [{"what": f"kind {kind}", "why": "no", "count": 1} for kind in ("EC2NodeClass", "AKSNodeClass")]
    notes = objects(snapshot(leftOut=refused, cluster={"cloud": cloud}), {}).notes
    assert notes == tuple(
        f"the snapshot has no list of the kind {kind} (no); this is as if there were none" for kind in kinds
    )


def test_what_a_snapshot_does_not_have_of_the_change_keeps_an_answer_from_being_safe() -> None:
    made = Made()
    made.pool()
    made.node("one")
    answer = judged(read(made.lines(settings={"unseen": ["a"]})), real=[replace(NODE, pool="default")])
    more = "not all of the change is rehearsed, so more may change"
    assert conclusion(answer).endswith(f"not called safe: {more}")
    nothing = read(made.lines(settings={"unseen": ["a"]}, change_applied={"changes": []}))
    assert conclusion(judged(nothing)) == f"Changes nothing; {more}"


def test_how_far_to_trust_an_answer_is_never_cut() -> None:
    made = Made()
    made.pool()
    made.node("one")
    pools = [replace(NODE, pool=f"{number}-{'n' * 60}") for number in range(20)]
    answer = judged(read(made.lines()), real=pools, made_up=True)
    assert len(answer.accuracy.sentence) > 600
    assert "this says nothing of a cluster that exists." in markdown.render(answer)


def test_a_limit_on_the_distance_counts_what_pods_request() -> None:
    (broken,) = (one for one in Limits(max_difference_from_cluster="25%").judge(*_judged()) if "Difference" in one.name)
    assert (broken.within_limit, broken.measured) == (False, "100.0%")


def _judged() -> tuple[Any, ...]:
    made = Made()
    made.pool()
    made.node("one")
    made.pod("pod", "one", cpu=1.0)
    answer = judged(read(made.lines()), real=[NODE])
    return answer.before, answer.after, answer.blast_radius, answer.remaining, answer.accuracy, answer.moments
