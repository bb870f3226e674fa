"""Questions to a cluster's API server: what there is of a kind. Nothing is changed."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import urllib3
from kubernetes import config
from kubernetes.config.config_exception import ConfigException

from ..finding import NotAskedError, UnknowableError

Object = dict[str, Any]
_TIMEOUTS: Final = (5, 30)  # seconds to connect, and to answer
_PAGE: Final = 500  # objects
_REASON: Final = 300  # characters of an answer that refuses


class Lister(Protocol):
    """What a check needs of a cluster."""

    def list(self, path: str) -> list[Object]:
        """All objects of a collection, `/api/v1/services`; none where the cluster does not know the kind.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        ...


class Cluster:
    """The cluster that a kubeconfig names. Each question is asked once."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """`kubeconfig` is the one that KUBECONFIG names if None.

        Raises:
            UnknowableError: There is none.
        """
        try:
            self._api = config.new_client_from_config(config_file=str(kubeconfig) if kubeconfig else None)
        except (ConfigException, OSError, ValueError) as error:
            raise UnknowableError(
                f"kubeconfig: {error}, so the cluster can't be asked; export KUBECONFIG, as "
                "`pulumi stack output kubeconfig --show-secrets > kubeconfig` writes it"
            ) from error
        self._answers: dict[str, list[Object]] = {}

    def list(self, path: str) -> list[Object]:
        """All objects of a collection; none where the cluster does not know the kind.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        if path not in self._answers:
            found: list[Object] = []
            go_on = ""
            while True:
                page = self._page(path, go_on)
                found += page.get("items", ())
                go_on = (page.get("metadata") or {}).get("continue") or ""
                if not go_on:
                    break
            self._answers[path] = found
        return self._answers[path]

    def greet(self) -> None:
        """See that it answers, and knows who asks.

        Raises:
            UnknowableError: It does not.
        """
        try:
            self._page("/version", "")
        except NotAskedError as error:
            raise UnknowableError(
                f"{error.call}: {error}, so the cluster can't be asked; see that KUBECONFIG names this stack's "
                "cluster, and that `kubectl get nodes` works"
            ) from error

    def _page(self, path: str, go_on: str) -> dict[str, Any]:
        query = urlencode({"limit": _PAGE, **({"continue": go_on} if go_on else {})})
        request = self._api.param_serialize(
            "GET", f"{path}?{query}", header_params={"Accept": "application/json"}, auth_settings=["BearerToken"]
        )
        try:
            answer: urllib3.HTTPResponse = self._api.call_api(*request, _request_timeout=_TIMEOUTS).response
            content = answer.read()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise NotAskedError(f"GET {path}", str(error), refused=False) from error
        if answer.status == HTTPStatus.NOT_FOUND:
            return {}
        if answer.status != HTTPStatus.OK:
            text = content.decode(errors="replace")[:_REASON]
            raise NotAskedError(f"GET {path}", f"{answer.status} {text}", refused=answer.status == HTTPStatus.FORBIDDEN)
        page: dict[str, Any] = json.loads(content)
        return page
