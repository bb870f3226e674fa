"""Stacks of the project and of the examples, deployed with changes against the mock engine, each once."""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from karpstack.components.aks import node_bootstrap
from tests.unit.example_stack import ROOT, changed, configuration, raw
from tests.unit.found import AKS_WORKLOADS, EKS_WORKLOADS, let_run
from tests.unit.mock_engine import Deployment, Registered, deploy

#: Existing clusters that the mocks have where the stack has one.
CLUSTERS = ("Shop_1", "Shop_2")
_made: dict[str, Deployment] = {}


def made(
    stack: str,
    changes: Mapping[str, Any] | None = None,
    *,
    runs: Any = None,
    clusters: Sequence[str] | None = None,
    drawn: bool = True,
    **given: Any,
) -> Deployment:
    """Return what the program registers for a stack.

    Args:
        stack: Name of a stack file.
        changes: What is changed in it, as `changed` takes it.
        runs: What an existing cluster runs; what `found.py` says otherwise.
        clusters: Names of clusters that the account has already.
        drawn: Whether bootstrap tokens are random.
        given: Further arguments of `deploy`.
    """
    if clusters is None:
        clusters = CLUSTERS if "existing" in stack else ()
    known = repr((stack, changes, runs, clusters, drawn, given))
    if known not in _made or "last" in given or "errors" in given:
        config = raw(changed(deepcopy(configuration(stack)), changes or {}))

        def program() -> None:
            pulumi.runtime.set_all_config(config)
            runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

        with pytest.MonkeyPatch.context() as patch:
            let_run(patch, runs or (EKS_WORKLOADS if config["karpstack:cloud"] == "aws" else AKS_WORKLOADS))
            if not drawn:
                patch.setattr(node_bootstrap, "secrets", SimpleNamespace(choice=min))
            _made[known] = deploy(program, clusters=clusters, **given)
    return _made[known]


def matching(deployment: Deployment, what: str) -> list[Registered]:
    """Resources, and no components, of a name, a type, or the end of a type; `name end` for both."""
    found = [each for each in deployment.resources.values() if each.request.custom]
    for one in what.split():
        found = [each for each in found if one in (each.name, each.type, each.type.rpartition(":")[2])]
    return found


def only(deployment: Deployment, what: str) -> Registered:
    """The only one of them."""
    (one,) = matching(deployment, what)
    return one
