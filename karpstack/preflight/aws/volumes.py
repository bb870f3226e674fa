"""Whether nodes get their volumes, which are encrypted with the account's default key in the region."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from ..finding import Finding, NotAskedError, finding
from .subject import StackSubject, Subject

_CALL: Final = "ec2:GetEbsDefaultKmsKeyId"
#: States of a key that encrypts, or soon does: https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
_USABLE: Final = ("Enabled", "Creating", "Updating")
#: Launches the instances of managed node groups, and has no right on a key but by the key's own policy.
_AUTO_SCALING: Final = "AWSServiceRoleForAutoScaling"


def default_key(subject: StackSubject) -> Iterator[Finding]:
    """Find an own default key that is disabled, or whose policy admits neither Auto Scaling nor Karpenter."""
    key = str(subject.aws.ask("ec2", "GetEbsDefaultKmsKeyId").get("KmsKeyId") or "")
    if not key or key.endswith("alias/aws/ebs"):
        return
    metadata = subject.aws.ask("kms", "DescribeKey", KeyId=key)["KeyMetadata"]
    if metadata.get("KeyManager") == "AWS":
        return
    if (state := metadata.get("KeyState", "Enabled")) not in _USABLE:
        yield finding("volume-key-unusable", _CALL, key=key, state=state)
        return
    policy = _allowing(str(subject.aws.ask("kms", "GetKeyPolicy", KeyId=key, PolicyName="default").get("Policy")))
    if isinstance(subject, Subject) and _AUTO_SCALING not in policy:
        yield _finding(key, _AUTO_SCALING, "the system nodes fail to launch when the control plane stands already")
    if (role := subject.names.controller_role) not in policy:
        yield _finding(key, role, "each node that Karpenter launches ends at once, unless its node class names a key")


def _allowing(policy: str) -> str:
    """Return the statements of a policy that allow something.

    Raises:
        NotAskedError: The policy is none.
    """
    try:
        statements = json.loads(policy)["Statement"]
        listed = statements if isinstance(statements, list) else [statements]
        return json.dumps([one for one in listed if one["Effect"] == "Allow"])
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise NotAskedError(
            "kms:GetKeyPolicy", "the policy of the key is not as KMS writes it", refused=False
        ) from error


def _finding(key: str, role: str, consequence: str) -> Finding:
    return finding(
        "volume-key-refuses-role",
        _CALL,
        severity="error" if role == _AUTO_SCALING else "warning",
        key=key,
        role=role,
        consequence=consequence,
    )
