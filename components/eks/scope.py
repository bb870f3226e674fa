"""Whose something on EKS is: what every part of an environment is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ..naming import EksNames


@dataclass(frozen=True, kw_only=True)
class Scope:
    """An environment, its account and its region.

    Attributes:
        names: How everything is called.
        partition: Partition of the account, as in ARNs.
        account_id: ID of the account.
        region: Region of the environment.
        tags: Tags of everything that takes some.
    """

    names: EksNames
    partition: pulumi.Input[str]
    account_id: pulumi.Input[str]
    region: str
    tags: Mapping[str, str]
