"""Waits until a cluster's API server lets the deployer apply objects.

A role in the cluster takes effect minutes after it is given. Pulumi's Kubernetes provider asks the cluster once, and
what it is refused then fails the update.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi
import yaml

from ..workloads.api_client import query_with_config

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: Seconds that one question may take.
_PATIENCE: Final = 10.0


async def wait_until_accepted(
    kubeconfig: str,
    *,
    within: float = 600,
    unreachable: float = 60,
    pauses: Sequence[float] = (1.0, 2.0, 5.0, 10.0),
) -> str:
    """Return the kubeconfig once the API server lets its user make NodePools.

    A server that cannot be reached is left to the Kubernetes provider, which fails only if it has something to change.

    Args:
        kubeconfig: As JSON or YAML.
        within: Seconds to wait for a right.
        unreachable: Seconds to wait for a server that does not answer at all: its name may be new.
        pauses: Seconds between two questions, of which the last one repeats: the first answers are quick, the last wait
            is for a role of Azure's.

    Raises:
        RunError: The server refuses the user for so long, or the program that makes credentials is missing.
    """
    config = yaml.safe_load(kubeconfig)
    command = config["users"][0]["user"].get("exec", {}).get("command")
    if command and shutil.which(command) is None:
        raise pulumi.RunError(
            f"{command}, which makes the credentials for the cluster, is not installed here: nothing can be put into "
            f"the cluster. Install {command} and run `pulumi up` again"
        )
    began = time.monotonic()
    waits = itertools.chain(pauses, itertools.repeat(pauses[-1]))
    told = False
    while found := await asyncio.to_thread(_reason, config):
        answered, reason = found
        server = config["clusters"][0]["cluster"]["server"]
        waited = time.monotonic() - began
        if answered and waited > within:
            raise pulumi.RunError(
                f"the API server at {server} has refused the deployer for {within:g} s: {reason}. Nothing was changed "
                "in the cluster. See that the deployer has the role Azure Kubernetes Service RBAC Cluster Admin "
                "(karpstack:cluster.deployerRole) and that kubelogin's login is of the cluster's tenant; then run "
                "`pulumi up` again"
            )
        if not answered and waited > unreachable:
            pulumi.log.warn(
                f"the API server at {server} does not answer: {reason}\n"
                "    what changes in the cluster fails in this update\n"
                "    fix: run it where the server can be reached (publicAccessCidrs, VPN, proxy)"
            )
            break
        if not told:
            pulumi.log.info(
                f"the API server does not take the deployer yet ({reason}); a role takes effect within minutes: waiting"
            )
            told = True
        await asyncio.sleep(next(waits))
    return kubeconfig


def _refusal(api: ApiClient) -> tuple[bool, str] | None:
    """Why the user may not make NodePools, after whether the server has answered; None if the user may."""
    from kubernetes.client import (
        ApiException,
        AuthorizationV1Api,
        V1ResourceAttributes,
        V1SelfSubjectAccessReview,
        V1SelfSubjectAccessReviewSpec,
    )
    from urllib3.exceptions import HTTPError

    wanted = V1ResourceAttributes(verb="create", group="karpenter.sh", resource="nodepools")
    review = V1SelfSubjectAccessReview(spec=V1SelfSubjectAccessReviewSpec(resource_attributes=wanted))
    try:
        answer = AuthorizationV1Api(api).create_self_subject_access_review(review, _request_timeout=_PATIENCE)
    except ApiException as error:
        return True, f"{error.status} {error.reason}"
    except (HTTPError, OSError) as error:
        return False, str(error)
    status = answer.status
    if status and status.allowed:
        return None
    return True, (status and status.reason) or "it may not make NodePools"


def _reason(config: Mapping[str, Any]) -> tuple[bool, str] | None:
    """The same for the user of a kubeconfig, whose login may fail for a while, too."""
    from kubernetes.config import ConfigException

    try:
        return query_with_config(config, _refusal)
    except ConfigException as error:
        return True, str(error)
    except OSError as error:
        return False, str(error)
