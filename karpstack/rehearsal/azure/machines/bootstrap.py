"""What a VM's custom data tells its kubelet.

Reads the bootstrap script that Karpenter writes for AKS nodes as the node would run it; runs nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

_VARIABLE = re.compile(r'^([A-Z][A-Z0-9_]*)=("([^"]*)"|[^"\n]*)$', re.MULTILINE)


@dataclass(frozen=True)
class Bootstrap:
    """The part of a bootstrap script that decides how a node joins.

    Attributes:
        api_server: Host name of the API server.
        token: Bootstrap token, `<6 characters>.<16 characters>`: a secret.
        kubernetes_version: Without a `v`, `1.36.3`.
        labels: Labels that the kubelet registers with.
    """

    api_server: str
    token: str
    kubernetes_version: str
    labels: Mapping[str, str]

    @classmethod
    def read(cls, custom_data: str) -> Bootstrap | None:
        """Read custom data (Base64); None when it is not such a script."""
        try:
            script = base64.b64decode(custom_data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        values = {match[1]: match[3] if match[3] is not None else match[2] for match in _VARIABLE.finditer(script)}
        if "API_SERVER_NAME" not in values or "KUBERNETES_VERSION" not in values:
            return None
        pairs = (item.partition("=") for item in values.get("KUBELET_NODE_LABELS", "").split(",") if item)
        return cls(
            values["API_SERVER_NAME"],
            values.get("TLS_BOOTSTRAP_TOKEN", ""),
            values["KUBERNETES_VERSION"],
            {key: value for key, _, value in pairs},
        )
