"""A container's environment and arguments, as a kubelet would make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rehearsal.cluster.container import ContainerConfigError, arguments, environment, expand, resource

ALLOCATABLE = {"cpu": "1930m", "memory": "6903Mi"}
POD: dict[str, Any] = {
    "metadata": {"name": "karpenter-1", "namespace": "kube-system", "labels": {"app": "karpenter"}},
    "spec": {"nodeName": "ip-10-0-0-1", "serviceAccountName": "karpenter"},
}
DATA = {("ConfigMap", "settings"): {"REGION": "us-east-1"}, ("Secret", "keys"): {"key": "hidden"}}


def lookup(kind: str, name: str) -> Mapping[str, str] | None:
    return DATA.get((kind, name))


def resolve(*variables: dict[str, Any], resources: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    return environment(POD, {"env": list(variables), "resources": resources or {}, **more}, ALLOCATABLE, lookup)


def test_the_variables_of_karpenters_deployment() -> None:
    found = resolve(
        {"name": "KUBERNETES_MIN_VERSION", "value": "1.19.0-0"},
        {"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "CPU_REQUESTS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
        {"name": "MEMORY_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "0"}}},
        {"name": "EMPTY"},
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    )
    assert found == {
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "SYSTEM_NAMESPACE": "kube-system",
        "CPU_REQUESTS": "1000",
        "MEMORY_LIMIT": "1073741824",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("reference", "resources", "value"),
    [
        ({"resource": "limits.memory"}, {}, str(6903 * 2**20)),
        ({"resource": "limits.cpu"}, {}, "2"),
        ({"resource": "requests.cpu", "divisor": "1m"}, {}, "0"),
        ({"resource": "requests.cpu", "divisor": "1m"}, {"limits": {"cpu": "500m"}}, "500"),
        ({"resource": "limits.memory", "divisor": "1Mi"}, {"limits": {"memory": "1.5Gi"}}, "1536"),
    ],
)
def test_resources_count_as_the_kubelet_counts(
    reference: dict[str, str], resources: dict[str, Any], value: str
) -> None:
    assert resource(reference, {"resources": resources}, ALLOCATABLE) == value


def test_whole_config_maps_come_before_single_variables() -> None:
    found = resolve(
        {"name": "A_REGION", "value": "other"},
        envFrom=[{"prefix": "A_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    )
    assert found == {"A_REGION": "other", "key": "hidden"}


def test_references_to_single_keys() -> None:
    found = resolve(
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}},
        {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "no", "optional": True}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
    )
    assert found == {"KEY": "hidden", "APP": "karpenter"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"secretKeyRef": {"name": "gone", "key": "key"}}, "Secret gone not found"),
        ({"configMapKeyRef": {"name": "settings", "key": "no"}}, "couldn't find key no in ConfigMap settings"),
        ({"fieldRef": {"fieldPath": "spec.nope"}}, "unsupported fieldPath: spec.nope"),
        ({"fileKeyRef": {"path": "x"}}, "fileKeyRef"),
    ],
)
def test_a_reference_that_leads_nowhere_stops_the_container(source: dict[str, Any], text: str) -> None:
    with pytest.raises(ContainerConfigError, match=text):
        resolve({"name": "X", "valueFrom": source})


def test_earlier_variables_are_expanded_and_unknown_ones_left() -> None:
    found = resolve({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(C)-$$(A)"}, {"name": "C", "value": "2"})
    assert found["B"] == "1-$(C)-$(A)"
    assert expand("$(NO)", {}) == "$(NO)"
    assert arguments({"args": ["--name=$(A)", "plain"]}, found) == ["--name=1", "plain"]
