"""The engines of a rehearsed stack serve nobody who does not know a secret of theirs."""

from __future__ import annotations

import pytest
import urllib3

from tests.rehearsal.conftest import RehearsedStack


def status(url: str, token: str = "") -> int:
    """HTTP status of a GET; the certificate is not what is tested here."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib3.PoolManager(retries=False, timeout=10.0, cert_reqs="CERT_NONE") as http:
        return http.request("GET", url, headers=headers).status


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize("token", ["", "wrong"])
def test_the_api_server_has_nothing_for_strangers(eks: RehearsedStack, token: str) -> None:
    endpoint = eks.api().configuration.host
    for path in ("/version", "/healthz", "/readyz", "/api/v1/secrets", "/openid/v1/jwks", "/openapi/v3", "/metrics"):
        assert status(endpoint + path, token) == 401, path


@pytest.mark.parametrize("token", ["", "wrong"])
def test_the_controllers_metrics_and_health_are_for_those_with_the_token(eks: RehearsedStack, token: str) -> None:
    metrics = eks.variables["KARPSTACK_METRICS_URL"]
    secret = eks.variables["KARPSTACK_METRICS_TOKEN"]
    # All of the metrics are megabytes, which take a controller some time.
    for path in ("/metrics?name[]=process_start_time_seconds", "/healthz", "/readyz"):
        url = metrics.removesuffix("/metrics") + path
        assert status(url, token) == 401, path
        assert status(url, secret) == 200, path


def test_etcd_has_sockets_in_a_private_folder_and_no_port(eks: RehearsedStack) -> None:
    folder = eks.folder.control_plane
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.iterdir() if path.is_socket()} == {"etcd.sock", "etcd-peer.sock"}
