"""What the API server would refuse in a scenario's NodePools and node classes, by the CRDs' own schemas and rules.

They are those of the Karpenter that this package knows. A node class is a copy of one that only the cluster has, so of
it is judged what its patch says by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from karpstack.karpenter import crds

from .formats import instead, merge_patch

_REFERENCES: Final = {
    "NodePool": "https://karpenter.sh/docs/concepts/nodepools/",
    "EC2NodeClass": "https://karpenter.sh/docs/concepts/nodeclasses/",
    "AKSNodeClass": "https://learn.microsoft.com/azure/aks/node-auto-provisioning-aksnodeclass",
}


class Refusal(NamedTuple):
    """What would be refused of a spec, or of a patch of one.

    Attributes:
        path: Steps from the spec, or the patch, to what is wrong.
        value: What is there.
        words: Of the finding `api-server`.
    """

    path: tuple[str | int, ...]
    value: Any
    words: Mapping[str, str]


def of_spec(cloud: str, kind: str, spec: Mapping[str, Any]) -> list[Refusal]:
    """What would be refused of a whole spec.

    Args:
        cloud: `aws` or `azure`.
        kind: NodePool, EC2NodeClass or AKSNodeClass.
        spec: The spec.
    """
    return [_refusal(kind, found, found.path, found.value) for found in crds.problems(cloud, kind, spec)]


def of_patch(cloud: str, kind: str, patch: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> list[Refusal]:
    """What would be refused of a JSON merge patch of a spec that was right, or wrong in another way.

    Args:
        cloud: `aws` or `azure`.
        kind: NodePool, EC2NodeClass or AKSNodeClass.
        patch: The patch.
        before: The spec before it; None where it is not known.
    """
    # A null removes a field, so that of a field that there is not nothing is left to judge in what comes of it.
    found = [problem for problem in crds.problems(cloud, kind, _without_nulls(patch)) if _is_unknown(problem)]
    if before is None:
        found += [problem for problem in crds.problems(cloud, kind, patch) if _by_itself(problem)]
    else:
        old = crds.problems(cloud, kind, before)
        found += [problem for problem in crds.problems(cloud, kind, merge_patch(before, patch)) if problem not in old]
    told: dict[tuple[str | int, ...], Refusal] = {}
    for problem in found:
        path, value = _reached(patch, problem.path)
        told.setdefault(path, _refusal(kind, problem, path, value))
    return list(told.values())


def leads(path: tuple[str | int, ...], given: Mapping[str, Any]) -> bool:
    """Whether a path leads to something in a mapping."""
    return _reached(given, path)[0] == path


def _refusal(kind: str, found: crds.Problem, path: tuple[str | int, ...], value: Any) -> Refusal:
    what = "is no field here" if _is_unknown(found) else found.message
    return Refusal(path, value, {"what": what, "kind": kind, "fix": _fix(kind, found)})


def _fix(kind: str, found: crds.Problem) -> str:
    if found.choices:
        return instead(str(found.path[-1] if _is_unknown(found) else found.value), found.choices)
    if found.message.endswith("is not of type 'string'") and isinstance(found.value, (bool, int, float)):
        return "put it in quotes"
    return f"write it as {_REFERENCES[kind]} says"


def _is_unknown(found: crds.Problem) -> bool:
    return found.message.startswith("is no field here")


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
