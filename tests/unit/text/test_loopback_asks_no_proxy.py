"""Whoever talks to this machine asks no proxy; whoever talks to others asks the one that the environment names."""

from __future__ import annotations

import json
import traceback
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import proxy_bypass

import botocore.utils
import pytest
import requests.utils
import urllib3
import yaml
from botocore.exceptions import ClientError
from kubernetes import client
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException

from karpstack.components.workloads.api_client import query
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.sessions import session
from karpstack.preflight.azure import charts
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.destroy.cluster import Cluster
from karpstack.preflight.finding import NotAskedError, UnknowableError
from karpstack.preflight.refresh.azure import price_list
from karpstack.pull_request.github import GitHub, GitHubError
from karpstack.real_run import removal_azure
from karpstack.real_run.leftovers import TAG
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import deployment
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.scale_test.connecting import connect
from karpstack.scale_test.recording.metrics import scrape
from karpstack.text.proxies import ProxyError, is_loopback, proxy_for
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.preflight.test_asking import SERVICES, cluster
from tests.unit.preflight.test_asking_azure import Token, azure

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


def of_aws(server: FakeServer, _: Path) -> None:
    Aws.connect("us-east-1").ask("eks", "ListClusters")


def of_aws_with_a_role(server: FakeServer, folder: Path) -> None:
    """As in GitHub Actions, and in pods: botocore asks STS itself first."""
    (folder / "token").write_text("token")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.delenv(name)
        patched.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r")
        patched.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(folder / "token"))
        Aws.connect("us-east-1").ask("eks", "ListClusters")


def of_aws_with_a_profile(server: FakeServer, folder: Path) -> None:
    source = "[profile keys]\naws_access_key_id = a\naws_secret_access_key = b\n"
    taken = "[profile taken]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = keys\n"
    (folder / "config").write_text(source + taken)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        Aws.connect("us-east-1", "taken").ask("eks", "ListClusters")


def of_the_kill_switch_on_aws(server: FakeServer, _: Path) -> None:
    session("", "us-east-1", is_short=False).client("eks").list_clusters()


def of_azure(server: FakeServer, _: Path) -> None:
    azure(server).all("Microsoft.X/read", "/subscriptions/sub/x", "2024-01-01")


def of_the_kill_switch_on_azure(server: FakeServer, _: Path) -> None:
    path = "/subscriptions/a/resourcegroups"
    group = {"id": f"{path}/mine", "name": "mine", "tags": {TAG: "run"}}
    server.said[path] = (200, json.dumps({"value": [group, {**group, "id": "@evil.example/"}]}))
    asked = azure(server)
    lines = removal_azure.remove(asked, asked._login, "run", between=0)
    assert next(lines).startswith("resource group mine")
    assert next(lines).startswith("resource group mine stays: its id is '@evil.example/'")


def of_a_cluster(server: FakeServer, folder: Path) -> None:
    cluster(folder, server.port).list(SERVICES)


def of_a_story(server: FakeServer, folder: Path) -> None:
    client.VersionApi(connect(kubeconfig(folder, f"http://127.0.0.1:{server.port}"))).get_code()


def of_a_component(server: FakeServer, folder: Path) -> None:
    query(
        kubeconfig(folder, f"http://127.0.0.1:{server.port}").read_text(), lambda api: client.VersionApi(api).get_code()
    )


def of_metrics(server: FakeServer, _: Path) -> None:
    server.otherwise = 200, ""
    scrape(f"http://127.0.0.1:{server.port}/metrics", prices=False)


LOGIN = Login(Token(), "a test", "https://management.azure.com", "x/.default")
QUESTIONS = [
    *(of_aws, of_aws_with_a_role, of_aws_with_a_profile, of_the_kill_switch_on_aws),
    *(of_azure, of_the_kill_switch_on_azure),
    *(of_a_cluster, of_a_story, of_a_component, of_metrics),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.__name__)
def test_no_proxy_sees_a_question_to_this_machine(
    question: Callable[[FakeServer, Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where NO_PROXY does not say so."""
    with FakeServer() as server, FakeServer() as proxy:
        for name in NAMES:
            monkeypatch.setenv(name, "" if "NO" in name.upper() else f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        with suppress(NotAskedError, ClientError, client.ApiException):
            question(server, tmp_path)
        assert server.asked
        assert not proxy.asked


@pytest.mark.parametrize("question", [of_aws, of_aws_with_a_role, of_aws_with_a_profile], ids=lambda one: one.__name__)
def test_every_question_to_aws_goes_to_the_proxy_of_all_addresses(
    question: Callable[[FakeServer, Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """boto3 itself does not know ALL_PROXY."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    with FakeServer() as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://aws.invalid")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        with suppress(NotAskedError):
            question(proxy, tmp_path)
        assert proxy.asked


def kubeconfig(folder: Path, server: str, proxy: str | None = None) -> Path:
    cluster = {"server": server, **({"proxy-url": proxy} if proxy else {})}
    path = folder / "kubeconfig"
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
    return path


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
    pool = connect(kubeconfig(tmp_path, server, proxy)).rest_client.pool_manager
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


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        *(("http://127.0.0.2:1", True), ("http://[::1]", True), ("http://LOCALHOST.:1", True), ("//127.0.0.1", True)),
        *(("https://127.0.0.1.evil.example", False), ("http://1.1.1.1", False), ("http://localhost.evil", False)),
        *(("", False), ("http://169.254.169.254", False)),
        *(("http://0.0.0.0:1", True), ("http://[::]:1", True), ("http://[::ffff:127.0.0.1]:1", True)),
        *(("http://127.1:1", True), ("http://0x7f000001", True), ("http://2130706433", True), ("http://0", True)),
        *(("http://eks.localhost:1", True), ("http://eks.LOCALHOST.", True), ("http://[::1%25lo]", True)),
        *(("http://notlocalhost", False), ("http://[::ffff:1.1.1.1]", False), ("http://1.1", False)),
        *(("http://evil.example\\@127.0.0.1", False), ("http://127.0.0.1\\@evil.example", False)),
        *(("http://127.1.evil.example", False), ("http://[::2]", False), ("http://dead.beef", False)),
    ],
)
def test_what_this_machine_is(url: str, is_here: bool) -> None:
    assert is_loopback(url) == is_here


def of_github(_: Path) -> None:
    list(GitHub("https://server.invalid", "token", sleep=lambda _: None).pages("/comments"))


def of_charts(_: Path) -> None:
    charts._status("GET https://server.invalid/v2/x/manifests/1")


def of_prices(_: Path) -> None:
    price_list("eastus")


def of_aws_elsewhere(_: Path) -> None:
    Aws.connect("us-east-1").ask("eks", "ListClusters")


def of_a_story_elsewhere(folder: Path) -> None:
    client.VersionApi(connect(kubeconfig(folder, "https://server.invalid"))).get_code()


def of_a_component_elsewhere(folder: Path) -> None:
    query(kubeconfig(folder, "https://server.invalid").read_text(), lambda api: client.VersionApi(api).get_code())


ELSEWHERE = [of_github, of_charts, of_prices, of_aws_elsewhere, of_a_story_elsewhere, of_a_component_elsewhere]
FAILURES = (GitHubError, NotAskedError, urllib3.exceptions.HTTPError)


@pytest.mark.parametrize("question", ELSEWHERE, ids=lambda one: one.__name__)
def test_a_proxy_gets_the_login_that_its_address_has(
    question: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FakeServer() as proxy:
        for name in NAMES:
            monkeypatch.setenv(name, "" if "NO" in name.upper() else f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://server.invalid")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        with pytest.raises(FAILURES):
            question(tmp_path)
    assert proxy.logins == {f"Basic {b64encode(b'user:p@ss').decode()}"}


@pytest.mark.parametrize("question", [of_github, of_charts, of_a_story_elsewhere, of_a_component_elsewhere])
def test_a_server_that_no_proxy_names_is_asked_directly(
    question: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FakeServer() as proxy:
        for name in NAMES:
            monkeypatch.setenv(name, "127.0.0.9,.invalid" if "NO" in name.upper() else f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(FAILURES):
            question(tmp_path)
    assert not proxy.asked


@pytest.mark.parametrize(
    "ask",
    [
        lambda written: client.VersionApi(connect(written)).get_code(),
        lambda written: query(written.read_text(), lambda api: client.VersionApi(api).get_code()),
    ],
    ids=["story", "component"],
)
def test_no_proxy_excepts_nothing_from_a_kubeconfigs_proxy(
    ask: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As for kubectl, also where the environment names the same proxy."""
    with FakeServer() as proxy:
        own = f"http://user:own@127.0.0.1:{proxy.port}"
        for name in NAMES:
            monkeypatch.setenv(name, "*" if "NO" in name.upper() else own)
        written = kubeconfig(tmp_path, "https://server.invalid", own)
        with pytest.raises(urllib3.exceptions.HTTPError):
            ask(written)
    assert proxy.logins == {f"Basic {b64encode(b'user:own').decode()}"}


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        *(("https://10.1.2.3", None), ("https://11.1.2.3", PROXY)),
        *(("https://[fd00::1]", None), ("https://[fe00::1]", PROXY)),
        *(("https://172.16.0.1:6443", None), ("https://172.16.0.1", PROXY), ("https://a.port.example", None)),
        *(("https://port.example:444", PROXY), ("https://port.example:99999", PROXY), ("https://xport.example", PROXY)),
        *(("https://a.star.example:6443", None), ("https://star.example", PROXY), ("https://axstar.example", PROXY)),
    ],
)
def test_no_proxy_is_read_as_go_does(url: str, asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(
            name, "name.example, 10.0.0.0/8,fd00::/8,172.16.0.1:6443, .Port.example:443,*.star.example, ,:,*:1"
        )
    assert proxy_for(url) == asked


#: Values of a proxy that are no address of one.
NO_PROXIES = [
    *("socks5://user:s3cret@proxy:1080", "ftp://x", "http://[::1", "http://p:s3cret", " ", "http://", "http:// p"),
    *("http://user:s3cret@127.0.0.1:99999", "user:s3cret@p:port", "http://p:0", "http://u:s3cret#@p"),
    *("http://u:s3cret/x@p:1", "http://u:s3cret?@p", "p\n::error::", "http://u:s3cret%E4%B8%AD@p:1"),
]


@pytest.mark.parametrize("proxy", NO_PROXIES)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_that_is_none_is_an_error_without_its_password(
    name: str, proxy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for one in NAMES:
        monkeypatch.delenv(one, raising=False)
    for one in (name, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(one, proxy)
    asked: list[tuple[type[Exception], Callable[[], object]]] = [
        (ProxyError, lambda: proxy_for("https://api.github.com")),
        (GitHubError, lambda: GitHub("https://api.github.com", "token")),
        (NotAskedError, lambda: charts._status("GET https://mcr.microsoft.com/v2/x/manifests/1")),
        (ConfigException, lambda: connect(kubeconfig(tmp_path, "https://cluster.example"))),
        (UnknowableError, lambda: Cluster(kubeconfig(tmp_path, "https://cluster.example"))),
        (NotAskedError, lambda: Aws.connect("us-east-1").ask("eks", "ListClusters")),
        (NotAskedError, lambda: Azure("a", LOGIN).find("Microsoft.X/read", "/subscriptions/sub/x", "2024-01-01")),
        (NotAskedError, lambda: price_list("eastus")),
    ]
    for error, ask in asked:
        with pytest.raises(error, match=f"{name} is not the address of an HTTP proxy") as raised:
            ask()
        assert "s3cret" not in "".join(traceback.format_exception(raised.value)).replace(repr(proxy), "")
        assert "::error" not in str(raised.value)


@pytest.mark.parametrize("proxy", [one for one in NO_PROXIES if "s3cret" in one])
def test_a_component_does_not_print_the_password_of_a_proxy(
    proxy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(ConfigException, match=r"HTTPS_PROXY, .* is not the address of an HTTP proxy") as raised:
        query(kubeconfig(tmp_path, "https://cluster.example").read_text(), lambda _: None)
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("token", ["s3cret\nx", "s3cret\r\nX: y", "s3cret\u4e2d"])
def test_a_token_that_no_request_can_hold_is_an_error_without_it(token: str, tmp_path: Path) -> None:
    written = kubeconfig(tmp_path, "https://cluster.example")
    written.write_text(written.read_text().replace("token: t", f"token: {json.dumps(token)}"))
    for error, ask in ((ConfigException, connect), (UnknowableError, Cluster)):
        with pytest.raises(error, match="has a line break, or another character that no request can hold") as raised:
            ask(written)
        assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_credentials_that_no_request_can_hold_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.setenv(name, "s3cret\nx")
        with pytest.raises(NotAskedError, match=r"Invalid header value \*\*\*") as raised:
            Aws.connect("us-east-1").ask("eks", "ListClusters")
    assert "s3cret" not in str(raised.value)


def test_azure_asks_the_proxy_that_is_written_without_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as proxy:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"user:password@127.0.0.1:{proxy.port}")
        for ask in (
            lambda: price_list("eastus"),
            lambda: Azure("a", LOGIN).find("Microsoft.X/read", "/subscriptions/sub/x", "1"),
        ):
            with pytest.raises(NotAskedError, match=r"(?i)proxy") as raised:
                ask()
            assert "malformed" not in str(raised.value)


@pytest.mark.parametrize("proxy", NO_PROXIES)
def test_a_kubeconfigs_proxy_that_is_none_is_an_error_without_its_password(proxy: str, tmp_path: Path) -> None:
    written = kubeconfig(tmp_path, "https://cluster.example", proxy)
    for error, ask in ((ConfigException, connect), (UnknowableError, Cluster)):
        with pytest.raises(error, match="proxy-url is not the address of an HTTP proxy") as raised:
            ask(written)
        assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_a_proxy_without_a_scheme_speaks_http(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "user:p@ss@proxy:8080")
    assert proxy_for("https://api.github.com") == "http://user:p@ss@proxy:8080"
