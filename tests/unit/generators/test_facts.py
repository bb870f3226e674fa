"""karpstack/karpenter/facts/ is what the pinned engines and libraries say, and says the rehearsal's spot prices."""

from __future__ import annotations

import pytest

from karpstack.generators import facts
from karpstack.karpenter.instance_types import FOLDER, Facts
from karpstack.rehearsal.aws.ec2.prices import PriceTable as AwsPrices
from karpstack.rehearsal.azure.machines.prices import PriceTable as AzurePrices
from karpstack.rehearsal.engines import EngineSet


@pytest.fixture(scope="module")
def engines() -> EngineSet:
    found = EngineSet.current()
    assert all(found.complete(f"karpenter-{cloud}") for cloud in ("aws", "azure")), (
        "the engines are not built; run: make setup"
    )
    return found


def test_the_files_are_what_the_command_writes(engines: EngineSet) -> None:
    written = facts.documents(engines)
    assert written.keys() == {"aws.json", "azure.json", "offers-aws.json", "offers-azure.json"}
    for name, text in written.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{FOLDER / name} differs; run: make facts"
    assert sum(len(text) for text in written.values()) < 1_500_000


def test_a_price_table_whose_day_is_not_known_is_refused(engines: EngineSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(facts._MADE, "aws", {})
    with pytest.raises(
        ValueError, match=r"karpenter-provider-aws v.*the day of its price table.*karpstack/generators/facts.py"
    ):
        facts.documents(engines)


def test_spot_prices_are_those_of_the_rehearsal(engines: EngineSet) -> None:
    aws, aws_prices = Facts.load("aws"), AwsPrices.load(engines.prices("aws"))
    azure, azure_prices = Facts.load("azure"), AzurePrices.load(engines.prices("azure"))
    for name in ("m5.large", "c6g.2xlarge"):
        for zone in ("us-east-1a", "us-east-1c"):
            assert aws.price(name, "spot", "us-east-1", zone, simulated=True) == aws_prices.spot(name, zone)
    for name in ("Standard_D8_v4", "Standard_E16as_v5"):
        assert azure.price(name, "spot", "westus2", "", simulated=True) == azure_prices.spot("westus2", name)
        assert azure.price(name, "on-demand", "westus2", "", simulated=True) == azure_prices.on_demand("westus2", name)
