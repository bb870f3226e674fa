"""The attached provider for Azure against what pulumi-azure-native was recorded to answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.rehearsal.attachment.server import Servicer
from karpstack.rehearsal.azure.provider import PACKAGE, VERSION, configuration
from tests.unit.rehearsal.provider_azure_world import Provider
from tests.unit.rehearsal.recordings import Engine, changes, otherwise, records, replay

RECORDS = records("azure-native")


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@pytest.fixture
def engine(provider: Provider) -> Engine:
    session = provider.session
    servicer = Servicer(PACKAGE, VERSION, configuration(provider.azure, session.clusters, session.definitions))
    return Engine(servicer, location=session.location, subscriptionId=provider.azure.subscription_id)


@pytest.mark.parametrize("token", RECORDS)
def test_answers_are_the_recorded_ones(provider: Provider, engine: Engine, token: str) -> None:
    record = RECORDS[token]
    assert replay(engine, record, provider.surroundings) == record.differences.keys()


def test_changes_are_called_what_the_provider_calls_them(engine: Engine) -> None:
    assert not otherwise(engine, changes("azure-native"))
