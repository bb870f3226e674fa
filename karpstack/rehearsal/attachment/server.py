"""The gRPC server that the engine attaches to: one package's provider over `karpstack.rehearsal.attachment.resource`.

It translates requests and answers and knows no cloud. It keeps nothing between deployments: state is the engine's.

An attached server serves every provider instance of its package (default and explicit ones), and requests for
resources don't name the instance that they belong to. The engine opens one connection an instance, so the
connection's peer address tells the instances apart: `Configure` binds an address to a configuration, the
engine's closing `Cancel` releases it.
"""

# ruff: noqa: N802, D102 - the names and meanings of the servicer's methods are those of Pulumi's provider.proto
from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from karpstack.rehearsal.attachment import values
from karpstack.rehearsal.attachment.difference import changes
from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import (
    AUTOMATIC,
    Created,
    Failure,
    IncompleteError,
    Properties,
    RefusedError,
    Resource,
)
from karpstack.rehearsal.attachment.survey import NOTHING, Survey, Unsupported
from karpstack.rehearsal.host.guard import OwnUserCalls
from karpstack.text.shown import cut, visible

__all__ = ["Configuration", "Provider", "ProviderServer", "Servicer"]

_log = logging.getLogger(__name__)

# An operation holds its thread while it waits, and Cancel must always find a free one.
_THREADS: Final = 256
_STOP_GRACE: Final = 2.0
# Bytes. A resource has its properties twice in a request, and a message is read before it is known whose it is.
_LARGEST_REQUEST: Final = 64 * 2**20
_LONGEST_TEXT: Final = 4_000
#: What the engine itself adds to a provider's configuration.
_ENGINE_SETTINGS: Final = frozenset({"version"})


class ProviderServer:
    """Serves one package on a loopback port."""

    def __init__(self, package: str, version: str, configuration: Configuration, survey: Survey | None = None) -> None:
        self._servicer = Servicer(package, version, configuration, survey)
        self._guard = OwnUserCalls()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(_THREADS, thread_name_prefix=f"provider-{package}"),
            interceptors=[self._guard],
            options=[("grpc.max_receive_message_length", _LARGEST_REQUEST), ("grpc.max_send_message_length", -1)],
        )
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(self._servicer, self._server)

    def start(self) -> int:
        """Serve on a free port of the loopback interface and return it."""
        port = self._guard.listen(self._server)
        self._server.start()
        return port

    def stop(self) -> None:
        """Cancel what is under way and stop; safe to call twice."""
        self._servicer.cancel_all()
        self._server.stop(_STOP_GRACE).wait()


@dataclass(frozen=True)
class _Instance:
    provider: Provider
    cancelled: threading.Event


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """The protocol; its methods are the engine's calls and are documented in Pulumi's provider.proto."""

    def __init__(self, package: str, version: str, configuration: Configuration, survey: Survey | None = None) -> None:
        self._package = package
        self._version = version
        self._configuration = configuration
        self._survey = survey or Survey()
        self._instances: dict[str, _Instance] = {}

    # -- the plugin

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=False, accept_outputs=False, supports_autonaming_configuration=True
        )

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        # The engine sends it on Ctrl-C and again, always, when it closes the connection.
        instance = self._instances.pop(context.peer(), None)
        if instance:
            instance.cancelled.set()
        return empty_pb2.Empty()

    def cancel_all(self) -> None:
        """End the waits of every deployment."""
        for instance in list(self._instances.values()):
            instance.cancelled.set()

    # -- the configuration

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        if self._survey.under_way:
            self._note_settings(request)
            return provider_pb2.CheckResponse(inputs=request.news)
        # Secrets come without their marks here, so no failure may name its property; see `_failure`.
        known = self._configuration.names
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[
                provider_pb2.CheckFailure(
                    reason=f"{name}: the rehearsal's {self._package} provider has no stand-in for "
                    f"this setting, so it would have no effect; it knows {_listing(known)}"
                )
                for name in request.news.fields
                if name not in known | _ENGINE_SETTINGS
            ],
        )

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        with self._answering(context, request.urn):
            old, new = values.decode(request.old_inputs), values.decode(request.news)
            names = self._configuration.names
            old, new = _only(old, names), _only(new, names)
            replaces = self._configuration.replaces(values.reveal(old), values.reveal(new)) if old != new else []
            return _diff(values.reveal(old), values.reveal(new), replaces, deletes_first=False)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        with self._answering(context, request.urn):
            cancelled = threading.Event()
            provider = self._configuration.configure(values.reveal(values.decode(request.args)), cancelled)
            self._instances[context.peer()] = _Instance(provider, cancelled)
            return provider_pb2.ConfigureResponse(
                acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
            )

    # -- the resources

    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        with self._answering(context, request.urn):
            resource = self._resource(request, context)
            given = values.decode(request.news)
            given.pop(AUTOMATIC, None)
            plain = values.reveal(given)
            unknown = resource.unknown(plain)
            if unknown and self._survey.under_way:
                self._survey.note(request.type, request.name, f"the property {', '.join(unknown)}")
                given, plain = (_only(each, each.keys() - set(unknown)) for each in (given, plain))
            elif unknown:
                return _checked(
                    given,
                    [
                        Failure(
                            name,
                            f"the rehearsal's {resource.token} does not know this property, so it would have "
                            f"no effect; it knows {_listing(resource.accepts)}",
                        )
                        for name in unknown
                    ],
                )
            old = values.reveal(values.decode(request.olds))
            named = resource.autoname(plain, old, _proposed_name(request, resource))
            automatic = {AUTOMATIC: named.pop(AUTOMATIC)} if AUTOMATIC in named else {}
            inputs, failures = resource.check(named, name=request.name)
            if self._survey.under_way:
                failures = [one for one in failures if not self._noted(request, one)]
            return _checked(values.keep_secrets({**inputs, **automatic}, given), failures)

    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        with self._answering(context, request.urn):
            resource = self._resource(request, context)
            old, new = (values.reveal(values.decode(inputs)) for inputs in (request.old_inputs, request.news))
            deletes_first = resource.deletes_first(old, new)
            plain = _without_marks(new)
            before = resource.before(_without_marks(old), _inputs(request.olds), plain)
            return _diff(before, plain, resource.replacing(before, plain), deletes_first=deletes_first)

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        with self._answering(context, request.urn, lambda outputs: _outputs(resource, outputs, request.properties)):
            resource = self._resource(request, context)
            inputs = _inputs(request.properties)
            created = (
                Created("", resource.preview(inputs, id="", state={}))
                if request.preview
                else resource.create(inputs, timeout=_timeout(request, resource))
            )
            return provider_pb2.CreateResponse(
                id=created.id, properties=_outputs(resource, created.outputs, request.properties)
            )

    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        with self._answering(context, request.urn):
            resource = self._resource(request, context)
            id, state = request.id, _inputs(request.properties)
            if not state:
                id, state = resource.imported(id)
            outputs = resource.read(id, state)
            if outputs is None:
                return provider_pb2.ReadResponse(id="")
            given = values.decode(request.inputs)
            inputs = values.keep_secrets(resource.refreshed(outputs, values.reveal(given), state), given)
            return provider_pb2.ReadResponse(
                id=id,
                inputs=values.encode(inputs),
                properties=_outputs(resource, outputs, request.inputs, request.properties),
            )

    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        with self._answering(context, request.urn, lambda outputs: _outputs(resource, outputs, request.news)):
            resource = self._resource(request, context)
            old, new = _inputs(request.olds), _inputs(request.news)
            if request.preview:
                state = {name: value for name, value in old.items() if name not in request.old_inputs.fields}
                outputs = resource.preview(new, id=request.id, state=state)
            else:
                outputs = resource.update(request.id, old, new, timeout=_timeout(request, resource))
            return provider_pb2.UpdateResponse(properties=_outputs(resource, outputs, request.news))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        with self._answering(context, request.urn):
            resource = self._resource(request, context)
            resource.delete(request.id, _inputs(request.properties), timeout=_timeout(request, resource))
            return empty_pb2.Empty()

    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        with self._answering(context, request.tok):
            invokes = self._instance(context).provider.invokes
            if request.tok not in invokes:
                if self._survey.under_way:
                    self._survey.note("function", request.tok)
                    return provider_pb2.InvokeResponse()  # its results are missing, but the program goes on
                raise RefusedError(
                    f"the rehearsal has no stand-in for the function {request.tok}; it knows {_listing(invokes)}"
                )
            arguments = values.decode(request.args)
            result = invokes[request.tok](values.reveal(arguments))
            if values.has_secrets(arguments):
                result = {name: values.Secret(value) for name, value in result.items()}
            return provider_pb2.InvokeResponse(**{"return": values.encode(result)})  # type: ignore[arg-type]

    # -- what a stand-in does not do

    def Construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> NoReturn:
        self._survey.note(request.type, request.name)
        _abort(
            context,
            grpc.StatusCode.UNIMPLEMENTED,
            f"the rehearsal has no component resources, so {request.type} "
            "cannot be rehearsed; use the resources that it is made of",
        )

    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:
        self._survey.note("method", request.tok)
        _abort(
            context,
            grpc.StatusCode.UNIMPLEMENTED,
            f"the rehearsal has no methods of resources, so {request.tok} cannot be called",
        )

    # -- helpers

    def _instance(self, context: grpc.ServicerContext) -> _Instance:
        instance = self._instances.get(context.peer())
        if instance is None:
            raise RefusedError(
                f"the {self._package} provider was not configured on this connection: the deployment "
                "was cancelled, or the rehearsal was started again meanwhile; run the command again"
            )
        return instance

    def _resource(self, request: Any, context: grpc.ServicerContext) -> Resource:
        provider = self._instance(context).provider
        try:
            return provider.resource(request.type)
        except RefusedError:
            if not self._survey.under_way:
                raise
            self._survey.note(request.type, request.name)
            return Unsupported(request.type)

    def _noted(self, request: provider_pb2.CheckRequest, failure: Failure) -> bool:
        """Record a value that the rehearsal does not support; return whether it is one."""
        if failure.unsupported:
            self._survey.note(request.type, request.name, f"the property {failure.property}: {failure.reason}")
        return failure.unsupported

    def _note_settings(self, request: provider_pb2.CheckRequest) -> None:
        """Record unsupported settings of the provider, and another major version of its package."""
        given = request.news.fields
        asked = (given["version"].string_value if "version" in given else "") or self._version
        for name in sorted(request.news.fields.keys() - self._configuration.names - _ENGINE_SETTINGS):
            self._survey.note(request.type, request.name, f"the setting {name}")
        if asked.partition(".")[0] != self._version.partition(".")[0] and self._configuration is not NOTHING:
            told = f"version {asked} of the package; the rehearsal plays {self._version}"
            self._survey.note(request.type, request.name, told)

    @contextmanager
    def _answering(
        self, context: grpc.ServicerContext, subject: str, outputs: Callable[[Properties], Any] | None = None
    ) -> Iterator[None]:
        """Turn what an operation raises into the engine's errors, and a lost engine into a cancellation."""
        instance = self._instances.get(context.peer())
        answered = threading.Event()
        if instance:
            cancelled = instance.cancelled
            context.add_callback(lambda: None if answered.is_set() else cancelled.set())
        try:
            yield
        except IncompleteError as error:
            _log.warning("%s: %s: incomplete: %s", self._package, subject, error)
            if outputs:
                _set_incomplete(context, error, outputs(error.created.outputs))
            answered.set()
            _abort(context, grpc.StatusCode.UNKNOWN, str(error))
        except RefusedError as error:
            _log.info("%s: %s: refused: %s", self._package, subject, error)
            answered.set()
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:
            _log.exception("%s: %s", self._package, subject)
            answered.set()
            _abort(
                context,
                grpc.StatusCode.UNKNOWN,
                f"the rehearsal's {self._package} provider failed: {type(error).__name__}: {error}",
            )
        answered.set()


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, text: str) -> NoReturn:
    # gRPC sends it in a header, which has some kilobytes of room; Pulumi shows it as it is.
    context.abort(code, cut(visible(text), _LONGEST_TEXT))
    raise AssertionError("unreachable: abort raises")


def _set_incomplete(context: grpc.ServicerContext, error: IncompleteError, outputs: Any) -> None:
    detail = provider_pb2.ErrorResourceInitFailed(id=error.created.id, properties=outputs, reasons=[str(error)])
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))


def _inputs(struct: Any) -> Properties:
    return _without_marks(values.reveal(values.decode(struct)))


def _without_marks(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if name != AUTOMATIC}


def _outputs(resource: Resource, outputs: Properties, *patterns: Any) -> Any:
    for pattern in patterns:
        outputs = values.keep_secrets(outputs, values.decode(pattern))
    declared = {name: values.Secret(None) for name in resource.secret_outputs}
    return values.encode(values.keep_secrets(outputs, declared))


def _checked(inputs: Properties, failures: Iterable[Failure]) -> provider_pb2.CheckResponse:
    return provider_pb2.CheckResponse(
        inputs=values.encode(inputs), failures=[_failure(failure, inputs.get(failure.property)) for failure in failures]
    )


def _failure(failure: Failure, value: Any) -> provider_pb2.CheckFailure:
    # The engine prints the value of the property that a failure names, and secrets in it too.
    if isinstance(value, values.Secret | dict | list):
        return provider_pb2.CheckFailure(reason=f"{failure.property}: {failure.reason}")
    return provider_pb2.CheckFailure(property=failure.property, reason=failure.reason)


def _diff(
    old: Properties, new: Properties, replace_on: Iterable[str], *, deletes_first: bool
) -> provider_pb2.DiffResponse:
    found = changes(old, new, replace_on)
    if not found:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    replaces = sorted({str(change.path[0]) for change in found if change.replaces})
    kinds = provider_pb2.PropertyDiff.Kind
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME,
        replaces=replaces,
        hasDetailedDiff=True,
        diffs=sorted({str(change.path[0]) for change in found}),
        deleteBeforeReplace=bool(replaces) and deletes_first,
        detailedDiff={
            change.text: provider_pb2.PropertyDiff(
                kind=kinds.Value(change.kind.upper() + ("_REPLACE" if change.replaces else "")), inputDiff=True
            )
            for change in found
        },
    )


def _proposed_name(request: provider_pb2.CheckRequest, resource: Resource) -> str | None:
    if request.HasField("autonaming"):
        options = provider_pb2.CheckRequest.AutonamingOptions
        return None if request.autonaming.mode == options.DISABLE else request.autonaming.proposed_name
    digits = request.randomSeed.hex()[: resource.name_digits]
    return f"{request.name}{resource.name_separator}{digits}" if digits else str(request.name)


def _timeout(request: Any, resource: Resource) -> float:
    return float(request.timeout) or resource.default_timeout


def _only(properties: Properties, names: Iterable[str]) -> Properties:
    return {name: value for name, value in properties.items() if name in names}


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
