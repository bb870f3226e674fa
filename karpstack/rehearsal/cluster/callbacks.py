"""What an API server calls: webhooks of admission, and aggregated APIs. Both are Services with pods behind them.

A managed control plane reaches nodes. Whether it reaches pods, too, depends on the network: EKS's has no part in an
overlay, so that each call runs into its timeout (docs/how-to/eks/webhooks-and-overlay.md). In a rehearsal no process
answers in a pod at all; so what is called is judged, and left out of what is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from karpstack.karpenter import callbacks

Manifest = Mapping[str, Any]


@cache
def may_have_callbacks(chart: Path) -> bool:
    """Whether a chart may bring something that the API server calls."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((chart / "templates").rglob("*.yaml")))
    return any(f"kind: {kind}" in text for text in texts for kind in callbacks.KINDS)


def unreachable(manifests: Sequence[Manifest]) -> list[str]:
    """A sentence for each webhook configuration and API whose pods, as these manifests have them, are in the overlay.

    What is not among the manifests, such as a Service of another chart, is not judged.
    """
    return [
        f"{manifest['kind']} {manifest['metadata']['name']}: the API server of EKS reaches no pod of an overlay, and "
        f"those of {workload} behind Service {namespace}/{service} are not on the host's network, so each call ends "
        "with `context deadline exceeded`; let them use it (hostNetwork)"
        for manifest in manifests
        for namespace, service in sorted(set(_services(manifest)))
        for workload in _off_host(namespace, service, manifests)
    ]


def _services(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Namespace and name of each Service that the API server calls because of a manifest."""
    if manifest["kind"] in callbacks.WEBHOOKS:
        yield from callbacks.of_webhooks(manifest.get("webhooks") or [])
    elif manifest["kind"] == callbacks.API:
        yield from callbacks.of_api(manifest.get("spec") or {})


def _off_host(namespace: str, name: str, manifests: Sequence[Manifest]) -> Iterator[str]:
    """Workloads behind a Service whose pods are in the overlay, by kind and name."""
    for service in manifests:
        if service["kind"] != "Service" or service["metadata"]["name"] != name:
            continue
        wanted = service["spec"].get("selector") or {}
        for manifest in manifests:
            template = (manifest.get("spec") or {}).get("template") or {}
            if callbacks.is_off_host(wanted, template):
                yield f"{manifest['kind']} {manifest['metadata']['name']}"
