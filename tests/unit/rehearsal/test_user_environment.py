"""The allow-list of environment variables, and what `env` takes away by hand."""

from __future__ import annotations

import pytest

from karpstack.rehearsal.host.user_environment import allowed, passed, real_account


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "REHEARSAL_NODE_BOOT"])
def test_what_is_harmless_reaches_what_is_started(name: str) -> None:
    assert allowed({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE", "AZURE_CLIENT_SECRET", "ARM_CLIENT_SECRET", "GOOGLE_CREDENTIALS"),
        *("PULUMI_ACCESS_TOKEN", "KUBECONFIG", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "ANSIBLE_LIBRARY", "ANSIBLE_CONFIG"),
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP"),
        *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "KARPSTACK_REHEARSAL_URL"),
    ],
)
def test_what_opens_leads_or_loads_does_not(name: str) -> None:
    assert allowed({name: "value"}) == {}


def test_a_user_passes_variables_by_name() -> None:
    variables = {"KARPSTACK_PASS": "MY_TOKEN, OTHER,", "MY_TOKEN": "value", "YOUR_TOKEN": "value"}
    assert passed(variables) == {"MY_TOKEN": "value"}
    assert passed({"MY_TOKEN": "value"}) == {}


def test_everything_that_leads_to_a_real_account_is_taken_away_by_hand() -> None:
    found = real_account({"AWS_SOMETHING_NEW": "", "ARM_USE_MSI": "", "HOME": "/root"})
    assert {"AWS_SOMETHING_NEW", "ARM_USE_MSI", "AWS_CONFIG_FILE", "PULUMI_ACCESS_TOKEN"} <= set(found)
    assert "HOME" not in found


def test_a_name_that_is_a_command_to_a_shell_is_not_handed_on() -> None:
    assert not [
        name
        for name in real_account({"AWS_;touch x": "", "AWS_$(x)": "", "ARM_É": ""})
        if not name.isascii() or not name.isidentifier()
    ]
