"""Questions to a cluster's API server: what there is of a kind, what the user may do. Nothing is changed."""

from __future__ import annotations

from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import urllib3
from kubernetes import client

from karpstack.text import answers
from karpstack.text.answers import begins
from karpstack.text.kubeconfig import host_of, prepare, settings_of
from karpstack.text.retries import bounded

from ..answers import items, parse, read
from ..finding import NotAskedError, UnknowableError

Object = dict[str, Any]
Objects = list[Object]
VERSION: Final = "/version"
_REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_REVIEWS: Final = f"POST {_REVIEWS_PATH}"
_TIMEOUTS: Final = (5, 30)  # seconds to connect, and to answer
_PAGE: Final = 500  # objects
_AGAIN: Final = bounded(3, backoff=0.5)
#: Groups that a cluster may lack; `/api/v1` every cluster has.
_OPTIONAL: Final = "/apis/"


class Lister(Protocol):
    """What a check needs of a cluster.

    Attributes:
        host: Name that the server's certificate has to prove, in lower case.
    """

    host: str

    def greet(self) -> None:
        """See that an API server answers, and knows who asks.

        Raises:
            NotAskedError: It does not, or it is something else that answers.
        """
        ...

    def list(self, path: str) -> list[Object]:
        """All objects of a collection, `/api/v1/services`; none where the cluster does not know the kind.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        ...

    def may_delete(self, path: str) -> bool:
        """Return whether the user of the kubeconfig may delete objects of a collection in all namespaces.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        ...


class Gone:
    """A cluster that is not there any more, and has nothing.

    Attributes:
        host: Where it was.
    """

    def __init__(self, host: str) -> None:
        self.host = host

    def greet(self) -> None:
        """Nobody is missing who should be there."""

    def list(self, path: str) -> list[Object]:
        """None."""
        return []

    def may_delete(self, path: str) -> bool:
        """Nothing is left to delete."""
        return True


class Cluster:
    """The cluster that a kubeconfig names. Each question is asked once.

    Attributes:
        server: URL of its API server, as the kubeconfig has it.
        host: As `host_of` of its settings.
    """

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """`kubeconfig` is the one that KUBECONFIG names if None.

        Raises:
            UnknowableError: There is none, or it is none that can be read.
        """
        try:
            settings = settings_of(kubeconfig)
            settings.retries = _AGAIN
            self.server = str(settings.host)
            self.host = host_of(settings)
            self._api = client.ApiClient(configuration=settings)
        # The client has no error of its own for a kubeconfig that is YAML and no kubeconfig.
        except Exception as error:
            raise UnknowableError(
                f"kubeconfig: {error}, so the cluster cannot be reached; export KUBECONFIG, as "
                "`pulumi stack output kubeconfig --show-secrets > kubeconfig` writes it"
            ) from error
        self._answers: dict[str, list[Object]] = {}
        self._allowance = answers.Allowance()
        self._unreached: NotAskedError | None = None

    def list(self, path: str) -> list[Object]:
        """All objects of a collection; none where the cluster does not know the kind.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        if self._unreached:
            # Asked for each collection again, a server that is away would take minutes.
            raise NotAskedError(_call(path), f"the cluster cannot be reached: {self._unreached}", refused=False)
        if path not in self._answers:
            self._answers[path] = self._all(path)
        return self._answers[path]

    def may_delete(self, path: str) -> bool:
        """Return whether the user of the kubeconfig may delete objects of a collection in all namespaces.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        if self._unreached:
            raise NotAskedError(_REVIEWS, f"the cluster cannot be reached: {self._unreached}", refused=False)
        *_, group, _version, resource = path.split("/")
        status, content = self._send(
            "POST",
            _REVIEWS_PATH,
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "delete", "group": group, "resource": resource}},
            },
        )
        if status != HTTPStatus.CREATED:
            raise NotAskedError(_REVIEWS, f"{status} {begins(content)}", refused=status == HTTPStatus.FORBIDDEN)
        return bool((parse(_REVIEWS, content).get("status") or {}).get("allowed"))

    def greet(self) -> None:
        """See that an API server answers, and knows who asks. Where it does not, nothing more is asked.

        Raises:
            NotAskedError: It does not, or it is something else that answers.
        """
        if self._unreached:
            raise self._unreached
        try:
            self._greet()
        except NotAskedError as error:
            self._unreached = error
            raise

    def _greet(self) -> None:
        status, content = self._get(VERSION, {})
        if status != HTTPStatus.OK:
            raise _refusal(VERSION, status, content)
        if not parse(_call(VERSION), content).get("gitVersion"):
            raise NotAskedError(_call(VERSION), f"no API server answers so: {begins(content)}", refused=False)

    def _all(self, path: str) -> Objects:
        found: Objects = []
        go_on = ""
        for _ in range(answers.PAGES):
            status, content = self._get(path, {"limit": str(_PAGE), **({"continue": go_on} if go_on else {})})
            if status == HTTPStatus.NOT_FOUND and path.startswith(_OPTIONAL):
                return []
            if status != HTTPStatus.OK:
                raise _refusal(path, status, content)
            page = parse(_call(path), content)
            found += items(_call(path), page, "items")
            go_on = str((page.get("metadata") or {}).get("continue") or "")
            if not go_on:
                return found
        raise NotAskedError(_call(path), f"there are more than {answers.PAGES} pages", refused=False)

    def _get(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        return self._send("GET", f"{path}?{urlencode(query)}" if query else path)

    def _send(self, method: str, path: str, body: Object | None = None) -> tuple[int, bytes]:
        call = _call(path.partition("?")[0], method)
        try:
            ask = prepare(self._api, method, path, _TIMEOUTS, body=body, kind="application/json" if body else "")
            answer, answered = read(call, ask, attrgetter("response"), self._allowance)
            return answer.status, answered
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise NotAskedError(call, str(error), refused=False) from error


def _call(path: str, method: str = "GET") -> str:
    return f"{method} {path}"


def _refusal(path: str, status: int, content: bytes) -> NotAskedError:
    return NotAskedError(_call(path), f"{status} {begins(content)}", refused=status == HTTPStatus.FORBIDDEN)
