"""Charts of self-hosted Karpenter: whether Microsoft's registry has the version that the stack asks for."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

import urllib3

from karpstack.components.versions import KARPENTER_AZURE_CHART, KARPENTER_AZURE_CRD_CHART
from karpstack.text.pools import pool_for
from karpstack.text.proxies import ProxyError
from karpstack.text.retries import bounded

from ..finding import Finding, NotAskedError, finding
from .subject import StackSubject

_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
#: A registry sends manifests itself.
_RETRIES: Final = bounded(1)
_TIMEOUT: Final = urllib3.Timeout(connect=5, read=15)


def charts(subject: StackSubject) -> Iterator[Finding]:
    """A version that the registry does not have. A rehearsal has its own charts, and asks no registry."""
    if subject.settings.karpenter is None or subject.azure.is_local:
        return
    version = subject.settings.karpenter.chart_version
    for chart in (KARPENTER_AZURE_CHART, KARPENTER_AZURE_CRD_CHART):
        host, _, path = chart.removeprefix("oci://").partition("/")
        call = f"GET https://{host}/v2/{path}/manifests/{version}"
        status = _status(call)
        if status == HTTPStatus.NOT_FOUND:
            yield finding("aks-chart-not-published", call, host=host, path=path, version=version)
        elif status != HTTPStatus.OK:
            raise NotAskedError(call, f"{host} answers {status}", refused=False)


def _status(call: str) -> int:
    """The status of the answer; the registry wants no login, and one that has expired would be refused."""
    url = call.removeprefix("GET ")
    try:
        pool = pool_for(url, _RETRIES, _TIMEOUT)
    except ProxyError as error:
        raise NotAskedError(call, str(error), refused=False) from error
    try:
        # Of the answer, the status is enough: who answers may be anybody, and the body without an end.
        headers = {"Accept": _MANIFEST}
        answer = pool.request("GET", url, headers=headers, redirect=False, preload_content=False)
        answer.close()
        return answer.status
    except urllib3.exceptions.HTTPError as error:
        raise NotAskedError(call, str(error), refused=False) from error
