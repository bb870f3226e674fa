"""The lower bound of the cost: what NodePools allow, and the least that a demand can cost of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.market.bound import Bound, Demand, Group, Offer, lower_bound
from karpstack.scale_test.market.requirements import Pool, allowed

GIB = 2**30
SMALL, LARGE, ROOMY = Offer(0.1, 2, 8 * GIB, 29), Offer(0.19, 4, 16 * GIB, 58), Offer(0.13, 2, 16 * GIB, 29)


def make_facts() -> Facts:
    def entry(name: str, vcpus: int, memory: int, category: str, generation: str | None) -> dict[str, Any]:
        return {
            "name": name,
            "vcpus": vcpus,
            "memory_mib": memory,
            "max_pods": 10,
            "capacity_types": ["on-demand", "spot"],
            "zones": 0,
            "on_demand": {"here": 1.0},
            "labels": [category, generation, str(vcpus)],
        }

    return Facts(
        {
            "cloud": "aws",
            "regions": ["here"],
            "spot": {},
            "labels": ["category", "generation", "cpu"],
            "zones": [{"here": ["a", "b"]}],
            "types": [
                entry("c5", 4, 8192, "c", "5"),
                entry("m6", 8, 32768, "m", "6"),
                entry("odd", 16, 65536, "x", None),
            ],
        }
    )


def pool(*requirements: dict[str, Any], labels: dict[str, str] | None = None) -> Pool:
    return Pool.of({"template": {"metadata": {"labels": labels or {}}, "spec": {"requirements": list(requirements)}}})


def names(*pools: Pool, selectors: list[dict[str, str]] | None = None) -> list[str]:
    return [found.type.name for found in allowed(make_facts(), "here", pools, selectors or [])]


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("category", "In", ["c", "m"], ["c5", "m6"]),
        ("category", "NotIn", ["c"], ["m6", "odd"]),
        ("generation", "Exists", [], ["c5", "m6"]),
        ("generation", "DoesNotExist", [], ["odd"]),
        ("generation", "Gt", ["5"], ["m6"]),
        ("generation", "NotIn", ["5"], ["m6", "odd"]),
        ("cpu", "Lt", ["8"], ["c5"]),
        ("cpu", "Lte", ["8"], ["c5", "m6"]),
        ("cpu", "Gte", ["8"], ["m6", "odd"]),
        ("node.kubernetes.io/instance-type", "In", ["odd"], ["odd"]),
        ("topology.kubernetes.io/zone", "In", ["b"], ["c5", "m6", "odd"]),
        ("topology.kubernetes.io/zone", "In", ["z"], []),
        ("karpenter.sh/capacity-type", "In", ["reserved"], []),
        ("beta.kubernetes.io/instance-type", "In", ["odd"], ["odd"]),
        ("example.com/rack", "In", ["7"], ["c5", "m6", "odd"]),  # not known, so skipped
    ],
)
def test_requirements_choose_instance_types(key: str, operator: str, values: list[str], expected: list[str]) -> None:
    assert names(pool({"key": key, "operator": operator, "values": values})) == expected


def test_requirements_of_a_pool_all_count_and_pools_add_up() -> None:
    both = (
        {"key": "cpu", "operator": "Gt", "values": ["4"]},
        {"key": "category", "operator": "In", "values": ["m", "c"]},
    )
    assert names(pool(*both)) == ["m6"]
    assert names(pool(*both), pool({"key": "category", "operator": "In", "values": ["x"]})) == ["m6", "odd"]


def test_a_node_selector_narrows_the_pools() -> None:
    labelled = pool({"key": "category", "operator": "In", "values": ["c"]}, labels={"intent": "apps"})
    assert names(labelled, selectors=[{"intent": "apps"}]) == ["c5"]
    assert names(labelled, selectors=[{"intent": "else"}]) == []
    assert names(labelled, selectors=[{"cpu": "8"}]) == []
    assert names(pool(), selectors=[{"cpu": "8"}]) == ["m6"]


def test_an_operator_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"requirements\[0\] is 'cpu Near \[8\]'.*operators In, NotIn"):
        pool({"key": "cpu", "operator": "Near", "values": ["8"]})


def test_of_a_region_that_the_facts_lack_every_zone_is_possible() -> None:
    pools = [pool({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]})]
    assert [found.type.name for found in allowed(make_facts(), "elsewhere", pools, [])] == ["c5", "m6", "odd"]


def test_a_node_is_the_least() -> None:
    assert Bound([SMALL, LARGE]).usd_per_hour(Demand(0, 0, 1)) == pytest.approx(0.1)


def test_no_pods_cost_nothing_and_without_offers_nothing_is_known() -> None:
    assert Bound([]).usd_per_hour(Demand(0, 0, 0)) == 0
    assert Bound([]).usd_per_hour(Demand(1, GIB, 1)) is None


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        (Demand(40, GIB, 10), 10 * 0.19),  # CPUs decide: the larger is cheaper by the CPU
        (Demand(1, 160 * GIB, 10), 10 * 0.13),  # memory decides
        (Demand(0, 0, 580), 10 * 0.19),  # pods decide
        (Demand(3, GIB, 1), 0.145),  # between one of each
    ],
)
def test_the_scarce_resource_decides(demand: Demand, expected: float) -> None:
    assert Bound([SMALL, LARGE, ROOMY]).usd_per_hour(demand) == pytest.approx(expected)


def test_no_choice_of_whole_nodes_is_cheaper() -> None:
    bound = Bound([SMALL, LARGE, ROOMY])
    for cpu, memory in itertools.product((1, 3, 5, 7), (4, 17, 40)):
        whole = min(
            a * SMALL.price + b * LARGE.price + c * ROOMY.price
            for a, b, c in itertools.product(range(5), repeat=3)
            if a * 2 + b * 4 + c * 2 >= cpu and a * 8 + b * 16 + c * 16 >= memory and a + b + c
        )
        least = bound.usd_per_hour(Demand(cpu, memory * GIB, 1))
        assert least is not None
        assert 0 < least <= whole + 1e-9


def test_neighbours_of_what_is_solved_are_not_solved_again_and_come_to_the_same() -> None:
    chance = random.Random(7)  # noqa: S311
    offers = [
        Offer(chance.uniform(0.1, 4), chance.randint(2, 64), chance.randint(4, 256) * GIB, 110) for _ in range(80)
    ]
    once = Bound(offers)
    demands = [Demand(count * 0.25, count * GIB // 2, count) for count in range(1, 1001)]
    values = [once.usd_per_hour(demand) for demand in demands]
    assert once.solved < 20
    for index in (0, 1, 9, 77, 500, 999):
        assert values[index] == pytest.approx(Bound(offers).usd_per_hour(demands[index]))
    for _ in range(50):
        demand = Demand(chance.uniform(0, 900), chance.randint(1, 2000) * GIB, chance.randint(1, 4000))
        assert once.usd_per_hour(demand) == pytest.approx(Bound(offers).usd_per_hour(demand))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], 0),
        ([(Demand(4, GIB, 4), [SMALL])], 0.2),
        ([(Demand(4, GIB, 4), [])], None),
        # One offer for both: they share nodes, as if they were one group.
        ([(Demand(1, GIB, 1), [SMALL]), (Demand(1, GIB, 1), [SMALL])], 0.1),
        # What only one of them may use is of no use to the other.
        ([(Demand(4, GIB, 4), [SMALL]), (Demand(4, 32 * GIB, 4), [ROOMY])], 0.2 + 0.26),
        # The second may use both, and takes what the first one's node leaves over.
        ([(Demand(1, GIB, 1), [LARGE]), (Demand(1, GIB, 1), [SMALL, LARGE])], 0.19),
    ],
)
def test_groups_of_pods_use_their_own_offers(groups: list[tuple[Demand, list[Offer]]], expected: float | None) -> None:
    found = lower_bound([Group(demand, frozenset(offers)) for demand, offers in groups])
    assert found == (None if expected is None else pytest.approx(expected))
