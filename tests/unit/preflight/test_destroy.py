"""The look before `pulumi destroy`: each finding provoked once in a cluster of a few objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.destroy import api_access, controller, nodes, protection, workloads
from karpstack.preflight.destroy.checks import checks
from karpstack.preflight.destroy.cluster import Gone
from karpstack.preflight.destroy.subject import Subject
from karpstack.preflight.finding import Finding, blockers, run
from karpstack.preflight.stack import State
from tests.unit.preflight.fake_cluster import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    DEPLOYMENTS,
    EKS,
    NAP,
    PODS,
    POOLS,
    SERVICES,
    VOLUMES,
    FakeCluster,
    of_the_stack,
)


@pytest.fixture
def cluster() -> FakeCluster:
    return of_the_stack()


def look(check: Callable[[Subject], Iterable[Finding]], cluster: FakeCluster, **outputs: Any) -> list[Finding]:
    return list(check(Subject(cluster, {**EKS, **outputs})))


def test_nothing_is_in_the_way_of_the_stack_alone(cluster: FakeCluster) -> None:
    checked = run(checks(Subject(cluster, EKS)), Subject(cluster, EKS))
    said = [(each.name, finding.severity) for each in checked for finding in each.findings]
    assert said == [("duration", "note")]


def test_only_what_can_be_asked_counts(cluster: FakeCluster) -> None:
    aws, azure, nobody = (checks(Subject(cluster, outputs, *asked)) for outputs, *asked in ASKED)
    of_azure = {"machines", "locks", "foreign interfaces in the network", "foreign resources in the group"}
    of_aws = {"load balancers in the account", "security groups", "instances"}
    assert set(aws) & (of_aws | of_azure) == of_aws
    assert set(azure) & (of_aws | of_azure) == of_azure
    assert not set(nobody) & (of_aws | of_azure)
    # Where AKS runs Karpenter, there is no controller to look at.
    assert ("controller" in aws, "controller" in azure) == (True, False)


ASKED: Any = ((EKS, object(), None), (NAP, None, object()), (EKS,))


def test_a_cluster_that_is_gone_has_nothing() -> None:
    subject = Subject(Gone("karpstack.example"), EKS)
    told = {each.name: each.findings for each in run(checks(subject), subject) if each.findings}
    assert list(told) == ["cluster"]
    assert told["cluster"][0].what == "the stack's cluster is already deleted"


def test_a_cluster_that_was_there_before_goes_on(cluster: FakeCluster) -> None:
    """What it would leave behind stays its own; Karpenter's objects and nodes go."""
    subject = Subject(cluster, EKS, aws=cast(Aws, object()), configured={"karpstack:cluster": {"existing": "Shop_1"}})
    assert subject.outlives_the_stack
    asked = set(checks(subject))
    assert not asked & {"load balancers", "load balancers in the account", "security groups", "volumes", "protection"}
    assert asked >= {"cluster", "controller", "NodePools", "NodeClaims", "instances", "disruption budgets"}
    there = {"karpstack:cluster": {"existing": "Shop_1", "resourceGroup": "shop"}}
    on_aks = Subject(cluster, {"cloud": "azure"}, azure=cast(Azure, object()), configured=there)
    assert "machines" not in checks(on_aks)
    assert "machines" in checks(replace(on_aks, configured={}))


URN = "urn:pulumi:eks::karpstack::karpstack:eks:Cluster$aws:eks/cluster:Cluster::eks-cluster"


@pytest.mark.parametrize("given", [{"deletionProtection": True}, '{"deletionProtection": true}', {}])
def test_what_pulumi_has_as_protected(cluster: FakeCluster, given: Any) -> None:
    state = State(protected={URN: "eks-cluster"})
    (finding,) = protection.protection(Subject(cluster, EKS, state=state, configured={"karpstack:cluster": given}))
    assert (finding.severity, finding.what) == ("error", "eks-cluster is protected in Pulumi's state")
    assert "set karpstack:cluster.deletionProtection to false and run pulumi up, before" in finding.fix
    assert f"pulumi state unprotect '{URN}'" in finding.fix


@pytest.mark.parametrize(
    ("state", "severity"),
    [(State(), "note"), (None, "warning")],  # whoever gives the outputs has not shown the state
)
def test_protection_that_the_stacks_file_asks_for(cluster: FakeCluster, state: State | None, severity: str) -> None:
    configured = {"karpstack:cluster": {"deletionProtection": True}}
    (finding,) = protection.protection(Subject(cluster, EKS, state=state, configured=configured))
    assert finding.severity == severity
    assert not list(protection.protection(Subject(cluster, EKS, state=state, configured={})))


class Protected:
    """A client of EKS whose cluster is protected."""

    def describe_cluster(self, **given: Any) -> dict[str, Any]:
        return {"cluster": {"name": given["name"], "deletionProtection": True}}


def test_a_cluster_that_eks_protects_whatever_pulumi_knows(cluster: FakeCluster) -> None:
    (finding,) = protection.protection(Subject(cluster, EKS, Aws("us-east-1", lambda service: Protected())))
    assert finding.severity == "error"
    assert finding.told_by == "eks:DescribeCluster"


@pytest.mark.parametrize("status", [{}, {"readyReplicas": 0}, None])
def test_a_controller_that_is_missing_or_not_ready(cluster: FakeCluster, status: dict[str, int] | None) -> None:
    if status is None:
        cluster.objects[DEPLOYMENTS].clear()
    else:
        cluster.objects[DEPLOYMENTS][0]["status"] = status
    (finding,) = look(controller.controller, cluster)
    assert finding.severity == "error"
    assert "1 NodeClaims and 1 node classes have finalizers that only Karpenter removes" in finding.what
    assert ("its Deployment does not exist" in finding.what) == (status is None)
    assert ("kubectl describe deployment --namespace kube-system karpenter" in finding.fix) == (status is not None)
    for path in (CLAIMS, CLASSES):
        cluster.objects[path].clear()
    assert not look(controller.controller, cluster)  # nothing waits for it


def test_a_cluster_without_an_answer_is_not_gone(cluster: FakeCluster) -> None:
    (finding,) = api_access.check_access(Subject(FakeCluster("/version"), EKS))
    assert finding.severity == "error"


@pytest.mark.parametrize(("stack", "fix"), [(EKS, "the access entry"), (NAP, "a group of cluster.admins")])
def test_a_user_without_rights_in_the_cluster(cluster: FakeCluster, stack: dict[str, Any], fix: str) -> None:
    assert not look(api_access.rights, cluster, **stack)
    cluster.may_delete_pools = False
    (finding,) = look(api_access.rights, cluster, **stack)
    assert (finding.severity, "403 Forbidden" in finding.consequence, fix in finding.fix) == ("error", True, True)
    assert not look(api_access.rights, cluster, **{**stack, "nodePools": []})


def test_a_service_with_a_load_balancer(cluster: FakeCluster) -> None:
    cluster.put(SERVICES, "inside", namespace="shop", spec={"type": "ClusterIP"})
    cluster.put(SERVICES, "web", namespace="shop", spec={"type": "LoadBalancer"})
    (finding,) = look(workloads.load_balancers, cluster)
    assert (finding.severity, "DependencyViolation" in finding.consequence) == ("error", True)
    assert finding.fix.startswith("kubectl delete service --namespace shop web")
    (finding,) = look(workloads.load_balancers, cluster, **NAP)
    assert finding.severity == "warning"


def test_a_volume_that_a_driver_made(cluster: FakeCluster) -> None:
    cluster.put(VOLUMES, "by-hand", spec={})
    made = {"annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}
    cluster.put(VOLUMES, "pv-1", metadata=made, spec={"claimRef": {"namespace": "shop", "name": "data"}})
    (finding,) = look(workloads.volumes, cluster)
    assert finding.severity == "warning"
    assert "pv-1 was created by ebs.csi.aws.com for shop/data" in finding.what


@pytest.mark.parametrize(
    ("policy", "phase", "fix"),
    [
        ("Delete", "Bound", "keep a snapshot if the data is worth it, then kubectl delete pvc --namespace shop data"),
        ("Delete", "Released", "its claim is gone and the driver is deleting it"),
        ("Retain", "Released", "keep a snapshot if the data is worth it, then kubectl patch persistentvolume pv-1"),
        ("Retain", "Bound", "keep a snapshot if the data is worth it, then kubectl patch persistentvolume pv-1"),
    ],
)
def test_what_removes_a_volume(cluster: FakeCluster, policy: str, phase: str, fix: str) -> None:
    made = {"annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}
    claim = {"namespace": "shop", "name": "data"}
    spec = {"claimRef": claim, "persistentVolumeReclaimPolicy": policy}
    cluster.put(VOLUMES, "pv-1", metadata=made, spec=spec, status={"phase": phase})
    (finding,) = look(workloads.volumes, cluster)
    assert finding.fix.startswith(fix)
    assert ("delete pvc" in finding.fix) == (phase == "Bound")


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_names_in_commands_about_volumes_are_quoted(cluster: FakeCluster, policy: str) -> None:
    made = {"annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}
    spec = {"claimRef": {"namespace": "d", "name": "c$(id)"}, "persistentVolumeReclaimPolicy": policy}
    cluster.put(VOLUMES, "pv;id", metadata=made, spec=spec, status={"phase": "Bound"})
    (finding,) = look(workloads.volumes, cluster)
    assert "kubectl delete pvc --namespace d 'c$(id)'" in finding.fix
    assert ("persistentvolume 'pv;id'" in finding.fix) == (policy == "Retain")


@pytest.mark.parametrize(
    ("made_by", "severity"), [(None, "error"), ("service.k8s.aws/nlb", "error"), ("metallb.io/metallb", "warning")]
)
def test_a_load_balancer_of_a_class(cluster: FakeCluster, made_by: str | None, severity: str) -> None:
    cluster.put(SERVICES, "web", namespace="shop", spec={"type": "LoadBalancer", "loadBalancerClass": made_by})
    (finding,) = look(workloads.load_balancers, cluster)
    assert finding.severity == severity


@pytest.mark.parametrize(
    ("check", "path", "what"),
    [
        (nodes.node_pools, POOLS, "the NodePool by-hand does not belong to the stack"),
        (nodes.node_claims, CLAIMS, "the NodeClaim by-hand belongs to no NodePool"),
        (nodes.node_classes, CLASSES, "the EC2NodeClass by-hand does not belong to the stack"),
    ],
)
def test_objects_of_karpenters_that_were_made_by_hand(cluster: FakeCluster, check: Any, path: str, what: str) -> None:
    cluster.put(path, "by-hand", spec={})
    (finding,) = look(check, cluster)
    assert (finding.severity, finding.what) == ("error", what)
    # Where AKS runs Karpenter, they go with the cluster.
    assert not look(check, cluster, **NAP)


class Reservations:
    """A client of EC2 that knows two instances of Karpenter's."""

    def __init__(self) -> None:
        self.filters: list[dict[str, Any]] = []

    def can_paginate(self, name: str) -> bool:
        return False

    def describe_instances(self, **given: Any) -> dict[str, Any]:
        self.filters = given["Filters"]
        instances = [{"InstanceId": name, "InstanceType": "m5.large"} for name in ("i-1", "i-2")]
        return {"Reservations": [{"Instances": instances}]}


def test_an_instance_that_no_node_claim_names(cluster: FakeCluster) -> None:
    ec2 = Reservations()
    (finding,) = nodes.instances(Subject(cluster, EKS, Aws("us-east-1", lambda service: ec2)))
    assert finding.severity == "error"
    assert finding.what.startswith("the instance i-2 (m5.large)")
    assert {"Name": "tag:kubernetes.io/cluster/karpstack-eks", "Values": ["owned"]} in ec2.filters


def hold(cluster: FakeCluster, selector: dict[str, Any] | None, allowed: int = 0) -> None:
    spec = {"selector": selector} if selector is not None else {}
    cluster.put(BUDGETS, "web", namespace="shop", spec=spec, status={"disruptionsAllowed": allowed})


@pytest.mark.parametrize(
    ("selector", "held"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "api"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({}, True),
        (None, False),
    ],
)
def test_a_budget_holds_the_pods_that_it_selects(
    cluster: FakeCluster, selector: dict[str, Any] | None, held: bool
) -> None:
    hold(cluster, selector)
    assert bool(look(workloads.budgets, cluster)) == held


def test_a_budget_holds_no_pods_of_other_namespaces(cluster: FakeCluster) -> None:
    cluster.put(BUDGETS, "web", namespace="bank", spec={"selector": {}}, status={"disruptionsAllowed": 0})
    assert not look(workloads.budgets, cluster)


def test_a_budget_that_lets_pods_go_holds_nothing(cluster: FakeCluster) -> None:
    hold(cluster, {}, allowed=1)
    assert not look(workloads.budgets, cluster)


def test_pods_under_two_budgets_are_held_whatever_these_let_go(cluster: FakeCluster) -> None:
    hold(cluster, {"matchLabels": {"app": "web"}}, allowed=1)
    cluster.put(BUDGETS, "all", namespace="shop", spec={"selector": {}}, status={"disruptionsAllowed": 1})
    (finding,) = look(workloads.budgets, cluster)
    assert finding.what.startswith("shop/all and shop/web select the same 1 pods on nodes of default")
    assert finding.severity == "warning"


def test_what_holds_a_node_does_so_for_the_grace_or_for_ever(cluster: FakeCluster) -> None:
    hold(cluster, {})
    (finding,) = look(workloads.budgets, cluster)
    assert (finding.severity, "for 1h at most" in finding.consequence) == ("warning", True)
    # The NodePool has been given one since, but its NodeClaim is older.
    del cluster.objects[CLAIMS][0]["spec"]["terminationGracePeriod"]
    (finding,) = look(workloads.budgets, cluster)
    assert (finding.severity, "for ever" in finding.consequence) == ("error", True)


def test_pods_that_must_not_be_disturbed(cluster: FakeCluster) -> None:
    shy = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    for number in range(7):
        cluster.put(PODS, f"job-{number}", namespace="shop", metadata=shy, spec={"nodeName": "node-1"})
    cluster.put(PODS, "elsewhere", namespace="shop", metadata=shy, spec={"nodeName": "system-1"})
    cluster.put(
        PODS, "done", namespace="shop", metadata=shy, spec={"nodeName": "node-1"}, status={"phase": "Succeeded"}
    )
    daemon = {**shy, "ownerReferences": [{"kind": "DaemonSet"}]}
    cluster.put(PODS, "agent", namespace="shop", metadata=daemon, spec={"nodeName": "node-1"})
    (finding,) = look(workloads.check_do_not_disrupt, cluster)
    assert finding.what.startswith(
        "7 pods on nodes of default have the annotation karpenter.sh/do-not-disrupt: shop/job-0,"
    )
    assert finding.what.endswith("shop/job-4 and others")


def test_pods_that_must_not_be_disturbed_for_a_time(cluster: FakeCluster) -> None:
    now = datetime.now(UTC)
    for name, given, hours in (("job", "6h", 1), ("over", "6h", 7), ("odd", "soon", 1)):
        status = {"startTime": (now - timedelta(hours=hours)).isoformat()}
        shy = {"annotations": {"karpenter.sh/do-not-disrupt": given}}
        cluster.put(PODS, name, namespace="shop", metadata=shy, spec={"nodeName": "node-1"}, status=status)
    del cluster.objects[CLAIMS][0]["spec"]["terminationGracePeriod"]
    (finding,) = look(workloads.check_do_not_disrupt, cluster)
    assert (finding.severity, finding.what.endswith("do-not-disrupt: shop/job")) == ("warning", True)
    assert "until the time in the annotation is over" in finding.consequence


def test_it_says_how_long_it_takes(cluster: FakeCluster) -> None:
    (finding,) = look(nodes.check_removal_time, cluster)
    assert (finding.severity, finding.what) == (
        "note",
        "pods can delay the deletion of the 1 nodes of default for 1h at most",
    )
    cluster.objects[CLAIMS][0]["spec"]["terminationGracePeriod"] = "90m"
    cluster.put(
        CLAIMS,
        "default-2",
        metadata={"labels": {"karpenter.sh/nodepool": "default"}},
        spec={"terminationGracePeriod": "2h"},
    )
    assert "for 2h at most" in look(nodes.check_removal_time, cluster)[0].what
    del cluster.objects[CLAIMS][0]["spec"]["terminationGracePeriod"]
    (finding,) = look(nodes.check_removal_time, cluster)
    assert (finding.severity, finding.what.endswith("for ever")) == ("warning", True)


def test_a_collection_that_may_not_be_read_hides_no_other(cluster: FakeCluster) -> None:
    refusing = FakeCluster(refused=SERVICES)
    refusing.objects = cluster.objects
    cluster.put(POOLS, "by-hand", spec={"template": {"spec": {}}})
    checked = {each.name: each.findings for each in run(checks(Subject(refusing, EKS)), Subject(refusing, EKS))}
    assert checked["load balancers"][0].fix == f"grant GET {SERVICES} to the deployer, and run preflight again"
    assert len(blockers(run(checks(Subject(refusing, EKS)), Subject(refusing, EKS)))) == 1
