"""What a cluster that is there is asked, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import kubernetes.client
import pytest
from urllib3.exceptions import MaxRetryError

from karpstack.components.settings.workloads import Workloads
from karpstack.components.workloads import aks as aks_workloads
from karpstack.components.workloads import running
from karpstack.components.workloads.eks import read_workloads

OURS = {"karpstack.io/stack": "shop"}
THEIRS = {"karpstack.io/stack": "other"}


def named(name: str, namespace: str = "kube-system", labels: Mapping[str, str] | None = None) -> SimpleNamespace:
    return SimpleNamespace(metadata=SimpleNamespace(name=name, namespace=namespace, labels=labels, annotations=None))


def deployment(
    name: str, image: str, namespace: str = "kube-system", replicas: int = 1, labels: Mapping[str, str] | None = None
) -> kubernetes.client.V1Deployment:
    of_pods = kubernetes.client.V1PodSpec(containers=[kubernetes.client.V1Container(name="c", image=image)])
    template = kubernetes.client.V1PodTemplateSpec(spec=of_pods)
    selector = kubernetes.client.V1LabelSelector()
    return kubernetes.client.V1Deployment(
        metadata=kubernetes.client.V1ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=kubernetes.client.V1DeploymentSpec(replicas=replicas, selector=selector, template=template),
    )


def node(
    ready: str = "True", labels: Mapping[str, str] | None = None, taints: Sequence[str] = (), cordoned: bool = False
) -> SimpleNamespace:
    made = named("node", labels=labels)
    keys = [
        SimpleNamespace(key=one.rstrip("~"), effect="PreferNoSchedule" if "~" in one else "NoSchedule")
        for one in taints
    ]
    made.spec = SimpleNamespace(taints=keys or None, unschedulable=cordoned or None)
    made.status = SimpleNamespace(conditions=[SimpleNamespace(type="Ready", status=ready)])
    return made


class Fake:
    """Answers as the kubernetes client does."""

    def __init__(self) -> None:
        self.allowed = True
        self.denied: tuple[str, str] | None = None
        self.daemons: list[Any] = []
        self.deployments: list[Any] = []
        self.nodes: list[Any] = []
        self.annotations: dict[str, str] | None = None
        self.definitions: dict[str, dict[str, str] | None] = {}
        self.failure: Exception | None = None

    def create_self_subject_access_review(self, review: Any, **options: Any) -> SimpleNamespace:
        if self.failure:
            raise self.failure
        asked = review.spec.resource_attributes
        everything = (asked.verb, asked.group, asked.resource) == ("*", "*", "*")
        assert everything or asked.verb == "create"
        allowed = self.allowed and (asked.group, asked.resource) != self.denied
        return SimpleNamespace(status=SimpleNamespace(allowed=allowed))

    def list_daemon_set_for_all_namespaces(self, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(items=self.daemons)

    def list_deployment_for_all_namespaces(self, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(items=self.deployments)

    def sanitize_for_serialization(self, given: Any) -> Any:
        return kubernetes.client.ApiClient().sanitize_for_serialization(given)

    def list_node(self, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(items=self.nodes)

    def list_custom_resource_definition(self, field_selector: str, **options: Any) -> SimpleNamespace:
        name = field_selector.removeprefix("metadata.name=")
        found = named(name)
        found.metadata.annotations = self.definitions.get(name)
        return SimpleNamespace(items=[found] if name in self.definitions else [])

    def list_namespaced_service_account(self, namespace: str, **options: Any) -> SimpleNamespace:
        assert (namespace, options["field_selector"]) == ("kube-system", "metadata.name=aws-node")
        account = named("aws-node")
        account.metadata.annotations = self.annotations
        return SimpleNamespace(items=[account])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(running, "query", lambda kubeconfig, question: question(made))
    for api in ("ApiextensionsV1Api", "AppsV1Api", "AuthorizationV1Api", "CoreV1Api"):
        monkeypatch.setattr(kubernetes.client, api, lambda client: client)
    return made


def found(fake: Fake) -> Workloads:
    return read_workloads("{}", "shop")


def test_whoever_may_not_do_everything_is_not_let_in(fake: Fake) -> None:
    fake.allowed = False
    assert "does not let them do everything" in found(fake).refusal


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (kubernetes.client.ApiException(status=401, reason="Unauthorized"), "401 Unauthorized"),
        (MaxRetryError(None, "/", "timed out"), "timed out"),  # type: ignore[arg-type]
        (FileNotFoundError("aws"), "aws"),
    ],
)
def test_a_cluster_that_does_not_answer_says_why(fake: Fake, failure: Exception, said: str) -> None:
    fake.failure = failure
    assert said in found(fake).refusal


def test_networks_are_known_by_their_daemon_sets(fake: Fake) -> None:
    fake.daemons = [named(one) for one in ("aws-node", "kube-proxy", "eks-pod-identity-agent", "node-exporter")]
    seen = found(fake)
    assert (seen.networks, seen.kube_proxy, seen.agent, seen.own_network) == (["aws-node"], True, True, False)
    fake.daemons = [named("calico-node", "calico-system"), named("cilium", labels=THEIRS)]
    assert found(fake).networks == ["calico-node", "cilium"]


def test_a_cilium_of_this_stack_is_no_second_network(fake: Fake) -> None:
    fake.daemons = [named("cilium", labels=OURS)]
    seen = found(fake)
    assert (seen.networks, seen.own_network) == ([], True)


def test_the_vpc_cni_may_have_a_role(fake: Fake) -> None:
    fake.daemons = [named("aws-node")]
    assert not found(fake).cni_role
    fake.annotations = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/cni"}
    assert found(fake).cni_role


def test_who_else_scales_is_known_by_image_or_label(fake: Fake) -> None:
    chart = {"app.kubernetes.io/name": "aws-cluster-autoscaler"}
    fake.deployments = [
        deployment("ca", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0"),
        deployment("autoscaler", "example.org:5000/mirror@sha256:abc", "ops", labels=chart),
        deployment("cluster-autoscaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0", "old", replicas=0),
        deployment("web", "web"),
        deployment("own", "example.org:5000/cluster-autoscaler:v1.36.0"),
    ]
    assert found(fake).autoscalers == ["kube-system/ca", "ops/autoscaler", "kube-system/own"]


def test_another_karpenter_is_one_that_this_stack_has_not_installed(fake: Fake) -> None:
    image, name = "public.ecr.aws/karpenter/controller@sha256:abc", {"app.kubernetes.io/name": "karpenter"}
    fake.deployments = [deployment("karpenter", image, labels={**name, **OURS})]
    assert found(fake).controllers == []
    fake.deployments = [
        deployment("karpenter", image, "karpenter", labels=name),
        deployment("karpenter", image, labels={**name, **THEIRS}),
    ]
    assert found(fake).controllers == ["karpenter/karpenter", "kube-system/karpenter"]


def test_definitions_are_helms_for_this_release_or_somebody_elses(fake: Fake) -> None:
    assert found(fake).foreign_definitions == []
    release = {"meta.helm.sh/release-name": "karpenter-crd", "meta.helm.sh/release-namespace": "kube-system"}
    fake.definitions = {
        "nodepools.karpenter.sh": {**release, "controller-gen.kubebuilder.io/version": "v0.20.0"},
        "nodeclaims.karpenter.sh": None,
        "ec2nodeclasses.karpenter.k8s.aws": {**release, "meta.helm.sh/release-namespace": "karpenter"},
    }
    assert found(fake).foreign_definitions == ["nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"]


def test_places_are_where_the_controller_can_run(fake: Fake) -> None:
    fake.nodes = [
        node(),
        node(taints=["CriticalAddonsOnly"]),
        node(taints=["example.org/rather-not~"]),
        node(taints=["example.org/gpu"]),
        node(cordoned=True),
        node(labels={"kubernetes.io/os": "windows"}),
        node(labels={"karpenter.sh/nodepool": "default"}),
        node(ready="Unknown"),
    ]
    seen = found(fake)
    assert (seen.ready, seen.places) == (7, 3)


def test_a_cluster_on_aks_says_who_may_do_what_is_done(fake: Fake) -> None:
    fake.denied = ("karpenter.azure.com", "aksnodeclasses")
    assert (
        "does not let them create aksnodeclasses"
        in aks_workloads.read_workloads("{}", "shop", controller=False).refusal
    )
    # Only a controller of the stack's own needs more.
    fake.denied = ("rbac.authorization.k8s.io", "clusterrolebindings")
    assert aks_workloads.read_workloads("{}", "shop", controller=False).refusal == ""
    assert "clusterrolebindings" in aks_workloads.read_workloads("{}", "shop", controller=True).refusal


def test_a_cluster_on_aks_says_whose_crds_it_has_and_where_a_controller_can_run(fake: Fake) -> None:
    release = {"meta.helm.sh/release-name": "karpenter-crd", "meta.helm.sh/release-namespace": "kube-system"}
    fake.definitions = {"nodepools.karpenter.sh": release, "aksnodeclasses.karpenter.azure.com": {}}
    fake.nodes = [node()]
    seen = aks_workloads.read_workloads("{}", "shop", controller=True)
    assert seen.own_definitions == ["nodepools.karpenter.sh"]
    assert seen.foreign_definitions == ["aksnodeclasses.karpenter.azure.com"]
    assert seen.places == 1
