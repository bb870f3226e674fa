"""Which stacks a change touches."""

from __future__ import annotations

import pytest

from karpstack.pull_request import stacks
from karpstack.pull_request.stacks import AffectedStack, Change, StacksError

ALL = ("aks-nap", "eks")
BOTH = dict.fromkeys(ALL, "asked")


def changed(*paths: str, before: tuple[str, ...] = ALL, after: tuple[str, ...] = ALL) -> Change:
    return Change("0" * 40, paths, before, after)


@pytest.mark.parametrize(
    ("path", "touched"),
    [
        ("Pulumi.eks.yaml", {"eks": "asked"}),
        ("Pulumi.eks.network.json", {"eks": "asked"}),
        ("policies/eks.json", {"eks": "policies"}),
        ("policies/production.json", {}),
        ("policies/rules/nodes.py", {"aks-nap": "policies", "eks": "policies"}),
        ("policies/README.md", {}),
        ("__main__.py", BOTH),
        ("Pulumi.yaml", BOTH),
        ("requirements.lock", BOTH),
        ("components/aks/environment.py", BOTH),
        ("karpstack/karpenter/facts/aws.json", BOTH),
        ("karpstack/karpenter/README.md", {}),
        ("karpstack-facts/versions-aws.json", BOTH),
        ("karpstack/preflight/__main__.py", {}),
        ("docs/components/eks.py", {}),
        ("componentsx/a.py", BOTH),
        ("componentsx/a.yaml", {}),
        ("pydantic.py", BOTH),
        ("pulumi_aws", BOTH),
        ("components", BOTH),
        ("karpstack/components", BOTH),
        ("karpstack/components/eks/cluster.py", BOTH),
        ("karpstack/policies", BOTH),
        ("policies", BOTH),
        ("pulumi.pyc", BOTH),
        ("karpstack/__pycache__/__init__.cpython-311.pyc", BOTH),
        ("karpstack/policies/eks.json", {"eks": "asked"}),
        ("karpstack/policies/README.md", {}),
        ("policies-old/a.json", {}),
        ("karpstack", BOTH),
        ("karpstack/karpenter", BOTH),
        ("karpstack/__init__.abi3.so", BOTH),
        ("pydantic.pyc", BOTH),
        (".github/scripts/a.py", {}),
        ("docs", {}),
        ("Makefile", {}),
        ("Pulumi.eks.yaml.orig", {}),
        ("old/Pulumi.eks.yaml", {}),
        ("playbooks/scenarios/eks-cheapest-fit.yml", {}),
        ("karpstack/rehearsal/cli.py", {}),
    ],
)
def test_a_path_touches(path: str, touched: dict[str, str]) -> None:
    assert {one.stack: one.whatif for one in changed(path).touched()} == touched


def test_what_makes_a_stack_is_named_before_what_judges_it() -> None:
    (one,) = changed("policies/eks.json", "Pulumi.eks.yaml").touched()
    assert one == AffectedStack("eks", "Pulumi.eks.yaml", "asked")


def test_a_new_stack_has_nothing_to_be_compared_with() -> None:
    found = changed("Pulumi.eks.yaml", "components/naming.py", before=("aks-nap",)).touched()
    assert found == [
        AffectedStack("aks-nap", "components/naming.py", "asked"),
        AffectedStack("eks", "Pulumi.eks.yaml", "new"),
    ]


def test_a_stack_that_is_gone_is_not_rehearsed_but_named() -> None:
    change = changed("Pulumi.eks.yaml", after=("aks-nap",))
    assert change.touched() == []
    assert stacks.removed(change) == ["eks"]


def test_stacks_by_name_are_rehearsed_touched_or_not() -> None:
    found = changed("policies/eks.json").named(["eks", "aks-nap", "eks"])
    assert found == [
        AffectedStack("eks", "policies/eks.json", "policies"),
        AffectedStack("aks-nap", "asked for", "asked"),
    ]


def test_an_unknown_stack_is_refused_with_those_there_are() -> None:
    with pytest.raises(StacksError, match=r"stack = 'ekss': there is no Pulumi\.ekss\.yaml.* there are aks-nap, eks$"):
        changed().named(["ekss"])


@pytest.mark.parametrize("name", ["$(id)", "-rf", "a b", "a;b", "a\nb", "../x", "..", ".", "a" * 101])
def test_what_no_stack_can_be_called_is_named_and_passed_over(name: str) -> None:
    change = changed(f"Pulumi.{name}.yaml")
    assert stacks.unnamed(change) == [f"Pulumi.{name}.yaml"]
    assert change.touched() == []


def test_a_path_cannot_write_a_line_of_its_own_into_the_log() -> None:
    reasons = stacks.reasons(changed("components/a\n::error::b.py").touched())
    assert all("\n" not in reason for reason in reasons.values())
    assert len(reasons) == 2
