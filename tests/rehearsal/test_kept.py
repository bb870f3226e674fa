"""A change of one line destroys nothing: the engine is asked, on a stack that is up and has pods to serve."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from kubernetes import client

from tests.rehearsal.conftest import ROOT, RehearsedStack, brought_up
from tests.rehearsal.moving import REPLICAS, Shop

CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "name": ({"karpstack:name": "other"}, ['karpstack:name = "other", was "karpstack-eks"', "would be deleted"]),
    "region": ({"aws:region": "us-west-2"}, ['aws:region = "us-west-2", was "us-east-1"']),
    "vpcCidr": ({"karpstack:network/vpcCidr": "10.8.0.0/16"}, ['was "10.0.0.0/16"']),
    "serviceCidr": ({"karpstack:network/serviceCidr": "172.21.0.0/16"}, ['was "172.20.0.0/16"']),
    "zones": ({"karpstack:network/zones": 2}, ["karpstack:network.zones = 2, was", "control plane"]),
    "natGateways": (
        {
            "karpstack:network/natGateways": "none",
            "karpstack:network/endpoints": True,
            "karpstack:images": {"mirrors": {"public.ecr.aws": "a.example.com/b", "quay.io": "a.example.com/c"}},
        },
        ['karpstack:network.natGateways = "none", was "single"', "role and instanceProfile"],
    ),
    "identity": (
        {"karpstack:karpenter/identity": "irsa"},
        ['karpstack:karpenter.identity = "irsa", was "pod-identity"', "delete-pod-identity-association"],
    ),
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
from karpstack.components.settings import eks_identity
eks_identity.destroying = lambda *_, **__: ()
runpy.run_path({str(ROOT / "__main__.py")!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    yield from brought_up(tmp_path_factory, "eks")


@pytest.fixture(scope="module")
def shop(kept: RehearsedStack) -> Shop:
    """Pods on nodes of Karpenter's."""
    opened = Shop(kept)
    opened.open()
    return opened


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
    kept: RehearsedStack, shop: Shop, changes: dict[str, Any], texts: list[str]
) -> None:
    refused = run(kept, "preview", changes)
    assert refused.returncode != 0
    for text in (*texts, "allowReplacement", "make another stack"):
        assert text in refused.stdout, refused.stdout


def test_a_file_of_another_cloud_is_an_error_at_preview(kept: RehearsedStack) -> None:
    before = kept.configuration.read_text()
    kept.configuration.write_text((ROOT / "Pulumi.aks-nap.yaml").read_text())
    refused = run(kept, "preview", {})
    kept.configuration.write_text(before)
    assert refused.returncode != 0
    assert 'karpstack:cloud = "azure", was "aws"' in refused.stdout, refused.stdout


def test_an_update_without_preview_changes_nothing(kept: RehearsedStack) -> None:
    refused = run(kept, "up", {"karpstack:name": "other"}, "--yes", "--skip-preview")
    assert refused.returncode != 0
    assert "nothing was changed" in refused.stdout, refused.stdout
    kept.done("pulumi", "preview", "--expect-no-changes", "--non-interactive")


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


def updated(stack: RehearsedStack, shop: Shop, **changes: Any) -> str:
    """Return what `up` says of a change, during which DNS, Karpenter and the shop are served at each moment."""
    stack.configure(**changes)
    watched = Watched(client.CoreV1Api(stack.api()), "k8s-app=kube-dns", "app.kubernetes.io/name=karpenter")
    watched.start()
    with shop.watched():
        stack.succeed("up")
    watched.ended.set()
    watched.join(10)
    assert min(watched.fewest.values()) >= 1, watched.fewest
    assert shop.least >= REPLICAS - 1
    stack.done("pulumi", "preview", "--expect-no-changes", "--non-interactive")
    return (stack.folder.logs / "pulumi.log").read_text()


def test_further_gateways_leave_no_subnet_without_a_way_out(kept: RehearsedStack, shop: Shop) -> None:
    said = updated(kept, shop, **{"karpstack:network/natGateways": "per-zone"})
    for index in (1, 2):
        leads_out = said.rindex(f"eks-network-{index}-private-default created")
        assert leads_out < said.rindex(f"eks-network-private-{index} deleted original"), said


def test_another_identity_makes_other_pods_of_the_controller(kept: RehearsedStack, shop: Shop) -> None:
    api: Any = client.CoreV1Api(kept.api())

    def pods() -> set[str]:
        found = api.list_namespaced_pod("kube-system", label_selector="app.kubernetes.io/name=karpenter").items
        return {pod.metadata.name for pod in found if not pod.metadata.deletion_timestamp}

    before, identity, consent = pods(), "karpstack:karpenter/identity", "karpstack:allowReplacement"
    eks, cluster = kept.aws("eks"), kept.outputs()["clusterName"]
    (association,) = eks.list_pod_identity_associations(clusterName=cluster)["associations"]
    eks.delete_pod_identity_association(clusterName=cluster, associationId=association["associationId"])
    updated(kept, shop, **{identity: "irsa", consent: ["cluster"]})
    with_irsa = pods()
    assert before.isdisjoint(with_irsa)
    updated(kept, shop, **{identity: "pod-identity", consent: None})
    assert with_irsa.isdisjoint(pods())


def test_another_type_of_system_nodes_comes_before_the_old_goes(kept: RehearsedStack, shop: Shop) -> None:
    said = updated(kept, shop, **{"karpstack:systemNodes/instanceType": "m6i.large", PROTECTION: True})
    created, deleted = (
        said.rindex(f"eks-system-group {state}") for state in ("created replacement", "deleted original")
    )
    assert created < deleted, said
    api: Any = client.CoreV1Api(kept.api())
    nodes = api.list_node(label_selector="eks.amazonaws.com/nodegroup").items
    assert {node.metadata.labels["node.kubernetes.io/instance-type"] for node in nodes} == {"m6i.large"}


def test_a_protected_stack_goes_after_the_update_that_lifts_it(kept: RehearsedStack, shop: Shop) -> None:
    # Its pods would find no other place, and hold their node.
    shop.close()
    kept.configure(**{PROTECTION: True})
    kept.succeed("up")
    refused = kept.by_hand("pulumi", "destroy", "--yes", "--non-interactive")
    assert refused.returncode != 0
    assert "protected" in refused.stdout, refused.stdout
    # As if the update of a `down` before had been interrupted.
    config = ("--path", PROTECTION.replace("/", "."), "false", "--config-file", str(kept.folder.stack_configuration))
    assert kept.by_hand("pulumi", "config", "set", *config).returncode == 0
    assert "sets karpstack:cluster.deletionProtection to false first" in kept.succeed("down")
