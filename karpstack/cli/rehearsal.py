"""`karpstack up`, `run`, `down`, `status`, `env`, `rights` and `network`: stacks on this machine."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import ConfigFile, Format, Program, Quiet, Speed, Stack, State, Verbose, option, parsed
from .shape import command

_Days = Annotated[
    bool, option("--days", help="skip simulated time in which nothing happens; needed for scenarios with `live`")
]


def _up(
    stack: Stack,
    program: Program = None,
    config_file: ConfigFile = None,
    review: Annotated[
        Path | None,
        option("--review", metavar="FOLDER", help="folder for the review of the stack (default: build/review/<stack>)"),
    ] = None,
    no_review: Annotated[bool, option("--no-review", help="write no review")] = False,
    keep: Annotated[bool, option("--keep", help="leave the engines running if `pulumi up` fails")] = False,
    days: _Days = False,
    speed: Speed = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    state: State = None,
) -> int:
    """Start a stack on this machine: engines, control plane, `pulumi up` with the policy pack.

    The stack runs until `karpstack down`. A program that is not karpstack's is not checked by the policy pack.

    Exit code 1: Pulumi failed; 2: wrong input, or unsupported resources; 3: an engine cannot be built or started.
    """
    from karpstack.rehearsal import commands

    target = commands.Target(stack, state, config_file, "up", program, any_program=program is not None)
    return commands.up(
        target, review_folder=review, write_review=not no_review, keep=keep, highest_speed=speed, days=days
    )


def _run(
    stack: Stack,
    program: Program = None,
    config_file: ConfigFile = None,
    scenarios: Annotated[
        str, option("--scenarios", metavar="NAMES", help="names of scenarios, separated by commas")
    ] = "",
    labels: Annotated[
        str | None,
        option(
            "--labels",
            metavar="LABELS",
            help="run the scenarios with one of these labels, separated by commas; `all` for every scenario that suits "
            "the stack (default: walk-through, and all with --scenario-dir)",
        ),
    ] = None,
    scenario_dir: Annotated[
        Path | None,
        option("--scenario-dir", metavar="FOLDER", help="folder of your own scenarios (default: playbooks/scenarios)"),
    ] = None,
    report: Annotated[
        Path | None,
        option("--report", metavar="FOLDER", help="folder for the report (default: build/rehearsal/<stack>)"),
    ] = None,
    keep: Annotated[bool, option("--keep", help="leave the stack running, also after a failure")] = False,
    days: _Days = False,
    speed: Speed = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    state: State = None,
) -> int:
    """Run the scale tests of a stack and write the report.

    If the stack is down, this command starts it first and removes it afterwards.

    Exit code 1: a story failed, or the stack did not come up; 3: there is no report.
    """
    from karpstack.rehearsal import commands
    from karpstack.scale_test.reports.folder import judge

    return commands.run(
        commands.Target(stack, state, config_file, "run", program, any_program=program is not None),
        scenarios=scenarios,
        labels=labels,
        scenario_dir=scenario_dir,
        report=report,
        check_report=partial(judge, where="--report"),
        keep=keep,
        highest_speed=speed,
        days=days,
    )


def _down(
    stack: Stack,
    program: Program = None,
    force: Annotated[
        bool,
        option(
            "--force", help="end the command that works on the stack, and stop the engines without `pulumi destroy`"
        ),
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    state: State = None,
) -> int:
    """Destroy a stack with `pulumi destroy` and stop all its engines."""
    from karpstack.rehearsal import commands

    return commands.down(commands.Target(stack, state, command="down", given_project=program), force=force)


def _status(stack: Stack, program: Program = None, form: Format = "text", state: State = None) -> int:
    """Show the engines of a stack, their memory and logs, and the open ports with their protection.

    Exit code 1: the stack is down, or an engine crashed.
    """
    from karpstack.rehearsal import commands

    return commands.status(commands.Target(stack, state, given_project=program), form=form)


def _env(stack: Stack, program: Program = None, state: State = None) -> int:
    """Print shell exports, so that pulumi, kubectl, helm and ansible-playbook use the stack."""
    from karpstack.rehearsal import commands

    return commands.env(commands.Target(stack, state, given_project=program))


def _rights(
    stack: Stack,
    recording: Annotated[
        list[Path] | None,
        option(
            "--recording",
            metavar="FILE",
            help="a rights.json; repeat the option for several runs (default: that of the stack's last rehearsal)",
        ),
    ] = None,
    reasons: Annotated[
        Path | None,
        option(
            "--reasons",
            metavar="FILE",
            help="why unused permissions stay (default: components/documents/unused_rights.json)",
        ),
    ] = None,
    distil: Annotated[
        Path | None,
        option("--distil", metavar="FILE", help="write a smaller recording that contains only the permission checks"),
    ] = None,
    form: Annotated[
        Literal["text", "json", "markdown"],
        option(
            "--format",
            help="how the answer is printed; markdown: the tables of docs/reference/rights.md (default: text)",
        ),
    ] = "text",
    state: State = None,
) -> int:
    """Show which permissions Karpenter used in the last rehearsal of a stack, and which were not used.

    Exit code 1: a call has no permission, an unused permission has no reason, or a reason is for none.
    """
    from karpstack.rehearsal import commands

    target = commands.Target(stack, state)
    return commands.rights(target, recordings=recording or (), reasons_file=reasons, distil=distil, form=form)


def _network(
    stack: Stack,
    config_file: ConfigFile = None,
    cidr: Annotated[
        IPv4Network | None,
        option(
            "--cidr",
            metavar="CIDR",
            parser=parsed("karpstack.rehearsal.networks.command:parse_network"),
            help="range of the network (default: 10.20.0.0/16)",
        ),
    ] = None,
    zones: Annotated[
        int | None, option("--zones", metavar="N", help="zones with a subnet for nodes; AWS only (default: 3)")
    ] = None,
    way_out: Annotated[
        Literal["nat", "transit-gateway", "firewall", "load-balancer"],
        option(
            "--way-out",
            metavar="nat|transit-gateway|firewall|load-balancer",
            help="how nodes reach the internet: transit-gateway on AWS, firewall (a route table) or load-balancer "
            "(AKS's own) on Azure, nat on both (default: nat)",
        ),
    ] = "nat",
    write: Annotated[
        bool,
        option(
            "--write",
            help="write the settings into the stack file, with its comments, instead of printing them; settings that "
            "differ are refused without --overwrite",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        option("--overwrite", help="replace an existing description and, with --write, settings of the stack file"),
    ] = False,
) -> int:
    """Write a file that describes a network for the simulated account, and print the settings that use it.

    For a real network, docs/how-to/eks/existing-vpc.md and docs/how-to/aks/existing-vnet.md have the commands.
    """
    from karpstack.rehearsal.networks import command as networks

    return networks.run(
        stack,
        config_file=config_file,
        cidr=cidr or networks.DEFAULT_CIDR,
        zones=zones,
        way_out=way_out,
        write=write,
        overwrite=overwrite,
    )


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    command(app, "up", "karpstack up eks")(_up)
    command(app, "run", "karpstack run eks --scenarios drift,budget --keep")(_run)
    command(app, "down", "karpstack down eks")(_down)
    command(app, "status", "karpstack status eks")(_status)
    command(app, "env", 'eval "$(karpstack env eks)"')(_env)
    command(app, "rights", "karpstack rights eks --format markdown")(_rights)
    command(app, "network", "karpstack network eks --cidr 10.30.0.0/16 --write --overwrite")(_network)
