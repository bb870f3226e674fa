"""What whoever deploys a stack has to be given: policies of AWS, or a role of Azure and its assignments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from botocore.session import Session

from karpstack.components.settings import AksSettings, ExistingAksSettings
from karpstack.components.settings.eks import EksStackSettings

from .aws import documents
from .aws.account import listed
from .aws.asking import Aws
from .aws.subject import identify_caller
from .azure import assignments
from .finding import UnknowableError
from .stack import Configuration, deployer


def rights(configured: Configuration, account: str | None = None) -> dict[str, Any]:
    """The rights as data.

    Args:
        configured: The stack's configuration.
        account: Id of the account on AWS; if None, the only one of `aws:allowedAccountIds`, or else the one of the
            credentials at hand.

    Returns:
        On AWS `policies`, documents that are attached all together; on Azure `role`, a definition, and `assignments`,
        each with `role`, `scope`, `condition` and `command`.

    Raises:
        UnknowableError: It is not known which account it is.
    """
    settings = configured.settings
    if isinstance(settings, AksSettings | ExistingAksSettings):
        return {
            "role": assignments.definition(settings),
            "assignments": [{**asdict(one), "command": one.command} for one in assignments.assignments(settings)],
        }
    own = account or _account(settings, configured.raw)
    partition = Session().get_partition_for_region(settings.region)
    return {"policies": documents.documents(settings, partition, own)}


def as_text(stack: str, found: Mapping[str, Any]) -> str:
    """The same for people."""
    return "\n".join(_policies(stack, found["policies"]) if "policies" in found else _assignments(found))


def _policies(stack: str, policies: list[documents.Document]) -> Iterator[str]:
    several = f"{len(policies)} policies for whoever deploys {stack}, to be attached together:"
    yield several if len(policies) > 1 else f"One policy for whoever deploys {stack}:"
    for number, document in enumerate(policies, 1):
        yield f"\n# {number} of {len(policies)}: {documents.size(document)} of {documents.LARGEST} characters"
        yield json.dumps(document, indent=2)


def _assignments(found: Mapping[str, Any]) -> Iterator[str]:
    yield f'The role "{found["role"]["Name"]}", for az role definition create --role-definition role.json:'
    yield json.dumps(found["role"], indent=2)
    yield "\nIts assignments; DEPLOYER is the object id of whoever deploys:"
    for one in found["assignments"]:
        yield f"\n{one['command']}"


def _account(settings: EksStackSettings, raw: Mapping[str, Any]) -> str:
    allowed = listed(raw.get("aws:allowedAccountIds"))
    if len(allowed) == 1:
        return allowed[0]
    try:
        return identify_caller(Aws.connect(settings.region, *deployer(raw))).account
    except UnknowableError as error:
        raise UnknowableError(f"{error}; or say which account it is, with --account") from error
