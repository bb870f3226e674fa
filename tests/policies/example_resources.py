"""The resources of the example stacks as the program registers them, every value known. No engine and no process."""

from __future__ import annotations

import json

from judging import Resource

import karpstack.components.aks
import karpstack.components.eks
from tests.unit.example_stack import STACKS, aks, eks
from tests.unit.mock_engine import deploy

__all__ = ["STACKS", "resources"]


def resources(stack: str) -> list[Resource]:
    """Each resource of a stack with its inputs."""
    if stack == "eks":
        made = deploy(lambda: karpstack.components.eks.Environment("eks", eks()))
    else:
        made = deploy(lambda: karpstack.components.aks.Environment("aks", aks(stack)))
    return [
        Resource(found.type, json.loads(json.dumps(found.inputs, default=str)), found.name)
        for found in made.resources.values()
    ]
