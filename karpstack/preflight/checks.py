"""The checks before `up` and before `destroy`, as the command line and Ansible's modules run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from karpstack.components.settings import AksSettings, ExistingAksSettings, ExistingEksSettings
from karpstack.text.shown import listed

from .aws import checks as aws_checks
from .aws.account import connect, ensure_account_has_cluster, ensure_account_of_state
from .aws.asking import Aws
from .aws.identifiers import Account, Planned
from .aws.subject import existing_subject as existing_aws_subject
from .aws.subject import identify_caller as greet_aws
from .aws.subject import subject as aws_subject
from .azure import checks as azure_checks
from .azure.asking import Azure
from .azure.credentials import login
from .azure.subject import CLUSTER as AKS_CLUSTER
from .azure.subject import existing_subject as existing_azure_subject
from .azure.subject import get_subscription as greet_azure
from .azure.subject import subject as azure_subject
from .azure.subscription import connect as connect_azure
from .azure.subscription import ensure_subscription_has_cluster, ensure_subscription_of_state
from .destroy.api_access import host, refuse_other_cluster
from .destroy.checks import checks as destroy_checks
from .destroy.cluster import Cluster, Gone, Lister
from .destroy.subject import Subject as Destroyed
from .finding import Checked, InputError, NotAskedError, UnknowableError, run
from .importing import Identify
from .stack import State, configuration, deployer, raw, setting, state

#: The type of each cloud's cluster.
CLUSTERS: Final = ("aws:eks/cluster:Cluster", AKS_CLUSTER)
_NAMED: Final = 3


def before_up(stack: str, *, project: Path, config_file: Path | None = None) -> list[Checked]:
    """Look at the account, or on Azure the subscription, that a stack is for; at the cluster, if it is to be there.

    Args:
        stack: Its name.
        project: Folder with Pulumi.yaml.
        config_file: The stack's configuration; `Pulumi.<stack>.yaml` of the project if None.

    Raises:
        UnknowableError: Nothing can be asked.
    """
    configured = configuration(config_file or project / f"Pulumi.{stack}.yaml")
    settings, made = configured.settings, state(stack, project)
    if isinstance(settings, AksSettings | ExistingAksSettings):
        ensure_subscription_of_state(settings.subscription_id, made)
        azure = Azure(settings.subscription_id, login(configured.raw))
        if isinstance(settings, AksSettings):
            return run(azure_checks.CHECKS, azure_subject(azure, settings, made))
        return run(azure_checks.EXISTING, existing_azure_subject(azure, settings, made))
    aws = Aws.connect(settings.region, *deployer(configured.raw))
    ensure_account_of_state(aws, made)
    if isinstance(settings, ExistingEksSettings):
        return run(aws_checks.EXISTING, existing_aws_subject(aws, settings, configured.raw, made))
    return run(aws_checks.CHECKS, aws_subject(aws, settings, configured.raw, made))


def identifiers(stack: str, *, project: Path, config_file: Path | None = None) -> Callable[[Planned], Identify]:
    """What finds IDs in the account that a stack on EKS is for.

    Args:
        stack: Its name.
        project: Folder with Pulumi.yaml.
        config_file: The stack's configuration; `Pulumi.<stack>.yaml` of the project if None.

    Raises:
        UnknowableError: Nothing can be asked, or the stack is not on EKS.
    """
    path = config_file or project / f"Pulumi.{stack}.yaml"
    configured = configuration(path)
    settings = configured.settings
    if isinstance(settings, ExistingEksSettings):
        raise InputError(
            f"{path.name} names a cluster that is there (cluster.existing), of which the stack takes nothing over, so "
            "there is little to import; write the ID of what is, by docs/how-to/import.md"
        )
    if isinstance(settings, AksSettings | ExistingAksSettings):
        raise InputError(
            f"{path.name} is for AKS, and IDs are looked for on AWS alone; those of Azure are in the portal, under "
            "Properties, and `az resource list` prints them. What is in the way of such an import says "
            "docs/how-to/import.md; cluster.existing takes nothing over"
        )
    aws = connect(settings.region, configured.raw)
    seen = aws_subject(aws, settings, configured.raw, State())
    return lambda planned: Account(seen, planned).identify


def before_destroy(
    stack: str,
    *,
    project: Path,
    outputs: Mapping[str, Any] | None = None,
    kubeconfig: Path | None = None,
    config_file: Path | None = None,
) -> list[Checked]:
    """Look at the cluster of a stack that is up, and at its account or subscription.

    Args:
        stack: Its name.
        project: Folder with Pulumi.yaml.
        outputs: The stack's outputs; Pulumi is asked if None.
        kubeconfig: The cluster's; the one that KUBECONFIG names if None.
        config_file: The stack's configuration; `Pulumi.<stack>.yaml` of the project if None, where there is one.

    Raises:
        UnknowableError: Nothing can be asked.
    """
    known, made = outputs, None
    if known is None:
        read = state(stack, project)
        known, made = read.outputs, read
        if not known and (read.resources or read.interrupted):
            first = (
                f". Before either, run `pulumi refresh`: Pulumi was killed while it created "
                f"{listed(sorted(read.interrupted.values()), _NAMED)}, does not know what became of that, and would "
                "leave it"
            )
            raise UnknowableError(
                f"the stack {stack} has resources and no outputs: its first `pulumi up` did not end well, and nothing "
                "says which cluster to ask; bring it up with `pulumi up`, or destroy it as it is"
                + (first if read.interrupted else "")
            )
        if not known:
            raise UnknowableError(
                f"the stack {stack} is not up, so there is nothing to destroy; bring it up with `pulumi up`, or see "
                f"that Pulumi is logged in where it was made. Pulumi said: {read.unread or 'it has no outputs'}"
            )
    file = config_file or project / f"Pulumi.{stack}.yaml"
    configured = raw(file) if config_file or file.is_file() else {}
    aws = azure = None
    if known.get("cloud") == "aws":
        aws = connect(str(known.get("region", "")), configured, made)
    else:
        azure = connect_azure(configured, made)
    is_gone = made is not None and not any(map(made.count, CLUSTERS)) and not setting(configured, "cluster", "existing")
    cluster = Gone(host(known)) if is_gone else _cluster(kubeconfig, known, aws, azure)
    subject = Destroyed(cluster, known, aws, azure, made, configured)
    if made is None:
        _ensure_account_has_cluster(subject)
    return run(destroy_checks(subject), subject)


def _ensure_account_has_cluster(subject: Destroyed) -> None:
    """See that the account has the cluster, if that answers: without Pulumi's state, nothing else says whose it is."""
    try:
        subject.cluster.greet()
    except NotAskedError:
        return
    if subject.aws:
        ensure_account_has_cluster(subject.aws, subject.outputs)
    if subject.azure and not subject.outlives_the_stack:
        ensure_subscription_has_cluster(subject.azure, subject.names)


def _cluster(kubeconfig: Path | None, known: Mapping[str, Any], aws: Aws | None, azure: Azure | None) -> Lister:
    cluster = Cluster(kubeconfig)
    refuse_other_cluster(cluster, known)
    try:
        cluster.greet()
    except NotAskedError as error:
        # Told by a check, unless there is nobody else to ask.
        _check_account_access(aws, azure, f"{error.call}: {error}")
    return cluster


def _check_account_access(aws: Aws | None, azure: Azure | None, why: str) -> None:
    """Check that the account or subscription can be asked if the cluster can't, for the reason `why`."""
    if aws is None and azure is None:
        raise UnknowableError(
            f"{why}, so the cluster cannot be reached, and nothing says which subscription to ask; see that KUBECONFIG "
            "names this stack's cluster and that `kubectl get nodes` works, or give ARM_SUBSCRIPTION_ID"
        )
    try:
        if aws:
            greet_aws(aws)
        if azure:
            greet_azure(azure)
    except UnknowableError as error:
        raise UnknowableError(f"{why}, so the cluster cannot be reached; and {error}") from error
