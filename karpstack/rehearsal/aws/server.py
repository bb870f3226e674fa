"""The one HTTP server of the simulated account, on a loopback port of its own.

It serves those of moto's services that the account has; the price list (a request addressed to its target); whether a
cluster is enabled for zonal shift; and the Pod Identity agent of each cluster at
`/pod-identity/<cluster>/v1/credentials`. Whatever else moto would serve (its own dashboard and recorder, the instance
metadata, S3 for everything that it cannot place) is not there.

Changes in moto: no `Access-Control-Allow-Origin`.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from botocore.model import OperationNotFoundError

from karpstack.rehearsal.aws import errors, shapes
from karpstack.rehearsal.aws.iam import questions
from karpstack.rehearsal.aws.iam.pod_credentials import CredentialError
from karpstack.rehearsal.aws.iam.roles import INVALID_TOKEN
from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.host.guard import LOOPBACK, GuardedHandler, OwnUserServer
from karpstack.rehearsal.host.loopback import Loopback
from karpstack.rehearsal.recorded_rights import Question

#: Services that are served, by their names in signatures; moto has them. Each of them asks `roles` about each request's
#: caller.
SERVICES: Final = frozenset(
    {"ec2", "eks", "elasticloadbalancing", "events", "iam", "kms", "logs", "servicequotas", "sqs", "ssm", "sts"}
)
#: moto's names of those that it calls otherwise.
BACKENDS: Final = {"elasticloadbalancing": "elb"}

_ZONAL_SHIFT, _MANAGED_RESOURCES = "arc-zonal-shift", "/managedresources/"
_NOT_MANAGED = "The resource {arn} is not enabled for zonal shift"
_PREFIX, _SUFFIX = "/pod-identity/", "/v1/credentials"
_PRICING_TARGET = "AWSPriceListService."
_GET_PRODUCTS = "GetProducts"
# Key and service of a signature, version 4.
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/, ]+)/\d+/[^/, ]+/(?P<service>[^/, ]+)/aws4_request")
# The one service that may be asked without a signature, for one action: a pod's token for credentials.
_UNSIGNED = "sts"
_JSON = "application/x-amz-json-1.1"
_NOT_SIGNED = "Authorization header requires 'Credential' parameter: only signatures of version 4 are known."
_FAILED = "The rehearsal's AWS failed at this request to {service}: {error}; its logs/daemon.log says more"
_LONGEST_REASON = 200
_NOT_KNOWN = "UnrecognizedClientException", INVALID_TOKEN
_log = logging.getLogger(__name__)

StartResponse = Callable[..., Any]


def credentials_path(cluster: str) -> str:
    """Path of a cluster's Pod Identity agent."""
    return f"{_PREFIX}{cluster}{_SUFFIX}"


class Server:
    """moto and its neighbours behind one port."""

    def __init__(
        self,
        get_products: Callable[[dict[str, Any]], dict[str, Any]],
        credentials: Callable[[str, str], dict[str, str]],
        denial: Callable[[str, Question], tuple[str, str] | None],
        has_zonal_shift: Callable[[str], bool],
    ) -> None:
        """Make it.

        Args:
            get_products: Answers the price list's request.
            credentials: What a cluster's Pod Identity agent gives for a token.
            denial: Why whoever has an access key may not do something: error code and text; None when they may.
            has_zonal_shift: Whether AWS may take traffic away from a zone of the resource of an ARN.
        """
        self._get_products = get_products
        self._credentials = credentials
        self._denial = denial
        self._has_zonal_shift = has_zonal_shift
        self._loopback: Loopback | None = None
        self._applications: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        """`http://127.0.0.1:<port>`.

        Raises:
            RuntimeError: It does not listen.
        """
        if self._loopback is None:
            raise RuntimeError("the account is not on the wire: call start() first")
        return self._loopback.url

    def start(self, patches: Patches) -> None:
        """Listen on a free port of the loopback interface."""
        from moto.moto_server import werkzeug_app
        from werkzeug.serving import ThreadedWSGIServer

        class Guarded(OwnUserServer, ThreadedWSGIServer):
            """With connections of this user only."""

        class Handler(GuardedHandler, werkzeug_app.MotoRequestHandler):
            """Without a line in the log for each request."""

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                _log.debug("%s %s", self.requestline, code)

        patches.set(werkzeug_app, "DISABLE_GLOBAL_CORS", True)
        self._loopback = Loopback(Guarded(LOOPBACK, 0, self, Handler), "aws")
        self._loopback.start()

    def stop(self) -> None:
        """Close the port; safe to call twice."""
        if self._loopback is not None:
            self._loopback.stop()
            self._loopback = None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Route one WSGI request."""
        path = environ.get("PATH_INFO", "")
        if path.startswith(_PREFIX) and path.endswith(_SUFFIX):
            cluster = path.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            return self._pod_identity(cluster, environ.get("HTTP_AUTHORIZATION", ""), start_response)
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        signed = _SIGNED.match(authorization)
        if environ.get("HTTP_X_AMZ_TARGET", "").startswith(_PRICING_TARGET):
            denial = self._denial(signed["key"], questions.get_products()) if signed else _NOT_KNOWN
            if denial:
                return _refuse(start_response, "400 Bad Request", *denial)
            return self._pricing(environ, start_response)
        if authorization and not signed:
            return _refuse(start_response, "400 Bad Request", "IncompleteSignatureException", _NOT_SIGNED)
        service = signed["service"].lower() if signed else _UNSIGNED
        if signed and service == _ZONAL_SHIFT and path.startswith(_MANAGED_RESOURCES):
            return self._zonal_shift(path.removeprefix(_MANAGED_RESOURCES), signed["key"], start_response)
        if service not in SERVICES:
            return _refuse(
                start_response,
                "501 Not Implemented",
                "NotImplementedException",
                f"The rehearsal's AWS has no {service}; it has {', '.join(sorted(SERVICES))}, pricing",
            )
        environ.pop("HTTP_X_MOTO_ACCOUNT_ID", None)  # with it, moto would answer for any account
        try:
            answer: Iterable[bytes] = self._application(service)(environ, start_response)
        except OperationNotFoundError as error:
            text = errors.NO_ACTION.format(action=str(error)[:_LONGEST_REASON], service=service)
            return _answer_error(start_response, environ, service, "400 Bad Request", "InvalidAction", text)
        except Exception as error:  # moto believes its requests, and fails at those that no SDK would send
            _log.exception("%s %s of %s", environ.get("REQUEST_METHOD"), path, service)
            text = _FAILED.format(service=service, error=repr(error)[:_LONGEST_REASON])
            return _answer_error(start_response, environ, service, "500 Internal Server Error", "InternalFailure", text)
        return answer

    def _application(self, service: Any) -> Any:
        from moto.moto_server.werkzeug_app import create_backend_app

        with self._lock:
            if service not in self._applications:
                self._applications[service] = create_backend_app(BACKENDS.get(service, service))
            return self._applications[service]

    def _pod_identity(self, cluster: str, token: str, start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = json.dumps(self._credentials(cluster, token)).encode()
        except CredentialError as error:
            _log.warning("pod identity of %s: %s", cluster, error)
            return _send(start_response, f"{error.status} Refused", "text/plain", str(error).encode())
        return _send(start_response, "200 OK", "application/json", body)

    def _zonal_shift(self, arn: str, key: str, start_response: StartResponse) -> Iterable[bytes]:
        """GetManagedResource: from no zone is traffic ever taken away here."""
        if denial := self._denial(key, questions.get_managed_resource(arn)):
            return _refuse(start_response, "403 Forbidden", *denial)
        if not self._has_zonal_shift(arn):
            return _refuse(start_response, "404 Not Found", "ResourceNotFoundException", _NOT_MANAGED.format(arn=arn))
        found = {"arn": arn, "name": arn.rpartition("/")[2], "appliedWeights": {}, "autoshifts": [], "zonalShifts": []}
        return _send(start_response, "200 OK", "application/json", json.dumps(found).encode())

    def _pricing(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        action = environ["HTTP_X_AMZ_TARGET"].removeprefix(_PRICING_TARGET)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        problem = f"The rehearsal has no pricing:{action}" if action != _GET_PRODUCTS else _malformed(body)
        if problem:
            return _refuse(start_response, "400 Bad Request", "InvalidParameterException", problem)
        return _send(start_response, "200 OK", _JSON, json.dumps(self._get_products(json.loads(body))).encode())


def _malformed(body: bytes) -> str:
    from moto.core.utils import get_service_model

    return shapes.problem(get_service_model("pricing").operation_model(_GET_PRODUCTS), body)


def _refuse(start_response: StartResponse, status: str, code: str, text: str) -> list[bytes]:
    return _send(start_response, status, _JSON, json.dumps({"__type": code, "Message": text}).encode())


def _answer_error(
    start_response: StartResponse, environ: dict[str, Any], service: str, status: str, code: str, text: str
) -> list[bytes]:
    is_json = "json" in environ.get("CONTENT_TYPE", "")
    return _send(start_response, status, *errors.on_the_wire(service, is_json, code, text))


def _send(start_response: StartResponse, status: str, kind: str, body: bytes) -> list[bytes]:
    identity = ("x-amzn-RequestId", str(uuid.uuid4()))  # AWS's every answer has one
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body))), identity])
    return [body]
