"""The action that chooses the cluster of a run."""

from __future__ import annotations

from typing import Final

from kubernetes.config import ConfigException

from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.text.kubeconfig import current_context

from . import FailedError, Result

ERRORS: Final = (ClusterError, ConfigException, OSError)


def choose(stack_outputs: Result, *, check: bool) -> Result:
    """Refuse another cluster than the stack's; return the context and the server, to which all later tasks keep."""
    context = current_context()
    cluster = Cluster(context=context)
    cluster.refuse_other(stack_outputs)
    return {"changed": False, "context": context, "server": cluster.server}


def ensure_current(context: str, server: str, *, check: bool) -> Result:
    """Refuse to go on if kubectl would by now ask another cluster than the one that was chosen."""
    current = current_context()
    asked = Cluster(context=current).server
    if (current, asked) != (context, server):
        raise FailedError(
            f"the kubeconfig's current context is {current} ({asked}) by now, and was {context} ({server}), so a "
            f"command could change another cluster, and was not run: kubectl config use-context {context}, and run it "
            "again"
        )
    return {"changed": False}
