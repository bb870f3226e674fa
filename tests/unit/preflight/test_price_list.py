"""`karpstack prices fetch` on the wire: simulated clouds give prices, which a what-if then reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from karpstack.karpenter.instance_types import Facts
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.finding import NotAskedError
from karpstack.preflight.refresh import aws, azure, savings_plans
from karpstack.rehearsal.aws.account import ACCOUNT_ID, Account
from karpstack.rehearsal.aws.ec2.prices import PriceTable
from karpstack.rehearsal.timing import Timing
from karpstack.whatif.prices import load
from tests.unit.command_line import karpstack
from tests.unit.rehearsal.aws_world import PRICES
from tests.unit.rehearsal.azure_world import World

fetch = karpstack("prices", "fetch")
check = karpstack("prices", "check")
NOW = datetime(2026, 11, 26, 15, 0, tzinfo=UTC)
REGION = "eu-west-1"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"us-east-1": PRICES}))
    made = Account("us-east-1", table, Timing(), account_id=ACCOUNT_ID)
    made.start()
    for name, value in made.administrator_environment.items():
        monkeypatch.setenv(name, value)
    yield made
    made.stop()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Aws]:
    """Region -> the account that is asked there."""
    accounts: dict[str, Aws] = {}
    monkeypatch.setattr(Aws, "connect", lambda region, _: accounts[region])
    return accounts


@pytest.fixture
def retail(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Azure's list of prices has."""
    items: list[dict[str, Any]] = []
    monkeypatch.setattr(azure, "_retail", lambda _: iter(items))
    return items


def test_an_account_gives_the_prices_of_a_region(
    tmp_path: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 0, capsys.readouterr().err
    assert f"prices of us-east-1: {len(PRICES)} on demand" in capsys.readouterr().out
    given = load(file, Facts.load("aws"))
    assert given.on_demand == PRICES
    table = PriceTable({"us-east-1": PRICES})
    assert given.spot["m5.large"] == {
        zone: table.spot("m5.large", zone) for zone in Facts.load("aws").types["m5.large"].zones["us-east-1"]
    }
    assert (given.cloud, given.region, given.currency, given.version) == ("aws", "us-east-1", "USD", 1)
    assert given.fetched is not None
    assert abs(given.fetched - datetime.now(UTC)).total_seconds() < 600
    for secret in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert account.administrator_environment[secret] not in file.read_text()
    # It may be fetched again, and nothing else is written over.
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 0
    assert check([str(file)]) == 0
    as_fetched = file.read_text()
    with file.open("a") as opened:
        opened.write("discounts: {m5: 0.28}\n")
    capsys.readouterr()
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 0
    assert "its discounts are kept" in capsys.readouterr().out
    assert load(file, Facts.load("aws")).discounts == {"m5": 0.28}
    file.write_text(file.read_text() + "discounts: {\n")
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 2
    assert "discounts that you added to it would be lost" in capsys.readouterr().err
    file.write_text(f"# of the first quarter\n\n{as_fetched}")
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 0


@pytest.mark.parametrize(
    "mine",
    [
        "mine: 1\n",
        "- karpstack-prices\n",
        "kind: ConfigMap\nmetadata:\n  name: karpstack-prices\n",
        "data:\n  kind: karpstack-prices\n",
        "---\nkind: karpstack-prices\n---\n# A page\n",
        "kind: karpstack-prices-of-mine\n",
    ],
)
def test_a_file_that_only_names_the_kind_is_not_written_over(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "prices.yaml").write_text(mine)
    assert fetch(["aws", "us-east-1", "--output", str(file)]) == 2
    assert "is no file of prices, so the existing file would be lost" in capsys.readouterr().err
    assert file.read_text() == mine


@pytest.mark.parametrize("missing", ["pricing:GetProducts", "ec2:DescribeSpotPriceHistory", ""])
def test_two_permissions_are_enough_and_each_is_needed(
    missing: str, tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = [one for one in ("pricing:GetProducts", "ec2:DescribeSpotPriceHistory") if one != missing]
    for name, value in reader(account, actions).items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "prices.yaml"
    code = fetch(["aws", "us-east-1", "--output", str(file)])
    said = capsys.readouterr().err
    assert (code, file.exists()) == ((3, False) if missing else (0, True)), said
    if missing:
        assert f"us-east-1: {missing}: " in said
        assert f"so no prices are written; grant {missing} to these credentials" in said


def reader(account: Account, actions: list[str]) -> dict[str, str]:
    """The credentials of a role that may do so much."""
    document = {"Version": "2012-10-17"}
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT_ID}:root"}, "Action": "sts:AssumeRole"}
    may = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    iam = account.client("iam")
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps({**document, "Statement": trust}))
    iam.put_role_policy(
        RoleName="reader", PolicyName="reads", PolicyDocument=json.dumps({**document, "Statement": may})
    )
    taken = account.client("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT_ID}:role/reader", RoleSessionName="test")
    keys = taken["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }


def product(name: str, **per_unit: str) -> str:
    """An item of a PriceList, with what AWS's guide to the price list shows of it."""
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute Instance",
                "attributes": {"instanceType": name, "regionCode": REGION, "tenancy": "Shared"},
                "sku": "ABC",
            },
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {
                    "ABC.JRTCKXETXF": {
                        "priceDimensions": {"ABC.JRTCKXETXF.6YS6EN2CT7": {"unit": "Hrs", "pricePerUnit": per_unit}},
                        "offerTermCode": "JRTCKXETXF",
                    }
                }
            },
        }
    )


def history(name: str, zone: str, price: str, minute: int = 0) -> dict[str, Any]:
    return {
        "AvailabilityZone": zone,
        "InstanceType": name,
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": price,
        "Timestamp": datetime(2026, 11, 26, 14, minute, tzinfo=UTC),
    }


def stubbed(service: str, fill: Callable[[Stubber], None]) -> aws.Ask:
    """An account that answers what a stub has, call by call."""
    client = boto3.client(service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    fill(stub)
    stub.activate()
    asked = Aws(REGION, lambda _: client)
    return lambda _: asked


def prices(*pages: list[str]) -> aws.Ask:
    """A price list with these pages of virtual machines, and none of bare metal."""

    def fill(stub: Stubber) -> None:
        for number, page in enumerate(pages, 1):
            more = {"NextToken": str(number)} if number < len(pages) else {}
            stub.add_response("get_products", {"PriceList": page, **more})
        stub.add_response("get_products", {"PriceList": []})

    return stubbed("pricing", fill)


def spot(*pages: list[dict[str, Any]]) -> aws.Ask:
    def fill(stub: Stubber) -> None:
        for number, page in enumerate(pages, 1):
            more = {"NextToken": str(number) if number < len(pages) else ""}
            stub.add_response("describe_spot_price_history", {"SpotPriceHistory": page, **more})

    return stubbed("ec2", fill)


def test_all_pages_of_the_price_list_are_read_and_what_costs_nothing_is_left_out() -> None:
    pages = ([product("m5.large", USD="0.1070000000")], [product("c5.large", USD="0.0960000000")])
    assert aws.on_demand(prices(*pages), REGION) == {"m5.large": 0.107, "c5.large": 0.096}
    assert aws.on_demand(prices([*pages[0], product("x1.none", USD="0.0000000000")]), REGION) == {"m5.large": 0.107}


def test_the_latest_spot_price_of_each_zone_counts() -> None:
    pages = (
        [history("m5.large", "eu-west-1a", "0.0410", 5), history("m5.large", "eu-west-1b", "0.0420")],
        [history("m5.large", "eu-west-1a", "0.0390", 1), history("c5.large", "eu-west-1a", "0.0300")],
    )
    found = aws.spot(spot(*pages), REGION, NOW)
    assert found == {"m5.large": {"eu-west-1a": 0.041, "eu-west-1b": 0.042}, "c5.large": {"eu-west-1a": 0.03}}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "it lists no price in USD of eu-west-1"),
        ([product("m5.large", CNY="0.5")], "it lists no price in USD of eu-west-1, only in CNY"),
        ([product("m5.large", USD="0.0000000000")], "it lists no price in USD of eu-west-1"),
    ],
)
def test_a_price_list_that_has_no_price(items: list[str], said: str) -> None:
    with pytest.raises(NotAskedError) as caught:
        aws.on_demand(prices(items), REGION)
    assert (caught.value.call, str(caught.value)) == ("pricing:GetProducts", said)


class WithoutTypes:
    """An account that sells a type with a price, and describes none."""

    region = REGION

    def all(self, service: str, operation: str, result: str, **given: Any) -> list[Any]:
        answers: dict[str, list[Any]] = {
            "DescribeInstanceTypeOfferings": [{"InstanceType": "m5.large", "Location": "eu-west-1a"}],
            "GetProducts": [product("m5.large", USD="0.1")],
            "DescribeInstanceTypes": [],
        }
        return answers[operation]


def test_an_answer_without_types_replaces_none() -> None:
    """All types of the region were gone, and every pod would have waited for ever."""
    account: Any = WithoutTypes()
    with pytest.raises(NotAskedError, match="it lists no type of eu-west-1 with a price"):
        aws.types(lambda _: account, REGION, {})


def test_an_empty_history_of_spot_prices() -> None:
    with pytest.raises(NotAskedError, match="it lists no price of eu-west-1"):
        aws.spot(spot([]), REGION, NOW)


def test_a_throttled_call() -> None:
    throttled = stubbed("pricing", lambda stub: stub.add_client_error("get_products", "ThrottlingException", "Rate"))
    with pytest.raises(NotAskedError) as caught:
        aws.on_demand(throttled, REGION)
    assert (caught.value.call, caught.value.refused, str(caught.value)) == ("pricing:GetProducts", False, "Rate")


@pytest.mark.parametrize(
    ("on_demand", "spots", "said"),
    [
        (["{"], [], "pricing:GetProducts: the answer is no JSON"),
        (["[" * 100_000], [], "pricing:GetProducts: the answer is no JSON"),
        ([product("m5.large", USD="0.1").replace('"0.1"', "9" * 400)], [], "the answer has another shape (Overflow"),
        (["{}"], [], "the answer has another shape (KeyError"),
        ([product("m5.large", USD="inf")], [history("m5.large", "eu-west-1a", "0.04")], "m5.large costs inf USD"),
        ([product("m5.large", USD="0.1")], [history("m5.large", "eu-west-1a", "dear")], "another shape (ValueError"),
        ([product("m5.large", USD="0.1")], [history("m5.large", "eu-west-1a", "-1")], "m5.large costs -1.0 USD"),
    ],
)
def test_an_answer_of_another_shape_writes_nothing(
    on_demand: list[str],
    spots: list[dict[str, Any]],
    said: str,
    tmp_path: Path,
    asked: dict[str, Aws],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked |= {"us-east-1": prices(on_demand)(""), REGION: spot(spots)("")}
    file = tmp_path / "prices.yaml"
    assert fetch(["aws", REGION, "--output", str(file)]) == 3
    written = capsys.readouterr().err
    assert said in written
    assert "so no prices are written" in written
    assert not file.exists()


def test_a_type_that_is_sold_on_spot_alone_is_named(
    tmp_path: Path, asked: dict[str, Aws], capsys: pytest.CaptureFixture[str]
) -> None:
    sold = [history("m5.large", "eu-west-1a", "0.04"), history("m9.new", "eu-west-1a", "0.05")]
    asked |= {"us-east-1": prices([product("m5.large", USD="0.107")])(""), REGION: spot(sold)("")}
    file = tmp_path / "prices.yaml"
    assert fetch(["aws", REGION, "--output", str(file)]) == 0
    assert "note: no on-demand price is listed for m9.new" in capsys.readouterr().err
    assert load(file, Facts.load("aws")).spot["m9.new"] == {"eu-west-1a": 0.05}  # which the facts do not have


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    started = World()
    started.azure.start()
    monkeypatch.setenv("HTTPS_PROXY", started.azure.proxy)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(started.azure.authority))
    yield started
    started.azure.stop()


def test_azures_price_list_needs_no_credentials(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    assert fetch(["azure", "westus2", "--output", str(file)]) == 0, capsys.readouterr().err
    given, table = load(file, Facts.load("azure")), world.azure.prices
    assert given.on_demand.keys() == table.sizes("westus2")
    size = "Standard_D2s_v5"
    assert (given.on_demand[size], given.spot[size]) == (table.on_demand("westus2", size), table.spot("westus2", size))


def item(size: str, price: float, **more: Any) -> dict[str, Any]:
    """An item of the Retail Prices API, as its documentation shows them."""
    name = size.removeprefix("Standard_").replace("_", " ")
    return {
        "currencyCode": "USD",
        "retailPrice": price,
        "armRegionName": "westus2",
        "meterName": name,
        "productName": "Virtual Machines Dsv5 Series",
        "skuName": name,
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "armSkuName": size,
        **more,
    }


def test_linux_on_demand_and_on_spot_are_told_apart(retail: list[dict[str, Any]]) -> None:
    size = "Standard_D2s_v5"
    retail += [
        item(size, 0.096),
        item(size, 0.188, productName="Virtual Machines Dsv5 Series Windows"),
        item(size, 0.02, skuName="D2s v5 Spot", meterName="D2s v5 Spot"),
        item(size, 0.019, skuName="D2s v5 Low Priority", meterName="D2s v5 Low Priority"),
        item("Standard_D4s_v5", 0),
        item("", 4.0),
    ]
    assert azure.price_list("westus2") == ({size: 0.096}, {size: 0.02})


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([], "it lists no price of westus2"),
        ([item("Standard_D2s_v5", 0.09, currencyCode="EUR")], "it lists prices of westus2 in EUR, not in USD"),
    ],
)
def test_a_list_of_azure_that_cannot_be_used(
    listed: list[dict[str, Any]], said: str, retail: list[dict[str, Any]]
) -> None:
    retail += listed
    with pytest.raises(NotAskedError, match=said):
        azure.price_list("westus2")


def rate(instance_type: str, usd: str, **other: str) -> dict[str, Any]:
    """A row of DescribeSavingsPlanRates, as AWS's reference of the command line shows one."""
    about = {
        "region": REGION,
        "instanceType": instance_type,
        "instanceFamily": instance_type.partition(".")[0],
        "productDescription": "Linux/UNIX",
        "tenancy": "shared",
        **other,
    }
    return {
        "rate": usd,
        "currency": "USD",
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": f"EU-BoxUsage:{instance_type}",
        "operation": "RunInstances",
        "properties": [{"name": name, "value": value} for name, value in about.items()],
    }


def test_discounts_of_savings_plans_are_those_that_every_type_of_a_family_has() -> None:
    client = boto3.client("savingsplans", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    plan = {"state": "active", "currency": "USD", "commitment": "1.0"}
    wanted = [{"name": "region", "values": [REGION]}, {"name": "productType", "values": ["EC2"]}]
    with Stubber(client) as stub:  # it holds calls and answers against AWS's own model
        stub.add_response(
            "describe_savings_plans",
            {
                "savingsPlans": [
                    {**plan, "savingsPlanId": "one", "savingsPlanType": "Compute"},
                    {**plan, "savingsPlanId": "models", "savingsPlanType": "SageMaker"},
                ],
                "nextToken": "more",
            },
            {"states": ["active"]},
        )
        stub.add_response(
            "describe_savings_plans",
            {"savingsPlans": [{**plan, "savingsPlanId": "two", "savingsPlanType": "EC2Instance"}]},
            {"states": ["active"], "nextToken": "more"},
        )
        for given, answer in (
            ({}, {"searchResults": [rate("m5.large", "0.0800"), rate("c5.large", "0.09")], "nextToken": "2"}),
            (
                {"nextToken": "2"},
                {
                    "searchResults": [
                        rate("m5.xlarge", "0.15"),
                        rate("m5.large", "0.01", productDescription="Windows"),
                        rate("m5.large", "0.01", tenancy="dedicated"),
                        rate("p99.large", "0.01"),
                    ]
                },
            ),
        ):
            stub.add_response(
                "describe_savings_plan_rates", answer, {"savingsPlanId": "one", "filters": wanted, **given}
            )
        stub.add_response(
            "describe_savings_plan_rates",
            {"searchResults": [rate("c5.large", "0.06")]},
            {"savingsPlanId": "two", "filters": wanted},
        )
        aws = Aws("us-east-1", lambda _: client)
        found = savings_plans.discounts(lambda _: aws, REGION, {"m5.large": 0.1, "m5.xlarge": 0.2, "c5.large": 0.1})
        stub.assert_no_pending_responses()
    assert found == {"c5": 0.4, "m5": 0.2}


def test_azure_has_no_savings_plans_to_ask_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.yaml"
    assert fetch(["azure", "westeurope", "--savings-plans", "--output", str(file)]) == 2
    assert "--savings-plans: azure has none that can be asked for" in capsys.readouterr().err
    assert not file.exists()
