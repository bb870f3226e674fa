"""Names are replaced by hashes, and everything that matched still does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karpstack.karpenter.fact_files import FOLDER
from karpstack.karpenter.instance_types import Facts
from karpstack.snapshot.anonymise import anonymised
from karpstack.snapshot.from_api import snapshot_of
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.objects import objects
from karpstack.snapshot.reading import as_data, checked
from karpstack.snapshot.system_workloads import Existing
from tests.unit.snapshot import api
from tests.unit.snapshot.made import data, snapshot, workload

KEY = b"key"


def hidden(**more: Any) -> dict[str, Any]:
    return as_data(anonymised(snapshot(**more), KEY))


@pytest.fixture(scope="module")
def taken() -> Snapshot:
    return snapshot_of(api.cluster(), datetime(2026, 11, 22, 10, tzinfo=UTC), "cluster")


def test_no_name_is_left(taken: Snapshot) -> None:
    before, after = (json.dumps(as_data(one)) for one in (taken, anonymised(taken, KEY)))
    for name in api.NAMES:
        assert name in before, name
        assert name not in after, name
    assert api.CANARY not in after
    for kept in (
        "m5.large",
        "us-east-1a",
        "kubernetes.io/arch",
        "arm64",
        "kube-system",
        "kube-proxy",
        "al2023@v20261101",
    ):
        assert kept in after, kept


def test_daemon_sets_of_aks_run_on_every_node_as_before() -> None:
    terms = [
        {"key": "kubernetes.azure.com/cluster", "operator": "Exists"},
        {"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]},
        {"key": "type", "operator": "NotIn", "values": ["payroll"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    (made,) = hidden(workloads=[workload(pod={"affinity": affinity})])["workloads"]
    found = made["pod"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (*kept, other) = found["nodeSelectorTerms"][0]["matchExpressions"]
    assert kept == terms[:2]
    assert "type" not in other.values()
    assert "payroll" not in json.dumps(other)


def test_it_is_a_snapshot_of_the_same_size(taken: Snapshot) -> None:
    made = anonymised(taken, KEY)
    assert made.anonymised
    assert not taken.anonymised
    assert made.pods == taken.pods
    assert len(made.nodes) == len(taken.nodes)
    assert sorted(one.replicas for one in made.workloads) == sorted(one.replicas for one in taken.workloads)
    assert made.cluster == taken.cluster
    assert checked(as_data(made)).snapshot == made


def test_the_same_key_gives_the_same_hashes_and_another_gives_others(taken: Snapshot) -> None:
    assert anonymised(taken, KEY) == anonymised(taken, KEY)
    names = [{one.name for one in anonymised(taken, key).workloads} for key in (KEY, b"other")]
    assert names[0] & names[1] == {"kube-proxy"}


def test_names_that_people_gave_to_kinds_and_their_errors_are_not_told() -> None:
    items = [*api.cluster(), {"apiVersion": "acme.example/v1", "kind": "PayrollRun", "metadata": {"name": "x"}}]
    for one in items:
        if one["metadata"]["name"] == "lonely":
            one["spec"]["nodeSelector"] = {"payroll": 5}
    before = snapshot_of(items, datetime(2026, 11, 22, 10, tzinfo=UTC), "cluster")
    assert "PayrollRun" in json.dumps(as_data(before))
    text = json.dumps(as_data(anonymised(before, KEY))["leftOut"])
    assert "Payroll" not in text
    assert "payroll" not in text
    assert "argoproj" not in json.dumps(as_data(anonymised(before, KEY)))


def test_references_between_objects_still_hold(taken: Snapshot) -> None:
    made = anonymised(taken, KEY)
    pools, nodes, claims = ({one.name for one in some} for some in (made.node_pools, made.nodes, made.node_claims))
    assert {one.node_pool for one in made.nodes} == pools
    assert {one.node_claim for one in made.nodes} == claims
    assert {one.node for one in made.node_claims} == nodes
    assert {name for one in made.workloads for name in one.nodes} <= nodes
    pool: Any = made.node_pools[0].spec
    assert {one.name for one in made.node_classes} == {pool["template"]["spec"]["nodeClassRef"]["name"]}
    ((key, value),) = pool["template"]["metadata"]["labels"].items()
    assert all(one.labels == {key: value} for one in made.nodes)
    (taint,) = pool["template"]["spec"]["taints"]
    web = next(one for one in made.workloads if one.pod.topology_spread_constraints)
    assert web.pod.node_selector == {key: value}
    assert (web.pod.tolerations[0].key, web.pod.tolerations[0].value) == (taint["key"], taint["value"])
    assert web.pod.priority_class_name == made.priority_classes[0].name
    assert web.pod.affinity is not None
    assert web.pod.affinity.pod_anti_affinity is not None
    selector = web.pod.affinity.pod_anti_affinity.preferred[0].pod_affinity_term.namespace_selector
    assert selector is not None
    assert [one.labels for one in made.namespaces if one.labels] == [selector.match_labels]


def test_numbers_that_are_compared_stay_numbers() -> None:
    term = {"matchExpressions": [{"key": "acme.example/generation", "operator": "Gt", "values": ["4"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    made = hidden(
        workloads=[workload(pod={"affinity": {"nodeAffinity": required}})],
        nodes=[{"name": "a", "labels": {"acme.example/generation": "5", "acme.example/number": "5"}}],
    )
    (affinity,) = (one["pod"]["affinity"]["nodeAffinity"] for one in made["workloads"])
    ((expression,),) = (
        one["matchExpressions"]
        for one in affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    )
    assert expression["values"] == ["4"]
    assert made["nodes"][0]["labels"][expression["key"]] == "5"
    assert list(made["nodes"][0]["labels"].values()).count("5") == 1


@pytest.mark.parametrize(("value", "stays"), [("true", True), ("1h30m", True), ("Black Friday", False)])
def test_for_how_long_a_pod_must_not_be_disrupted_is_no_name(value: str, stays: bool) -> None:
    pod = hidden(workloads=[workload(pod={"doNotDisrupt": value})])["workloads"][0]["pod"]
    assert (pod["doNotDisrupt"] == value) is stays


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_requirements_on_instance_types_stay(cloud: str) -> None:
    keys = [*Facts.load(cloud, FOLDER).labels, "kubernetes.azure.com/ebpf-dataplane"]
    requirements = [{"key": key, "operator": "In", "values": ["Dps_v5"]} for key in keys]
    spec = {"template": {"spec": {"requirements": requirements}}}
    (pool,) = hidden(nodePools=[{"name": "secret", "spec": spec}])["nodePools"]
    assert pool["spec"] == spec


def test_devices_and_addresses_have_no_names() -> None:
    pod = {
        "requests": {"acme.example/fpga": "1", "nvidia.com/gpu": "1", "cpu": "1"},
        "hostPorts": [{"port": 80, "hostIP": "203.0.113.7"}, {"port": 81, "hostIP": "127.0.0.1"}],
    }
    (made,) = hidden(workloads=[workload(pod=pod)])["workloads"]
    assert {"nvidia.com/gpu", "cpu"} < made["pod"]["requests"].keys()
    assert "acme" not in json.dumps(made)
    assert "203" not in json.dumps(made)
    assert made["pod"]["hostPorts"][1]["hostIP"] == "127.0.0.1"


def test_what_the_stack_brings_is_known_afterwards_too() -> None:
    system = {"namespace": "kube-system", "controller": {"apiVersion": "apps/v1", "kind": "DaemonSet"}}
    made = anonymised(snapshot(workloads=[workload("cilium", **system), workload("payroll-agent", **system)]), KEY)
    loaded = objects(
        made, {}, existing=Existing({("DaemonSet", "kube-system", "cilium"): {"cpu": "500m", "memory": "1Gi"}})
    )
    assert [one["kind"] for one in loaded.objects] == ["DaemonSet"]
    assert "the rehearsed cluster has its own: kube-system/cilium" in loaded.notes[0]


@pytest.mark.parametrize(
    "name", ["karpenter-billing", "ama-payroll", "amazon-orders", "retinal-scan", "eraser-of-debts", "etcd-acme"]
)
def test_a_name_that_begins_like_a_systems_own_is_somebodys(name: str) -> None:
    system = {"namespace": "kube-system", "controller": {"apiVersion": "apps/v1", "kind": "Deployment"}}
    budgets = [{"namespace": "kube-system", "name": name, "minAvailable": 1}]
    made = hidden(workloads=[workload("ama-logs", **system), workload(name, **system)], podDisruptionBudgets=budgets)
    assert "ama-logs" in json.dumps(made)
    assert name not in json.dumps(made)


def test_only_kubernetes_own_priority_classes_keep_a_name_that_begins_with_system() -> None:
    own = "system-node-critical"
    made = hidden(
        workloads=[
            workload("system-payroll", pod={"priorityClassName": own}),
            workload(
                "web",
                pod={
                    "priorityClassName": "system-payroll",
                    "tolerations": [{"key": "karpenter.sh/x", "operator": "Equal", "value": "system-payroll"}],
                    "nodeSelector": {"karpenter.sh/nodepool": "system-payroll", "kubernetes.io/hostname": own},
                },
            ),
        ],
        priorityClasses=[{"name": "system-payroll", "value": 5}],
        namespaces=[{"name": "system-payroll"}],
        nodePools=[{"name": "system-payroll", "spec": {}}],
        nodes=[{"name": own, "nodePool": "system-payroll"}],
    )
    assert "system-payroll" not in json.dumps(made)
    assert json.dumps(made).count(own) == 1
    pods = [one["pod"] for one in made["workloads"]]
    assert [one["priorityClassName"] for one in pods if "nodeSelector" not in one] == [own]
    (pod,) = (one for one in pods if "nodeSelector" in one)
    assert pod["priorityClassName"] == made["priorityClasses"][0]["name"]
    assert pod["nodeSelector"] == {
        "karpenter.sh/nodepool": made["nodePools"][0]["name"],
        "kubernetes.io/hostname": made["nodes"][0]["name"],
    }


@pytest.mark.parametrize(
    ("key", "domain"),
    [
        ("acme.node-restriction.kubernetes.io/payroll", "node-restriction.kubernetes.io"),
        ("node-restriction.kubernetes.io/payroll", "node-restriction.kubernetes.io"),
        ("node-role.kubernetes.io/payroll", "node-role.kubernetes.io"),
        ("acme.node.kubernetes.io/payroll", "node.kubernetes.io"),
        ("node.kubernetes.io/payroll", "node.kubernetes.io"),
        ("acme.kubelet.kubernetes.io/payroll", "kubelet.kubernetes.io"),
        ("kops.k8s.io/payroll", "kops.k8s.io"),
    ],
)
def test_what_people_write_under_kubernetes_domains_is_hashed_alike_everywhere(key: str, domain: str) -> None:
    requirement = {"key": key, "operator": "In", "values": ["gold"]}
    taint = {"key": key, "value": "gold", "effect": "NoSchedule"}
    term = {"matchExpressions": [requirement]}
    pod = {
        "nodeSelector": {key: "gold"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
        "tolerations": [{**taint, "operator": "Equal"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}],
    }
    of_node = {"requirements": [requirement], "taints": [taint], "startupTaints": [taint]}
    template = {"metadata": {"labels": {key: "gold"}}, "spec": of_node}
    made = hidden(
        workloads=[workload(pod=pod)],
        nodes=[{"name": "a", "labels": {key: "gold"}, "taints": [taint]}],
        nodePools=[{"name": "general", "spec": {"template": template}}],
    )
    text = json.dumps(made)
    assert not any(name in text for name in ("acme", "payroll", "gold"))
    ((hashed, value),) = made["nodes"][0]["labels"].items()
    prefix, _, name = hashed.partition("/")
    assert prefix.removesuffix(domain) in ("", f"{prefix.partition('.')[0]}.")
    assert prefix.endswith(domain)
    assert (prefix == domain) == key.startswith(domain)
    assert name.startswith("x")
    assert text.count(f'"{hashed}"') == 10
    assert text.count(f'"{value}"') == 9
    assert text.count(domain) == 10


def test_what_kubernetes_has_under_those_domains_stays() -> None:
    keys = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node.kubernetes.io/not-ready")
    (made,) = hidden(nodes=[{"name": "a", "taints": [{"key": key, "effect": "NoSchedule"} for key in keys]}])["nodes"]
    assert tuple(one["key"] for one in made["taints"]) == keys


@pytest.mark.parametrize("given", [5, "payroll", [5], [{"id": "payroll"}], {"clusterDNS": ["payroll"]}])
def test_of_node_classes_in_a_file_of_any_shape_nothing_of_ones_own_is_kept(given: Any) -> None:
    spec = dict.fromkeys(("amiSelectorTerms", "blockDeviceMappings", "kubelet", "userData"), given)
    one = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "name": "bottles", "spec": spec}
    assert "payroll" not in json.dumps(hidden(nodeClasses=[one]))


# What matches what, before and after: a property of all labels and selectors.
KEYS = st.sampled_from(
    [
        "app",
        "team",
        "app.kubernetes.io/name",
        "kubernetes.io/arch",
        "acme.example/x",
        "acme.node-restriction.kubernetes.io/x",
        "other.node-restriction.kubernetes.io/x",
        "node-restriction.kubernetes.io/x",
        "node-role.kubernetes.io/x",
        "node-role.kubernetes.io/master",
    ]
)
VALUES = st.sampled_from(["", "a", "b", "arm64", "7", "system-a", "system-node-critical"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)
EXPRESSION = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=3, unique=True),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator}, KEYS, st.sampled_from(["Exists", "DoesNotExist"])
    ),
)
SELECTOR = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSION, max_size=3)}
)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """As Kubernetes does."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for one in selector.get("matchExpressions", ()):
        key, values = one["key"], one.get("values", ())
        held = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not held[one["operator"]]:
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(pods=st.lists(LABELS, min_size=1, max_size=4), selectors=st.lists(SELECTOR, min_size=1, max_size=4))
def test_every_selector_selects_what_it_selected(pods: list[dict[str, str]], selectors: list[dict[str, Any]]) -> None:
    before = checked(
        data(
            workloads=[
                workload(f"w{number}", replicas=number + 1, pod={"labels": one}) for number, one in enumerate(pods)
            ],
            podDisruptionBudgets=[
                {"namespace": "shop", "name": f"b{number}", "selector": one, "maxUnavailable": number}
                for number, one in enumerate(selectors)
            ],
        )
    ).snapshot
    after = anonymised(before, KEY)
    for made in (as_data(after), _loaded(before), _loaded(after)):
        labels = {one["replicas"]: one["pod"].get("labels", {}) for one in made["workloads"]}
        budgets = {one.get("maxUnavailable"): one.get("selector", {}) for one in made["podDisruptionBudgets"]}
        for place, selector in enumerate(selectors):
            assert [matches(selector, one) for one in pods] == [
                matches(budgets[place], labels[number + 1]) for number in range(len(pods))
            ]


def _loaded(snapshot: Snapshot) -> dict[str, Any]:
    """The objects in the shape of a snapshot: every label of the story's own is among those that could be asked for."""
    made = objects(snapshot, {"app.kubernetes.io/name": "story", "team": "story"}).objects
    return {
        "workloads": [
            {
                "replicas": one["spec"]["replicas"],
                "pod": {"labels": one["spec"]["template"]["metadata"]["labels"]},
            }
            for one in made
            if one["kind"] == "Deployment"
        ],
        "podDisruptionBudgets": [one["spec"] for one in made if one["kind"] == "PodDisruptionBudget"],
    }


def test_a_provider_and_conditions_of_ones_own_are_hidden() -> None:
    reference = {"group": "karpenter.secret.example", "kind": "SecretNodeClass", "name": "secret"}
    pools = [{"name": "a", "spec": {"template": {"spec": {"nodeClassRef": reference}}}}]
    claims = [{"name": "b", "conditions": ["Launched", "SecretTeamApproved"]}]
    made = hidden(nodePools=pools, nodeClaims=claims)
    assert "ecret" not in json.dumps(made)
    assert "Launched" in made["nodeClaims"][0]["conditions"]


def test_of_disruption_what_karpenter_has_stays() -> None:
    budget = {"nodes": "1", "schedule": "@daily", "duration": "1h", "reasons": ["Drifted"]}
    own = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m", "budgets": [budget]}
    given = {**own, "budgets": [{**budget, "for": "secret"}], "team": "secret"}
    made = hidden(nodePools=[{"name": "a", "spec": {"disruption": given, "template": {"spec": {}}}}])
    assert made["nodePools"][0]["spec"]["disruption"] == own


def test_a_reference_to_a_class_of_a_cloud_stays() -> None:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"}
    made = hidden(nodePools=[{"name": "a", "spec": {"template": {"spec": {"nodeClassRef": reference}}}}])
    kept = made["nodePools"][0]["spec"]["template"]["spec"]["nodeClassRef"]
    assert (kept["group"], kept["kind"]) == ("karpenter.k8s.aws", "EC2NodeClass")


def test_pods_that_a_kubelet_runs_from_files_have_no_names_but_kubernetes_own() -> None:
    static = {"namespace": "kube-system", "controller": {"apiVersion": "v1", "kind": "Node"}}
    made = hidden(workloads=[workload(name, **static) for name in ("kube-apiserver", "vault-unsealer-secret")])
    names = {one["name"] for one in made["workloads"]}
    assert "kube-apiserver" in names
    assert not any("secret" in name for name in names)


def test_overlays_match_what_they_matched() -> None:
    requirement = {"key": "acme.example/tier", "operator": "In", "values": ["gold"]}
    pool = {"template": {"metadata": {"labels": {"acme.example/tier": "gold"}}}}
    spec = {
        "requirements": [requirement, {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["general"]}],
        "priceAdjustment": "-10%",
        "capacity": {"acme.example/fuse": 1, "hugepages-2Mi": "100Mi"},
        "note": "acme",
    }
    made = hidden(nodePools=[{"name": "general", "spec": pool}], nodeOverlays=[{"name": "acme", "spec": spec}])
    assert "acme" not in json.dumps(made)
    (overlay,), (general,) = made["nodeOverlays"], made["nodePools"]
    tier, of_pool = overlay["spec"]["requirements"]
    assert {tier["key"]: tier["values"][0]} == general["spec"]["template"]["metadata"]["labels"]
    assert of_pool == {"key": "karpenter.sh/nodepool", "operator": "In", "values": [general["name"]]}
    assert overlay["spec"]["priceAdjustment"] == "-10%"
    assert overlay["spec"]["capacity"]["hugepages-2Mi"] == "100Mi"


def test_the_controller_stays_as_it_is() -> None:
    karpenter = {"version": "1.15.1", "featureGates": {"nodeOverlay": True}, "settings": {"preferencePolicy": "Ignore"}}
    assert hidden(karpenter=karpenter)["karpenter"] == karpenter
