"""karpstack.components.kubernetes.accepted: an update waits for the deployer's role in the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pulumi
import pytest

from karpstack.components.kubernetes import accepted
from tests.unit.test_live import ApiServer, run

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def review(allowed: bool, reason: str = "") -> tuple[int, Any]:
    return 201, {"spec": {}, "status": {"allowed": allowed, "reason": reason}}


#: As the program waits, but not as long.
wait_until_accepted = partial(accepted.wait_until_accepted, unreachable=0.05, pauses=(0.01,))


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    yield made
    made.close()


def test_a_role_that_takes_effect_late_is_waited_for(server: ApiServer) -> None:
    server.answers[REVIEWS] = [(401, {}), review(False), review(True)]
    assert run(wait_until_accepted(server.kubeconfig())) == server.kubeconfig()
    assert len(server.asked) == 3


def test_a_deployer_without_a_role_stops_the_update(server: ApiServer) -> None:
    server.answers[REVIEWS] = [review(False, "User does not have access to the resource in Azure")]
    with pytest.raises(pulumi.RunError, match=r"for 0.05 s: User does not have access .*deployerRole"):
        run(wait_until_accepted(server.kubeconfig(), within=0.05))


def test_a_server_that_cannot_be_reached_is_left_to_the_provider(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    config = server.kubeconfig()
    server.close()
    assert run(wait_until_accepted(config)) == config
    assert "does not answer" in said[0]


def test_a_missing_plugin_stops_the_update(server: ApiServer) -> None:
    plugin = {"exec": {"command": "no-such-plugin", "apiVersion": "client.authentication.k8s.io/v1beta1"}}
    with pytest.raises(pulumi.RunError, match="no-such-plugin, which makes the credentials"):
        run(wait_until_accepted(server.kubeconfig(plugin)))
