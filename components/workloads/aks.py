"""What a cluster that is there says of itself: who scales it, and who may change it. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..settings.workloads import Workloads
from . import running

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: What is created in the cluster, (API group, resource). Each by its name: what Azure RBAC makes of a question for
#: everything is not documented.
_OF_NODE_POOLS: Final = (("karpenter.sh", "nodepools"), ("karpenter.azure.com", "aksnodeclasses"))
_OF_THE_CONTROLLER: Final = (
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("apps", "deployments"),
    ("", "secrets"),
)


def read_workloads(kubeconfig: str, stack: str, *, controller: bool) -> Workloads:
    """Read the workloads of a cluster.

    Args:
        kubeconfig: As JSON or YAML.
        stack: Name of the environment, which knows by it what it has installed itself.
        controller: Whether the stack brings a controller of its own.
    """
    return running.workloads_or_refusal(kubeconfig, lambda api: _find_workloads(api, stack, controller))


def _find_workloads(api: ApiClient, stack: str, controller: bool) -> Workloads:
    for group, resource in (*_OF_NODE_POOLS, *(_OF_THE_CONTROLLER if controller else ())):
        if not running.may(api, "create", group, resource):
            return Workloads(refusal=f"it knows who that is, and does not let them create {resource}")
    return running.scaled_by(api, stack, "aksnodeclasses.karpenter.azure.com")
