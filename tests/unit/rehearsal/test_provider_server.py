"""The provider server, called as the engine would call it, without a socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from rehearsal.attachment import values
from rehearsal.attachment.package import Configuration, Provider
from rehearsal.attachment.resource import UNKNOWN, Created, Failure, IncompleteError, Properties, RefusedError, Resource
from rehearsal.attachment.server import Servicer
from rehearsal.attachment.values import Secret, decode, encode

URN = "urn:pulumi:test::project::fake:index:Bucket::logical"


class AbortedError(Exception):
    """What a real context raises to end the call."""


class Context:
    """The part of a gRPC context that the server uses."""

    def __init__(self, peer: str = "ipv4:127.0.0.1:1") -> None:
        self.address = peer
        self.code: grpc.StatusCode | None = None
        self.text = ""
        self.metadata: dict[str, bytes] = {}
        self.callbacks: list[Callable[[], None]] = []

    def peer(self) -> str:
        return self.address

    def abort(self, code: grpc.StatusCode, text: str) -> None:
        self.code, self.text = code, text
        raise AbortedError(text)

    def set_trailing_metadata(self, pairs: tuple[tuple[str, bytes], ...]) -> None:
        self.metadata = dict(pairs)

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self.callbacks.append(callback)
        return True


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


def check(
    servicer: Servicer, news: Properties, olds: Properties | None = None, **more: Any
) -> tuple[Properties, dict[str, str]]:
    request = provider_pb2.CheckRequest(
        urn=URN,
        type=more.pop("type", Bucket.token),
        name="logical",
        news=encode(news),
        olds=encode(olds or {}),
        randomSeed=bytes.fromhex("0123456789abcdef"),
        **more,
    )
    answer = servicer.Check(request, Context())
    return decode(answer.inputs), {failure.property: failure.reason for failure in answer.failures}


def refused(call: Callable[[Any, Any], Any], request: Any, context: Context | None = None) -> Context:
    context = context or Context()
    with pytest.raises(AbortedError):
        call(request, context)
    return context


def test_an_unknown_type_is_refused_with_what_is_known(servicer: Servicer) -> None:
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type="fake:index:Bukket"))
    assert context.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "fake:index:Bukket" in context.text
    assert "it knows fake:index:Bucket" in context.text


def test_the_fallback_finds_a_type_that_is_not_listed(servicer: Servicer) -> None:
    inputs, failures = check(servicer, {"size": 2}, type=Volume.token)
    assert inputs == {"size": 2}
    assert not failures


def test_an_unknown_property_is_refused_by_name(servicer: Servicer) -> None:
    _, failures = check(servicer, {"syze": 3, "size": 4})
    assert list(failures) == ["syze"]
    assert "it knows name, password, region, rules, size, tags" in failures["syze"]


def test_a_null_property_is_no_property(servicer: Servicer) -> None:
    assert check(servicer, {"syze": None})[1] == {}


def test_the_resource_judges_its_inputs(servicer: Servicer) -> None:
    assert check(servicer, {"size": 0})[1] == {"size": "size 0 holds nothing; set 1 or more"}


@pytest.mark.parametrize("value", [Secret(0), {"a": Secret("hunter2")}])
def test_a_failure_names_no_property_whose_value_the_engine_would_print(servicer: Servicer, value: Any) -> None:
    name = "syze" if isinstance(value, dict) else "size"
    (failure,) = check(servicer, {name: value})[1].items()
    assert failure[0] == ""
    assert failure[1].startswith(f"{name}: ")


def test_a_name_is_made_once_and_kept(servicer: Servicer) -> None:
    first, _ = check(servicer, {})
    assert first["name"] == "logical-0123456"
    second, _ = check(servicer, {}, {**first, "name": "logical-9999999"})
    assert second["name"] == "logical-9999999"


def test_a_name_of_the_program_is_not_kept_when_the_program_drops_it(servicer: Servicer) -> None:
    assert check(servicer, {}, {"name": "mine"})[0]["name"] == "logical-0123456"


@pytest.mark.parametrize(
    ("digits", "separator", "expected"),
    [(7, "-", "logical-0123456"), (8, "", "logical01234567"), (0, "-", "logical")],
)
def test_names_have_the_packages_form(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch, digits: int, separator: str, expected: str
) -> None:
    monkeypatch.setattr(Bucket, "name_digits", digits)
    monkeypatch.setattr(Bucket, "name_separator", separator)
    assert check(servicer, {})[0]["name"] == expected


@pytest.mark.parametrize(("mode", "expected"), [("PROPOSE", "theirs"), ("ENFORCE", "theirs"), ("DISABLE", None)])
def test_names_follow_the_stacks_autonaming(servicer: Servicer, mode: str, expected: str | None) -> None:
    options = provider_pb2.CheckRequest.AutonamingOptions
    autonaming = options(proposed_name="theirs", mode=getattr(options, mode))
    assert check(servicer, {}, autonaming=autonaming)[0].get("name") == expected


def test_unknowns_and_secrets_survive_the_check(servicer: Servicer) -> None:
    inputs, failures = check(
        servicer, {"name": UNKNOWN, "password": Secret("p"), "tags": {"a": Secret(UNKNOWN)}, "rules": [1, Secret(2)]}
    )
    assert not failures
    assert inputs == {
        "name": UNKNOWN,
        "size": 1,
        "password": Secret("p"),
        "tags": {"a": Secret(UNKNOWN)},
        "rules": Secret([1, 2]),
    }


def diff(servicer: Servicer, old: Properties, new: Properties) -> provider_pb2.DiffResponse:
    return servicer.Diff(
        provider_pb2.DiffRequest(
            urn=URN,
            type=Bucket.token,
            id="id-1",
            old_inputs=encode(old),
            news=encode(new),
            olds=encode({"arn": "other"}),
        ),
        Context(),
    )


def test_the_same_inputs_are_no_change(servicer: Servicer) -> None:
    inputs = {"name": "n", "tags": {"a": Secret("1")}, "size": 1}
    assert (
        diff(servicer, inputs, {**inputs, "tags": {"a": "1"}, "region": None}).changes
        == provider_pb2.DiffResponse.DIFF_NONE
    )


def test_changes_are_told_one_by_one(servicer: Servicer) -> None:
    answer = diff(
        servicer,
        {"size": 1, "tags": {"a.b": "1", "c": "2"}, "rules": [{"port": 1}]},
        {"size": 2, "tags": {"a.b": "x", "d": "3"}, "rules": [{"port": 2}, {"port": 3}]},
    )
    kinds = provider_pb2.PropertyDiff.Kind
    assert {path: kinds.Name(change.kind) for path, change in answer.detailedDiff.items()} == {
        "size": "UPDATE",
        'tags["a.b"]': "UPDATE",
        "tags.c": "DELETE",
        "tags.d": "ADD",
        "rules[0].port": "UPDATE",
        "rules[1]": "ADD",
    }
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(answer.diffs) == ["rules", "size", "tags"]
    assert not answer.replaces


def test_a_change_to_true_is_a_change_from_one(servicer: Servicer) -> None:
    assert diff(servicer, {"size": 1}, {"size": True}).changes == provider_pb2.DiffResponse.DIFF_SOME


def test_an_unknown_value_counts_as_changed(servicer: Servicer) -> None:
    answer = diff(servicer, {"name": "n", "region": "a"}, {"name": "n", "region": UNKNOWN})
    assert list(answer.replaces) == ["region"]


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({"name": "a"}, {"name": "b"}, ["name"]),
        ({"rules": {"zone": "a", "port": 1}}, {"rules": {"zone": "b", "port": 1}}, ["rules"]),
        ({"rules": {"zone": "a", "port": 1}}, {"rules": {"zone": "a", "port": 2}}, []),
        ({"rules": {"zone": "a"}}, {}, ["rules"]),
    ],
)
def test_what_replaces(servicer: Servicer, old: Properties, new: Properties, replaces: list[str]) -> None:
    assert list(diff(servicer, old, new).replaces) == replaces


def test_a_replacement_under_the_same_given_name_deletes_first(servicer: Servicer) -> None:
    old, new = {"name": "n", "region": "a"}, {"name": "n", "region": "b"}
    assert diff(servicer, old, new).deleteBeforeReplace
    mark = {"__defaults": ["name"]}
    assert not diff(servicer, {**old, **mark}, {**new, **mark}).deleteBeforeReplace
    assert not diff(servicer, {**old}, {**old, "size": 3}).deleteBeforeReplace


def test_create_reveals_inputs_and_hides_outputs(servicer: Servicer, bucket: Bucket) -> None:
    answer = servicer.Create(
        provider_pb2.CreateRequest(
            urn=URN,
            type=Bucket.token,
            properties=encode({"name": "n", "password": Secret("p"), "size": 3, "__defaults": ["name"]}),
        ),
        Context(),
    )
    assert bucket.calls == [("create", {"name": "n", "password": "p", "size": 3}, 77.0)]
    assert isinstance(bucket.calls[0][1]["size"], int)
    assert answer.id == "id-1"
    assert decode(answer.properties) == {
        "name": "n",
        "password": Secret("p"),
        "size": 3,
        "arn": "arn:1",
        "key": Secret("k"),
    }


def test_custom_timeouts_reach_the_resource(servicer: Servicer, bucket: Bucket) -> None:
    servicer.Create(provider_pb2.CreateRequest(urn=URN, type=Bucket.token, timeout=5), Context())
    servicer.Update(provider_pb2.UpdateRequest(urn=URN, type=Bucket.token, timeout=6), Context())
    servicer.Delete(provider_pb2.DeleteRequest(urn=URN, type=Bucket.token, timeout=7), Context())
    assert [call[-1] for call in bucket.calls] == [5, 6, 7]


def test_a_preview_creates_nothing(servicer: Servicer, bucket: Bucket) -> None:
    answer = servicer.Create(
        provider_pb2.CreateRequest(
            urn=URN, type=Bucket.token, preview=True, properties=encode({"name": UNKNOWN, "password": Secret("p")})
        ),
        Context(),
    )
    assert not bucket.calls
    assert answer.id == ""
    assert decode(answer.properties) == {"name": UNKNOWN, "password": Secret("p")}


def test_a_preview_of_an_update_keeps_what_the_cloud_computed(servicer: Servicer, bucket: Bucket) -> None:
    answer = servicer.Update(
        provider_pb2.UpdateRequest(
            urn=URN,
            type=Bucket.token,
            preview=True,
            id="id-1",
            news=encode({"name": "n", "size": 2}),
            old_inputs=encode({"name": "n", "tags": {"a": "b"}}),
            olds=encode({"name": "n", "tags": {"a": "b"}, "arn": "arn:1"}),
        ),
        Context(),
    )
    assert not bucket.calls
    assert decode(answer.properties) == {"name": "n", "size": 2, "arn": "arn:1"}


def test_refresh_finds_drift_in_what_was_set(servicer: Servicer, bucket: Bucket) -> None:
    bucket.stored = {"name": "n", "size": 9, "tags": {"a": "x", "added": "y"}, "password": "p", "arn": "arn:1"}
    old = {"name": "n", "size": 1, "tags": {"a": "b"}, "password": Secret("p"), "__defaults": ["name"]}
    answer = servicer.Read(
        provider_pb2.ReadRequest(
            urn=URN, type=Bucket.token, id="id-1", inputs=encode(old), properties=encode({**old, "key": "k"})
        ),
        Context(),
    )
    assert decode(answer.inputs) == {**old, "size": 9, "tags": {"a": "x"}}
    assert decode(answer.properties) == {**bucket.stored, "password": Secret("p")}


def test_import_takes_the_accepted_outputs_as_inputs(servicer: Servicer, bucket: Bucket) -> None:
    bucket.stored = {"name": "n", "size": 9, "region": None, "arn": "arn:1"}
    answer = servicer.Read(provider_pb2.ReadRequest(urn=URN, type=Bucket.token, id="id-1"), Context())
    assert decode(answer.inputs) == {"name": "n", "size": 9}


def test_what_is_gone_has_no_id(servicer: Servicer, bucket: Bucket) -> None:
    bucket.stored = None
    assert servicer.Read(provider_pb2.ReadRequest(urn=URN, type=Bucket.token, id="id-1"), Context()).id == ""


def test_a_refusal_is_shown_as_it_is(servicer: Servicer, bucket: Bucket) -> None:
    bucket.problem = RefusedError("VpcLimitExceeded: the maximum number of VPCs has been reached")
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token))
    assert context.code == grpc.StatusCode.INVALID_ARGUMENT
    assert context.text == str(bucket.problem)


def test_a_failure_of_the_stand_in_is_shown_and_logged(
    servicer: Servicer, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.problem = KeyError("vpcId")
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token))
    assert context.code == grpc.StatusCode.UNKNOWN
    assert "KeyError: 'vpcId'" in context.text
    assert "Traceback" in caplog.text


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


def test_a_function_answers_and_keeps_secrets(servicer: Servicer) -> None:
    def invoke(arguments: Properties) -> Properties:
        answer = servicer.Invoke(provider_pb2.InvokeRequest(tok="fake:index:sum", args=encode(arguments)), Context())
        return decode(getattr(answer, "return"))

    assert invoke({"a": 1, "b": 2}) == {"sum": 3}
    assert invoke({"a": Secret(1), "b": 2}) == {"sum": Secret(3)}


def test_an_unknown_function_is_refused_with_what_is_known(servicer: Servicer) -> None:
    context = refused(servicer.Invoke, provider_pb2.InvokeRequest(tok="fake:index:product"))
    assert "fake:index:product" in context.text
    assert "fake:index:sum" in context.text


def test_an_unknown_setting_is_refused_by_name(servicer: Servicer) -> None:
    request = provider_pb2.CheckRequest(urn=URN, news=encode({"region": "a", "zone": "b", "version": "1.2.3"}))
    answer = servicer.CheckConfig(request, Context())
    (failure,) = answer.failures
    assert failure.property == ""
    assert failure.reason.startswith("zone: ")
    assert "it knows region" in failure.reason


def test_another_region_replaces_the_provider(servicer: Servicer) -> None:
    def answer(new: Properties) -> list[str]:
        old = encode({"region": "a", "version": "1"})
        request = provider_pb2.DiffRequest(urn=URN, old_inputs=old, news=encode(new))
        return list(servicer.DiffConfig(request, Context()).replaces)

    assert answer({"region": "a"}) == []
    assert answer({"region": "b"}) == ["region"]


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


def test_a_refused_configuration_leaves_no_instance(servicer: Servicer) -> None:
    peer = "ipv4:127.0.0.1:2"
    request = provider_pb2.ConfigureRequest(args=encode({"region": "nowhere"}))
    context = refused(servicer.Configure, request, Context(peer))
    assert "no such region" in context.text
    context = refused(servicer.Create, provider_pb2.CreateRequest(urn=URN, type=Bucket.token), Context(peer))
    assert "not configured on this connection" in context.text


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


def test_components_and_methods_are_refused_clearly(servicer: Servicer) -> None:
    context = refused(servicer.Construct, provider_pb2.ConstructRequest(type="fake:index:Cluster"))
    assert context.code == grpc.StatusCode.UNIMPLEMENTED
    assert "fake:index:Cluster" in context.text
    assert "fake:index/m" in refused(servicer.Call, provider_pb2.CallRequest(tok="fake:index/m")).text


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
