"""Which instance types requirements admit."""

from __future__ import annotations

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.requirements import (
    Requirement,
    RequirementError,
    UnknownLabelError,
    admitted,
    allows,
    contradiction,
    requirement,
    requirements,
    unmet,
    value_for,
    values_of,
)

AWS = Facts.load("aws").region("us-east-1")
CPU = "karpenter.k8s.aws/instance-cpu"
GPU = "karpenter.k8s.aws/instance-gpu-name"
TYPE = "node.kubernetes.io/instance-type"


def names(*wanted: Requirement) -> set[str]:
    return {instance_type.name for instance_type in admitted(wanted, AWS)}


def need(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, values)


M5 = need("karpenter.k8s.aws/instance-family", "In", "m5")


@pytest.mark.parametrize(
    ("requirement", "vcpus"),
    [
        (need(CPU, "In", "2", "8"), {2, 8}),
        (need(CPU, "NotIn", "2", "4", "8", "16", "32", "48", "64"), {96}),
        (need(CPU, "Gt", "64"), {96}),
        (need(CPU, "Gte", "64"), {64, 96}),
        (need(CPU, "Lt", "4"), {2}),
        (need(CPU, "Lte", "4"), {2, 4}),
        (need(CPU, "Exists"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(CPU, "DoesNotExist"), set()),
        (need(GPU, "Exists"), set()),
        (need(GPU, "DoesNotExist"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(GPU, "NotIn", "a100"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(GPU, "Gt", "1"), set()),
    ],
    ids=str,
)
def test_operators(requirement: Requirement, vcpus: set[int]) -> None:
    assert {found.vcpus for found in admitted([M5, requirement], AWS)} == vcpus


def test_all_requirements_hold_together() -> None:
    assert names(M5, need(CPU, "In", "2")) == {"m5.large"}


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ([need("a", "In", "x", "y")], "x"),
        ([need("a", "In", "x", "y"), need("a", "NotIn", "x")], "y"),
        ([need("a", "NotIn", "0", "1", "x")], "2"),
        ([need("a", "Exists")], "0"),
        ([need("a", "Gt", "4"), need("a", "Lt", "7"), need("a", "NotIn", "5")], "6"),
        ([need("a", "Gte", "4"), need("a", "Lte", "4")], "4"),
        ([need("a", "Gte", "4"), need("a", "Lte", "4"), need("a", "NotIn", "4")], None),
        ([need("a", "DoesNotExist")], None),
        ([need("a", "In", "x"), need("a", "NotIn", "x")], None),
        ([need("b", "Exists")], None),
    ],
)
def test_a_value_that_requirements_leave(wanted: list[Requirement], value: str | None) -> None:
    assert value_for(wanted, "a") == value


@pytest.mark.parametrize(
    "wanted",
    [
        [need("a", "In", "x"), need("a", "In", "y")],
        [need("a", "In", "x"), need("a", "NotIn", "x")],
        [need("a", "Exists"), need("a", "DoesNotExist")],
        [need("a", "In", "x"), need("a", "DoesNotExist")],
        [need("a", "Gt", "4"), need("a", "Lt", "5")],
        [need("a", "Gte", "5"), need("a", "Lte", "5"), need("a", "NotIn", "5")],
        [need("a", "In", "3"), need("a", "Gt", "3")],
    ],
)
def test_contradictions(wanted: list[Requirement]) -> None:
    assert contradiction(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        [need("a", "In", "x", "y"), need("a", "NotIn", "x")],
        [need("a", "NotIn", "x"), need("a", "DoesNotExist")],
        [need("a", "Gt", "4"), need("a", "Lt", "6")],
        [need("a", "Gt", "4"), need("a", "NotIn", "5", "6")],
        [need("a", "In", "x"), need("b", "In", "y")],
        [need("a", "Exists"), need("a", "NotIn", "x")],
    ],
)
def test_no_contradictions(wanted: list[Requirement]) -> None:
    assert contradiction(wanted) == []


def test_values_are_those_that_are_left() -> None:
    types = admitted([M5], AWS)
    assert values_of(CPU, [M5, need(CPU, "Lt", "8")], types, AWS.name) == {"2", "4"}


def test_the_labels_of_the_template_are_requirements() -> None:
    spec = {
        "template": {
            "metadata": {"labels": {"kubernetes.io/arch": "arm64"}},
            "spec": {"requirements": [{"key": "a", "operator": "Exists", "minValues": 2}]},
        }
    }
    assert requirements(spec) == [
        Requirement("kubernetes.io/arch", "In", ("arm64",), given=True),
        Requirement("a", "Exists", min_values=2),
    ]


@pytest.mark.parametrize("spec", [{}, {"template": None}, {"template": {"metadata": None, "spec": None}}])
def test_without_requirements_everything_is_admitted(spec: dict[str, object]) -> None:
    assert requirements(spec) == []
    assert admitted([], AWS) == AWS.types


def test_old_names_are_the_new_ones() -> None:
    wanted = requirement("beta.kubernetes.io/arch", "In", ["arm64"])
    assert wanted.key == "kubernetes.io/arch"
    assert {found.labels["kubernetes.io/arch"] for found in admitted([wanted], AWS)} == {"arm64"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"key": "a", "operator": "Near", "values": ["8"]}, "'a Near [8]'"),
        ({"key": "a"}, "'a '"),
        ({"operator": "Exists"}, "' Exists'"),
        ({"key": "a", "operator": "Gt", "values": ["many"]}, "'a Gt [many]'"),
        ({"key": "a", "operator": "Gt", "values": []}, "'a Gt'"),
        ({"key": "a", "operator": "Lt", "values": ["1", "2"]}, "'a Lt [1, 2]'"),
        ({"key": "a", "operator": "Lt", "values": ["-1"]}, "'a Lt [-1]'"),
    ],
)
def test_what_karpenter_does_not_take_is_refused(entry: dict[str, object], said: str) -> None:
    spec = {"template": {"spec": {"requirements": [{"key": "b", "operator": "Exists"}, entry]}}}
    with pytest.raises(RequirementError) as raised:
        requirements(spec)
    assert str(raised.value).startswith(f"spec.template.spec.requirements[1] is {said}, which the API server refuses")
    assert "; write a requirement with" in str(raised.value)


def test_a_label_that_is_not_there_is_no_number() -> None:
    assert not need("a", "Gt", "4").admits(None)
    assert not need("a", "Gt", "4").admits("x")
    assert not need("a", "Gt", "4").admits("1" * 30)


def test_a_label_of_the_clouds_that_the_facts_lack_is_said() -> None:
    wanted = need("karpenter.k8s.aws/instance-ebs-bandwidth", "Gt", "1000")
    with pytest.raises(UnknownLabelError) as raised:
        admitted([wanted], AWS)
    assert raised.value.key == wanted.key
    # What the pool itself gives to every node narrows nothing, nor does a label of the user's own.
    own = Requirement("kubernetes.io/given", "In", ("x",), given=True)
    assert admitted([M5, own, need("example.com/rack", "In", "7")], AWS) == admitted([M5], AWS)


@pytest.mark.parametrize(("value", "left"), [("spot", True), ("on-demand", False)])
def test_what_requirements_leave_room_for(value: str, left: bool) -> None:
    assert allows([need("c", "In", "spot"), need("d", "In", "x")], "c", value) is left


@pytest.mark.parametrize("digits", ["²", "9" * 5_000, "four"])
def test_digits_that_are_no_number_admit_nothing(digits: str) -> None:
    assert not need("x", "Gt", "4").admits(digits)
    with pytest.raises(RequirementError):
        need("x", "Gt", digits)


POOL = [need("team", "In", "a"), need("kubernetes.io/arch", "In", "arm64"), need(CPU, "Gt", "4")]


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        (need("team", "In", "a", "b"), True),
        (need("team", "In", "b"), False),
        (need("team", "NotIn", "a"), False),
        (need("team", "Exists"), True),
        (need("team", "DoesNotExist"), False),
        (need("kubernetes.io/arch", "In", "amd64"), False),
        (need(CPU, "In", "8"), True),
        (need(CPU, "In", "2"), False),
        # A label of the users' own has to be known of the NodePool, one that follows from the instance type has not.
        (need("colour", "In", "red"), False),
        (need("example.com/colour", "Exists"), False),
        (need("colour", "NotIn", "red"), True),
        (need("colour", "DoesNotExist"), True),
        (need("karpenter.k8s.aws/instance-family", "In", "m5"), True),
        (need("karpenter.sh/capacity-type", "In", "spot"), True),
    ],
    ids=str,
)
def test_what_pods_ask_for_and_no_node_of_a_pool_can_have(asked: Requirement, met: bool) -> None:
    assert unmet(POOL, [need("kubernetes.io/os", "In", "linux"), asked]) == ([] if met else [asked])
