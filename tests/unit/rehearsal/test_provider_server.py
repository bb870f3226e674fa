"""The provider server, called as the engine would call it, without a socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from karpstack.rehearsal.attachment import values
from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import (
    UNKNOWN,
    Created,
    Failure,
    IncompleteError,
    Properties,
    RefusedError,
    Resource,
)
from karpstack.rehearsal.attachment.server import Servicer
from karpstack.rehearsal.attachment.values import Secret, decode, encode
from tests.unit.rehearsal.resource_world import AbortedError, Context
from tests.unit.rehearsal.steps import Row, Steps, cases

URN = "urn:pulumi:test::project::fake:index:Bucket::logical"


class Bucket(Resource):
    """A resource that remembers its calls."""

    token = "fake:index:Bucket"
    accepts = frozenset({"name", "size", "tags", "rules", "password", "region"})
    replace_on = frozenset({"name", "rules.zone", "region"})
    secret_outputs = frozenset({"key"})
    name_property = "name"
    default_timeout = 77.0

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.stored: Properties | None = {"name": "n"}
        self.problem: Exception | None = None

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        failures = [Failure("size", "size 0 holds nothing; set 1 or more")] if inputs.get("size") == 0 else []
        return {"size": 1, **inputs}, failures

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        self.calls.append(("create", inputs, timeout))
        if self.problem:
            raise self.problem
        return Created("id-1", {**inputs, "arn": "arn:1", "key": "k"})

    def read(self, id: str, state: Properties) -> Properties | None:
        self.calls.append(("read", id, state))
        return self.stored

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        self.calls.append(("update", id, old, new, timeout))
        if self.problem:
            raise self.problem
        return {**new, "arn": "arn:1", "key": "k"}

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        self.calls.append(("delete", id, state, timeout))


class Volume(Bucket):
    """The same under another name, without automatic names."""

    token = "fake:index:Volume"
    name_property: str = ""


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def servicer(bucket: Bucket) -> Servicer:
    invokes = {"fake:index:sum": lambda arguments: {"sum": arguments["a"] + arguments["b"]}}

    def configure(settings: Properties, cancelled: threading.Event) -> Provider:
        if settings.get("region") == "nowhere":
            raise RefusedError("no such region: nowhere")
        return Provider([bucket], invokes, lambda token: Volume() if token == Volume.token else None)

    servicer = Servicer(
        "fake",
        "1.2.3",
        Configuration(
            frozenset({"region"}),
            configure,
            lambda old, new: ["region"] if old.get("region") != new.get("region") else [],
        ),
    )
    servicer.Configure(provider_pb2.ConfigureRequest(args=encode({"region": "here"})), Context())
    return servicer


class Engine:
    """The calls of an engine to a server, with plain values."""

    def __init__(self, servicer: Servicer, bucket: Bucket) -> None:
        self._servicer, self._bucket = servicer, bucket

    def _who(self, kind: str = Bucket.token) -> dict[str, Any]:
        return {"urn": URN, "type": kind}

    def check(self, news: Properties, olds: Properties | None = None, type: str = Bucket.token, mode: str = "") -> Any:
        options = provider_pb2.CheckRequest.AutonamingOptions
        autonaming = options(proposed_name="theirs", mode=getattr(options, mode)) if mode else None
        request = provider_pb2.CheckRequest(
            **self._who(type),
            name="logical",
            news=encode(news),
            olds=encode(olds or {}),
            randomSeed=bytes.fromhex("0123456789abcdef"),
            autonaming=autonaming,
        )
        answer = self._servicer.Check(request, Context())
        failures = {failure.property: failure.reason for failure in answer.failures}
        return {"inputs": decode(answer.inputs), "failures": failures}

    def name(self, **form: Any) -> Any:
        vars(self._bucket).update(form)
        return self.check({})["inputs"]["name"]

    def diff(self, old: Properties, new: Properties) -> Any:
        request = provider_pb2.DiffRequest(
            **self._who(), id="id-1", old_inputs=encode(old), news=encode(new), olds=encode({"arn": "other"})
        )
        answer = self._servicer.Diff(request, Context())
        kinds = provider_pb2.PropertyDiff.Kind
        return {
            "changes": provider_pb2.DiffResponse.DiffChanges.Name(answer.changes),
            "kinds": {path: kinds.Name(change.kind) for path, change in answer.detailedDiff.items()},
            "diffs": list(answer.diffs),
            "replaces": list(answer.replaces),
            "first": answer.deleteBeforeReplace,
        }

    def diff_config(self, old: Properties, new: Properties) -> list[str]:
        request = provider_pb2.DiffRequest(urn=URN, old_inputs=encode(old), news=encode(new))
        return list(self._servicer.DiffConfig(request, Context()).replaces)

    def create(
        self, type: str = Bucket.token, peer: str = "", properties: Properties | None = None, **more: Any
    ) -> Any:
        request = provider_pb2.CreateRequest(**self._who(type), properties=encode(properties or {}), **more)
        answer = self._servicer.Create(request, Context(peer) if peer else Context())
        return {"id": answer.id, "properties": decode(answer.properties)}

    def update(self, **given: Any) -> Any:
        encoded: dict[str, Any] = {
            key: encode(value) if isinstance(value, dict) else value for key, value in given.items()
        }
        request = provider_pb2.UpdateRequest(**self._who(), **encoded)
        return decode(self._servicer.Update(request, Context()).properties)

    def delete(self, timeout: int) -> None:
        self._servicer.Delete(provider_pb2.DeleteRequest(**self._who(), timeout=timeout), Context())

    def read(self, **given: Properties) -> Any:
        encoded: dict[str, Any] = {key: encode(value) for key, value in given.items()}
        answer = self._servicer.Read(provider_pb2.ReadRequest(**self._who(), id="id-1", **encoded), Context())
        return {"id": answer.id, "inputs": decode(answer.inputs), "properties": decode(answer.properties)}

    def invoke(self, function: str, arguments: Properties) -> Properties:
        request = provider_pb2.InvokeRequest(tok=function, args=encode(arguments))
        return decode(getattr(self._servicer.Invoke(request, Context()), "return"))

    def construct(self, kind: str) -> None:
        self._servicer.Construct(provider_pb2.ConstructRequest(type=kind), Context())

    def call(self, method: str) -> None:
        self._servicer.Call(provider_pb2.CallRequest(tok=method), Context())

    def check_config(self, **news: Any) -> list[str]:
        request = provider_pb2.CheckRequest(urn=URN, news=encode(news))
        (failure,) = self._servicer.CheckConfig(request, Context()).failures
        return [failure.property, failure.reason]

    def configure(self, peer: str, settings: Properties) -> None:
        self._servicer.Configure(provider_pb2.ConfigureRequest(args=encode(settings)), Context(peer))

    def calls(self) -> list[list[Any]]:
        return [[*call] for call in self._bucket.calls]

    def store(self, **stored: Any) -> None:
        self._bucket.stored = stored or None

    def __getattr__(self, name: str) -> Any:
        assert name == "break"  # a word of Python's
        return lambda text: setattr(self._bucket, "problem", RefusedError(text))


KNOWN = {"unknown": UNKNOWN, "secret unknown": Secret(UNKNOWN), "secret list": Secret([1, 2])}
KNOWN |= {f"secret {value}": Secret(value) for value in (0, 1, 2, 3, "p", "k")}


@pytest.mark.parametrize("rows", cases("provider_server.yaml"))
def test_calls_of_the_engine(servicer: Servicer, bucket: Bucket, rows: list[Row]) -> None:
    engine = Engine(servicer, bucket)
    Steps(lambda name: {"engine": engine}[name], KNOWN).run(rows)


def refused(call: Callable[[Any, Any], Any], request: Any, context: Context | None = None) -> Context:
    context = context or Context()
    with pytest.raises(AbortedError):
        call(request, context)
    return context


def test_a_failure_of_the_stand_in_is_shown_and_logged(
    servicer: Servicer, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.problem = KeyError("vpcId")
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token))
    assert context.code == grpc.StatusCode.UNKNOWN
    assert "KeyError: 'vpcId'" in context.text
    assert "Traceback" in caplog.text


def test_a_refusal_neither_steers_a_terminal_nor_is_longer_than_a_header(servicer: Servicer, bucket: Bucket) -> None:
    bucket.problem = RefusedError("a\x1b[2Jb\u202e" + "x" * 20_000)
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token))
    assert context.text.startswith("a\\x1b[2Jb\\u202exxx")
    assert len(context.text) == 4_000


def test_an_incomplete_resource_is_recorded(servicer: Servicer, bucket: Bucket) -> None:
    bucket.problem = IncompleteError("no node joined", Created("id-9", {"password": "p"}))
    context = refused(
        servicer.Create,
        provider_pb2.CreateRequest(urn=URN, type=Bucket.token, properties=encode({"password": Secret("p")})),
    )
    status = status_pb2.Status.FromString(context.metadata["grpc-status-details-bin"])
    detail = provider_pb2.ErrorResourceInitFailed()
    status.details[0].Unpack(detail)
    assert (detail.id, list(detail.reasons)) == ("id-9", ["no node joined"])
    assert decode(detail.properties) == {"password": Secret("p")}


def test_instances_are_told_apart_by_their_connection(bucket: Bucket) -> None:
    class Regional(Bucket):
        def __init__(self, region: str) -> None:
            super().__init__()
            self.region = region

        def create(self, inputs: Properties, *, timeout: float) -> Created:
            return Created(self.region, {})

    servicer = Servicer(
        "fake",
        "1",
        Configuration(frozenset({"region"}), lambda settings, cancelled: Provider([Regional(settings["region"])])),
    )
    for peer, region in (("a", "here"), ("b", "there")):
        servicer.Configure(provider_pb2.ConfigureRequest(args=encode({"region": region})), Context(peer))
    request = provider_pb2.CreateRequest(urn=URN, type=Bucket.token)
    assert [servicer.Create(request, Context(peer)).id for peer in ("a", "b")] == ["here", "there"]


@pytest.mark.parametrize("lost", [True, False])
def test_waits_end_when_the_deployment_does(lost: bool) -> None:
    events: list[threading.Event] = []

    class Waiting(Bucket):
        def create(self, inputs: Properties, *, timeout: float) -> Created:
            if lost:
                for callback in context.callbacks:
                    callback()
            else:
                servicer.Cancel(empty_pb2.Empty(), Context())
            raise RefusedError("cancelled" if events[0].is_set() else "not cancelled")

    def configure(settings: Properties, cancelled: threading.Event) -> Provider:
        events.append(cancelled)
        return Provider([Waiting()])

    servicer = Servicer("fake", "1", Configuration(frozenset(), configure))
    servicer.Configure(provider_pb2.ConfigureRequest(), Context())
    context = Context()
    refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token), context)
    assert context.text == "cancelled"


def test_an_answered_call_cancels_nothing(bucket: Bucket) -> None:
    events: list[threading.Event] = []

    def configure(settings: Properties, cancelled: threading.Event) -> Provider:
        events.append(cancelled)
        return Provider([bucket])

    servicer = Servicer("fake", "1", Configuration(frozenset(), configure))
    servicer.Configure(provider_pb2.ConfigureRequest(), Context())
    context = Context()
    servicer.Create(provider_pb2.CreateRequest(urn=URN, type=Bucket.token), context)
    for callback in context.callbacks:
        callback()
    assert not events[0].is_set()


@pytest.mark.parametrize("value", [{}, [], {"a": {}}, [[]], None, 1.5, -3, True, "", {"a": [{"b": None}]}])
def test_values_survive_the_wire(value: Any) -> None:
    assert decode(encode({"x": value})) == {"x": value}


def test_every_kind_of_unknown_is_read() -> None:
    struct = encode({})
    struct.update({"list": "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", "string": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"})
    assert decode(struct) == {"list": UNKNOWN, "string": UNKNOWN}


def test_what_has_no_form_on_the_wire_is_named() -> None:
    with pytest.raises(TypeError, match=r"a\.b\[1\]: a value of type object"):
        encode({"a": {"b": [1, object()]}})


def test_a_secret_does_not_show_itself() -> None:
    assert "hunter2" not in repr(Secret("hunter2"))
    assert not values.has_secrets({"a": ["hunter2"]})
    assert values.has_secrets({"a": [Secret("hunter2")]})
