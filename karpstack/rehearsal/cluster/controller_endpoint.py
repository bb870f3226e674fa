"""The one address at which the controller's process serves its metrics and its health, and the secret for it.

The guard that the controller is built with (`karpstack/rehearsal/engines/guard`) reads both from its environment.
They are the same for every process of a cluster, so that who reads the metrics finds those of a successor.
"""

from __future__ import annotations

import secrets

import urllib3

from karpstack.rehearsal.cluster.ports import ReservedPort
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text import files


class ControllerEndpoint:
    """Address and secret, until `close`.

    Args:
        folder: The stack's folder, whose `metrics_address` and `metrics_token` tell of it.
    """

    def __init__(self, folder: StackFolder) -> None:
        self._address = folder.metrics_address
        self._token_file = folder.metrics_token
        self._port = ReservedPort()
        self._url = f"http://127.0.0.1:{self._port.number}"
        self._token = secrets.token_urlsafe(32)

    @property
    def variables(self) -> dict[str, str]:
        """What the controller's process needs in its environment."""
        return {"METRICS_PORT": str(self._port.number), "KARPSTACK_METRICS_TOKEN": self._token}

    def publish(self) -> None:
        """Write the files that tell of it; their folder must be there."""
        files.write(self._token_file, self._token, private=True)
        files.write(self._address, f"{self._url}/metrics", private=True)

    def withdraw(self) -> None:
        """Remove the files; nothing happens when there are none."""
        self._address.unlink(missing_ok=True)
        self._token_file.unlink(missing_ok=True)

    def ready(self) -> bool:
        """Whether a controller answers there that it is ready."""
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            answer = urllib3.request("GET", f"{self._url}/readyz", headers=headers, retries=False, timeout=2.0)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200

    def close(self) -> None:
        """Give the port away."""
        self.withdraw()
        self._port.close()
