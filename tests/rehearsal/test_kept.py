"""A change of one line destroys nothing: the engine is asked, on a stack that is up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from kubernetes import client

from tests.rehearsal.conftest import ROOT, RehearsedStack, brought_up

CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "name": ({"karpstack:name": "other"}, ['karpstack:name = "other", was "karpstack-eks"', "would be deleted"]),
    "region": ({"aws:region": "us-west-2"}, ['aws:region = "us-west-2", was "us-east-1"']),
    "vpcCidr": ({"karpstack:network/vpcCidr": "10.8.0.0/16"}, ['was "10.0.0.0/16"']),
    "serviceCidr": ({"karpstack:network/serviceCidr": "172.21.0.0/16"}, ['was "172.20.0.0/16"']),
    "zones": ({"karpstack:network/zones": 2}, ["karpstack:network.zones = 2, was", "control plane"]),
    "existing": (
        {
            "karpstack:cluster": {"existing": "shop"},
            "karpstack:network": {},
            "karpstack:systemNodes": None,
            "karpstack:addons": None,
        },
        ['karpstack:cluster.existing = "shop", was (not set)', "karpstack-eks would be deleted"],
    ),
}
PROTECTION = "karpstack:cluster/deletionProtection"
#: The program without the rules on settings: the engine and the hooks are left.
UNRULED = f"""
import runpy, sys
sys.path.insert(0, {str(ROOT)!r})
from components.settings import eks_identity
eks_identity.destroying = lambda *_, **__: ()
runpy.run_path({str(ROOT / "__main__.py")!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    yield from brought_up(tmp_path_factory, "eks")


def run(
    stack: RehearsedStack, command: str, changes: dict[str, Any], *arguments: str
) -> subprocess.CompletedProcess[str]:
    before = stack.configuration.read_text()
    stack.configure(**changes)
    try:
        return stack.by_hand(
            *("pulumi", command, "--non-interactive", "--config-file", str(stack.configuration)), *arguments
        )
    finally:
        stack.configuration.write_text(before)


@pytest.mark.parametrize(("changes", "texts"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_one_line_is_an_error_at_preview(
    kept: RehearsedStack, changes: dict[str, Any], texts: list[str]
) -> None:
    refused = run(kept, "preview", changes)
    assert refused.returncode != 0
    for text in (*texts, "allowReplacement", "make another stack"):
        assert text in refused.stdout, refused.stdout


def test_an_update_without_preview_changes_nothing(kept: RehearsedStack) -> None:
    refused = run(kept, "up", {"karpstack:name": "other"}, "--yes", "--skip-preview")
    assert refused.returncode != 0
    assert "nothing was changed" in refused.stdout, refused.stdout
    unchanged = kept.by_hand("pulumi", "preview", "--expect-no-changes", "--non-interactive")
    assert unchanged.returncode == 0, unchanged.stdout


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"karpstack:name": "other"}, "eks-cluster-control-plane (aws:eks/cluster:Cluster) would be replaced"),
        ({"karpstack:network/vpcCidr": "10.8.0.0/16"}, "eks-network-vpc (aws:ec2/vpc:Vpc) would be replaced"),
    ],
)
def test_what_no_rule_knows_the_engine_reports(
    kept: RehearsedStack, tmp_path: Path, changes: dict[str, Any], lost: str
) -> None:
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "__main__.py").write_text(UNRULED)
    refused = run(kept, "preview", changes, "--cwd", str(tmp_path))
    assert refused.returncode != 0
    assert lost in refused.stdout, refused.stdout


def test_consent_lets_the_engine_go_on(kept: RehearsedStack) -> None:
    allowed = run(kept, "preview", {"karpstack:name": "other", "karpstack:allowReplacement": ["cluster"]})
    assert allowed.returncode == 0, allowed.stdout
    assert "eks-cluster-control-plane create replacement" in allowed.stdout
    assert "pulumi config rm karpstack:allowReplacement" in allowed.stdout


def test_a_further_zone_is_for_nodes_alone(kept: RehearsedStack) -> None:
    more = run(kept, "preview", {"karpstack:network/zones": 4})
    assert more.returncode == 0, more.stdout
    assert "eks-network-private-3 create" in more.stdout
    assert "eks-cluster-control-plane" not in more.stdout


class Watched(Thread):
    """The fewest ready pods that each of some workloads had while something else was done."""

    def __init__(self, api: Any, *labels: str) -> None:
        super().__init__(daemon=True)
        self.fewest = dict.fromkeys(labels, 99)
        self._api = api
        self.ended = Event()

    def run(self) -> None:
        while not self.ended.wait(0.05):
            for label, fewest in self.fewest.items():
                pods = self._api.list_namespaced_pod("kube-system", label_selector=label).items
                self.fewest[label] = min(fewest, sum(map(is_ready, pods)))


def is_ready(pod: Any) -> bool:
    conditions = pod.status.conditions or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


def test_another_type_of_system_nodes_comes_before_the_old_goes(kept: RehearsedStack) -> None:
    kept.configure(**{"karpstack:systemNodes/instanceType": "m6i.large", PROTECTION: True})
    watched = Watched(client.CoreV1Api(kept.api()), "k8s-app=kube-dns", "app.kubernetes.io/name=karpenter")
    watched.start()
    kept.succeed("up")
    watched.ended.set()
    watched.join(10)
    assert min(watched.fewest.values()) >= 1, watched.fewest
    updated = (kept.folder.logs / "pulumi.log").read_text()
    created, deleted = (
        updated.rindex(f"eks-system-group {state}") for state in ("created replacement", "deleted original")
    )
    assert created < deleted, updated
    api: Any = client.CoreV1Api(kept.api())
    types = {node.metadata.labels["node.kubernetes.io/instance-type"] for node in api.list_node().items}
    assert types == {"m6i.large"}
    unchanged = kept.by_hand("pulumi", "preview", "--expect-no-changes", "--non-interactive")
    assert unchanged.returncode == 0, unchanged.stdout


def test_a_protected_stack_goes_after_the_update_that_lifts_it(kept: RehearsedStack) -> None:
    refused = kept.by_hand("pulumi", "destroy", "--yes", "--non-interactive")
    assert refused.returncode != 0
    assert "protected" in refused.stdout, refused.stdout
    assert "sets karpstack:cluster.deletionProtection to false first" in kept.succeed("down")
