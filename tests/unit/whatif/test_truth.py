"""How far the rehearsed base is from the real cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged
from whatif.answer import Truth
from whatif.limits import Limits
from whatif.phases import read
from whatif.prices import Given
from whatif.truth import Load, RealNode


def truth(*real: RealNode, given: Given | None = None, spot: bool = False) -> Truth:
    """Of a base of an m5.large and two m5.xlarge, one of which may be on spot."""
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", type_="m5.xlarge", price=0.192)
    made.node("three", type_="m5.xlarge", capacity="spot" if spot else "on-demand", price=0.192)
    return judged(read(made.lines()), given=given, real=list(real)).truth


def node(
    type_: str = "m5.large", usd: float | None = 0.096, capacity: str = "on-demand", pool: str | None = "a"
) -> RealNode:
    return RealNode(type_, "us-east-1a", capacity, pool, usd)


def distances(found: Truth) -> dict[str, float | None]:
    return {figure.what: figure.distance for figure in found.figures}


def test_without_a_real_cluster_nothing_is_claimed() -> None:
    made = Made()
    found = judged(read(made.lines())).truth
    assert not found.compared
    assert found.sentence.startswith("Not compared with any real cluster")


def test_nodes_of_no_pool_are_not_compared() -> None:
    assert "of 1 nodes none is of a NodePool" in truth(node(pool=None)).sentence
    assert "Not compared, because of no NodePool: 1 real node" in truth(node(), node(pool=None)).sentence


def test_the_same_cluster_is_at_no_distance() -> None:
    found = truth(node(), node("m5.xlarge", 0.192), node("m5.xlarge", 0.192))
    assert set(distances(found).values()) == {0.0}
    assert found.types == {}


def test_another_cluster() -> None:
    found = truth(node(), node(), node(), node("m5.xlarge", 0.192))
    assert distances(found) == {
        "nodes": 0.25,
        "nodes of the same instance type": 0.5,
        "nodes on on-demand": 0.25,
        "dollars an hour": 0.0,
    }
    assert found.types == {"m5.large": (3, 1), "m5.xlarge": (1, 2)}
    assert "3 nodes where the real cluster has 4, 2 of them of the same instance type" in found.sentence


def test_what_has_no_price_is_not_compared_in_dollars() -> None:
    found = truth(node(), node("m5.xlarge", None))
    assert distances(found)["dollars an hour"] is None
    assert "without a price: 1 real node" in {figure.note for figure in found.figures}
    assert "dollars are not compared" in found.sentence


def test_with_spot_nodes_dollars_without_them_are_compared_too() -> None:
    found = truth(node(), node("m5.xlarge", 0.192), node("m5.xlarge", None, "spot"), spot=True)
    assert distances(found)["dollars an hour"] is None
    assert distances(found)["dollars an hour without spot"] == 0.0
    assert "dollars an hour without spot: 0.288" in found.sentence


def test_real_nodes_have_the_prices_that_rehearsed_ones_have() -> None:
    given = Given(on_demand={"m5.large": 0.2}, discounts={"m5": 0.5})
    found = truth(node(), node("m5.xlarge", 0.192), node("m5.xlarge", 0.192), given=given)
    dollars = next(figure for figure in found.figures if figure.what == "dollars an hour")
    assert (dollars.real, dollars.rehearsed, dollars.distance) == (0.292, 0.292, 0.0)


AS_IS = {"pods": 4, "leftOut": [], "nodes": {"of": 3, "made": 2, "podsPlaced": 3, "leftOut": ["one has no subnet"]}}


def test_without_nodes_of_the_cluster_karpenter_chose_them() -> None:
    found = truth(node(), node("m5.xlarge", 0.192), node("m5.xlarge", 0.192))
    assert found.as_is is None
    assert "Karpenter chose the nodes of the base" in found.sentence


def test_a_base_that_began_as_the_cluster_is_compared_when_it_was_loaded_too() -> None:
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", gone=50)
    made.node("three", seconds=60)
    made.node("four", seconds=61)
    answer = judged(read(made.lines(loaded=AS_IS)), real=[node(), node(), node()])
    as_is = answer.truth.as_is
    assert as_is is not None
    assert (as_is.made, as_is.of, as_is.pods_placed, as_is.pods, as_is.gone, as_is.came) == (2, 3, 3, 4, 1, 2)
    assert {figure.what: figure.rehearsed for figure in as_is.figures}["nodes"] == 2
    assert {figure.what: figure.rehearsed for figure in answer.truth.figures}["nodes"] == 3
    assert "began with 2 of the real cluster's 3 nodes as they were, and 3 of 4 pods" in answer.truth.sentence
    assert (
        "then 33.3% in nodes and 33.3% in dollars an hour away; while it settled, 1 node went and 2 came."
        in answer.truth.sentence
    )
    assert "one has no subnet" in answer.unknown


def test_a_base_in_which_nothing_moved_says_so() -> None:
    made = Made()
    made.pool()
    made.node("one")
    nodes = {"of": 1, "made": 1, "podsPlaced": 4, "leftOut": []}
    found = judged(read(made.lines(loaded={**AS_IS, "nodes": nodes})), real=[node()]).truth
    assert (
        "then 0.0% in nodes and 0.0% in dollars an hour away; while it settled, no node went and none came."
        in found.sentence
    )


def loaded(*pods: tuple[float, bool], others: dict[str, float] | None = None) -> Truth:
    """Of a base of one node with pods that request so many CPUs and a GiB each, some of them a DaemonSet's."""
    made = Made()
    made.pool()
    made.node("one")
    for number, (cpu, daemon) in enumerate(pods):
        labels = {"pod-template-generation": "1"} if daemon else {}
        made.pod(f"pod-{number}", "one", cpu=cpu, labels=labels)
    real = [replace(node(), load=Load(1, 1.5, 2 * 2**30, 0.5, 2**30))]
    said = {"loaded": {"pods": 1, "leftOut": [], "others": others}} if others else {}
    return judged(read(made.lines(**said)), real=real).truth


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


def test_a_limit_on_the_distance_counts_what_pods_request() -> None:
    (broken,) = (one for one in Limits(max_distance_from_truth="25%").judge(*_judged()) if "Distance" in one.name)
    assert (broken.kept, broken.seen) == (False, "100.0%")


def _judged() -> tuple[Any, ...]:
    made = Made()
    made.pool()
    made.node("one")
    made.pod("pod", "one", cpu=1.0)
    answer = judged(read(made.lines()), real=[replace(node(), load=Load(1, 1.5, 2 * 2**30, 0.5, 2**30))])
    return answer.before, answer.after, answer.blast_radius, answer.surviving, answer.truth, answer.moments
