"""`karpstack preflight` and `karpstack facts`: what your account says, before anything is created in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from karpstack.text.names import aws_account, region_name

from .options import ConfigFile, Format, Project, PulumiStack, State, argument, option
from .shape import DEFAULT, StackGroup, command, group

app = group("preflight", "Check your account, read-only, for what blocks a stack or its removal.", StackGroup)

_Findings = Annotated[
    Literal["text", "json", "markdown", "html", "sarif"],
    option("--format", help="how the findings are printed (default: text)"),
]


@command(app, DEFAULT, "karpstack preflight eks --format markdown")
def _stack(
    stack: PulumiStack,
    rehearsed: Annotated[
        bool, option("--rehearsed", help="check the simulated account of the stack instead of yours")
    ] = False,
    config_file: ConfigFile = None,
    project: Project = None,
    form: _Findings = "text",
    state: State = None,
) -> int:
    """Check your account or subscription for what blocks `pulumi up` of a stack. Nothing is created or changed.

    Exit code 1: something blocks it; 3: the account does not answer.
    """
    if rehearsed:
        from karpstack.rehearsal import commands as rehearsal

        return rehearsal.preflight(rehearsal.Target(stack, state, config_file, "preflight", project), form=form)
    from karpstack.preflight import commands

    return commands.up(stack, project=project, config_file=config_file, form=form)


@command(app, "destroy", "karpstack preflight destroy eks")
def _destroy(
    stack: PulumiStack,
    outputs: Annotated[
        Path | None,
        option(
            "--outputs",
            metavar="FILE",
            help="the stack's outputs, as `pulumi stack output --json` prints them (default: Pulumi is asked)",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None, option("--kubeconfig", metavar="FILE", help="kubeconfig of the cluster (default: KUBECONFIG's)")
    ] = None,
    config_file: ConfigFile = None,
    project: Project = None,
    form: _Findings = "text",
) -> int:
    """Check a cluster and its account for what would block `pulumi destroy`, or remain after it."""
    from karpstack.preflight import commands

    return commands.destroy(
        stack, project=project, config_file=config_file, outputs=outputs, kubeconfig=kubeconfig, form=form
    )


@command(app, "rights", "karpstack preflight rights eks --account 123456789012 --format json")
def _rights(
    stack: PulumiStack,
    account: Annotated[
        str | None,
        option(
            "--account",
            metavar="ID",
            parser=aws_account,
            help="the AWS account (default: that of aws:allowedAccountIds, or of your credentials)",
        ),
    ] = None,
    config_file: ConfigFile = None,
    project: Project = None,
    form: Format = "text",
) -> int:
    """Print the permissions that the deployer of a stack needs, for that stack's own names.

    On AWS they are policies, each small enough for IAM; on Azure a role, its assignments and their conditions.
    """
    from karpstack.preflight import commands

    return commands.rights(stack, project=project, config_file=config_file, account=account, form=form)


@command(app, "ids", "karpstack preflight ids eks import.json preview.json")
def _ids(
    stack: PulumiStack,
    file: Annotated[Path, argument("FILE", "file that `pulumi preview --import-file` wrote; it is overwritten")],
    preview: Annotated[Path, argument("PREVIEW", "what the same preview printed with --json")],
    config_file: ConfigFile = None,
    project: Project = None,
) -> int:
    """Fill the IDs of existing resources into a file for `pulumi import --file`. Nothing else is written."""
    from karpstack.preflight import commands

    return commands.ids(stack, file, preview, project=project, config_file=config_file)


def _facts(
    cloud: Annotated[Literal["aws", "azure"], argument("CLOUD", "aws or azure")],
    regions: Annotated[
        list[str],
        argument(
            "REGION",
            "regions, for example us-east-1 or westus2",
            parser=region_name,
        ),
    ],
    profile: Annotated[
        str, option("--profile", metavar="NAME", help="profile of the AWS CLI (default: AWS_PROFILE's)")
    ] = "",
    subscription: Annotated[
        str | None,
        option("--subscription", metavar="ID", help="subscription of Azure (default: ARM_SUBSCRIPTION_ID)"),
    ] = None,
    into: Annotated[
        Path | None,
        option("--into", metavar="FOLDER", help="folder to write (default: karpstack-facts next to Pulumi.yaml)"),
    ] = None,
    form: Format = "text",
) -> int:
    """Get newer instance types, prices, Kubernetes versions and images, with your own read-only credentials.

    Nothing is created or changed in the cloud. Exit code 1: some facts keep their old value and date; 3: all do.
    """
    from karpstack.preflight.refresh import command as refresh

    return refresh.run(cloud, regions, profile=profile, subscription_id=subscription, into=into, form=form)


def add(to: typer.Typer) -> None:
    """Add the commands to the application."""
    to.add_typer(app)
    command(to, "facts", "karpstack facts aws us-east-1 eu-west-1")(_facts)
