"""Errors as Azure Resource Manager gives them: a code, a text and an HTTP status.

Only the errors that more than one module raises have a function here; the others stand where they are raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ArmError(Exception):
    """A request that ARM, or a resource provider behind it, refuses.

    Attributes:
        code: Azure's error code, for example `ResourceNotFound`.
        message: Azure's text.
        status: HTTP status.
        headers: Headers of the answer (`Retry-After` of a throttled call).
    """

    def __init__(self, code: str, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"Code={code!r} Message={message!r}")
        self.code = code
        self.message = message
        self.status = status
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The answer's JSON body."""
        return {"error": {"code": self.code, "message": self.message}}


def resource_not_found(resource_type: str, name: str, group: str) -> ArmError:
    """The resource that is asked for does not exist."""
    return ArmError(
        "ResourceNotFound",
        f"The Resource '{resource_type}/{name}' under resource group '{group}' was not found. For more details please "
        "go to https://aka.ms/ARMResourceNotFoundFix",
        404,
    )


def group_not_found(name: str) -> ArmError:
    """The resource group does not exist."""
    return ArmError("ResourceGroupNotFound", f"Resource group '{name}' could not be found.", 404)


def invalid_reference(referenced: str, by: str) -> ArmError:
    """A network resource names another one that does not exist."""
    return ArmError(
        "InvalidResourceReference",
        f"Resource {referenced} referenced by resource {by} was not found. Please make sure that the referenced "
        "resource exists, and that both resources are in the same region.",
    )


def invalid_parameter(name: str, message: str) -> ArmError:
    """A property has a value that the resource provider refuses."""
    return ArmError("InvalidParameter", f"{message} (property {name})")
