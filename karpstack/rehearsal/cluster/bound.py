"""What the clouds share of `karpstack.rehearsal.cluster.cloud.Cloud`."""

from __future__ import annotations

from collections.abc import Mapping

from karpstack.rehearsal.cluster.control_plane import Cluster


class Bound:
    """What every `Cloud` has: the running control plane that makes and reviews its tokens, once there is one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.bound: Cluster | None = None

    def bind(self, cluster: Cluster) -> None:
        """Tell which running control plane it is."""
        self.bound = cluster

    def network_refusal(
        self, provider_id: str, namespace: str, service_account: str, annotations: Mapping[str, str]
    ) -> str:
        """Empty: where no such pod asks the cloud, none is refused."""
        return ""

    @property
    def cluster(self) -> Cluster:
        """The running control plane.

        Raises:
            RuntimeError: `bind` was not called.
        """
        if self.bound is None:
            raise RuntimeError(
                f"the cluster {self._name} is not bound to its cloud: call bind(cluster) once its control plane has "
                "started"
            )
        return self.bound
