"""`preflight facts` on the wire: simulated clouds give newer facts, which the program then reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from karpstack.karpenter import fact_dates, fact_files
from karpstack.karpenter.fact_files import FOLDER, VARIABLE, FactsError
from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.offers import Offers
from karpstack.preflight.finding import NotAskedError
from karpstack.preflight.refresh import azure as azure_facts
from karpstack.rehearsal.aws.account import ACCOUNT_ID, Account
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.timing import Timing
from tests.unit.command_line import karpstack
from tests.unit.preflight.preflight_azure_world import asked, somebody
from tests.unit.rehearsal.aws_world import PRICES
from tests.unit.rehearsal.azure_world import World

main = karpstack()


def today() -> str:
    return date.today().isoformat()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "facts"))
    return tmp_path / "facts"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    table = tmp_path / "prices.json"
    table.write_text(json.dumps({"us-east-1": PRICES}))
    made = Account("us-east-1", table, Timing(), account_id=ACCOUNT_ID)
    made.start()
    for name, value in made.administrator_environment.items():
        monkeypatch.setenv(name, value)
    yield made
    made.stop()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    started = World()
    started.azure.start()
    for name, value in started.azure.deployer_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTPS_PROXY", started.azure.proxy)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(started.azure.authority))
    yield started
    started.azure.stop()


def written(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()}


def test_an_account_gives_the_facts_of_a_region(
    own: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts", "aws", "us-east-1"]) == 0
    assert f"4 of 4 facts refreshed in {own}" in capsys.readouterr().out
    found = written(own)
    assert found.keys() == {"aws.json", "offers-aws.json", "versions-aws.json", "images-aws.json"}
    assert found["aws.json"]["as_of"] == {"us-east-1": today()}
    assert found["versions-aws.json"]["as_of"] == today()

    packaged, now = Facts.load("aws", FOLDER), Facts(fact_files.load("aws.json"))
    assert now.types.keys() == PRICES.keys() & packaged.types.keys()
    for name, one in now.types.items():
        assert one.on_demand == {"us-east-1": PRICES[name]}
        assert (one.vcpus, one.labels, one.zones) == (
            packaged.types[name].vcpus,
            packaged.types[name].labels,
            packaged.types[name].zones,
        )
    # moto's zones and names are those of the packaged file.
    offers, before = fact_files.load("offers-aws.json"), fact_files.read(FOLDER / "offers-aws.json")
    assert offers["regions"] == before["regions"]
    images = found["images-aws.json"]["families"]
    assert {"v20260703", "v20260807"} <= set(images["al2023"]["releases"])
    versions, known = found["versions-aws.json"], fact_files.read(FOLDER / "versions-aws.json")
    assert versions["versions"] == known["versions"]


def test_what_is_refused_keeps_its_value_and_names_the_right(
    own: Path, account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    may = {"Effect": "Allow", "Action": ["ec2:Describe*", "eks:*"], "Resource": "*"}
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT_ID}:root"}, "Action": "sts:AssumeRole"}
    iam = account.client("iam")
    iam.create_role(
        RoleName="reader", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": trust})
    )
    iam.put_role_policy(
        RoleName="reader", PolicyName="reads", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": may})
    )
    taken = account.client("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT_ID}:role/reader", RoleSessionName="test")[
        "Credentials"
    ]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", taken["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", taken["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", taken["SessionToken"])
    assert main(["facts", "aws", "us-east-1"]) == 1
    said = capsys.readouterr()
    assert "3 of 4 facts refreshed" in said.out
    assert "aws.json of us-east-1 keeps its value and its date: pricing:GetProducts: " in said.err
    assert "; grant pricing:GetProducts to these credentials" in said.err
    assert "aws.json" not in written(own)


def test_without_an_answer_nothing_is_written(own: Path, account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    account.stop()
    assert main(["facts", "aws", "us-east-1"]) == 3
    assert "0 of 4 facts refreshed" in capsys.readouterr().out
    assert main(["facts", "aws", "us-east-1", "--format", "json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert (list(told), len(told["kept"])) == (["folder", "wanted", "kept"], told["wanted"])
    assert not own.exists()


@pytest.mark.parametrize("name", ["aws.json", "versions-aws.json"])
def test_a_file_of_the_folder_that_has_no_facts_is_not_written_over(
    name: str, own: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    own.mkdir()
    (own / name).write_text('{"cloud": "mine", "source": {}}')
    assert main(["facts", "aws", "us-east-1"]) == 2
    assert f"{name}: is no file of facts, so the existing file would be lost" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in own.iterdir()} == {name: '{"cloud": "mine", "source": {}}'}


def test_another_region_comes_beside_the_one_before(own: Path, account: Account) -> None:
    main(["facts", "aws", "us-east-1"])
    before = written(own)["aws.json"]
    assert main(["facts", "aws", "eu-west-1"]) == 1  # the simulated price list has one region
    assert written(own)["aws.json"] == before


def test_a_subscription_gives_the_facts_of_a_location(
    own: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts", "azure", "westus2"]) == 0, capsys.readouterr().err
    found = written(own)
    assert found.keys() == {"azure.json", "offers-azure.json", "versions-azure.json", "locations-azure.json"}
    packaged, now = Facts.load("azure", FOLDER), Facts(fact_files.load("azure.json"))
    assert now.regions == packaged.regions
    one, before = now.types["Standard_D2s_v5"], packaged.types["Standard_D2s_v5"]
    assert one.on_demand["westus2"] == round(0.01 * 8 + 0.02 * 2, 3) != before.on_demand["westus2"]
    assert one.on_demand["eastus"] == before.on_demand["eastus"]
    assert (one.labels, one.zones) == (before.labels, before.zones)
    assert found["versions-azure.json"]["versions"].keys() >= {"1.34", "1.35", "1.36"}
    assert fact_files.load("locations-azure.json")["regions"]["westus2"] == ["westus2-1", "westus2-2", "westus2-3"]


def test_a_subscription_that_refuses_the_sizes(world: World) -> None:
    prices = azure_facts.prices()
    with pytest.raises(NotAskedError) as caught:
        azure_facts.types(asked(world, somebody(world)), prices, "westus2", {"cloud": "azure"})
    assert (caught.value.call, caught.value.refused) == ("Microsoft.Compute/skus/read", True)
    reader = asked(world, somebody(world, roles.READER))
    assert azure_facts.types(reader, prices, "westus2", {"cloud": "azure"})["types"]


@pytest.mark.parametrize(
    ("known", "listed", "wanted"),
    [
        # As the calendar says: nothing changes.
        ("2026-01-01 2027-01-01 2028-01-01", ["KubernetesOfficial"], "2026-01-01 2027-01-01 2028-01-01"),
        ("2025-01-01 2026-01-01 2027-01-01", ["AKSLongTermSupport"], "2025-01-01 2026-01-01 2027-01-01"),
        ("2023-01-01 2024-01-01 2025-01-01", None, "2023-01-01 2024-01-01 2025-01-01"),
        # Longer, or shorter, than it says.
        ("2025-01-01 2026-01-01 2027-01-01", ["KubernetesOfficial"], "2025-01-01 2027-01-30 2027-01-30"),
        ("2026-01-01 2027-01-01 2028-01-01", ["AKSLongTermSupport"], "2026-01-01 2026-12-01 2028-01-01"),
        ("2026-01-01 2027-01-01 2028-01-01", None, "2026-01-01 2026-12-01 2026-12-01"),
        # New, or early.
        (None, ["KubernetesOfficial"], "2026-12-01 2027-12-01 2028-11-30"),
        ("2027-02-01 2028-01-01 2029-01-01", ["KubernetesOfficial"], "2026-12-01 2028-01-01 2029-01-01"),
        ("2027-02-01 2028-01-01 2029-01-01", None, "2027-02-01 2028-01-01 2029-01-01"),
        (None, None, None),
    ],
)
def test_the_calendar_of_aks_is_put_right(known: Any, listed: Any, wanted: Any) -> None:
    days = ("from", "standard", "extended")
    before = dict(zip(days, known.split(), strict=True)) if known else None
    plans = {"capabilities": {"supportPlan": listed}} if listed else None
    found = azure_facts._calendar(before, plans, date(2026, 12, 1))
    assert found == (dict(zip(days, wanted.split(), strict=True)) if wanted else None)


def test_a_preview_is_no_version_yet() -> None:
    preview = {"isPreview": True, "capabilities": {"supportPlan": ["KubernetesOfficial"]}}
    assert azure_facts._calendar(None, preview, date(2026, 12, 1)) is None


def test_the_age_is_that_of_the_region(own: Path, days_of_files: None) -> None:
    own.mkdir()
    (own / "azure.json").write_text('{\n"cloud": "azure",\n"as_of": {"westus2":"2026-11-20","eastus":"2026-01-01"},\n')
    (own / "versions-azure.json").write_text('{\n"source": "",\n"as_of": "2026-11-21"\n}')
    made = date(2026, 6, 18)
    for region, day in (("westus2", date(2026, 11, 20)), ("eastus", made), ("northeurope", made), ("", made)):
        fact_dates.days.cache_clear()
        days = fact_dates.days("azure", region)
        assert days["azure.json"] == day
        assert days["versions-azure.json"] == date(2026, 11, 21)
        assert days["offers-azure.json"] == made
    fact_dates.days.cache_clear()


def test_older_facts_of_the_project_do_not_count(own: Path) -> None:
    own.mkdir()
    old = fact_files.read(FOLDER / "versions-aws.json") | {"as_of": "2026-01-01", "versions": {}}
    (own / "versions-aws.json").write_text(fact_files.text(old))
    assert fact_files.load("versions-aws.json")["versions"]
    (own / "versions-aws.json").write_text(fact_files.text(old | {"as_of": "2099-01-01"}))
    assert not fact_files.load("versions-aws.json")["versions"]


def test_packaged_facts_of_another_version_are_taken_where_they_are_newer(own: Path) -> None:
    own.mkdir()
    packaged = fact_files.read(FOLDER / "aws.json")
    source = packaged["source"] | {"prices": packaged["source"]["prices"] | {"date": "2099-01-01"}}
    for other, taken in ((packaged, packaged), (new := packaged | {"source": source}, new)):
        (own / "aws.json").write_text(json.dumps(other))
        assert fact_files.load("aws.json") == taken


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"as_of": {"us-east-1": "2099-01-01"}}'])
def test_a_file_of_the_project_that_is_none_is_said(own: Path, content: str) -> None:
    own.mkdir()
    (own / "aws.json").write_text(content)
    with pytest.raises(FactsError, match=r"aws\.json: .*not a file of facts"):
        fact_files.load("aws.json")


def test_the_projects_folder_is_beside_its_pulumi_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    inner = tmp_path / "policies" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert fact_files.own_folder() is None
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    assert fact_files.own_folder() == tmp_path / "karpstack-facts"


def test_a_region_that_is_sold_nowhere_before_is_known_then(own: Path) -> None:
    packaged = fact_files.read(FOLDER / "offers-aws.json")
    new = {
        "regions": {"mars-north-1": ["mars-north-1a"]},
        "sold": [{"regions": ["mars-north-1"], "names": ["m9.huge"]}],
    }
    merged = fact_files.merged_offers(packaged, new, {"mars-north-1"})
    offers = Offers(merged, merged["regions"], ())
    assert offers.region("mars-north-1") == "known"
    assert {"m9.huge"} == {name for regions, names in offers._sold if "mars-north-1" in regions for name in names}
    assert merged["regions"].keys() == packaged["regions"].keys() | {"mars-north-1"}
