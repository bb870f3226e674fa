"""Pulumi's Python language host, for a CLI that was built without one.

The engine starts it as `pulumi-language-python <engine address>`, reads its port from the first line of output and
asks it to run the program and the policy packs. Running the program is the SDK's own code (the automation API's
server); this module adds what the engine asks of a host that is a process of its own. It installs nothing and
generates nothing: those calls stay unimplemented. A Pulumi that was installed as usual brings its own host, and
then this one is not used.
"""

from __future__ import annotations

import gc
import os
import queue
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf import empty_pb2
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from karpstack.rehearsal.attachment.pack_process import PackProcess
from karpstack.rehearsal.engines import PULUMI_VERSION
from karpstack.rehearsal.host.guard import OwnUserCalls
from karpstack.rehearsal.host.processes import with_parent

#: Run by another Python than ours.
_OWN_PYTHON = Path(__file__).with_name("own_python.py")
# Made since the last time that Python looked for garbage; 700 unless said otherwise, and the classes of an SDK are made
# of hundreds of thousands, which stay. Looking again and again took a tenth of a program's time.
_OBJECTS_BETWEEN_LOOKS = 100_000

_Chunk = tuple[str, bytes | None]


class LanguageHost(LanguageServer):
    """The language runtime service of one deployment."""

    def __init__(self, engine_address: str, packs: queue.SimpleQueue[PackProcess]) -> None:
        """`packs` are the processes that wait for a policy pack."""
        super().__init__(lambda: None)
        self._engine_address = engine_address
        self._packs = packs

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, D102 the protocol's names
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, D102
        return plugin_pb2.PluginInfo(version=PULUMI_VERSION)

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802, D102
        yield language_pb2.InstallDependenciesResponse(stdout=b"`make setup` installs the dependencies.\n")

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, D102
        return empty_pb2.Empty()

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Run the program as `__main__` of its folder: in this process, or by the Python of its own environment."""
        folder = Path(request.info.program_directory)
        if python := _own_python(request.info):
            return self._run_by(python, request)
        entry = folder / (request.info.entry_point or "__main__.py")
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        script = entry / "__main__.py" if entry.is_dir() else entry

        def program() -> None:
            runpy.run_path(str(script), run_name="__main__")

        self.program = program
        # The SDK's server takes the engine's address from the arguments.
        del request.args[:]
        request.args.append(self._engine_address)
        response = super().Run(request, context)  # type: ignore[no-untyped-call]
        # The SDK's server has logged it; the engine would print what is not marked so a second time.
        return language_pb2.RunResponse(bail=True) if response.error else response

    def _run_by(self, python: Path, request: Any) -> Any:
        with tempfile.NamedTemporaryFile() as answer:
            process = subprocess.run(
                [*with_parent(signal.SIGKILL), str(python), "-u", str(_OWN_PYTHON), self._engine_address, answer.name],
                input=request.SerializeToString(),
                env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},  # ours
            )
            response = language_pb2.RunResponse.FromString(Path(answer.name).read_bytes())
        if process.returncode:
            what = f"the program, run by {python}, ended with exit code {process.returncode} before it was done"
            return language_pb2.RunResponse(error=f"{what}; the environment needs the package pulumi")
        return language_pb2.RunResponse(bail=True) if response.error else response

    def RunPlugin(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        """Run a policy pack or a package's provider as a process, and hand its output on until it ends."""
        folder = request.info.program_directory
        environment = {**os.environ, **dict(pair.split("=", 1) for pair in request.env)}
        process: PackProcess | subprocess.Popen[bytes]
        if request.kind == "resource":
            python = _own_python(request.info) or sys.executable
            process = _started([str(python), "-u", folder, *request.args], folder, environment)
        else:
            try:
                process = self._packs.get_nowait()
                process.run(request.args, Path(folder), environment)
            except queue.Empty:  # an update has one pack, as a rule
                command = [sys.executable, "-u", "-m", "pulumi.policy", *request.args, folder]
                process = _started(command, folder, environment)
        context.add_callback(process.terminate)
        chunks: queue.Queue[_Chunk] = queue.Queue()
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            threading.Thread(target=_pump, args=(name, stream, chunks), daemon=True).start()
        open_streams = 2
        while open_streams:
            name, chunk = chunks.get()
            if chunk is None:
                open_streams -= 1
            else:
                yield (
                    language_pb2.RunPluginResponse(stdout=chunk)
                    if name == "stdout"
                    else language_pb2.RunPluginResponse(stderr=chunk)
                )
        yield language_pb2.RunPluginResponse(exitcode=process.wait())


def _started(command: list[str], folder: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _own_python(info: Any) -> Path | None:
    """The Python of the environment that Pulumi.yaml names, where that is there and another one than ours."""
    named = dict(info.options).get("virtualenv")
    environment = Path(info.root_directory or info.program_directory) / str(named or "")
    python = environment / "bin" / "python"
    if not named or not python.is_file() or environment.resolve() == Path(sys.prefix).resolve():
        return None
    return python


def _pump(name: str, stream: IO[bytes], chunks: queue.Queue[_Chunk]) -> None:
    while chunk := os.read(stream.fileno(), 65536):
        chunks.put((name, chunk))
    chunks.put((name, None))


def main() -> None:
    """Serve until the engine ends this process."""
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    packs: queue.SimpleQueue[PackProcess] = queue.SimpleQueue()
    packs.put(PackProcess())
    # It runs what it is told to run: nobody but the engine's user may tell.
    guard = OwnUserCalls()
    server = grpc.server(futures.ThreadPoolExecutor(16), interceptors=[guard])
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(sys.argv[-1], packs), server)
    port = guard.listen(server)
    server.start()
    # The engine ends its hosts by SIGINT and waits up to 5 s for each. A Ctrl-C in the terminal does not come here:
    # each host has a process group of its own. A program that still runs must not hold the exit up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    print(port, flush=True)
    # An engine that was killed ends nobody; then this process has another parent.
    engine = os.getppid()
    while server.wait_for_termination(1.0) and os.getppid() == engine:
        pass


if __name__ == "__main__":
    main()
