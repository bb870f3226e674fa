"""Whom preflight asks Azure as: whom the stack's provider would, by its configuration and the environment."""

from __future__ import annotations

import ast
import logging
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.core.rest import HttpRequest
from azure.identity import (
    AzureCliCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
)

import karpstack
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login, login, subscription, transport
from karpstack.preflight.finding import NotAskedError, UnknowableError
from karpstack.preflight.stack import CLOSED
from karpstack.text.proxies import proxies_for
from tests.unit.preflight.fake_server import FakeServer

TENANT, CLIENT = "11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555"
APPLICATION = {"ARM_TENANT_ID": TENANT, "ARM_CLIENT_ID": CLIENT}


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, AzureCliCredential),
        ({**APPLICATION, "ARM_CLIENT_SECRET": "x"}, ClientSecretCredential),
        ({**APPLICATION, "ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "x.y.z"}, ClientAssertionCredential),
        ({"ARM_USE_MSI": "true"}, ManagedIdentityCredential),
        ({"ARM_USE_DEFAULT_AZURE_CREDENTIAL": "true"}, DefaultAzureCredential),
        # In the order of the provider: a secret goes before a managed identity.
        ({**APPLICATION, "ARM_CLIENT_SECRET": "x", "ARM_USE_MSI": "true"}, ClientSecretCredential),
    ],
)
def test_the_login_is_the_providers(environment: dict[str, str], kind: type[Any]) -> None:
    assert type(login({}, environment).credential) is kind


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
def test_who_signs_in_is_asked_through_each_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """requests itself finds no host in an address without a scheme and with a user."""
    for other in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    with FakeServer() as proxy:
        monkeypatch.setenv(name, f"user:password@127.0.0.1:{proxy.port}")
        found = login({}, {**APPLICATION, "ARM_CLIENT_SECRET": "x"})
        monkeypatch.setattr("time.sleep", lambda _: None)
        with pytest.raises(ClientAuthenticationError):
            found.credential.get_token(found.scope)
        assert proxy.asked
        assert proxy.logins == {f"Basic {b64encode(b'user:password').decode()}"}
    monkeypatch.setenv(name, "ftp://proxy")
    with pytest.raises(ClientAuthenticationError, match=f"{name} is not the address of an HTTP proxy"):
        login({}, {**APPLICATION, "ARM_CLIENT_SECRET": "x"}).credential.get_token(found.scope)


#: What the server of a machine's identity says, where it is none.
LIES = ["no \x1b[31mJSON", "[]", "{}", '{"access_token": 5}', "[" * 100_000]


@pytest.mark.parametrize("said", LIES)
@pytest.mark.parametrize("kind", ["ARM_USE_MSI", "ARM_USE_DEFAULT_AZURE_CREDENTIAL"])
def test_the_server_of_a_machines_identity_is_asked_without_a_proxy(
    kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with FakeServer() as server, FakeServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.port}/token")
        monkeypatch.setenv("IDENTITY_HEADER", "s3cret")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")  # it would start programs otherwise
        server.otherwise = (200, said)
        asked = Azure("sub", login({}, {kind: "true"}))
        with pytest.raises(NotAskedError) as told:
            asked.all("x/read", "/subscriptions/sub/x", "1")
        assert server.asked
        assert not proxy.asked
        assert "s3cret" not in str(told.value)


def test_the_environment_changes_neither_the_token_nor_the_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """requests itself takes ~/.netrc for the token, and does not know `*.` in NO_PROXY."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("NO_PROXY", "*.azure.invalid")
    with FakeServer() as server, FakeServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        with transport() as asks:
            asks.send(HttpRequest("GET", f"http://127.0.0.1:{server.port}/", headers={"Authorization": "Bearer t"}))
            with pytest.raises(ServiceRequestError):
                asks.send(
                    HttpRequest("GET", "http://arm.azure.invalid/"), proxies=proxies_for("http://arm.azure.invalid")
                )
        assert server.tokens == {"Bearer t"}
        assert not proxy.asked


def test_another_cloud_is_not_taken_for_azures() -> None:
    """The provider would ask it; the public cloud may know the subscription, too."""
    with pytest.raises(UnknowableError, match="azure-native:metadataHost"):
        login({"azure-native:metadataHost": "host.example"}, {})
    with pytest.raises(UnknowableError, match="ARM_METADATA_HOSTNAME"):
        login({}, {"ARM_METADATA_HOSTNAME": "host.example"})
    usual = {"ARM_METADATA_HOSTNAME": "management.azure.com"}
    assert login({}, {**APPLICATION, **usual, "ARM_CLIENT_SECRET": "x"}).words.endswith("by its secret")


def test_another_server_of_managed_identities_is_not_followed() -> None:
    """It counts for them alone."""
    elsewhere = {"ARM_MSI_ENDPOINT": "http://127.0.0.1:1/token"}
    with pytest.raises(UnknowableError, match="ARM_MSI_ENDPOINT"):
        login({}, {"ARM_USE_MSI": "true", **elsewhere})
    with pytest.raises(UnknowableError, match="azure-native:msiEndpoint"):
        login({"azure-native:useMsi": "true", "azure-native:msiEndpoint": "http://127.0.0.1:1/token"}, {})
    assert login({}, {**APPLICATION, **elsewhere, "ARM_CLIENT_SECRET": "x"}).words.endswith("by its secret")


def test_every_request_to_azure_goes_so() -> None:
    """A pipeline that is made without a transport makes one of its own."""
    pipelines = [
        {option.arg for option in node.keywords}
        for path in Path(karpstack.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("PipelineClient")
    ]
    assert len(pipelines) >= 3
    assert all("transport" in options for options in pipelines)
    found = {
        path.name
        for path in Path(karpstack.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("RequestsTransport")
    }
    assert found == {"credentials.py"}


def test_warnings_of_azure_identity_are_not_shown() -> None:
    """With no handler, Python writes them to stderr as they are: they hold what a server has answered."""
    login({}, {"ARM_USE_MSI": "true"})
    assert logging.getLogger("azure.identity").hasHandlers()


@pytest.mark.parametrize("path", ["/nope", "/"])
def test_a_certificate_that_cannot_be_read_is_an_error(path: str) -> None:
    with pytest.raises(UnknowableError, match=r"^azure-native's credentials: \[Errno"):
        login({}, {**APPLICATION, "ARM_CLIENT_CERTIFICATE_PATH": path})


def test_the_configuration_goes_before_the_environment() -> None:
    raw = {"azure-native:subscriptionId": "a", "azure-native:useMsi": True, "azure-native:clientId": CLIENT}
    assert subscription(raw, {"ARM_SUBSCRIPTION_ID": "b"}) == "a"
    assert subscription({}, {"ARM_SUBSCRIPTION_ID": "b"}) == "b"
    assert isinstance(login(raw, {}).credential, ManagedIdentityCredential)


@pytest.mark.parametrize(
    ("name", "endpoint"),
    [
        ("", "https://management.azure.com"),
        ("usgovernment", "https://management.usgovcloudapi.net"),
        ("china", "https://management.chinacloudapi.cn"),
    ],
)
def test_each_cloud_has_its_own_resource_manager(name: str, endpoint: str) -> None:
    found = login({"azure-native:environment": name}, {})
    assert (found.endpoint, found.scope) == (endpoint, f"{endpoint}/.default")


def test_a_secret_that_stays_closed_is_not_gone_without() -> None:
    raw = {"azure-native:clientSecret": CLOSED}
    with pytest.raises(UnknowableError, match="set ARM_CLIENT_SECRET to it"):
        login(raw, APPLICATION)
    assert isinstance(login(raw, {**APPLICATION, "ARM_CLIENT_SECRET": "x"}).credential, ClientSecretCredential)


def test_a_token_that_only_the_provider_asks_for() -> None:
    request = {"ACTIONS_ID_TOKEN_REQUEST_URL": "https://x.example", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}
    with pytest.raises(UnknowableError, match="give the token as ARM_OIDC_TOKEN"):
        login({}, {**APPLICATION, **request, "ARM_USE_OIDC": "true"})


def test_a_cloud_that_is_none() -> None:
    with pytest.raises(UnknowableError, match="none of public, usgovernment, china"):
        login({"azure-native:environment": "german"}, {})


def test_an_application_without_a_tenant() -> None:
    with pytest.raises(UnknowableError, match="ARM_TENANT_ID"):
        login({}, {"ARM_CLIENT_ID": CLIENT, "ARM_CLIENT_SECRET": "x"})


def test_a_federated_token_is_read_from_its_file(tmp_path: Path) -> None:
    environment = {**APPLICATION, "ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN_FILE_PATH": str(tmp_path / "token")}
    with pytest.raises(UnknowableError, match=r"token' can't be read \(No such file or directory\)"):
        login({}, environment)
    (tmp_path / "token").write_text("x.y.z\n")
    assert isinstance(login({}, environment).credential, ClientAssertionCredential)


def test_no_token_goes_over_the_network_in_the_clear() -> None:
    class Token:
        def get_token(self, *scopes: str, **options: Any) -> Any:
            raise AssertionError("a token was asked for")

    open_to_all = login({}, {"ARM_RESOURCE_MANAGER_ENDPOINT": "http://192.0.2.1:1"})
    azure = Azure("a", Login(Token(), "a test", open_to_all.endpoint, open_to_all.scope))
    with pytest.raises(NotAskedError, match="not permitted for non-TLS protected"):
        azure.ask("x/read", "/subscriptions/a", "1")
