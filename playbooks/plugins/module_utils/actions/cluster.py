"""The action that chooses the cluster of a run."""

from __future__ import annotations

from typing import Final

from kubernetes.config import ConfigException

from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.text.kubeconfig import current_context

from . import Result

ERRORS: Final = (ClusterError, ConfigException, OSError)


def choose(stack_outputs: Result, *, check: bool) -> Result:
    """Refuse another cluster than the stack's; return the context and the server, to which all later tasks keep."""
    context, cluster = current_context(), Cluster()
    cluster.refuse_other(stack_outputs)
    return {"changed": False, "context": context, "server": cluster.server}
