"""What the API server would refuse in a scenario's NodePools and node classes, by the CRDs' own schemas and rules.

They are those of the Karpenter that this package knows. A node class is a copy of one that only the cluster has, so of
it is judged what its patch says by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from karpstack.karpenter import crds
from karpstack.karpenter.findings import Finding
from karpstack.text import shown

from .formats import instead, merge_patch
from .problems import finding


def refused(where: str, kind: str, found: crds.Problem) -> Finding:
    """Return the finding about a spec, or a patch of one, that the API server would refuse.

    Args:
        where: The key of the spec.
        kind: NodePool, EC2NodeClass or AKSNodeClass.
        found: What is wrong.
    """
    key = f"{where}.{shown.key(found.path)}" if found.path else where
    what = "is no field here" if found.code == "unknown-field" else found.message
    made = finding("api-server", key, found.value, what=what, kind=kind, fix=_fix(kind, found))
    return made if found.value is not None else replace(made, value="nothing")


def patch_problems(
    cloud: str, kind: str, patch: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> list[crds.Problem]:
    """Return the problems that a JSON merge patch adds to a spec.

    Path and value are those of the patch, as far as a path leads within it.

    Args:
        cloud: `aws` or `azure`.
        kind: NodePool, EC2NodeClass or AKSNodeClass.
        patch: The patch.
        before: The spec before it; None where it is not known.
    """
    # A null removes a field, so that of a field that there is not nothing is left to judge in what comes of it.
    found = [
        problem for problem in crds.problems(cloud, kind, _without_nulls(patch)) if problem.code == "unknown-field"
    ]
    if before is None:
        found += [problem for problem in crds.problems(cloud, kind, patch) if _by_itself(problem)]
    else:
        old = crds.problems(cloud, kind, before)
        found += [problem for problem in crds.problems(cloud, kind, merge_patch(before, patch)) if problem not in old]
    told: dict[tuple[str | int, ...], crds.Problem] = {}
    for problem in found:
        path, value = _reached(patch, problem.path)
        told.setdefault(path, problem._replace(path=path, value=value))
    return list(told.values())


def has_path(path: tuple[str | int, ...], given: Mapping[str, Any]) -> bool:
    """Whether a path leads to something in a mapping."""
    return _reached(given, path)[0] == path


def _fix(kind: str, found: crds.Problem) -> str:
    if found.choices:
        return instead(str(found.path[-1] if found.code == "unknown-field" else found.value), found.choices)
    return "put it in quotes" if found.is_unquoted else f"write it as {crds.REFERENCES[kind]} says"


def _by_itself(found: crds.Problem) -> bool:
    """Whether it is wrong whatever stands beside it: a list is replaced as a whole, an object is merged."""
    return any(isinstance(step, int) for step in found.path) or not (
        found.value is None or isinstance(found.value, Mapping)
    )


def _without_nulls(patch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_nulls(value) if isinstance(value, Mapping) else True if value is None else value
        for key, value in patch.items()
    }


def _reached(patch: Any, path: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], Any]:
    """As far as a path leads within a patch, and what is there."""
    for length, step in enumerate(path):
        try:
            patch = patch[step]
        except (LookupError, TypeError):
            return path[:length], patch
    return path, patch
