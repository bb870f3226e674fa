"""Questions to a cluster's API server, with the kubeconfig that Pulumi's Kubernetes provider has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_T = TypeVar("_T")


def ask(kubeconfig: str, question: Callable[[ApiClient], _T]) -> _T:
    """The answer to a question to a cluster.

    Args:
        kubeconfig: As JSON or YAML: AKS writes that of its administrator in YAML.
        question: Asks with the client that it is given.
    """
    import yaml

    return asked(yaml.safe_load(kubeconfig), question)


def asked(config: Mapping[str, Any], question: Callable[[ApiClient], _T]) -> _T:
    """The same with a kubeconfig that was read."""
    # Half a second, which only those pay who ask.
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import load_kube_config_from_dict

    configuration = Configuration()
    configuration.retries = False
    load_kube_config_from_dict(dict(config), client_configuration=configuration, persist_config=False)
    with ApiClient(configuration) as api:
        return question(api)
