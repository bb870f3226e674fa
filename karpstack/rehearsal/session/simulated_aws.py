"""AWS as the daemon composes it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from karpstack.rehearsal.aws import provider, tls
from karpstack.rehearsal.aws.account import ACCOUNT_ID, Account, unknown_region
from karpstack.rehearsal.aws.control import AwsControl
from karpstack.rehearsal.aws.ec2.existing import Networks
from karpstack.rehearsal.aws.eks.existing import Description, make
from karpstack.rehearsal.aws.resource import Session
from karpstack.rehearsal.session.descriptions import named, read
from karpstack.rehearsal.session.simulated import Parts, Simulation
from karpstack.rehearsal.session.stack_file import StackFileError


class SimulatedAws(Simulation):
    """An account of AWS."""

    package = provider.PACKAGE
    version = provider.VERSION

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        stack_file = parts.stack_file
        if problem := unknown_region(stack_file.region):
            raise StackFileError(f"{stack_file.path}: {problem}")
        self._account = Account(
            stack_file.region,
            parts.engines.prices("aws"),
            parts.timing,
            used_spot=bool(os.environ.get("REHEARSAL_USED_SPOT")),
            account_id=stack_file.account or ACCOUNT_ID,
            networks=read(stack_file.network, Networks.load),
            fetched=parts.fetched_prices,
        )
        self._account.roles.uses.write_to(parts.folder.rights)
        self._cluster = read(stack_file.cluster, Description.load)
        self.configuration = provider.configuration(self._account, parts.clusters)
        self.others = {tls.PACKAGE: (tls.VERSION, tls.configuration(self._account))}
        self.control = AwsControl(self._account)

    def start(self) -> Mapping[str, str]:
        """Put the account on the wire, then make the cluster that a file describes."""
        stack_file = self._parts.stack_file
        with named(stack_file.network):
            self._account.start()
        if self._cluster is not None:
            with named(stack_file.cluster):
                make(self._cluster, Session(self._account, self._parts.clusters))
        return self._account.administrator_environment

    @property
    def address(self) -> str:
        """The account's URL."""
        return self._account.endpoint

    def stop(self) -> None:
        """Take the account off the wire."""
        self._account.stop()

    def warm_up(self) -> None:
        """Load what moto loads with its first requests."""
        self._account.warm_up()
