"""The resources of the example stacks as the program registers them, every value known. No engine and no process."""

from __future__ import annotations

import json

from judging import Resource

from components.aks import program as aks_program
from components.eks import program as eks_program
from tests.unit.example_stack import STACKS, aks, eks
from tests.unit.mock_engine import deploy

__all__ = ["STACKS", "resources"]


def resources(stack: str) -> list[Resource]:
    """Each resource of a stack with its inputs."""
    if stack == "eks":
        made = deploy(lambda: eks_program.environment(eks()))
    else:
        made = deploy(lambda: aks_program.environment(aks(stack)))
    return [
        Resource(found.type, json.loads(json.dumps(found.inputs, default=str)), found.name)
        for found in made.resources.values()
    ]
