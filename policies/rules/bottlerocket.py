"""Bottlerocket: which nodes have it, and what does not run there."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_policy import PolicyResource

from karpstack.karpenter.instance_types import ARCHITECTURE
from karpstack.karpenter.requirements import allows

from . import graph
from .requirements import requirements
from .rule import ADVICE, Judgement, Properties, StackRule, section
from .tokens import EC2_NODE_CLASS, NODE_POOL

_ARM = "arm64"


def _starts_cilium(resources: list[PolicyResource], judgement: Judgement) -> None:
    for release in graph.releases(resources, "cilium", judgement):
        with judgement.part():
            if section(graph.values(release), "sysctlfix").get("enabled") is False:
                continue
            node_classes = set(_of_bottlerocket(resources, judgement))
            for pool in graph.of(resources, NODE_POOL):
                with judgement.part():
                    spec = graph.output(pool, "spec")
                    reference = section(spec, "template", "spec", "nodeClassRef")
                    node_class = (reference.get("kind"), reference.get("name"))
                    if node_class in node_classes and allows(requirements(spec), ARCHITECTURE, _ARM):
                        judgement.violation(
                            f"{pool.name} admits {_ARM}, its nodes have Bottlerocket by the node class "
                            f"{node_class[1]}, and values.sysctlfix.enabled of {release.name} is not false.",
                            pool.urn,
                        )


def _of_bottlerocket(resources: list[PolicyResource], judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Kind and name of the node classes whose nodes have it."""
    for node_class in graph.of(resources, EC2_NODE_CLASS):
        with judgement.part():
            if is_bottlerocket(graph.output(node_class, "spec")):
                yield "EC2NodeClass", graph.object_name(node_class)


def is_bottlerocket(spec: Properties) -> bool:
    """Whether nodes have Bottlerocket, by the `spec` of their node class."""
    return image_family(spec) == "bottlerocket"


def image_family(spec: Properties) -> str:
    """The family of a node class's images in small letters, by `amiFamily` or an alias; empty if neither names it."""
    if spec.get("amiFamily") is not None:
        return str(spec["amiFamily"]).lower()
    terms = spec.get("amiSelectorTerms") or []
    aliases = (terms[index].get("alias") or "" for index in range(len(terms)))
    return next(filter(None, aliases), "").partition("@")[0]


BOTTLEROCKET_STARTS_CILIUM = StackRule(name="bottlerocket-starts-cilium", enforcement=ADVICE, check=_starts_cilium)
