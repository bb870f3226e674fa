"""components.settings: however a stack file is broken, the answer is settings or sentences, soon and readable."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis.strategies import DataObject, data

from karpstack.components import settings
from karpstack.components.documents import manifests
from karpstack.components.problems import SettingsError
from karpstack.karpenter.findings import Finding
from tests.mutations import mutations, taken
from tests.unit.example_stack import STACKS, configuration, example, raw

DEEP: list[Any] = []
for _ in range(40):
    DEEP = [DEEP]


def problems(given: dict[str, str], **options: Any) -> list[Finding]:
    with pytest.raises(SettingsError) as caught:
        settings.load(given, **options)
    return list(caught.value.problems)


@pytest.mark.parametrize("stack", [*STACKS, "eks-existing-cluster", "aks-existing-cluster"])
@examples(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(draw=data())
def test_a_broken_stack_file_ends_in_settings_or_in_sentences(stack: str, draw: DataObject) -> None:
    config = draw.draw(mutations(configuration(stack)))
    given = raw(config if isinstance(config, dict) else {})
    started = time.process_time()
    if (loaded := taken(lambda: settings.load(given), SettingsError, most=10_000)) is not None:
        json.dumps(list(documents(loaded)))
    assert time.process_time() - started < 1


def documents(loaded: settings.Settings) -> Any:
    """What is made from specs: the settings have seen to it that nothing in them can stop it."""
    for name, spec in loaded.node_pools.items():
        yield manifests.node_pool(name, spec, node_class=manifests.EC2_NODE_CLASS, labels=manifests.AKS_DATAPLANE_LABEL)
    for name, spec in loaded.node_classes.items():
        yield manifests.ec2_node_class(name, spec, role="role", subnets=[], security_groups=[], tags={})
        yield manifests.aks_node_class(name, spec, tags={})


#: Where the environment looks into a spec, and something of another shape there.
SHAPES: dict[str, tuple[str, str, Any]] = {
    "a pool that is a text": ("nodePools", "", "word"),
    "template": ("nodePools", "template", []),
    "metadata": ("nodePools", "template.metadata", "word"),
    "labels": ("nodePools", "template.metadata.labels", ["word"]),
    "a label that is a number": ("nodePools", "template.metadata.labels.team", 7),
    "spec": ("nodePools", "template.spec", True),
    "nodeClassRef": ("nodePools", "template.spec.nodeClassRef", "default"),
    "its name": ("nodePools", "template.spec.nodeClassRef.name", ["default"]),
    "requirements": ("nodePools", "template.spec.requirements", {"key": "x"}),
    "a requirement": ("nodePools", "template.spec.requirements[0]", "word"),
    "its key": ("nodePools", "template.spec.requirements[0].key", {}),
    "its operator": ("nodePools", "template.spec.requirements[0].operator", ["In"]),
    "its values": ("nodePools", "template.spec.requirements[0].values", "amd64"),
    "a value that is a number": ("nodePools", "template.spec.requirements[0].values[0]", 2),
    "startupTaints": ("nodePools", "template.spec.startupTaints", "word"),
    "a taint": ("nodePools", "template.spec.startupTaints[0]", "word"),
    "a taint's key": ("nodePools", "template.spec.startupTaints[0].key", 7),
    "kubelet": ("nodeClasses", "kubelet", 110),
    "tags": ("nodeClasses", "tags", ["word"]),
    "a tag that is a number": ("nodeClasses", "tags.team", 7),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("stack", ["eks", "aks-self-hosted"])
def test_a_spec_of_another_shape_is_named_where_it_is(stack: str, case: str) -> None:
    section, path, value = SHAPES[case]
    for step in reversed(path.replace("[0]", ".0").split(".") if path else []):
        value = [value] if step == "0" else {step: value}
    (problem,) = [one for one in problems(example(stack, **{section: {"word": value}})) if "cannot be" in str(one)]
    assert problem.key == f"karpstack:{section}.word{'.' if path else ''}{path}"
    assert problem.consequence.startswith("cannot be used: input should be a valid ")
    assert problem.fix


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(json.dumps(DEEP), "is nested too deeply", id="deeper than anything means"),
        pytest.param("[" * 100_000 + "]" * 100_000, "is nested too deeply", id="deeper than a parser goes"),
        pytest.param('{"default": NaN}', "holds NaN", id="no number"),
        pytest.param(f'{{"default": {"9" * 5_000}}}', "cannot be used", id="more digits than Python reads"),
        pytest.param(json.dumps(["x" * 1_000_000]), "characters long", id="too long"),
    ],
)
def test_a_value_that_is_too_large_or_too_deep_is_refused_by_its_key(value: str, said: str) -> None:
    (problem,) = problems({"karpstack:cloud": "aws", "karpstack:nodePools": value})
    assert problem.key == "karpstack:nodePools"
    assert said in str(problem)
    assert len(str(problem)) < 1_000


def test_a_key_of_another_program_may_be_of_any_length() -> None:
    settings.load(example() | {"other:key": "x" * 2_000_000})


def test_nothing_that_is_shown_can_move_a_terminal() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(example() | {"karpstack:\x1b[31m\u202e": "\x1b[0m"})
    assert 'karpstack:\\x1b[31m\\u202e = "\\u001b[0m"' in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"karpstack:\ud800": ""}, {"karpstack:name": "\ud800"}, {"karpstack:tags": '{"\\ud800": ""}'}]
)
def test_half_a_character_is_refused_and_shown_escaped(given: dict[str, str]) -> None:
    (problem,) = problems(example() | given)
    assert "holds half of a character" in problem.consequence
    assert "ud800" in str(problem)
    assert str(problem).encode()


def test_many_errors_are_counted_and_not_all_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(example(tags={f"aws:{number}": "x" for number in range(1_000)}))
    assert len(caught.value.problems) == 1_000
    assert "has 1000 errors" in str(caught.value)
    assert str(caught.value).endswith("and 900 more")
    assert len(str(caught.value)) < 100_000


def test_a_secret_value_is_not_shown_by_rules_between_sections_either() -> None:
    given = example("aks-self-hosted", name="hush-hush", nodeClasses={"default": {"imageFamily": "hush-hush"}})
    secret = {"karpstack:name", "karpstack:nodeClasses"}
    (problem,) = problems(given, secret_keys=secret)
    assert problem.key == "karpstack:nodeClasses.default.imageFamily"
    assert problem.value == "(secret)"
    (problem,) = problems(example(name="hush" * 20), secret_keys=secret)
    assert "hush" not in str(problem)
    assert "the IAM role (secret)-karpenter-controller" in problem.consequence
