"""Whom preflight asks Azure as: whom the stack's provider would, by its configuration and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.identity import (
    AzureCliCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
)

from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login, login, subscription
from karpstack.preflight.finding import NotAskedError, UnknowableError
from karpstack.preflight.stack import CLOSED

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
