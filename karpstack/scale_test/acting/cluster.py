"""What a story asks of the cluster's API server: to make, change and remove what is its own.

Whatever is made or changed is validated strictly: a key that the API does not have is refused and named. By default an
API server drops it and says so in a header at best, and a story would pass that never asked for what its file says. A
patch is judged by the object that it makes of the one that is there, which has known keys alone by then (apiserver,
endpoints/handlers/patch.go, applyPatchToCurrentObject). A server before 1.25 knows nothing of it unless a feature gate
is on, ignores what was asked and drops such keys as ever.
https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level
https://github.com/kubernetes/enhancements/issues/2885
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from karpstack.karpenter.selectors import MORE_THAN_ONE
from karpstack.text.answers import PAGES, AnswerError, begins, parse, read
from karpstack.text.kubeconfig import host_of, prepare
from karpstack.text.proxies import is_loopback
from karpstack.text.shown import cut, visible

from ..connecting import TIMEOUTS, connect

_VOWELS = "aeiou"
_OF_EKS = (
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".amazonwebservices.com.cn",
    ".api.aws",
)  # how the names of its API servers end
_PAGE = 500  # objects, as kubectl asks for them
_REASON = 500  # characters of an answer that refuses
_AUDIT_ID = "Audit-Id"
_STRICT = {"fieldValidation": "Strict"}
_WRONG = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)  # of what was sent, not of who sent it


class ClusterError(Exception):
    """The API server is not there or refuses; or something does not go."""


class RefusedError(ClusterError):
    """The API server takes an object, or a change of one, for wrong.

    Args:
        what: What was asked of it, or where that was written.
        why: What is wrong, in its words.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: the API server refuses it: {why}")
        self.why = why


class Cluster:
    """Creates, reads, changes and deletes the objects of stories on the cluster that a kubeconfig names.

    Args:
        kubeconfig: The kubeconfig to connect with; None for the usual one.
        context: Its context; None for the current one, or for that with which a playbook began.

    Attributes:
        server: URL of its API server.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        self._api = connect(kubeconfig, context)
        self.server = str(self._api.configuration.host)

    def refuse_other(self, outputs: Mapping[str, Any]) -> None:
        """See that it is the cluster of a stack's outputs, by the address.

        A cluster of AKS has several addresses, and the name of a tunnel on this machine says nothing, unless it is
        that of another cluster of EKS: these pass.

        Raises:
            ClusterError: It is another one.
        """
        host = host_of(self._api.configuration)
        own = urlsplit(str(outputs.get("clusterEndpoint") or "")).hostname
        is_tunnel = is_loopback(str(self._api.configuration.host)) and not host.endswith(_OF_EKS)
        if outputs.get("cloud") == "aws" and own and host != own and not is_tunnel:
            raise ClusterError(
                f"KUBECONFIG names a cluster at {host}, and the stack's is at {own}, so the stories would change "
                "another cluster; export KUBECONFIG, as `pulumi stack output kubeconfig --show-secrets > kubeconfig` "
                f"writes it, or through a tunnel set its tls-server-name to {own}, without insecure-skip-tls-verify"
            )

    def create(self, wanted: Mapping[str, Any]) -> str | None:
        """Create an object; its uid, or None where there is one of that name already.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        created = self._ask("POST", _collection(wanted), wanted, HTTPStatus.CONFLICT)
        return str(created["metadata"]["uid"]) if created else None

    def tried(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """An object as it would be if it were created; it is not.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        return self._ask("POST", _collection(wanted), wanted, query={"dryRun": "All"}) or {}

    def bind(self, pod: Mapping[str, Any], node: str) -> bool:
        """Give a pod its node, as the scheduler does; False where it is gone or has one.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"{_paths('v1', 'Pod', namespace)}/{name}/binding"
        return self._ask("POST", path, binding, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT) is not None

    def read(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """What has the kind and the name of an object; None where there is nothing.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        return self._ask("GET", _path(wanted), None, HTTPStatus.NOT_FOUND)

    def labelled(self, api_version: str, kind: str, selector: str, fields: str = "") -> list[dict[str, Any]]:
        """What there is of a kind, in all namespaces, by its labels; nothing where the cluster has no such kind.

        Args:
            api_version: API version of the kind.
            kind: The kind.
            selector: Which labels it has; empty for any.
            fields: Which fields, `spec.nodeName=x` for example; empty for any.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        query = {"labelSelector": selector, "limit": str(_PAGE), **({"fieldSelector": fields} if fields else {})}
        found: list[dict[str, Any]] = []
        for _ in range(PAGES):
            page = self._ask("GET", _paths(api_version, kind), None, HTTPStatus.NOT_FOUND, query=query)
            if page is None:
                return found
            found += page.get("items") or ()
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return found
            query |= {"continue": following}
        raise ClusterError(f"GET {_paths(api_version, kind)}: its pages have no end; is the API server there?")

    def evict(self, pod: Mapping[str, Any]) -> str:
        """Ask for the end of a pod as `kubectl drain` does; why it must stay for now, empty if it goes or is gone.

        Raises:
            ClusterError: The API server does not answer, or refuses for another reason than a disruption budget.
        """
        name, namespace, uid = (pod["metadata"][key] for key in ("name", "namespace", "uid"))
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{_paths('v1', 'Pod', namespace)}/{name}/eviction"
        # The second where more than one budget selects it; gone, or another pod of that name is there by now.
        held = HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR
        status, content = self._answered("POST", path, eviction, *held, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
        if status not in held:
            return ""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR and MORE_THAN_ONE.encode() not in content:
            raise ClusterError(f"POST {path}: {status} {_said(content)}")
        return _said(content)

    def delete(self, wanted: Mapping[str, Any], uid: str) -> bool:
        """Ask for the end of the object that has this uid; False where it is not there any more.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        # In the foreground: a NodePool is gone only when no NodeClaim of it is left.
        policy = "Foreground" if wanted["kind"] == "NodePool" else "Background"
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {"uid": uid},
        }
        gone = HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT
        return self._ask("DELETE", _path(wanted), options, *gone) is not None

    def change(self, wanted: Mapping[str, Any], patch: Mapping[str, Any]) -> None:
        """Change what has the kind and the name of an object by a JSON merge patch.

        Raises:
            ClusterError: There is none, or the API server does not answer or refuses.
        """
        self._ask("PATCH", _path(wanted), patch)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *expected: HTTPStatus,
        query: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any] | None:
        """The answer to a request; None if it has one of the expected statuses."""
        status, content = self._answered(method, path, body, *expected, query=query)
        if status in expected:
            return None
        try:
            answer = parse(content)
            if "kind" not in answer:  # each answer of an API server has one, also a list
                raise AnswerError(f"the answer is no object of Kubernetes: {begins(content)}")
            return answer
        except AnswerError as error:
            raise ClusterError(f"{method} {path}: {visible(error)}; is the API server there?") from error

    def _answered(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        *expected: HTTPStatus,
        query: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int, bytes]:
        """Status and content of the answer to a request that succeeds, or has one of the expected statuses."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        asked = {**query, **(_STRICT if method in ("POST", "PATCH") else {})}
        resource = f"{path}?{urlencode(asked)}" if asked else path
        try:
            send = prepare(self._api, method, resource, TIMEOUTS, body=body, kind=kind)
            answer, content = read(send, lambda answer: answer.response)
        except (urllib3.exceptions.HTTPError, AnswerError, OSError, ValueError) as error:
            raise ClusterError(f"{method} {path}: {visible(error)}; is the API server there?") from error
        if answer.status in _WRONG and answer.status not in expected:
            raise RefusedError(f"{method} {path}", _said(content))
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED, *expected):
            raise ClusterError(f"{method} {path}: {answer.status} {_said(content)}")
        if answer.status == HTTPStatus.NOT_FOUND and not _is_absent(path, content, answer.headers):
            raise ClusterError(f"{method} {path}: 404, and not as an API server says it: {_said(content)}")
        return answer.status, content


def _is_absent(path: str, content: bytes, headers: Mapping[str, str]) -> bool:
    """Whether a 404 is an API server's, and not that of a proxy before it.

    Of a kind that it does not know it says it in plain text, as many servers do, but with the header that it gives each
    answer (apiserver, endpoints/filters/audit_init.go); the kinds of Kubernetes itself it knows.
    """
    if content.strip() == b"404 page not found":
        return _AUDIT_ID in headers and path.startswith("/apis/") and "." in path.split("/")[2]
    try:
        return bool(json.loads(content)["kind"] == "Status")
    except (LookupError, RecursionError, TypeError, ValueError):
        return False


def _said(content: bytes) -> str:
    """What an API server says in an answer that is none: a Status with its causes, or text.

    One that has too much to do says so in plain text (apiserver, filters/maxinflight.go, tooManyRequests).
    """
    try:
        said = json.loads(content)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not said.get("message"):
        return cut(visible(content.decode(errors="replace").strip()), _REASON)
    message = str(said["message"])
    # Of a refused patch it quotes the whole object that would have come of it before that.
    _, strict, unknown = message.rpartition("strict decoding error: ")
    if strict:
        return cut(visible(unknown), _REASON)
    causes = [
        ": ".join(filter(None, (str(cause.get("field") or ""), str(cause.get("message") or ""))))
        for cause in (said.get("details") or {}).get("causes") or ()
    ]
    # Of an invalid object the message holds the causes already.
    return cut(visible("; ".join([message, *(cause for cause in causes if cause not in message)])), _REASON)


def _collection(wanted: Mapping[str, Any]) -> str:
    return _paths(wanted["apiVersion"], wanted["kind"], wanted["metadata"].get("namespace"))


def _paths(api_version: str, kind: str, namespace: str | None = None) -> str:
    group = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    # of a policy, but not of an overlay
    plural = f"{plural[:-2]}ies" if kind.endswith("y") and kind[-2] not in _VOWELS else plural
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


def _path(wanted: Mapping[str, Any]) -> str:
    return f"{_collection(wanted)}/{wanted['metadata']['name']}"
