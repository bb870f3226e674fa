"""What programs are told of a proxy: variables of their environment, and what never goes through it.

Names of variables and what `NO_PROXY` may hold are those of Go's golang.org/x/net/http/httpproxy, which Karpenter,
containerd and the kubelet use; curl's and Python's differ in wildcards, which is why there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: What is inside the machine or the cluster on any cloud: the host itself, the metadata service, and Services, which
#: are called by their names as well.
ALWAYS_DIRECT: Final = ("localhost", "127.0.0.1", "169.254.169.254", ".svc", ".cluster.local")


def direct(own: Sequence[str], *more: str) -> list[str]:
    """Entries of `NO_PROXY`, each once: the user's first, then what is always direct, then what the cloud needs."""
    return list(dict.fromkeys([*own, *ALWAYS_DIRECT, *more]))


def variables(*, http: str | None, https: str | None, no_proxy: Sequence[str]) -> Mapping[str, str]:
    """Variables of an environment.

    Args:
        http: Proxy for http://, None for none.
        https: The same for https://.
        no_proxy: What `direct` says.
    """
    said = {"HTTP_PROXY": http, "HTTPS_PROXY": https, "NO_PROXY": ",".join(no_proxy)}
    return {name: value for name, value in said.items() if value}
