"""One cloud as the daemon composes it: its simulated account, what Pulumi's provider serves, and its faults."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from karpstack.karpenter.price_file import PriceList
from karpstack.rehearsal import control
from karpstack.rehearsal.attachment.package import Configuration
from karpstack.rehearsal.cluster.control_plane import Clusters
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session.fetched_prices import PRICES, of_region
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.timing import Timing


@dataclass(frozen=True)
class Parts:
    """What a simulation is made of.

    Attributes:
        folder: The stack's folder.
        stack_file: The stack's configuration.
        engines: The engines, with the cloud's prices and charts.
        timing: How long the simulated parts take.
        clusters: The control planes that run.
    """

    folder: StackFolder
    stack_file: StackFile
    engines: EngineSet
    timing: Timing
    clusters: Clusters

    @property
    def fetched_prices(self) -> PriceList | None:
        """The prices of the stack's region that the daemon was given."""
        given = os.environ.get(PRICES)
        return of_region(Path(given) if given else None, self.stack_file.cloud, self.stack_file.region)


class Simulation(ABC):
    """A simulated account; it is made off the wire.

    Attributes:
        package: Name of the cloud's Pulumi package.
        version: Version of the package.
        configuration: What the stand-in for the package serves.
        others: Other packages that programs for this cloud use: version and configuration by name.
        control: What the control endpoint does to the account.
    """

    package: ClassVar[str]
    version: ClassVar[str]
    configuration: Configuration
    others: Mapping[str, tuple[str, Configuration]] = MappingProxyType({})
    control: control.Cloud

    @abstractmethod
    def __init__(self, parts: Parts) -> None: ...

    @abstractmethod
    def start(self) -> Mapping[str, str]:
        """Put the account on the wire, with what files describe; return more variables for commands on the stack."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The account's URL, once it is on the wire."""

    @abstractmethod
    def stop(self) -> None:
        """Take the account off the wire."""

    def warm_up(self) -> None:  # noqa: B027 - a cloud may have nothing to load
        """Load what would make the first requests slow."""
