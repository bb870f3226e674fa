"""Changes of NodePools that `karpstack advise` tries."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from karpstack.karpenter.instance_types import ARCHITECTURE as ARCH
from karpstack.karpenter.instance_types import CAPACITY_TYPE as CAPACITY
from karpstack.karpenter.instance_types import INSTANCE_TYPE as TYPE
from karpstack.karpenter.instance_types import OPERATING_SYSTEM as OS
from karpstack.karpenter.instance_types import ZONE, Facts
from karpstack.karpenter.requirements import allowed as allowed_values
from karpstack.karpenter.requirements import fits, requirements
from karpstack.snapshot.examples import FOLDER
from karpstack.snapshot.model import Cluster, NodePool, Snapshot
from karpstack.snapshot.reading import load
from karpstack.whatif.proposals import PROPOSALS, Derived, derive

AWS, AZURE = "karpenter.k8s.aws/instance-", "karpenter.azure.com/sku-"
ALL = ("arm64", "days")
SHOP = load(FOLDER / "20-pods.json").snapshot


def requirement(key: str, *values: str, operator: str = "In", **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def pool(*requirements: dict[str, Any], **spec: Any) -> dict[str, Any]:
    node = {"requirements": list(requirements)}
    return {"template": {"spec": node}, "disruption": {"consolidateAfter": "1m"}, **spec}


def derived(*only: str, cloud: str = "aws", **pools: dict[str, Any]) -> Derived:
    snapshot = Snapshot(
        kind="karpstack-snapshot",
        version=1,
        taken=datetime(2026, 11, 22, 10, tzinfo=UTC),
        source="made",
        cluster=Cluster(cloud=cloud, region="us-east-1"),
        node_pools=[NodePool(name=name, spec=deepcopy(spec)) for name, spec in pools.items()],
    )
    return derive(snapshot, ALL, only)


def changed(name: str, spec: dict[str, Any], cloud: str = "aws") -> dict[str, Any] | None:
    """The NodePool with a change; None if the change is dropped."""
    found = derived(name, cloud=cloud, general=spec).candidates
    return found[0].pools["general"] if found else None


def asked(spec: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [(one["key"], one["operator"], one.get("values", [])) for one in spec["template"]["spec"]["requirements"]]


@pytest.mark.parametrize(
    ("name", "key", "first", "second"), [("spot", CAPACITY, "on-demand", "spot"), ("arm64", ARCH, "amd64", "arm64")]
)
def test_a_second_value_is_added_where_only_the_first_is_listed(name: str, key: str, first: str, second: str) -> None:
    found = changed(name, pool(requirement(key, first)))
    assert found
    assert asked(found) == [(key, "In", [first, second])]
    for spec in (pool(), pool(requirement(key, first, second)), pool(requirement(key, first), replicas=3)):
        assert changed(name, spec) is None


@pytest.mark.parametrize(
    ("name", "cloud", "before", "after"),
    [
        ("more-types", "aws", [("family", "m5", "t3", "m7g")], [("category", "c", "m", "r", "t")]),
        (
            "more-types",
            "aws",
            [("category", "m"), ("generation", "Gt", "4")],
            [("category", "c", "m", "r"), ("generation", "Gt", "2")],
        ),
        (
            "more-types",
            "aws",
            [("category", "m"), ("generation", "Gt", "1")],
            [("category", "c", "m", "r"), ("generation", "Gt", "1")],
        ),
        ("newer-types", "aws", [("family", "m5", "m7g")], [("category", "c", "m", "r"), ("generation", "Gt", "5")]),
        (
            "newer-types",
            "aws",
            [("category", "m"), ("generation", "Gt", "6")],
            [("category", "c", "m", "r"), ("generation", "Gt", "6")],
        ),
        ("more-types", "azure", [("family", "D")], [("family", "D", "E", "F")]),
        ("newer-types", "azure", [("family", "D", "B")], [("family", "D", "E", "F", "B"), ("version", "Gt", "4")]),
    ],
)
def test_kinds_of_general_use(name: str, cloud: str, before: list[Any], after: list[Any]) -> None:
    prefix = AWS if cloud == "aws" else "karpenter.azure.com/sku-"

    def written(rows: list[tuple[str, ...]]) -> list[dict[str, Any]]:
        return [
            requirement(prefix + key, *values[1:], operator="Gt")
            if values[0] == "Gt"
            else requirement(prefix + key, *values)
            for key, *values in rows
        ]

    found = changed(name, pool(*written(before)), cloud)
    assert found
    assert found["template"]["spec"]["requirements"] == written(after)


@pytest.mark.parametrize(
    ("cloud", "key", "names", "more"),
    [
        ("aws", f"{AWS}family", ["m5", "c5"], [(ARCH, "In", ["amd64"])]),
        ("aws", f"{AWS}family", ["m7g"], [(ARCH, "In", ["arm64"])]),
        ("aws", f"{AWS}family", ["m5", "m7g"], []),
        ("aws", TYPE, ["m5.large"], [(ARCH, "In", ["amd64"]), (f"{AWS}hypervisor", "In", ["nitro", "xen"])]),
        ("aws", f"{AWS}family", ["m5d", "m7gd"], [(f"{AWS}local-nvme", "Exists", [])]),
        (
            "azure",
            TYPE,
            ["Standard_D4s_v5"],
            [(ARCH, "In", ["amd64"]), (f"{AZURE}storage-premium-capable", "In", ["true"])],
        ),
        ("azure", TYPE, ["Standard_D4_v5"], [(ARCH, "In", ["amd64"])]),
        ("azure", TYPE, ["Standard_D4_v5", "Standard_D4ps_v5"], []),
    ],
)
def test_more_types_are_of_the_same_architecture_and_abilities(
    cloud: str, key: str, names: list[str], more: list[Any]
) -> None:
    found = changed("more-types", pool(requirement(key, *names)), cloud)
    assert found
    assert asked(found)[1:] == more


def test_types_of_which_nothing_is_known_stay() -> None:
    assert changed("more-types", pool(requirement(f"{AWS}family", "m99"))) is None


@pytest.mark.parametrize(
    ("cloud", "names"),
    [
        ("aws", [("m5", "c5"), ("m7g",), ("m5", "m7g"), ("t3",), ("g5", "m5")]),
        ("azure", [("D4s_v5", "E4ds_v5"), ("D4ps_v5",), ("D4s_v5", "D4ps_v5")]),
    ],
)
@pytest.mark.parametrize("rest", [[], [requirement(OS, "linux"), requirement(CAPACITY, "on-demand")]])
def test_no_change_allows_what_it_does_not_name(
    cloud: str, names: list[tuple[str, ...]], rest: list[dict[str, Any]]
) -> None:
    key, before = (f"{AWS}family", "") if cloud == "aws" else (TYPE, "Standard_")
    pools = {
        "-".join(one).lower().replace("_", "."): pool(requirement(key, *(before + name for name in one)), *rest)
        for one in names
    }
    named = {"arm64": {ARCH}, "spot": {CAPACITY}, "spot-and-more-types": {CAPACITY}}
    facts = Facts.load(cloud)

    def allowed(spec: dict[str, Any]) -> dict[str, set[str | None]]:
        wanted, known = requirements(spec), facts.known_labels("")
        types = [one for one in facts.types.values() if fits(wanted, one, "", known)]
        labels = (ARCH, OS, CAPACITY, f"{AWS}gpu-name", f"{AZURE}gpu-name")
        return {label: {value for one in types for value in allowed_values(wanted, label, one, "")} for label in labels}

    found = derived(cloud=cloud, **pools).candidates
    assert {"more-types", "newer-types"} <= {one.name for one in found}
    for one in found:
        for name in one.changed:
            more = {
                label
                for label, values in allowed(one.pools[name]).items()
                if values - set().union(*(allowed(pools[before])[label] for before in (name, *one.removed)))
            }
            assert more <= named.get(one.name, set()), (one.name, name)


@pytest.mark.parametrize(
    "requirements",
    [
        [],
        [requirement(f"{AWS}family", "g5", "m5")],
        [requirement(f"{AWS}category", "c", "p")],
        [requirement("node.kubernetes.io/instance-type", "x2gd.large")],
        [requirement(f"{AWS}category", "m"), requirement(f"{AWS}gpu-count", "0", operator="Gt")],
    ],
)
def test_types_of_other_use_stay(requirements: list[dict[str, Any]]) -> None:
    assert changed("more-types", pool(*requirements)) is None


def test_the_least_number_of_values_stays() -> None:
    found = changed("more-types", pool(requirement(f"{AWS}family", "m5", "m6i", minValues=2)))
    assert found
    assert {"key": f"{AWS}family", "operator": "Exists", "minValues": 2} in (found["template"]["spec"]["requirements"])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("consolidate", {"consolidationPolicy": "WhenEmpty"}, {"consolidationPolicy": "WhenEmptyOrUnderutilized"}),
        ("consolidate", {"consolidateAfter": "Never"}, {"consolidateAfter": "1m"}),
        ("sooner", {"consolidateAfter": "1h"}, {"consolidateAfter": "1m"}),
        ("sooner", {"consolidateAfter": "Never"}, None),
        ("later", {"consolidateAfter": "1h"}, None),
        ("later", {}, {"consolidateAfter": "15m"}),
        ("quiet-hours", {"budgets": [{"nodes": "0", "schedule": "@daily", "duration": "1h"}]}, None),
    ],
)
def test_disruption(name: str, before: dict[str, Any], after: dict[str, Any] | None) -> None:
    found = changed(name, pool(disruption=before))
    assert (found and found["disruption"]) == after


def test_quiet_hours_keep_the_other_budgets() -> None:
    found = changed("quiet-hours", pool())
    assert found
    assert [one["nodes"] for one in found["disruption"]["budgets"]] == ["10%", "0"]


def test_node_pools_whose_nodes_are_alike_become_one() -> None:
    spot, on_demand = (pool(requirement(ARCH, "amd64"), requirement(CAPACITY, kind)) for kind in ("spot", "on-demand"))
    (found,) = derived("one-node-pool", a=spot, b=on_demand).candidates
    assert (found.changed, found.removed) == (["a"], ["b"])
    assert asked(found.pools["a"])[1] == (CAPACITY, "In", ["spot", "on-demand"])


@pytest.mark.parametrize(
    "other",
    [
        pool(requirement(ARCH, "arm64")),  # images may not exist for it
        pool(requirement(ARCH, "amd64"), requirement(CAPACITY, "spot")),
        pool(requirement(ARCH, "amd64"), disruption={}),
        {"template": {"metadata": {"labels": {"team": "a"}}, "spec": {"requirements": [requirement(ARCH, "amd64")]}}},
    ],
)
def test_other_node_pools_stay(other: dict[str, Any]) -> None:
    assert not derived("one-node-pool", a=pool(requirement(ARCH, "amd64")), b=other).candidates


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([requirement(f"{AWS}family", "m5")], [requirement(f"{AWS}family", "m7g")]),
        (
            [requirement(ZONE, "us-east-1a"), requirement(CAPACITY, "spot")],
            [requirement(ZONE, "us-east-1b"), requirement(CAPACITY, "on-demand")],
        ),
    ],
)
def test_node_pools_that_allow_more_together_stay(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert not derived("one-node-pool", a=pool(*one), b=pool(*other)).candidates


@pytest.mark.parametrize("of_one", [{"limits": {"cpu": "10"}}, {"replicas": 3}], ids=["limits", "static"])
def test_node_pools_with_an_amount_of_their_own_stay(of_one: dict[str, Any]) -> None:
    one = pool(requirement(ARCH, "amd64"), **of_one)
    assert not derived("one-node-pool", a=one, b=one).candidates


def test_dropped_changes_are_named_with_the_reason() -> None:
    found = derive(SHOP)
    assert found.dropped == {
        "arm64": "needs --arm64",
        "consolidate": "changes nothing on this cluster",
        **dict.fromkeys(("later", "sooner", "quiet-hours"), "needs --for"),
    }
    only_spot = derived(general=pool(requirement(CAPACITY, "on-demand")))
    assert only_spot.dropped["spot-and-more-types"] == "the same as spot"


def test_manifests_are_karpenters_objects() -> None:
    found = derive(SHOP, only=["spot"]).candidates[0]
    objects = list(yaml.safe_load_all(found.manifests))
    assert {(one["apiVersion"], one["kind"]) for one in objects} == {("karpenter.sh/v1", "NodePool")}
    assert {one["metadata"]["name"]: one["spec"] for one in objects} == found.pools


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--only spots: no such candidate; choose from spot, more-types"):
        derived("spots", general=pool())


def test_a_snapshot_without_node_pools_is_refused() -> None:
    with pytest.raises(ValueError, match="the snapshot has no NodePools of AWS or Azure"):
        derived()


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("spot", pool({"key": CAPACITY, "operator": "In"})),
        ("later", pool(disruption={"consolidateAfter": "soon"})),
    ],
)
def test_a_node_pool_of_another_shape_is_refused(name: str, spec: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"is not as Karpenter has it .*{name} cannot be derived; take the snapshot"):
        derived(name, general=spec)


def test_names_are_unique() -> None:
    assert len({one.name for one in PROPOSALS}) == len(PROPOSALS)
