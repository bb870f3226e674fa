"""components.settings: what it takes, and each refusal with key, value, consequence and fix."""

from __future__ import annotations

import json
from contextvars import ContextVar
from ipaddress import IPv4Network
from typing import Any

import pytest
from pulumi.runtime import config as runtime_config

from components import settings
from components.problems import SettingsError
from karpenter.findings import Finding
from tests.unit.example_stack import eks, example

CLASS = {"amiSelectorTerms": [{"alias": "al2023@latest"}]}


def pool(*, capacity: dict[str, Any] | None = None, reference: dict[str, Any] | None = None) -> dict[str, Any]:
    node: dict[str, Any] = {"requirements": [{"key": "karpenter.sh/capacity-type", **capacity}] if capacity else []}
    return {"template": {"spec": {**node, **({"nodeClassRef": reference} if reference else {})}}}


def problems(raw: dict[str, str], **options: Any) -> list[Finding]:
    with pytest.raises(SettingsError) as caught:
        settings.load(raw, **options)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return list(caught.value.problems)


def test_the_example_is_taken() -> None:
    loaded = eks()
    assert loaded.network.pod_cidr == IPv4Network("10.244.0.0/16")
    assert loaded.cluster.version == "1.36"
    assert loaded.node_pools["default"]["limits"] == {"cpu": 1000, "memory": "4000Gi"}


def test_defaults_are_the_safe_ones() -> None:
    loaded = eks(cluster={"version": "1.36"}, karpenter=None, systemNodes=None, tags=None)
    assert loaded.cluster.public_access_cidrs == []
    assert loaded.karpenter.identity == "pod-identity"
    assert loaded.karpenter.interruption_queue
    assert len(loaded.cluster.log_types) == 5


def test_region_is_required() -> None:
    raw = example()
    del raw["aws:region"]
    (problem,) = problems(raw)
    assert (problem.key, problem.value) == ("aws:region", "(not set)")


def test_on_demand_needs_no_queue() -> None:
    for capacity in ({"operator": "In", "values": ["on-demand"]}, {"operator": "NotIn", "values": ["spot"]}):
        settings.load(example(karpenter__interruptionQueue=False, nodePools__default=pool(capacity=capacity)))


def test_several_errors_come_at_once() -> None:
    found = problems(
        example(
            name="Bad_Name",
            network__podCidr="10.0.0.0/17",
            network__zones=9,
            cluster__version="1.99",
            karpenter__replicas=5,
            nodePools__default=pool(reference={"name": "gpu"}),
            unknown={},
        )
    )
    assert [problem.key for problem in found] == [
        "karpstack:name",
        "karpstack:network.podCidr",
        "karpstack:network.zones",
        "karpstack:unknown",
        "karpstack:cluster.version",
        "karpstack:karpenter.replicas",
        "karpstack:nodePools.default.template.spec.nodeClassRef.name",
    ]


def test_what_yaml_took_for_a_truth_value_in_a_spec_is_to_be_put_in_quotes() -> None:
    tainted = pool()
    tainted["template"]["spec"]["taints"] = [{"key": "gpu", "value": True, "effect": "NoSchedule"}]
    (taint,) = problems(example(nodePools__default=tainted))
    assert (taint.value, taint.fix) == ("true", "put it in quotes, 'true', so that YAML reads it as a text")


def test_the_error_names_their_number_and_shows_each() -> None:
    with pytest.raises(SettingsError, match=r"configuration has 2 errors; nothing was created") as caught:
        settings.load(example(name="Bad_Name", unknown={}))
    assert 'karpstack:name = "Bad_Name"\n    cannot name' in str(caught.value)


def test_secret_values_are_not_shown() -> None:
    (problem,) = problems(example(name="Hush_Hush"), secret_keys={"karpstack:name"})
    assert problem.value == "(secret)"
    assert "Hush" not in str(problem)


def test_reads_the_engines_configuration_unknown_keys_included(monkeypatch: pytest.MonkeyPatch) -> None:
    config: ContextVar[dict[str, str]] = ContextVar("config")
    config.set(example(typo="x"))
    monkeypatch.setattr(runtime_config, "CONFIG", config)
    with pytest.raises(SettingsError, match="karpstack:typo"):
        settings.read()


def test_reads_the_environment_as_the_python_host_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(example(name="from-the-host")))
    assert settings.read().name == "from-the-host"


@pytest.mark.parametrize("schedule", ["0 9 * * mon-fry", "0 25 * * 1-5"])
def test_a_budget_that_only_karpenter_cannot_read_is_refused(schedule: str) -> None:
    """The API server takes it."""
    (problem,) = problems(example(nodePools__default=with_budget(schedule)))
    assert problem.key == "karpstack:nodePools.default.disruption.budgets[1]"
    assert f"has schedule {schedule!r}, which the API server takes and Karpenter cannot" in problem.consequence
    assert problem.fix.startswith("write five fields of cron, for example `0 9 * * mon-fri`")


def test_a_budget_that_karpenter_reads_is_taken() -> None:
    settings.load(example(nodePools__default=with_budget("0 9 * * mon-fri")))


def with_budget(schedule: str) -> dict[str, Any]:
    budgets = [{"nodes": "1"}, {"nodes": "0", "schedule": schedule, "duration": "8h"}]
    return pool() | {"disruption": {"consolidateAfter": "1m", "budgets": budgets}}
