"""Whoever talks to this machine asks no proxy; whoever talks to others asks the one that the environment names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.request import proxy_bypass

import botocore.utils
import pytest
import requests.utils
import urllib3
import yaml
from kubernetes.client.rest import should_bypass_proxies

from karpstack.pull_request.github import GitHub
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import deployment
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.scale_test.connecting import connect
from karpstack.text.proxies import proxy_for

PROXY = "http://proxy.corp.example:3128"
HERE = ("http://127.0.0.1:4566", "http://localhost:4566", "https://127.0.0.1:6443")
NAMES = [name for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for name in (upper, upper.lower())]


@pytest.fixture(autouse=True)
def behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "internal.corp.example" if "NO" in name.upper() else PROXY)


def exported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """What `env` prints, in the environment."""
    info = DaemonInfo(1, 1.0, "aws", "us-east-1")
    found = deployment.environment(StackFolder("eks", tmp_path), EngineSet(tmp_path), info)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.mark.parametrize("url", HERE)
@pytest.mark.parametrize(
    "bypasses",
    [
        lambda url: botocore.utils.should_bypass_proxies(url),
        lambda url: requests.utils.should_bypass_proxies(url, None),
        lambda url: proxy_bypass(str(urllib3.util.parse_url(url).host)),
        lambda url: should_bypass_proxies(url, no_proxy=deployment._no_proxy()["NO_PROXY"]),
    ],
    ids=["boto3", "requests", "urllib", "kubernetes"],
)
def test_by_hand_nothing_goes_to_the_users_proxy(
    bypasses: Callable[[str], bool], url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = exported(monkeypatch, tmp_path)
    assert found["NO_PROXY"] == found["no_proxy"]
    assert "internal.corp.example" in found["NO_PROXY"].split(",")
    assert bypasses(url)


@pytest.mark.parametrize(
    ("server", "proxy", "asked"),
    [
        ("https://127.0.0.1:6443", None, None),
        ("https://localhost:6443", None, None),
        ("https://cluster.example:443", None, PROXY),
        ("https://127.0.0.1:6443", "http://own.example:1", "http://own.example:1"),
    ],
)
def test_a_cluster_on_this_machine_is_asked_directly(
    server: str, proxy: str | None, asked: str | None, tmp_path: Path
) -> None:
    cluster = {"server": server, **({"proxy-url": proxy} if proxy else {})}
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "clusters": [{"name": "a", "cluster": cluster}],
                "users": [{"name": "a", "user": {"token": "t"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            }
        )
    )
    pool = connect(path).rest_client.pool_manager
    assert (str(pool.proxy) if isinstance(pool, urllib3.ProxyManager) else None) == asked


@pytest.mark.parametrize(
    ("url", "asked"),
    [(url, None) for url in HERE]
    + [("https://api.github.com", PROXY), ("https://internal.corp.example/api/v3", None), ("http://[::1]:80", None)],
)
def test_github_is_asked_through_the_proxy_and_this_machine_is_not(url: str, asked: str | None) -> None:
    assert proxy_for(url) == asked
    pool = GitHub(url, "token")._pool
    assert isinstance(pool, urllib3.ProxyManager) == bool(asked)
