"""Write docs/reference/rehearsed-types.md from the tables of the simulated providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

from karpstack.rehearsal.attachment.rows import Row
from karpstack.rehearsal.aws import tls
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.provider import SETTINGS, VERSION
from karpstack.rehearsal.aws.resource import ROWS
from karpstack.rehearsal.azure import invokes as azure_invokes
from karpstack.rehearsal.azure import provider as azure
from karpstack.rehearsal.cluster import charts, provider
from karpstack.rehearsal.cluster.provider.release import Release
from tests.unit.example_stack import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "rehearsed-types.md"
_SETTINGS: Final = [", ".join(f"`{name}`" for name in sorted(names)) for names in (SETTINGS, azure.SETTINGS)]
_HEAD: Final = f"""\
# Resource types that can be rehearsed

<!-- Written by `make goldens` from the tables of the simulated providers; do not edit. -->

The types that [a Pulumi program of your own](../how-to/other-program.md) can use in a rehearsal. `karpstack up` refuses
all other types, properties, functions and charts by name, before it creates anything.

## AWS

The rehearsal simulates pulumi-aws {VERSION} and one function of pulumi-tls 5. A program with another major version is
refused. Properties that are not listed may have only the provider's default. Parentheses list the keys that a block
can have.

Settings of a provider, in the stack file or of an `aws.Provider`: {_SETTINGS[0]}.
"""
_AZURE: Final = f"""
## Azure

The rehearsal simulates pulumi-azure-native {azure.VERSION}; a program with another major version is refused. Other
properties, and types with an API version in their name, are not supported.

Settings of a provider: {_SETTINGS[1]}.
"""
_KUBERNETES: Final = f"""
## Kubernetes

The rehearsal simulates pulumi-kubernetes {provider.VERSION}. It supports

- single objects of every kind that the API server has, custom resources included
- patches of them, such as `kubernetes:apps/v1:DaemonSetPatch`
- `{Release.token}` with the charts below

It does not support lists, `yaml`, `kustomize` and other versions of `helm.sh`.
"""


def page() -> str:
    """Return the page."""
    types = (_type(token, row) for token, row in sorted(ROWS.items()))
    tokens = ((f"`{token}`",) for token in [*sorted(invokes(cast(Any, None))), tls.GET_CERTIFICATE])
    session = cast(Any, SimpleNamespace(subscription=SimpleNamespace(arm=None)))
    azure_types = (_type(kind.token, kind.row) for kind in sorted(azure.TYPES, key=lambda kind: kind.token))
    azure_tokens = ((f"`{token}`",) for token in sorted(azure_invokes.invokes(session, azure.TYPES)))
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
            _AZURE,
            *_table(("type", "properties"), azure_types),
            "",
            *_table(("function",), azure_tokens),
            _KUBERNETES,
            *_table(("chart", "versions"), found),
            "",
        ]
    )


def _type(token: str, row: Row) -> tuple[str, ...]:
    blocks = {name: f" ({', '.join(f'`{one}`' for one in sorted(known))})" for name, known in row.blocks.items()}
    return f"`{token}`", ", ".join(f"`{name}`{blocks.get(name, '')}" for name in sorted(row.accepts))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
