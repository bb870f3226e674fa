"""The daemon of one rehearsed stack, from inside: it puts the parts together and stops them in order.

`python -m karpstack.rehearsal.session.serve STACK FOLDER STACK_FILE ENGINES` is started by `daemon` and by nobody else.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import assert_never

import psutil

from karpstack.karpenter import clock
from karpstack.rehearsal import control
from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import Properties
from karpstack.rehearsal.attachment.server import ProviderServer
from karpstack.rehearsal.attachment.survey import Survey
from karpstack.rehearsal.cluster import provider as kubernetes
from karpstack.rehearsal.cluster.charts import Charts
from karpstack.rehearsal.cluster.control_plane import Clusters
from karpstack.rehearsal.cluster.controller import DAYS
from karpstack.rehearsal.cluster.servers import API_SERVER
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host import log
from karpstack.rehearsal.host.processes import Engines, start_time
from karpstack.rehearsal.session import speed
from karpstack.rehearsal.session.clouds import Name
from karpstack.rehearsal.session.daemon import STAY, DaemonInfo
from karpstack.rehearsal.session.simulated import Parts, Simulation
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.timing import Timing

_log = logging.getLogger(__name__)
# Seconds for each engine to end when one that others need is gone: most would wait for it.
_GRACE_AFTER_LOSS = 0.5


class Daemon:
    """One simulated cloud account, its cluster, and the providers that lead to them."""

    def __init__(
        self, folder: StackFolder, stack_file: StackFile, engine_set: EngineSet, ended: threading.Event
    ) -> None:
        """`ended` is set when an engine is lost without which nothing goes on."""
        timing = Timing.from_environment()
        self._ended = ended
        self._folder = folder
        self._info = DaemonInfo(
            os.getpid(), start_time(psutil.Process()), stack_file.cloud, stack_file.region, stack_file.described
        )
        self._lock = threading.Lock()
        self._governor = self._clock(folder)
        self._tells_time = {clock.VARIABLE: str(folder.clock)} if self._governor else {}
        self._engines = Engines(folder, on_crash=self._crashed, on_loss=self._lose, variables=self._tells_time)
        charts = Charts(engine_set)
        self._clusters = Clusters(folder, self._engines, engine_set, timing)
        parts = Parts(folder, stack_file, engine_set, timing, self._clusters)
        self._cloud = cloud = _simulation(stack_file.cloud)(parts)
        self._cloud_started = threading.Event()
        self._control = control.ControlServer(
            control.Control(
                cloud.control,
                {API_SERVER: self._clusters.restart_api_server},
                self._governor.skip if self._governor and os.environ.get(DAYS) else None,
            )
        )
        configuration, survey = self._when_started(cloud.configuration), Survey(folder.survey)
        self._servers = {
            cloud.package: ProviderServer(cloud.package, cloud.version, configuration, survey),
            kubernetes.PACKAGE: ProviderServer(
                kubernetes.PACKAGE, kubernetes.VERSION, kubernetes.configuration(self._clusters, charts), survey
            ),
            **{
                package: ProviderServer(package, version, self._when_started(other), survey)
                for package, (version, other) in cloud.others.items()
            },
        }

    def _clock(self, folder: StackFolder) -> speed.Governor | None:
        """Let this process keep the cluster's time, and govern it; None where the machine has real time alone."""
        highest = speed.ceiling(os.environ)
        if highest == 1 or not speed.supported():
            return None
        page = clock.Page.create(folder.clock)
        clock.follow(page)
        return speed.Governor(page, highest, lambda: self._engines.pids())

    def start(self) -> None:
        """Listen first, then start the account: Pulumi loads the program meanwhile."""
        if self._governor:
            self._governor.start()
        self._publish(providers={package: server.start() for package, server in self._servers.items()})
        variables = self._cloud.start()
        self._cloud_started.set()
        variables = {**variables, **self._control.start()}
        self._publish(ready=True, account=self._cloud.address, variables=variables)
        self._cloud.warm_up()

    def stop(self) -> None:
        """Stop everything.

        Providers and control endpoint go first, so that nothing new is started, then the cluster, then the account.
        After a loss the engines go before all: what waits for them would wait for ever.
        """
        if self._governor:
            self._governor.stop()
        # Where the account could not start, providers are waited for by Pulumi that wait for it.
        self._cloud_started.set()
        if self._info.lost:
            self._engines.stop_all(_GRACE_AFTER_LOSS)
        for server in self._servers.values():
            server.stop()
        self._control.stop()
        self._clusters.stop_all()
        self._engines.stop_all()
        self._cloud.stop()

    def _when_started(self, configuration: Configuration) -> Configuration:
        def configure(settings: Properties, cancelled: threading.Event) -> Provider:
            self._cloud_started.wait()
            return configuration.configure(settings, cancelled)

        return replace(configuration, configure=configure)

    def _crashed(self, text: str) -> None:
        _log.error("%s", text)
        self._publish(crashes=[*self._info.crashes, text])

    def _lose(self, name: str) -> None:
        # Others follow the first one into its end; nobody needs to hear of those.
        if not self._ended.is_set():
            self._publish(lost=name)
            self._ended.set()

    def _publish(self, **changes: object) -> None:
        with self._lock:
            self._info = replace(self._info, **changes)  # type: ignore[arg-type]
            try:
                self._info.write(self._folder)
            except OSError as error:  # the disk is full, perhaps: nobody hears of it, but what is to be done is done
                _log.error("%s could not be written: %s", self._folder.run_file, error)


def main() -> int:
    """Serve until SIGTERM, the loss of an engine, or the end of whoever started this and did not let it stay."""
    stack, root, stack_file, engines = sys.argv[1:]
    log.configure()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    # Loading moto and the clouds' descriptions makes millions of objects that stay: looking for garbage among them
    # would take as long as loading them.
    gc.disable()
    threading.Thread(target=_end_with_starter, args=(stopped,), name="starter", daemon=True).start()
    folder = StackFolder(stack, Path(root))
    try:
        daemon = Daemon(folder, StackFile.load(Path(stack_file), any_program=True), EngineSet(Path(engines)), stopped)
        try:
            daemon.start()
            gc.freeze()
            gc.enable()
            stopped.wait()
        finally:
            daemon.stop()
    except StackFileError as error:
        _log.error("%s", error)
        return 1
    return 0


def _end_with_starter(stopped: threading.Event) -> None:
    """Wait for the end of the command that started the daemon, or for its word that the daemon is to stay."""
    if os.read(sys.stdin.fileno(), len(STAY)) != STAY:
        _log.info("the command that started this daemon has ended, so this one ends too")
        stopped.set()


def _simulation(cloud: Name) -> type[Simulation]:
    """Load a cloud and its libraries alone: moto takes a second and 150 MB."""
    match cloud:
        case "aws":
            from karpstack.rehearsal.session.simulated_aws import SimulatedAws

            return SimulatedAws
        case "azure":
            from karpstack.rehearsal.session.simulated_azure import SimulatedAzure

            return SimulatedAzure
        case unplayed:
            assert_never(unplayed)


if __name__ == "__main__":
    sys.exit(main())
