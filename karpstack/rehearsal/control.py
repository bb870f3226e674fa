"""The rehearsal's control endpoint: what a cloud's people, weather and load do, on request.

JSON over HTTP, on loopback, for scale tests that break things on purpose; commands on the stack find it in
`KARPSTACK_REHEARSAL_URL`, and the token that it wants to see in `KARPSTACK_REHEARSAL_TOKEN`. `Control` checks requests
and keeps the list of faults; what a fault is in a cloud's API is its adapter's matter (`Cloud`).
"""

from __future__ import annotations

import difflib
import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any, Final, Protocol

from karpstack.rehearsal.host.guard import LOOPBACK, GuardedHandler, OwnUserServer
from karpstack.rehearsal.host.loopback import Loopback
from karpstack.rehearsal.host.processes import EngineCrashError

#: Variables with the endpoint's URL, and with the bearer token that it wants to see.
URL_VARIABLE: Final = "KARPSTACK_REHEARSAL_URL"
TOKEN_VARIABLE: Final = "KARPSTACK_REHEARSAL_TOKEN"  # noqa: S105 - the name of a variable
CAPACITY_TYPES: Final = ("spot", "on-demand")
INTERRUPTIONS: Final = ("interruption", "rebalance")

_FEW = 3
_JSON = "application/json"
_MOST_CALLS = 10_000
_LONGEST_SKIP = 3600
_LARGEST_BODY = 65_536
_LONGEST_VALUE = 200
_log = logging.getLogger(__name__)

Body = Mapping[str, Any]
#: Tells how often a fault has hit.
Hits = Callable[[], int]


#: Why no time can be skipped.
_NO_SKIPS: Final = "the cluster's time cannot jump; bring it up with --days, and with a --speed above 1"


class ControlError(Exception):
    """A request that is refused; the text names key, value, what would have happened, and the fix.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Cloud(Protocol):
    """What the endpoint asks of a simulated cloud. Methods are called from several threads."""

    def instance_types(self) -> Collection[str]:
        """The instance types (VM sizes) that the region sells."""
        ...

    def zones(self) -> Collection[str]:
        """The zones of the region, as nodes are labelled with them."""
        ...

    def out_of_capacity(self, instance_type: str, capacity_type: str, zone: str) -> Hits:
        """From now on refuse launches as the cloud does that has no capacity.

        Args:
            instance_type: The type; every one when empty.
            capacity_type: `spot` or `on-demand`; both when empty.
            zone: The zone; every one when empty.
        """
        ...

    def throttle(self, calls: int) -> Hits:
        """Answer the next so many launching calls as the cloud throttles."""
        ...

    def end_faults(self) -> None:
        """Refuse nothing any more."""
        ...

    def interrupt(self, kind: str, instance: str) -> Sequence[Body]:
        """Let the cloud announce on its event bus that it takes an instance back, or may do so soon.

        Args:
            kind: One of `INTERRUPTIONS`.
            instance: Provider ID of a node, or the instance's id.

        Returns:
            What became of the event at each queue of a rule that matches: `queue`, and `problem`, empty when it
            arrived.

        Raises:
            ControlError: The cloud has no such event, or would not send it for this instance.
        """
        ...

    def publish_image(self) -> Sequence[str]:
        """Publish the next release of the images of nodes, which is from now on the newest; the releases."""
        ...

    def resources(self) -> Body:
        """What there is of Karpenter's making, lists by kind; `instances` with `id` and `nodeclaim`."""
        ...

    def stop(self) -> None:
        """Forget what is still to happen."""
        ...


@dataclass(frozen=True)
class _Fault:
    request: Body
    hits: Sequence[Hits]

    def shown(self) -> Body:
        return {**self.request, "hits": sum(count() for count in self.hits)}


class Control:
    """The endpoint without its port."""

    def __init__(
        self, cloud: Cloud, restarts: Mapping[str, Callable[[], None]], skip: Callable[[float], None] | None = None
    ) -> None:
        """Make it.

        Args:
            restarts: Name of an engine -> what restarts it and returns when it is ready again. It raises `LookupError`
                when the engine does not run, `EngineCrashError` or `TimeoutError` when it does not get ready.
            skip: Lets the cluster's time jump ahead by so many seconds; None where it is the machine's.
        """
        self._cloud = cloud
        self._restarts = restarts
        self._skip = skip
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()
        self._routes: Mapping[str, Mapping[str, Callable[[Body], Body]]] = {
            "/faults": {"GET": self._show_faults, "POST": self._add_fault, "DELETE": self._end_faults},
            "/interruptions": {"POST": self._interrupt},
            "/images": {"POST": self._publish_image},
            "/restarts": {"POST": self._restart},
            "/clock": {"POST": self._skip_time},
            "/resources": {"GET": lambda _: self._cloud.resources()},
        }

    def answer(self, method: str, path: str, body: bytes = b"") -> tuple[int, Body]:
        """Answer one request: HTTP status, and the answer's body."""
        try:
            return 200, self._handler(method, path)(_parsed(body))
        except ControlError as error:
            return error.status, {"error": str(error)}
        except Exception as error:
            _log.exception("%s %s", method, path)
            return 500, {"error": f"{method} {path} failed: {error!r}; the rehearsal's logs/daemon.log says more"}

    def stop(self) -> None:
        """Forget what is still to happen."""
        self._cloud.stop()

    def _handler(self, method: str, path: str) -> Callable[[Body], Body]:
        methods = self._routes.get(path.partition("?")[0].rstrip("/"))
        if methods is None:
            raise ControlError(f"the control endpoint has no {path}; it has {', '.join(self._routes)}", 404)
        if method not in methods:
            raise ControlError(f"{path} does not take {method}, so nothing was done; use {', '.join(methods)}", 405)
        return methods[method]

    def _show_faults(self, body: Body) -> Body:
        with self._lock:
            return {"faults": [fault.shown() for fault in self._faults]}

    def _end_faults(self, body: Body) -> Body:
        with self._lock:
            self._cloud.end_faults()
            ended = [fault.shown() for fault in self._faults]
            self._faults.clear()
            return {"faults": ended}

    def _add_fault(self, body: Body) -> Body:
        kinds = {"out-of-capacity": self._out_of_capacity, "throttle": self._throttle}
        add = kinds[_one_of(body, "kind", kinds, "no call would fail")]
        with self._lock:
            fault = _Fault(dict(body), add(body))
            self._faults.append(fault)
            return fault.shown()

    def _out_of_capacity(self, body: Body) -> Sequence[Hits]:
        _only(body, "kind", "instanceTypes", "capacityTypes", "zones")
        nothing = "no launch would ever meet this fault"
        narrowed = "capacityTypes" in body or "zones" in body
        types = _some_of(body, "instanceTypes", self._cloud.instance_types(), nothing, required=not narrowed)
        capacity_types = _some_of(body, "capacityTypes", CAPACITY_TYPES, nothing)
        zones = _some_of(body, "zones", self._cloud.zones(), nothing)
        return [
            self._cloud.out_of_capacity(instance_type, capacity_type, zone)
            for instance_type in types
            for capacity_type in capacity_types
            for zone in zones
        ]

    def _throttle(self, body: Body) -> Sequence[Hits]:
        _only(body, "kind", "calls")
        calls = body.get("calls")
        fix = f"give a whole number from 1 to {_MOST_CALLS}"
        if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
            raise _refusal(body, "calls", "no call would be throttled", fix)
        if calls > _MOST_CALLS:
            raise _refusal(body, "calls", "no launch would succeed before the stack is down", fix)
        return [self._cloud.throttle(calls)]

    def _interrupt(self, body: Body) -> Body:
        _only(body, "kind", "instance")
        kind = _one_of(body, "kind", INTERRUPTIONS, "no event would be sent")
        instance = body.get("instance")
        if not isinstance(instance, str) or not instance:
            raise _refusal(
                body, "instance", "no event would be sent", "give spec.providerID of a node, or an instance's id"
            )
        return {"deliveries": list(self._cloud.interrupt(kind, instance))}

    def _publish_image(self, body: Body) -> Body:
        _only(body)
        return {"published": list(self._cloud.publish_image())}

    def _skip_time(self, body: Body) -> Body:
        _only(body, "seconds")
        seconds = body.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_SKIP:
            fix = f"give a number of seconds, at most {_LONGEST_SKIP}"
            raise _refusal(body, "seconds", "no time would be skipped", fix)
        if self._skip is None:
            raise ControlError(_NO_SKIPS, 409)
        self._skip(seconds)
        return {"skipped": seconds}

    def _restart(self, body: Body) -> Body:
        _only(body, "engine")
        engine = _one_of(body, "engine", self._restarts, "nothing would be restarted")
        try:
            self._restarts[engine]()
        except LookupError as error:
            raise ControlError(f"engine = {json.dumps(engine)}: {error}", 409) from error
        except (EngineCrashError, TimeoutError) as error:
            raise ControlError(
                f"engine = {json.dumps(engine)}: it was stopped and did not come back: {error}", 503
            ) from error
        return {"engine": engine}


class ControlServer:
    """The endpoint's port, on the loopback interface.

    Attributes:
        token: What requests must show as `Authorization: Bearer`; another one for each server.
    """

    def __init__(self, control: Control) -> None:
        self.token = secrets.token_urlsafe(32)
        self._control = control
        self._loopback: Loopback | None = None

    def start(self) -> Mapping[str, str]:
        """Listen on a free port; the variables with which commands on the stack find the endpoint."""
        self._loopback = Loopback(_Server(self._control, self.token), "control")
        self._loopback.start()
        return {URL_VARIABLE: self._loopback.url, TOKEN_VARIABLE: self.token}

    def stop(self) -> None:
        """Close the port, and forget what is still to happen; safe to call twice."""
        if self._loopback is not None:
            self._loopback.stop()
            self._loopback = None
        self._control.stop()


class _Server(OwnUserServer, ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, control: Control, token: str) -> None:
        self.control = control
        self.token = token
        super().__init__((LOOPBACK, 0), _Handler)


class _Handler(GuardedHandler):
    server: _Server
    largest_body = _LARGEST_BODY

    def _answer(self) -> None:
        if not self._is_authorized():
            self.refuse(
                401, f"the request shows no token, so nothing was done; send Authorization: Bearer ${TOKEN_VARIABLE}"
            )
            return
        if self.content_length and self.headers.get_content_type() != _JSON:
            kind = str(self.headers.get("Content-Type"))[:_LONGEST_VALUE]
            self.refuse(415, f"Content-Type = {json.dumps(kind)}: nothing was done; send {_JSON}")
            return
        body = self.rfile.read(self.content_length)
        status, answer = self.server.control.answer(self.command, self.path, body)
        _log.info("%s %s %s: %d", self.command, self.path, body.decode(errors="replace"), status)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", _JSON)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _answer  # noqa: N815 - the names that http.server looks for

    def _is_authorized(self) -> bool:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), self.server.token.encode())

    def log_message(self, template: str, *args: Any) -> None:
        """`_answer` logs."""


def refusal(key: str, value: object, consequence: str, fix: str, status: int = 400) -> ControlError:
    """The refusal of a value."""
    return ControlError(f"{_shortened(key)} = {_shown(value)}: {consequence}; {fix}", status)


def _shown(value: object) -> str:
    """A value as JSON, its beginning where it is long."""
    return _shortened(json.dumps(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _refusal(body: Body, key: str, consequence: str, fix: str) -> ControlError:
    return (
        refusal(key, body[key], consequence, fix)
        if key in body
        else ControlError(f"{key} is missing: {consequence}; {fix}")
    )


def _parsed(body: bytes) -> Body:
    try:
        request = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ControlError(f"the body is not JSON ({error}), so nothing was done; send an object") from error
    if not isinstance(request, dict):
        raise ControlError(f"the body is {_shown(request)}, so nothing was done; send an object")
    return request


def _only(body: Body, *known: str) -> None:
    for key in body:
        if key not in known:
            fix = f"known: {', '.join(known)}" if known else "leave it out"
            raise _refusal(body, key, "is no key here, so it would change nothing", fix)


def _one_of(body: Body, key: str, known: Collection[str], consequence: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or value not in known:
        raise _refusal(body, key, consequence, f"use {_some(value, known)}")
    return value


def _some_of(
    body: Body, key: str, known: Collection[str], consequence: str, *, required: bool = False
) -> Sequence[str]:
    """The values of a list; `[""]`, which stands for all, where a list that is not required is missing."""
    if key not in body and not required:
        return [""]
    values = body.get(key)
    if not isinstance(values, list) or not values:
        raise _refusal(body, key, consequence, f"give a list of some of {_some('', known)}")
    for value in values:
        if not isinstance(value, str) or value not in known:
            raise refusal(key, value, consequence, f"use {_some(value, known)}")
    return list(dict.fromkeys(values))


def _some(value: object, known: Collection[str]) -> str:
    """The known values, or those like the wrong one where there are many."""
    if len(known) <= 2 * _FEW:
        return ", ".join(known)
    near = difflib.get_close_matches(str(value)[:_LONGEST_VALUE], known, _FEW, 0) or sorted(known)[:_FEW]
    return f"{', '.join(near)}, ... ({len(known)} in all)"
