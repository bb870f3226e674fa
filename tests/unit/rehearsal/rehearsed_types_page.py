"""Write docs/reference/rehearsed-types.md from the tables of the simulated providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.provider import VERSION
from karpstack.rehearsal.aws.resource import ROWS, AwsRow
from karpstack.rehearsal.cluster import charts, provider
from karpstack.rehearsal.cluster.provider.release import Release
from tests.unit.example_stack import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "rehearsed-types.md"
_HEAD: Final = f"""\
# Resource types that can be rehearsed

<!-- Written by `make goldens` from the tables of the simulated providers; do not edit. -->

The types that [a Pulumi program of your own](../how-to/other-program.md) can use in a rehearsal. `karpstack up` refuses
all other types, properties, functions and charts by name, before it creates anything.

## AWS

The rehearsal plays pulumi-aws {VERSION}; a program with another major version is refused. Properties that are not
listed may have only the provider's default.
"""
_KUBERNETES: Final = f"""
## Kubernetes

The rehearsal plays pulumi-kubernetes {provider.VERSION}. It supports

- single objects of every kind that the API server has, custom resources included
- patches of them, such as `kubernetes:apps/v1:DaemonSetPatch`
- `{Release.token}` with the charts below

It does not support lists, `yaml`, `kustomize` and other versions of `helm.sh`.
"""


def page() -> str:
    """Return the page."""
    types = (_type(token, row) for token, row in sorted(ROWS.items()))
    tokens = ((f"`{token}`",) for token in sorted(invokes(cast(Any, None))))
    found = (
        (f"`{one.repository}/{one.name}`" if one.oci else f"`{one.name}` of {one.repository}", ", ".join(one.releases))
        for one in charts._CATALOGUE
    )
    return "\n".join(
        [
            _HEAD,
            *_table(("type", "properties"), types),
            "",
            *_table(("function",), tokens),
            _KUBERNETES,
            *_table(("chart", "versions"), found),
            "",
        ]
    )


def _type(token: str, row: AwsRow) -> tuple[str, ...]:
    return f"`{token}`", ", ".join(f"`{name}`" for name in sorted(row.accepts))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
