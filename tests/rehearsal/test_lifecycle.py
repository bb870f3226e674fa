"""Up, again, by hand, side by side: what people do with a rehearsed stack."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes import client

from tests.rehearsal.conftest import ROOT, RehearsedStack, descendants, new_stack
from tests.rehearsal.dry_run import assert_verdicts

SPOT_TO_SPOT = "karpstack:karpenter/featureGates/spotToSpotConsolidation"


def test_a_second_up_changes_nothing(eks: RehearsedStack) -> None:
    output = eks.succeed("up")
    assert " unchanged" in output
    for word in ("created", "updated", "replaced", "deleted"):
        assert f" {word}" not in output, output


@pytest.mark.parametrize(
    "command",
    [
        ("pulumi", "preview", "--expect-no-changes", "--non-interactive"),
        ("pulumi", "refresh", "--yes", "--skip-preview", "--expect-no-changes", "--non-interactive"),
        ("kubectl", "get", "nodes", "-o", "name"),
        ("helm", "status", "karpenter", "--namespace", "kube-system"),
    ],
)
def test_commands_by_hand(eks: RehearsedStack, command: tuple[str, ...]) -> None:
    eks.done(*command)


def test_status_names_every_engine_and_stays_below_the_memory_limit(eks: RehearsedStack) -> None:
    output = eks.succeed("status")
    for engine in (
        "daemon",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "karpenter-aws",
    ):
        assert engine in output, output
    resident = sum(process.memory_info().rss for process in descendants(eks.info))
    assert resident < 1.5 * 2**30, output


def test_the_api_server_takes_what_we_say_it_takes(eks: RehearsedStack, tmp_path: Path) -> None:
    assert_verdicts(eks, "aws", tmp_path)


def test_the_checkout_stays_clean(eks: RehearsedStack) -> None:
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "Pulumi.yaml", "Pulumi.eks.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "encryptionsalt" not in (ROOT / "Pulumi.eks.yaml").read_text(), changed


def test_secrets_are_in_no_log_and_not_plain_in_the_state(eks: RehearsedStack) -> None:
    kubeconfig = eks.by_hand("pulumi", "stack", "output", "kubeconfig", "--show-secrets", "--non-interactive").stdout
    assert "certificate-authority-data" in kubeconfig
    state = eks.by_hand("pulumi", "stack", "export", "--non-interactive").stdout
    assert "aws eks get-token" not in state
    authority = next(
        line.split(":", 1)[1].strip() for line in kubeconfig.splitlines() if "certificate-authority-data" in line
    )
    outputs = eks.by_hand("pulumi", "stack", "output", "--json", "--non-interactive").stdout
    assert authority.strip('",') not in outputs
    tokens = [
        path.read_text().strip() for path in eks.folder.root.rglob("*") if path.is_file() and "token" in path.name
    ]
    for log in eks.folder.logs.iterdir():
        text = log.read_text(errors="replace")
        for token in filter(None, tokens):
            assert token not in text, log


def controller(stack: RehearsedStack) -> psutil.Process:
    return next(process for process in descendants(stack.info) if process.name() == "karpenter-aws")


def test_a_stack_that_is_up_does_not_stand_in_its_own_way(eks: RehearsedStack) -> None:
    """What the look before `up` takes for the stack's own is what Pulumi's state calls it."""
    found = eks.findings()
    assert {severity for _, severity, _ in found} == {"note"}, found


def test_what_is_in_the_way_of_destroy_is_named(eks: RehearsedStack) -> None:
    playbook = ("ansible-playbook", "playbooks/predestroy.yml")
    eks.done(*playbook)
    core, custom = client.CoreV1Api(eks.api()), client.CustomObjectsApi(eks.api())
    pool: Any = custom.get_cluster_custom_object("karpenter.sh", "v1", "nodepools", "default")
    by_hand = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "by-hand"},
        "spec": pool["spec"],
    }
    service: Any = {"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    custom.create_cluster_custom_object("karpenter.sh", "v1", "nodepools", by_hand)
    core.create_namespaced_service("default", service)
    try:
        found = eks.by_hand(*playbook)
        assert len(eks.aws("elb").describe_load_balancers()["LoadBalancerDescriptions"]) == 1
    finally:
        core.delete_namespaced_service("web", "default")
        custom.delete_cluster_custom_object("karpenter.sh", "v1", "nodepools", "by-hand")
    assert found.returncode != 0
    assert "2 blockers" in found.stdout
    assert "the Service default/web has the type LoadBalancer" in found.stdout
    assert "the NodePool by-hand does not belong to the stack" in found.stdout


def test_the_stacks_own_kubeconfig_works(eks: RehearsedStack, tmp_path: Path) -> None:
    shown = eks.by_hand("pulumi", "stack", "output", "kubeconfig", "--show-secrets", "--non-interactive").stdout
    (tmp_path / "kubeconfig").write_text(shown)
    answer = eks.by_hand("kubectl", "--kubeconfig", str(tmp_path / "kubeconfig"), "get", "--raw", "/readyz")
    assert answer.stdout == "ok"


def what_is_not_ready_fails_up_in_karpenters_words(stack: RehearsedStack) -> None:
    node_class = "karpstack:nodeClasses/bottlerocket"
    terms = stack.configured("karpstack:nodeClasses")["bottlerocket"]["amiSelectorTerms"]
    missing = {"amiSelectorTerms": [{"id": "ami-00000000000000000"}], "amiFamily": "Bottlerocket"}
    stack.configure(**{f"{node_class}/{key}": value for key, value in missing.items()})
    failed = stack.command("up")
    assert failed.returncode != 0
    assert "EC2NodeClass bottlerocket: AMIsReady is False: AMINotFound AMISelector did not match any AMIs" in (
        failed.stdout
    )
    stack.configure(**{f"{node_class}/amiSelectorTerms": terms, f"{node_class}/amiFamily": None})
    assert "1 updated" in stack.succeed("up")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    """A second stack, with IRSA and without a feature gate."""
    stack = new_stack(tmp_path_factory.mktemp("other"))
    stack.configure(**{"karpstack:name": "other", "karpstack:karpenter/identity": "irsa"})
    stack.configure(**{SPOT_TO_SPOT: False})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REHEARSAL_CONDITION", "25")  # what never gets ready is waited for once below
        try:
            stack.succeed("up")
            yield stack
        finally:
            stack.command("down", "--force")


def test_two_stacks_side_by_side_one_with_irsa_and_an_upgrade(eks: RehearsedStack, other: RehearsedStack) -> None:
    assert other.outputs()["clusterName"] == "other"
    assert other.by_hand("kubectl", "wait", "--for=condition=Ready", "ec2nodeclass", "--all").returncode == 0
    before = controller(other)
    assert "SpotToSpotConsolidation=false" in before.environ()["FEATURE_GATES"]
    # A feature gate is switched on by upgrading the running release.
    other.configure(**{SPOT_TO_SPOT: True})
    assert "1 updated" in other.succeed("up")
    after = controller(other)
    assert after.pid != before.pid
    assert "SpotToSpotConsolidation=true" in after.environ()["FEATURE_GATES"]
    assert "sts" in after.environ()["AWS_WEB_IDENTITY_TOKEN_FILE"]
    what_is_not_ready_fails_up_in_karpenters_words(other)
    assert eks.outputs()["clusterName"] == "karpstack-eks"
    assert set(other.info.providers.values()).isdisjoint(eks.info.providers.values())


def test_destroy_with_provisioned_nodes_leaves_nothing_in_the_account(
    eks: RehearsedStack, other: RehearsedStack
) -> None:
    other.done("kubectl", "create", "deployment", "inflate", "--image=registry.k8s.io/pause:3.10", "--replicas=3")
    assert other.wait_for(
        "nodeclaims",
        "karpenter.sh",
        lambda claim: any(
            condition["type"] == "Initialized" and condition["status"] == "True"
            for condition in claim.get("status", {}).get("conditions", [])
        ),
    )
    processes = descendants(other.info)
    ec2, iam = other.aws("ec2"), other.aws("iam")

    def instances() -> list[str]:
        found = ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}])
        return [instance["InstanceId"] for group in found["Reservations"] for instance in group["Instances"]]

    assert len(instances()) >= 3  # two system nodes and Karpenter's
    other.done("pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive")
    assert instances() == []
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"] == []
    assert ec2.describe_volumes()["Volumes"] == []
    other.succeed("down")
    assert not [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert eks.by_hand("kubectl", "get", "--raw", "/readyz").stdout == "ok"
