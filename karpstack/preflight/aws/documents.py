"""The deployer's policy of one stack, for that stack's own names, in documents that IAM takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from karpstack.components.documents.iam import VERSION
from karpstack.components.naming import EksNames
from karpstack.components.settings import ExistingEksSettings
from karpstack.components.settings.eks import EksStackSettings

from .deployer import Grant, Scope, preflight_grants
from .rights import deploying

#: Characters of a managed policy, white space not counted (IAM's quotas).
LARGEST: Final = 6_144

Document = dict[str, Any]


def documents(settings: EksStackSettings, partition: str, account: str) -> list[Document]:
    """What whoever deploys a stack must be allowed, the looks included, in as few documents as it takes.

    Args:
        settings: The stack's.
        partition: `aws`, `aws-cn` or `aws-us-gov`.
        account: Id of its account.
    """
    existing = settings.cluster.existing if isinstance(settings, ExistingEksSettings) else ""
    names = EksNames(settings.name, existing=existing)
    scope = Scope(partition=partition, region=settings.region, account=account, names=names)
    return list(_packed((*deploying(settings, scope), *preflight_grants(scope))))


def size(document: Mapping[str, Any]) -> int:
    """Characters of a document, as IAM counts them."""
    return len("".join(json.dumps(document).split()))


def _packed(grants: Iterable[Grant]) -> Iterator[Document]:
    document = _document([])
    for statement in (grant.statement() for grant in grants):
        longer = _document([*document["Statement"], statement])
        if size(longer) > LARGEST and document["Statement"]:
            yield document
            longer = _document([statement])
        document = longer
    yield document


def _document(statements: list[dict[str, Any]]) -> Document:
    return {"Version": VERSION, "Statement": statements}
