"""karpstack.components.settings: what the examples say, safe defaults, what is read, and what no message shows."""

from __future__ import annotations

import json
from contextvars import ContextVar
from ipaddress import IPv4Network
from typing import Any

import pytest
from pulumi.runtime import config as runtime_config

from karpstack.components import settings
from karpstack.components.problems import SettingsError
from tests.unit.example_stack import eks, example, loaded

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
EKS_DEFAULTS = {"cluster": {"version": "1.36"}, "karpenter": None, "systemNodes": None, "tags": None}
AKS_DEFAULTS = {"cluster": {"version": "1.36"}, "systemNodes": None, "tags": None, "nodeProvisioning": None}


@pytest.mark.parametrize(
    ("stack", "changes", "wanted"),
    [
        ("eks", {}, {"network.pod_cidr": IPv4Network("10.244.0.0/16"), "cluster.version": "1.36"}),
        ("eks", {}, {"node_pools.default.limits": {"cpu": 1000, "memory": "4000Gi"}}),
        (NAP, {}, {"mode": "nap", "karpenter": None, "network.pod_cidr": IPv4Network("10.244.0.0/16")}),
        (SELF_HOSTED, {}, {"mode": "self-hosted", "node_classes.default.imageFamily": "Ubuntu"}),
        # Defaults are the safe ones.
        ("eks", EKS_DEFAULTS, {"cluster.public_access_cidrs": [], "karpenter.identity": "pod-identity"}),
        ("eks", EKS_DEFAULTS, {"karpenter.interruption_queue": True}),
        (
            "eks",
            EKS_DEFAULTS,
            {"cluster.log_types": ["api", "audit", "authenticator", "controllerManager", "scheduler"]},
        ),
        (NAP, AKS_DEFAULTS, {"cluster.public_access_cidrs": [], "cluster.local_accounts": False}),
        (NAP, AKS_DEFAULTS, {"system_nodes.zones": [1, 2, 3], "node_provisioning.allow_stranded_nodes": False}),
        (NAP, {"network.subnetCidr": None, "network.subnetId": "<subnets>/aks"}, {"network.subnet_cidr": None}),
    ],
)
def test_what_is_taken(stack: str, changes: dict[str, Any], wanted: dict[str, Any]) -> None:
    for path, value in wanted.items():
        found = loaded(stack, changes)
        for step in path.split("."):
            found = found[step] if isinstance(found, dict) else getattr(found, step)
        assert found == value, path


def test_the_error_names_their_number_and_shows_each() -> None:
    with pytest.raises(SettingsError, match=r"configuration has 2 errors; nothing was created") as caught:
        settings.load(example(name="Bad_Name", unknown={}))
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    assert 'karpstack:name = "Bad_Name"\n    is not a valid name' in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "value", "fix"),
    [
        (
            {"nodePools.default.template.spec.taints": [{"key": "gpu", "value": True, "effect": "NoSchedule"}]},
            "true",
            "put it in quotes, 'true', so that YAML reads it as a text",
        ),
        ({"cloud": "gcp"}, '"gcp"', "set it to aws or azure"),
        ({"cloud": None}, "(not set)", "set it to aws or azure"),
        ({"cloud": "azure"}, "(not set)", "nap (AKS runs Karpenter) or self-hosted"),
    ],
)
def test_a_fix_says_what_to_write(changes: dict[str, Any], value: str, fix: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded("eks", changes)
    assert any(problem.value == value and fix in problem.fix for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("stack", "changes", "secret"),
    [
        ("eks", {"name": "Hush_Hush"}, "karpstack:name"),
        (SELF_HOSTED, {"karpenter.sshPublicKey": "hush"}, "karpstack:karpenter"),
    ],
)
def test_secret_values_are_not_shown(stack: str, changes: dict[str, Any], secret: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(stack, changes, secret_keys={secret})
    (problem,) = caught.value.problems
    assert problem.value == "(secret)"
    assert "hush" not in str(caught.value).lower()


def test_reads_the_engines_configuration_unknown_keys_included(monkeypatch: pytest.MonkeyPatch) -> None:
    config: ContextVar[dict[str, str]] = ContextVar("config")
    config.set(example(typo="x"))
    monkeypatch.setattr(runtime_config, "CONFIG", config)
    with pytest.raises(SettingsError, match="karpstack:typo"):
        settings.read()


def test_reads_the_environment_as_the_python_host_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(example(name="from-the-host")))
    assert settings.read().name == "from-the-host"
    assert eks().name != "from-the-host"
