"""Names that become paths: of stacks, of candidates, of whatever else a folder or a file is called after.

Standard library only, as `files` is.
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 100
_STACK: Final = re.compile(rf"(?!-)[A-Za-z0-9_.-]{{1,{_LONGEST}}}")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_FOLDER: Final = 60
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_REGION: Final = re.compile(r"[a-z0-9-]+")


class StackNameError(ValueError):
    """No stack can be called so; the text says why and what to do."""


def is_stack_name(text: str) -> bool:
    """Whether a stack can be called so: Pulumi's rule, and no name that means another folder or an option."""
    return bool(_STACK.fullmatch(text)) and text not in (".", "..")


def stack_name(text: str) -> str:
    """Return the text if a stack can be called so.

    Raises:
        StackNameError: It cannot.
    """
    if not is_stack_name(text):
        shown = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
        raise StackNameError(
            f"stack = {shown}: Pulumi refuses such a name, and as a path it would lead out of the folder of all "
            "stacks; name the stack with 1 to 100 letters, digits, '_', '-' or '.', no '-' in front: eks, for "
            "Pulumi.eks.yaml"
        )
    return text


def aws_account(text: str) -> str:
    """Return the text if it is an account ID of AWS.

    Raises:
        ValueError: It is none.
    """
    if not _ACCOUNT.fullmatch(text):
        raise ValueError(f"{text!r} is no account of AWS, so no ARN could be made; give its 12 digits")
    return text


def region_name(text: str) -> str:
    """Return the text if a region of a cloud can have this name.

    Raises:
        ValueError: None can.
    """
    if not _REGION.fullmatch(text):
        raise ValueError(f"{text!r} is no region; write it like us-east-1 or westus2")
    return text


def folder_name(text: str) -> str:
    """Return a name for a folder that is as near to any text as a name can be."""
    return _OTHERS.sub("-", text).strip(".-")[:_FOLDER] or "unnamed"
