"""A cluster is asked with the login of the kubeconfig's user, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import ConfigException

from karpstack.text.kubeconfig import settings_of

V1 = "client.authentication.k8s.io/v1"


def kubeconfig(folder: Path, user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "clusters": [{"name": "a", "cluster": {"server": "https://cluster.example"}}],
                "users": [{"name": "a", "user": user}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            }
        )
    )
    return path


def plugin(script: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": "sh", "args": ["-c", script]}}


def status(**found: str) -> str:
    return f"echo '{json.dumps({'apiVersion': V1, 'kind': 'ExecCredential', 'status': found})}'"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ({"exec": {"apiVersion": V1, "command": "/missing"}}, "by exec: .*No such file"),
        (plugin("printf 'not \\033[1mhere' >&2; exit 3"), r"by exec: exec: process returned 3. not \\x1b\[1mhere;"),
        (plugin("echo '[]'"), "by exec: exec: malformed response"),
        (plugin(status()), "by exec: exec: missing token"),
        (plugin(status(token="")), "by exec: it gives neither a token nor a certificate"),
        ({"auth-provider": {"name": "azure"}}, "by auth-provider: it gives neither"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "none"}}}, "by auth-provider: it gives neither"),
    ],
)
def test_a_login_that_fails_is_an_error_before_anything_is_asked(
    user: dict[str, Any], why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigException, match=why):
        settings_of(kubeconfig(tmp_path, user))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("user", "key"),
    [
        (plugin(status(token="t")), {"BearerToken": "Bearer t"}),
        ({"token": "t"}, {"BearerToken": "Bearer t"}),
        ({"auth-provider": {"name": "azure"}, "token": "t"}, {"BearerToken": "Bearer t"}),
        ({"client-certificate-data": "dA==", "client-key-data": "dA=="}, {}),
        ({"nothing": "as for `kubectl proxy`"}, {}),
    ],
)
def test_a_login_that_works_is_used(user: dict[str, Any], key: dict[str, str], tmp_path: Path) -> None:
    assert settings_of(kubeconfig(tmp_path, user)).api_key == key
