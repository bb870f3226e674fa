"""The two looks as the command line and Ansible's modules have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from components.settings import EksSettings

from .aws import checks as aws_checks
from .aws.asking import Aws
from .aws.subject import subject
from .destroy import checks as destroy_checks
from .destroy.cluster import Cluster
from .destroy.subject import Subject as Destroyed
from .finding import Checked, UnknowableError, run
from .stack import configuration, deployer, raw, state

PROJECT: Final = Path(__file__).resolve().parents[1]


def before_up(stack: str, *, project: Path = PROJECT, config_file: Path | None = None) -> list[Checked]:
    """Look at the account that a stack is for.

    Args:
        stack: Its name.
        project: Folder with Pulumi.yaml.
        config_file: The stack's configuration; `Pulumi.<stack>.yaml` of the project if None.

    Raises:
        UnknowableError: Nothing can be asked.
    """
    configured = configuration(config_file or project / f"Pulumi.{stack}.yaml")
    settings = configured.settings
    if not isinstance(settings, EksSettings):
        raise UnknowableError(
            f"karpstack:cloud = {settings.cloud}: preflight asks accounts of AWS, so nothing was looked at; "
            "docs/azure.md has what a subscription needs"
        )
    aws = Aws.connect(settings.region, *deployer(configured.raw))
    return run(aws_checks.CHECKS, subject(aws, settings, configured.raw, state(stack, project)))


def before_destroy(
    stack: str,
    *,
    project: Path = PROJECT,
    outputs: Mapping[str, Any] | None = None,
    kubeconfig: Path | None = None,
) -> list[Checked]:
    """Look at the cluster of a stack that is up, and on AWS at its account.

    Args:
        stack: Its name.
        project: Folder with Pulumi.yaml.
        outputs: The stack's outputs; Pulumi is asked if None.
        kubeconfig: The cluster's; the one that KUBECONFIG names if None.

    Raises:
        UnknowableError: Nothing can be asked.
    """
    known = outputs
    if known is None:
        read = state(stack, project)
        known = read.outputs
        if not known:
            raise UnknowableError(
                f"the stack {stack} is not up, so there is nothing to destroy; bring it up with `pulumi up`, or see "
                f"that Pulumi is logged in where it was made. Pulumi said: {read.unread or 'it has no outputs'}"
            )
    aws = None
    if known.get("cloud") == "aws":
        file = project / f"Pulumi.{stack}.yaml"
        aws = Aws.connect(str(known.get("region", "")), *(deployer(raw(file)) if file.is_file() else ()))
    cluster = Cluster(kubeconfig)
    cluster.greet()
    return run(destroy_checks.CHECKS, Destroyed(cluster, known, aws))
