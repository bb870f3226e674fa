"""Changes that would destroy what a stack has are refused by its last state; test_kept.py asks the engine."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from karpstack.components import eks, last_state, settings
from karpstack.components.last_state import LastState
from karpstack.components.problems import SettingsError
from karpstack.components.replacement import Keeper, ReplacementError, changed, keep_cloud
from karpstack.components.settings.workloads import Workloads
from tests.unit.example_stack import example
from tests.unit.found import EKS_WORKLOADS as RUNS
from tests.unit.found import let_run
from tests.unit.mock_engine import ACCOUNT, VPCS, ZONES, Deployment, deploy

SUBNET = "aws:ec2/subnet:Subnet"
#: An existing cluster that has no network yet.
BARE = Workloads(agent=True)
EXISTING: dict[str, Any] = {
    "cluster": {"existing": "shop"},
    "network": {"subnetIds": ["subnet-0000000a", "subnet-0000000b"]},
    "systemNodes": None,
    "addons": None,
}
IN_A_VPC: dict[str, Any] = {
    "network__vpcId": VPCS[0],
    "network__zones": None,
    "network__natGateways": None,
    "network__endpoints": None,
    "network__flowLogRetentionDays": None,
    "network__subnetIds": ["subnet-0000000a", "subnet-0000000b"],
    "cluster__privateAccessCidrs": ["10.0.0.0/16"],
}


ISOLATED: dict[str, Any] = {
    "network__endpoints": True,
    "images__mirrors": {"public.ecr.aws": "registry.example.com/ecr", "quay.io": "registry.example.com/quay"},
}
CILIUM: dict[str, Any] = {
    "cilium": {"install": True},
    "network": {"subnetIds": ["subnet-0000000a", "subnet-0000000b"], "podCidr": "10.244.0.0/16"},
}


def environment(last: dict[str, Any] | None = None, *, exports: bool = True, **changes: Any) -> Deployment:
    loaded = settings.load(example(**changes))
    assert isinstance(loaded, settings.EksSettings | settings.ExistingEksSettings)
    with pytest.MonkeyPatch.context() as patch:
        let_run(patch, BARE if changes.get("cilium") else RUNS)
        return deploy(lambda: eks.Environment("eks", loaded), clusters=["shop", "shop-2"], last=last, exports=exports)


KINDS: dict[str, dict[str, Any]] = {
    "own": {},
    "isolated": {"network__natGateways": "none", **ISOLATED},
    "logged": {"network__flowLogRetentionDays": 30},
    "in-a-vpc": IN_A_VPC,
    "existing": EXISTING,
    "with-cilium": EXISTING | CILIUM,
}


@cache
def last(kind: str = "own") -> dict[str, Any]:
    """The state after an `up`, as the engine has it."""
    made = environment(**KINDS[kind])
    known: dict[str, Any] = {
        urn: {"type": each.type, "outputs": dict(each.inputs)} for urn, each in made.resources.items()
    }
    for urn, each in made.resources.items():
        outputs = known[urn]["outputs"]
        outputs |= made.outputs.get(urn, {}) | {"arn": f"arn:aws:any:us-east-1:{ACCOUNT}:{each.name}"}
        if each.name == "eks-controller-association":
            outputs["associationId"] = "a-1"
        if each.type == "aws:eks/cluster:Cluster":
            outputs["vpcConfig"] = {**outputs["vpcConfig"], "vpcId": VPCS[0]}
            outputs["deletionProtection"] = True
    return known


@pytest.mark.parametrize(
    ("kind", "changes", "texts"),
    [
        ("own", {"name": "other"}, ["karpstack:name =", '"other", was "karpstack-eks"', "everything that runs in it"]),
        ("own", {"name": "other"}, ["EKS refuses that halfway, because of deletionProtection"]),
        ("own", {"aws:region": "us-west-2"}, ["aws:region =", '"us-west-2", was "us-east-1"']),
        ("own", {"network__vpcCidr": "10.8.0.0/16"}, ["karpstack:network.vpcCidr", "cannot move to another VPC"]),
        ("own", {"network__serviceCidr": "172.21.0.0/16"}, ["karpstack:network.serviceCidr", "172.20.0.0/16"]),
        ("own", {"network__zones": 2}, ["karpstack:network.zones = 2, was", *ZONES[:3], "set it to 3 or more"]),
        ("own", {"network__zones": [*ZONES[:2], ZONES[3]]}, ["karpstack:network.zones"]),
        ("own", {"network__zones": [ZONES[1], ZONES[0], ZONES[2]]}, ["karpstack:network.zones"]),
        ("own", IN_A_VPC, ["karpstack:network.vpcId", f'"{VPCS[0]}", was (not set)']),
        ("own", EXISTING, ["karpstack:cluster.existing", '"shop", was (not set)', "karpstack-eks would be deleted"]),
        ("in-a-vpc", {}, ["karpstack:network.vpcId", f'(not set), was "{VPCS[0]}"']),
        ("in-a-vpc", IN_A_VPC | {"network__vpcId": VPCS[1]}, ["karpstack:network.vpcId", VPCS[1]]),
        (
            "in-a-vpc",
            IN_A_VPC | {"network__subnetIds": ["subnet-0000000a", "subnet-0000000c"]},
            ["karpstack:network.subnetIds", "controlPlaneSubnetIds to [subnet-0000000a, subnet-0000000b]"],
        ),
        ("existing", {}, ["karpstack:cluster.existing", '(not set), was "shop"', "NodePools, with their nodes"]),
        ("existing", EXISTING | {"cluster": {"existing": "shop-2"}}, ['"shop-2", was "shop"']),
        ("existing", EXISTING | {"name": "other"}, ["karpstack:name", "roles get other names"]),
        ("own", {"network__natGateways": "none", **ISOLATED}, ["network.natGateways", '"none", was "single"']),
        ("isolated", {}, ["network.natGateways", '"single", was "none"', "role and instanceProfile"]),
        ("logged", {}, ["network.flowLogRetentionDays = 0, was 30", "all flow logs in it"]),
        (
            "own",
            {"karpenter__identity": "irsa"},
            ["karpenter.identity", '"irsa", was "pod-identity"', "--association-id a-1"],
        ),
        ("with-cilium", EXISTING, ["cilium.install = false, was true", "would uninstall Cilium from shop"]),
    ],
)
def test_what_would_be_destroyed_is_refused(kind: str, changes: dict[str, Any], texts: list[str]) -> None:
    with pytest.raises(ReplacementError) as caught:
        environment(last(kind), **changes)
    for text in (*texts, "fix: ", "allowReplacement", "nothing was changed"):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("own", {}),
        ("own", {"network__zones": ZONES[:3]}),
        ("own", {"network__zones": 4}),
        ("own", {"network__zones": ZONES}),
        ("in-a-vpc", IN_A_VPC),
        # Nodes in further zones, the control plane where it is.
        (
            "in-a-vpc",
            IN_A_VPC
            | {
                "network__subnetIds": ["subnet-0000000a", "subnet-0000000c"],
                "network__controlPlaneSubnetIds": ["subnet-0000000a", "subnet-0000000b"],
            },
        ),
        # Other subnets in the same zones: the mocks' zones repeat.
        ("in-a-vpc", IN_A_VPC | {"network__subnetIds": ["subnet-0000000e", "subnet-0000000f"]}),
        ("existing", EXISTING),
        ("with-cilium", EXISTING | CILIUM),
        ("isolated", KINDS["isolated"]),
        ("own", {"network__natGateways": "per-zone", "network__flowLogRetentionDays": 30}),
        ("logged", {"network__flowLogRetentionDays": 7}),
    ],
)
def test_what_destroys_nothing_is_taken(kind: str, changes: dict[str, Any]) -> None:
    assert environment(last(kind), **changes).resources


@pytest.mark.parametrize(("before", "is_refused"), [("1.34", True), ("1.35", False), ("1.36", False), ("1.37", True)])
def test_a_version_that_eks_does_not_go_to_is_refused(before: str, is_refused: bool) -> None:
    """The example has 1.36."""
    state = {urn: {**each, "outputs": dict(each["outputs"])} for urn, each in last().items()}
    for each in state.values():
        if each["type"] == "aws:eks/cluster:Cluster":
            each["outputs"]["version"] = before
    if not is_refused:
        assert environment(state).resources
        return
    with pytest.raises(
        SettingsError, match=rf'cluster.version = "1.36", was "{before}"\n.*one minor version at a time'
    ):
        environment(state)


def test_a_subnet_gets_a_table_that_leads_out_already() -> None:
    made = environment(last(), network__natGateways="per-zone")
    for index in range(3):
        association = made.one(f"eks-network-private-{index}", "aws:ec2/routeTableAssociation:RouteTableAssociation")
        assert made.needs(association, made.one(f"eks-network-{index}-private-default", "aws:ec2/route:Route"))


@pytest.mark.parametrize(
    ("other", "cloud"), [("karpstack:aks:Environment", "azure"), ("karpstack:eks:Environment", "")]
)
def test_a_file_of_another_cloud_is_refused(other: str, cloud: str) -> None:
    state = {"urn:pulumi:test::karpstack::any::of": {"type": other, "outputs": {"region": "r"}}}
    for allowed in (False, True):
        refused = cloud and not allowed
        with pytest.raises(ReplacementError, match=f'cloud = "aws", was "{cloud}"') if refused else nullcontext():
            deploy(lambda allowed=allowed: keep_cloud("aws", allowed=allowed), last=state)  # type: ignore[misc]


def settling(made: Deployment) -> dict[str, list[str]]:
    """Hooks after the creation of pod identity associations, by the associations' names."""
    found = made.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    return {each.name: list(each.request.hooks.after_create) for each in found}


def test_pods_that_follow_at_once_wait_for_their_association() -> None:
    """In a new cluster Karpenter comes minutes later, when nodes are up; add-ons follow their roles at once."""
    controller, addon = "eks-controller-association", "eks-extra-addons-ebs-csi-association"
    assert settling(environment()) == {controller: []}
    assert settling(environment(last())) == {controller: ["eks-controller-settled"]}
    assert settling(environment(**EXISTING)) == {controller: ["eks-controller-settled"]}
    added = settling(environment(addons__ebsCsi=True))
    assert added == {controller: [], addon: ["eks-extra-addons-ebs-csi-settled"]}


def test_another_account_is_refused() -> None:
    elsewhere = {
        urn: {**each, "outputs": {**each["outputs"], "arn": "arn:aws:any:us-east-1:210987654321:x"}}
        for urn, each in last().items()
    }
    with pytest.raises(ReplacementError, match=r"aws:profile = .*123456789012.*, was .*210987654321"):
        environment(elsewhere)


def test_subnets_stay_in_their_zones_when_aws_offers_others() -> None:
    before = {urn: {**each, "outputs": dict(each["outputs"])} for urn, each in last().items()}
    for each in before.values():
        if each["outputs"].get("availabilityZone") == ZONES[0]:
            each["outputs"]["availabilityZone"] = "us-east-1f"
    made = environment(before, network__zones=4)
    zones = [made.one(f"eks-network-private-{index}", SUBNET).inputs["availabilityZone"] for index in range(4)]
    assert zones == ["us-east-1f", *ZONES[1:3], ZONES[0]]


def test_a_stack_without_outputs_is_asked_for_no_resources() -> None:
    """The engine crashes at that question before a stack's first state."""
    assert not deploy(lambda: read.append(last_state.read()), last={}).resources
    assert read.pop() == LastState({})


read: list[LastState] = []


def test_a_program_that_exports_nothing_is_guarded_too() -> None:
    with pytest.raises(ReplacementError, match=r"(?s)karpstack:name = .*everything that runs in it"):
        environment(last(), exports=False, name="other")


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        pytest.param(["EOF", {"region": "r"}, {}], True, id="that is being written is read again"),
        pytest.param([{}, {"region": "r"}, {}], True, id="that was moved away for a moment is there a moment later"),
        pytest.param([{}, {}], False, id="that is not there is asked for twice"),
    ],
)
def test_a_state(answers: list[Any], found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def invoke(token: str, arguments: object) -> Any:
        asked.append(token)
        if (answer := answers.pop(0)) == "EOF":
            raise Exception(f"{token} returned an error: failed to load checkpoint: EOF")
        return SimpleNamespace(value={"outputs": answer})

    monkeypatch.setattr("pulumi.runtime.invoke", invoke)
    assert last_state.read() == LastState({})
    assert not answers
    assert ("pulumi:pulumi:readStackResourceOutputs" in asked) == found


def test_another_error_of_the_engine_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def invoke(token: str, arguments: object) -> Any:
        raise Exception("access denied")

    monkeypatch.setattr("pulumi.runtime.invoke", invoke)
    with pytest.raises(Exception, match="access denied"):
        last_state.read()


def test_with_consent_the_loss_and_the_consent_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: said.append(text))
    assert environment(last(), name="other", allowReplacement=["cluster"]).resources
    assert any("pulumi config rm karpstack:allowReplacement" in text for text in said)
    assert any("everything that runs in it" in text for text in said)
    said.clear()
    environment(None, allowReplacement=["cluster"])
    assert not any("allowReplacement" in text for text in said)


KEPT = "urn:pulumi:test::karpstack::aws:ec2/vpc:Vpc::vpc"


def refusal(keeper: Keeper) -> Any:
    (hook,) = keeper.hooks("vpc", lost="the network").before_create or []
    assert isinstance(hook, pulumi.ResourceHook)
    assert hook.opts is not None
    assert hook.opts.on_dry_run
    return hook.callback


def test_a_resource_that_the_stack_has_is_not_made_again() -> None:
    resource = last_state.Resource(KEPT, "aws:ec2/vpc:Vpc", "vpc", {"cidrBlock": "10.0.0.0/16"})
    keeper = Keeper(LastState({KEPT: resource}), allowed=False)
    new = pulumi.ResourceHookArgs(KEPT, "", "vpc", "aws:ec2/vpc:Vpc", new_inputs={"cidrBlock": "10.8.0.0/16"})
    with pytest.raises(pulumi.RunError, match=r"the network would be lost. What changes: cidrBlock\n"):
        refusal(keeper)(new)
    refusal(keeper)(pulumi.ResourceHookArgs(f"{KEPT}2", "", "vpc2", "aws:ec2/vpc:Vpc", new_inputs={}))
    assert not Keeper(keeper.last, allowed=True).hooks("vpc", lost="the network").before_create


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({"a": 1, "b": {"c": 1, "computed": 2}}, {"a": 1.0, "b": {"c": 1}}, "not known"),
        ({"a": 1, "b": {"c": 1}}, {"a": 2, "b": {"c": 2}, "d": None}, "a, b"),
    ],
)
def test_changed_inputs_are_named(old: dict[str, Any], new: dict[str, Any], names: str) -> None:
    assert changed(old, new) == names
