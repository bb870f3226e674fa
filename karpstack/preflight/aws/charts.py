"""Whether the charts' registry lets this machine in: a sign-in that has ended is worse there than none."""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..finding import Finding, finding
from .subject import StackSubject

_REGISTRY: Final = "public.ecr.aws"


def sign_in(subject: StackSubject) -> Iterator[Finding]:
    """Find a sign-in at ECR Public, which Helm sends, and which ends after 12 hours."""
    for path in _files(os.environ):
        token = _token(path)
        if token is None:
            continue
        ended = _ends(token) < time.time()
        yield finding("registry-login-ended" if ended else "registry-login-ends", "", path=path)


def _files(variables: Mapping[str, str]) -> list[Path]:
    """The files from which Helm takes credentials: its own, and Docker's."""
    home = Path.home()
    config = Path(variables.get("HELM_CONFIG_HOME") or home / ".config" / "helm")
    docker = Path(variables.get("DOCKER_CONFIG") or home / ".docker")
    return [
        Path(variables.get("HELM_REGISTRY_CONFIG") or config / "registry" / "config.json"),
        docker / "config.json",
    ]


def _token(path: Path) -> str | None:
    """What a file has for the registry; None without an entry."""
    try:
        auths: Any = json.loads(path.read_text(encoding="utf-8"))["auths"]
        return str(auths[_REGISTRY].get("auth", ""))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _ends(token: str) -> float:
    """When ECR's token ends, in seconds; never, where it does not say."""
    try:
        password = base64.b64decode(token, validate=True).decode().partition(":")[2]
        return float(json.loads(base64.b64decode(password, validate=True))["expiration"])
    except (binascii.Error, ValueError, LookupError, TypeError):
        return float("inf")
