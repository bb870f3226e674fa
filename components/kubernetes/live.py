"""Asks a cluster's API server itself, where Pulumi's Kubernetes provider does not.

The provider looks at a cluster once, when it is configured, and a cluster that does not answer then is unreachable
until the deployment's end (pulumi-kubernetes, provider.go). And it says that it waited for a condition, but not
what the object's controller said of it. Both are asked here with the kubeconfig that the provider has.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi

from ..documents.manifests import plural
from ..workloads.api_client import query_with_config

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: Seconds that one request may take.
_PATIENCE: Final = 10.0
_CONTROLLER: Final = "-n kube-system -l app.kubernetes.io/name=karpenter"


async def wait_until_served(
    kubeconfig: str, *, within: float = 300, pauses: Sequence[float] = (0.25, 0.5, 1.0, 2.0)
) -> None:
    """Wait until a cluster's API server answers whoever deploys, and lets them list namespaces.

    Args:
        kubeconfig: As JSON.
        within: Seconds.
        pauses: Seconds between two looks at a cluster that does not answer, of which the last one repeats.

    Raises:
        RunError: It did not in time, or the program that makes credentials is missing.
    """
    config = json.loads(kubeconfig)
    command = config["users"][0]["user"].get("exec", {}).get("command")
    if command and shutil.which(command) is None:
        raise pulumi.RunError(
            f"the cluster exists, but {command}, which makes the credentials for it, is not installed here: nothing "
            f"could be put into the cluster. Install {command} and run `pulumi up` again"
        )
    until = time.monotonic() + within
    waits = itertools.chain(pauses, itertools.repeat(pauses[-1]))
    while reason := await asyncio.to_thread(_reason, config):
        if time.monotonic() > until:
            server = config["clusters"][0]["cluster"]["server"]
            raise pulumi.RunError(
                f"the cluster exists, but its API server at {server} did not answer within {within:g} s: {reason}. See "
                "that there is a way to it from here (publicAccessCidrs, VPN, proxy), then run `pulumi up` again"
            )
        pulumi.log.debug(f"the API server does not answer yet: {reason}")
        await asyncio.sleep(next(waits))


def explanation(name: str, kubeconfig: pulumi.Input[str]) -> pulumi.ResourceHookBinding:
    """Hooks that log what a custom resource's controller says of it, where waiting for its conditions has failed.

    Args:
        name: Of the hook; unique in the program.
        kubeconfig: As JSON.
    """

    async def explain(failed: pulumi.ErrorHookArgs) -> bool:
        config = await pulumi.Output.from_input(kubeconfig).future()
        inputs = failed.new_inputs or {}
        if config and failed.failed_operation in ("create", "update"):
            try:
                unmet = await asyncio.to_thread(
                    query_with_config, json.loads(config), lambda api: unmet_conditions(api, inputs)
                )
            except Exception as error:  # an explanation that cannot be had must not hide what has failed
                unmet = f"its conditions cannot be read ({error})"
            if unmet:
                pulumi.log.error(f"{inputs['kind']} {inputs['metadata']['name']}: {unmet}")
        return False

    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(name, explain)])


def unmet_conditions(api: ApiClient, manifest: Mapping[str, Any]) -> str:
    """What keeps a custom resource without namespace from being ready, in its controller's words; empty if nothing.

    Raises:
        ApiException: The API server refused to tell.
    """
    from kubernetes.client import CustomObjectsApi

    group, version = manifest["apiVersion"].split("/")
    live: Any = CustomObjectsApi(api).get_cluster_custom_object(
        group, version, plural(manifest["kind"]), manifest["metadata"]["name"], _request_timeout=_PATIENCE
    )
    conditions = live.get("status", {}).get("conditions", [])
    if not conditions:
        return f"its controller has not looked at it; see that it runs: kubectl get pods {_CONTROLLER}"
    unmet = [condition for condition in conditions if condition["status"] != "True"]
    told = "; ".join(
        " ".join(filter(None, (f"{each['type']} is {each['status']}:", each.get("reason"), each.get("message"))))
        for each in unmet
    )
    if any(condition["status"] == "Unknown" for condition in unmet):
        told += f". What is Unknown stands in the controller's log: kubectl logs {_CONTROLLER}"
    return told


def _reason(config: Mapping[str, Any]) -> str:
    """Why the cluster does not serve the user of the kubeconfig, whose login may fail for a while; empty if it does."""
    from kubernetes.config import ConfigException

    try:
        return query_with_config(config, _refusal)
    except (ConfigException, OSError) as error:
        return str(error)


def _refusal(api: ApiClient) -> str:
    from kubernetes.client import ApiException, CoreV1Api
    from urllib3.exceptions import HTTPError

    try:
        _ = CoreV1Api(api).list_namespace(limit=1, _request_timeout=_PATIENCE).items
    except ApiException as error:
        return f"{error.status} {error.reason}"
    except (HTTPError, OSError) as error:
        return str(error)
    return ""
