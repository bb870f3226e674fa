"""`karpstack network`: its arguments, and what it writes and says."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

import yaml

from karpstack.rehearsal.networks.settled import settled
from karpstack.rehearsal.session.deployment import PROJECT
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import tell
from karpstack.text import files

DESCRIPTION: Final = (
    "Make a network that the simulated account has already, as a file beside the stack's, and print the settings with "
    "which the stack uses it. For a real one, docs/how-to/eks/existing-vpc.md and docs/how-to/aks/existing-vnet.md "
    "have the commands."
)
#: Exit code where there is no network.
FAILED: Final = 1
_NAT: Final = "nat"
_ZONES: Final = 3
_PAGES: Final = {"aws": "docs/how-to/eks/existing-vpc.md", "azure": "docs/how-to/aks/existing-vnet.md"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments beside the stack."""
    parser.add_argument("--config-file", type=Path, help="the stack's configuration (default: Pulumi.<stack>.yaml)")
    parser.add_argument(
        "--cidr", type=_network, default=IPv4Network("10.20.0.0/16"), help="its range (default: 10.20.0.0/16)"
    )
    parser.add_argument("--zones", type=int, help="zones with a subnet for nodes, on AWS alone (default: 3)")
    parser.add_argument(
        "--way-out",
        choices=[_NAT, "transit-gateway", "firewall", "load-balancer"],
        default=_NAT,
        help="by which way nodes leave it: transit-gateway on AWS, firewall (a route table) or load-balancer (AKS's "
        "own) on Azure, nat on both (default: nat)",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the settings into the stack file, with its comments, instead of printing them; what is set there "
        "already is left as it is, and nothing written, without --overwrite",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="overwrite an existing description and, with --write, settings of the stack file",
    )


def run(options: argparse.Namespace) -> int:
    """Write the file, and print the settings or write them into the stack file; the exit code.

    Raises:
        StackFileError: The stack's configuration cannot be read.
        ValueError: There is a file already, or no such network; or the stack file sets something else.
    """
    # The stack file may name the network already: its description is what is made here.
    path = (options.config_file or PROJECT / f"Pulumi.{options.stack}.yaml").resolve()
    stack_file = StackFile.load(path, described=False)
    if os.path.lexists(stack_file.network) and not options.overwrite:
        raise ValueError(
            f"{stack_file.network} is there already, and may be of a real network: it was not written over; move it "
            "away, or say --overwrite"
        )
    # The makers know the clouds' own libraries, which take a second to load.
    if stack_file.cloud == "aws":
        from karpstack.rehearsal.networks import aws

        _check(options.way_out, aws.WAYS_OUT, "AWS")
        made = aws.make(options.stack, stack_file.region, options.cidr, options.zones or _ZONES, options.way_out)
    else:
        from karpstack.rehearsal.azure.subscription import SUBSCRIPTION_ID
        from karpstack.rehearsal.networks import azure

        _check(options.way_out, azure.WAYS_OUT, "Azure")
        if options.zones is not None:
            raise ValueError(
                f"--zones {options.zones}: a subnet of Azure spans all zones of its region, so it would change "
                "nothing; leave it out, and say in the stack file in which zones nodes live: systemNodes.zones, and "
                "a NodePool's requirement on topology.kubernetes.io/zone"
            )
        made = azure.make(stack_file.subscription or SUBSCRIPTION_ID, stack_file.region, options.cidr, options.way_out)
    for key, given in stack_file.ranges().items():
        if given.overlaps(options.cidr):
            raise ValueError(
                f"--cidr {options.cidr} overlaps karpstack:network.{key} = {given} of {stack_file.path.name}: traffic "
                "for one would be sent to the other, and the program refuses the stack; give another range"
            )
    settings = {"karpstack:network": dict(made.settings), "karpstack:cluster": dict(made.cluster)}
    edited = settled(stack_file.path, settings, {"karpstack:network": made.instead}) if options.write else None
    if edited and edited.differs and not options.overwrite:
        raise ValueError(
            f"{stack_file.path}: nothing was written, for these are set already, and would be changed or removed: "
            f"{'; '.join(edited.differs)}; say --overwrite, or leave --write out and merge them by hand"
        )
    files.write(stack_file.network, json.dumps(made.content, indent=2) + "\n")
    tell(f"{stack_file.network} describes {made.words}.")
    if edited:
        files.write(stack_file.path, edited.text)
        tell(f"{stack_file.path} takes it: {'; '.join([*edited.added, *edited.differs]) or 'it did so already'}.")
        tell(f"What else a network can have: {_PAGES[stack_file.cloud]}.")
        return 0
    tell(
        f"In {stack_file.path.name}, these of karpstack:network and karpstack:cluster take it, instead of "
        f"{', '.join(made.instead)}; podCidr and serviceCidr may not overlap {options.cidr}:"
    )
    print(yaml.safe_dump(settings, sort_keys=False, width=1000), end="")
    tell(f"What else a network can have: {_PAGES[stack_file.cloud]}.")
    return 0


def _check(way_out: str, known: Mapping[str, Any], cloud: str) -> None:
    if way_out not in known:
        raise ValueError(
            f"--way-out {way_out} is none of {cloud}'s, of which {', '.join(known)} are played; choose one"
        )


def _network(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; write for example 10.20.0.0/16") from error
