"""`karpstack network`: what it writes and says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

import yaml

from karpstack.rehearsal.networks.network import Network
from karpstack.rehearsal.networks.stack_file_changes import change_stack_file
from karpstack.rehearsal.session.reporting import rehearsing
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import print_message
from karpstack.text import files
from karpstack.text.codes import Code
from karpstack.text.projects import find_project

#: The range of a network if no other is named.
DEFAULT_CIDR: Final = IPv4Network("10.20.0.0/16")
_NAT: Final = "nat"
_ZONES: Final = 3
_PAGES: Final = {"aws": "docs/how-to/eks/existing-vpc.md", "azure": "docs/how-to/aks/existing-vnet.md"}


@rehearsing()
def run(
    stack: str,
    *,
    config_file: Path | None = None,
    cidr: IPv4Network = DEFAULT_CIDR,
    zones: int | None = None,
    way_out: str = _NAT,
    write: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the file, and print the settings or write them into the stack file; the exit code.

    Raises:
        StackFileError: The stack's configuration cannot be read.
        ValueError: There is a file already, or no such network; or the stack file sets something else.
    """
    # The stack file may name the network already: its description is what is made here.
    path = (config_file or find_project() / f"Pulumi.{stack}.yaml").resolve()
    stack_file = StackFile.load(path, described=False)
    if os.path.lexists(stack_file.network) and not overwrite:
        raise ValueError(
            f"{stack_file.network} is there already, and may be of a real network: it was not written over; move it "
            "away, or say --overwrite"
        )
    made = _made(stack, stack_file, cidr, zones, way_out)
    for key, given in stack_file.ranges().items():
        if given.overlaps(cidr):
            raise ValueError(
                f"--cidr {cidr} overlaps karpstack:network.{key} = {given} of {stack_file.path.name}: traffic "
                "for one would be sent to the other, and the program refuses the stack; give another range"
            )
    settings = {"karpstack:network": dict(made.settings), "karpstack:cluster": dict(made.cluster)}
    edited = change_stack_file(stack_file.path, settings, {"karpstack:network": made.instead}) if write else None
    if edited and edited.differs and not overwrite:
        raise ValueError(
            f"{stack_file.path}: nothing was written, for these are set already, and would be changed or removed: "
            f"{'; '.join(edited.differs)}; say --overwrite, or leave --write out and merge them by hand"
        )
    files.write(stack_file.network, json.dumps(made.content, indent=2) + "\n")
    print_message(f"{stack_file.network} describes {made.words}.")
    if edited:
        files.write(stack_file.path, edited.text)
        print_message(
            f"{stack_file.path} takes it: {'; '.join([*edited.added, *edited.differs]) or 'it did so already'}."
        )
        print_message(f"What else a network can have: {_PAGES[stack_file.cloud]}.")
        return Code.GOOD
    print_message(
        f"In {stack_file.path.name}, these of karpstack:network and karpstack:cluster take it, instead of "
        f"{', '.join(made.instead)}; podCidr and serviceCidr may not overlap {cidr}:"
    )
    print(yaml.safe_dump(settings, sort_keys=False, width=1000), end="")
    print_message(f"What else a network can have: {_PAGES[stack_file.cloud]}.")
    return Code.GOOD


def _made(stack: str, stack_file: StackFile, cidr: IPv4Network, zones: int | None, way_out: str) -> Network:
    # The makers know the clouds' own libraries, which take a second to load.
    if stack_file.cloud == "aws":
        from karpstack.rehearsal.networks import aws

        _check(way_out, aws.WAYS_OUT, "AWS")
        return aws.make(stack, stack_file.region, cidr, zones or _ZONES, way_out)

    from karpstack.rehearsal.azure.subscription import SUBSCRIPTION_ID
    from karpstack.rehearsal.networks import azure

    _check(way_out, azure.WAYS_OUT, "Azure")
    if zones is not None:
        raise ValueError(
            f"--zones {zones}: a subnet of Azure spans all zones of its region, so it would change "
            "nothing; leave it out, and say in the stack file in which zones nodes live: systemNodes.zones, and "
            "a NodePool's requirement on topology.kubernetes.io/zone"
        )
    return azure.make(stack_file.subscription or SUBSCRIPTION_ID, stack_file.region, cidr, way_out)


def _check(way_out: str, known: Mapping[str, Any], cloud: str) -> None:
    if way_out not in known:
        raise ValueError(
            f"--way-out {way_out} is none of {cloud}'s, of which {', '.join(known)} are played; choose one"
        )


def parse_network(text: str) -> IPv4Network:
    """Return the range that a text means.

    Raises:
        ValueError: It means none.
    """
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{error}; write for example 10.20.0.0/16") from error
