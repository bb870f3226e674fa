"""What the API server calls: webhooks of admission, and aggregated APIs. Both are Services with pods behind them.

The managed control plane of EKS has no part in an overlay, so a call to a pod there ends in its timeout
(docs/how-to/eks/webhooks-and-overlay.md). Values may be unknown to who asks, so each is read only where it decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
API: Final = "APIService"
KINDS: Final = frozenset({*WEBHOOKS, API})


def of_api(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Service that an APIService's `spec` names."""
    yield from _named(spec.get("service"))


def of_webhooks(webhooks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Namespace and name of each Service that a configuration's webhooks name; one by URL names none."""
    for index in range(len(webhooks)):
        yield from _named((webhooks[index].get("clientConfig") or {}).get("service"))


def is_off_host(selector: Mapping[str, Any], template: Mapping[str, Any]) -> bool:
    """Whether a Service's selector is about the pods of a template, and these are not on the host's network."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    behind = bool(selector) and dict(selector).items() <= dict(labels).items()
    return behind and (template.get("spec") or {}).get("hostNetwork") is not True


def _named(service: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if service and service.get("name"):
        yield str(service.get("namespace") or "default"), str(service["name"])
