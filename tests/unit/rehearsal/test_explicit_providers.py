"""Providers that a program makes itself: the SDKs add settings that no program names."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_azure_native.provider as azure
import pulumi_kubernetes as kubernetes
import pytest

from karpstack.rehearsal.attachment.package import Configuration
from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.aws.provider import configuration as aws_configuration
from karpstack.rehearsal.azure.provider import configuration as azure_configuration
from karpstack.rehearsal.cluster.provider import configuration as kubernetes_configuration
from tests.unit.mock_engine import deploy
from tests.unit.rehearsal.provider_aws_world import open_world
from tests.unit.rehearsal.provider_azure_world import Provider as AzureWorld


def sent(provider: Callable[[], object]) -> dict[str, Any]:
    """Return the settings that a program sends to the engine. Those that are None are not sent."""
    (made,) = deploy(provider).resources.values()
    return {name: value for name, value in made.inputs.items() if value is not None}


def accepts(configuration: Configuration, given: dict[str, Any]) -> None:
    assert not given.keys() - configuration.names
    configuration.configure(given, threading.Event())


@pytest.mark.parametrize("skips", [{}, {"skip_credentials_validation": True, "skip_metadata_api_check": True}])
def test_an_aws_provider_with_default_tags(tmp_path: Path, skips: Any) -> None:
    tags: Any = {"tags": {"team": "shop"}}
    given = sent(lambda: aws.Provider("main", region="us-east-1", default_tags=tags, **skips))
    assert "skipRegionValidation" in given
    with open_world(tmp_path) as world:
        accepts(aws_configuration(world.account, world.clusters), given)


def test_an_azure_provider(tmp_path: Path) -> None:
    world = AzureWorld(tmp_path)
    configuration = azure_configuration(world.azure, world.session.clusters, tmp_path)
    given = sent(lambda: azure.Provider("main", subscription_id=world.azure.subscription_id))
    assert given["environment"] == "public"
    accepts(configuration, given)
    with pytest.raises(RefusedError, match="azure-native:environment is 'usgovernment'"):
        configuration.configure({**given, "environment": "usgovernment"}, threading.Event())


def test_a_kubernetes_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    nothing: Any = None
    given = sent(lambda: kubernetes.Provider("main", kubeconfig=pulumi.Output.from_input("{}")))
    assert given.keys() <= kubernetes_configuration(nothing, nothing).names
