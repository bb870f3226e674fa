"""AWS's partitions and regions, as the SDK knows them. Reading them takes a fifth of a second, so that is done once."""

from __future__ import annotations

import functools
from typing import Any

from karpstack.rehearsal.aws import descriptions


@functools.cache
def session() -> Any:
    """A boto3 session for questions that need no credentials."""
    import boto3
    import botocore.session

    own = botocore.session.get_session()
    own.register_component("data_loader", descriptions.loader())
    return boto3.session.Session(botocore_session=own)
