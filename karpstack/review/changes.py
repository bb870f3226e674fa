"""What a preview would do, in numbers and names: creations by type, and each change of what exists."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rules.clouds import CLOUDS

from .engine import Digest, Step, is_provider, name_of, token_of
from .model import Change, Count

_OPERATIONS: Final = {
    "create": "create",
    "import": "import",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "import-replacement": "replace",
    "delete-replaced": "replace",
    "delete": "delete",
    "discard": "forget",
    "same": "same",
    "read": "read",
    "refresh": "same",
}
#: In the order in which people want to see them.
OPERATIONS: Final = ("delete", "replace", "update", "create", "import", "forget", "read", "same")
_QUIET: Final = ("create", "same", "read")
_TITLES: Final = {"kubernetes": "Kubernetes"} | {traits.package: traits.title for traits in CLOUDS.values()}
_SHOWN: Final = 12


def operation(step: Step) -> str:
    """The step in plain words; what is not known is called as the engine calls it."""
    return _OPERATIONS.get(step.op, step.op)


def readable(token: str) -> str:
    """`aws:ec2/vpc:Vpc` -> `AWS ec2 Vpc`; `kubernetes:karpenter.sh/v1:NodePool` -> `Kubernetes NodePool`."""
    package, _, rest = token.partition(":")
    module, _, kind = rest.rpartition(":")
    cloud = _TITLES.get(package, package)
    module = module.split("/")[0]
    if package == "kubernetes" or module in ("index", ""):
        return f"{cloud} {kind}"
    return f"{cloud} {module} {kind}"


def counts(digest: Digest) -> tuple[Count, ...]:
    """Resources of clouds and clusters by operation and type, the most frequent first; components are none."""
    frequencies = Counter((operation(step), readable(token_of(step.urn))) for step in _steps(digest))
    rows = sorted(frequencies.items(), key=lambda item: (_rank(item[0][0]), -item[1], item[0][1]))
    return tuple(Count(operation=name, type=kind, number=number) for (name, kind), number in rows)


def count_components(digest: Digest) -> int:
    """How many components and providers there are, without those providers that Pulumi adds by itself.

    As the engine sums up an update (pulumi/pulumi, pkg/engine/update.go, isInternalStep): it leaves out a provider
    whose name begins with `default`.
    """
    states = {step.urn: step.new or step.old for step in digest.steps}
    return sum(
        state is not None and (not state.custom or (is_provider(state.type) and not name_of(urn).startswith("default")))
        for urn, state in states.items()
    )


def changes(digest: Digest) -> tuple[Change, ...]:
    """Each resource that exists and will not stay as it is."""
    changed = [
        Change(
            operation=operation(step),
            type=readable(token_of(step.urn)),
            name=name_of(step.urn),
            urn=step.urn,
            properties=_properties(step),
        )
        for step in _steps(digest)
        if operation(step) not in _QUIET
    ]
    return tuple(sorted(changed, key=lambda change: (_rank(change.operation), change.name)))


def _steps(digest: Digest) -> list[Step]:
    """One step a resource. The parts of a replacement have their own steps, and count as one."""
    steps: dict[str, Step] = {}
    for step in digest.steps:
        state = step.new or step.old
        if state is None or not state.custom or is_provider(state.type):
            continue
        before = steps.get(step.urn)
        if before is None or _rank(operation(step)) < _rank(operation(before)):
            steps[step.urn] = step
    return list(steps.values())


def _rank(name: str) -> int:
    return OPERATIONS.index(name) if name in OPERATIONS else len(OPERATIONS)


def _properties(step: Step) -> tuple[str, ...]:
    """Names of the properties that change, those that force a replacement first."""
    forcing = step.replace_reasons or []
    names = [*forcing, *(step.detailed_diff or step.diff_reasons or ())]
    unique = list(dict.fromkeys(name for name in names if not name.startswith("__")))
    more = len(unique) - _SHOWN
    return (*unique[:_SHOWN], *((f"and {more} more",) if more > 0 else ()))
