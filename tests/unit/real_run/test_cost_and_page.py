"""What a real run costs, and the page that compares it with its rehearsal."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import settings
from karpstack.components.settings import AksSettings, EksSettings, Settings
from karpstack.preflight.finding import UnknowableError
from karpstack.real_run.comparison import page
from karpstack.real_run.cost import bill
from karpstack.real_run.leftovers import TAG
from tests.unit import example_stack
from tests.unit.command_line import karpstack
from tests.unit.scale_test.example_report import Example

main = karpstack("real-run")

STACKS = ("real-eks", "real-aks")


def file(stack: str) -> Path:
    return example_stack.ROOT / "examples" / "real-run" / f"Pulumi.{stack}.yaml"


def loaded(stack: str, **changes: Any) -> Settings:
    config = yaml.safe_load(file(stack).read_text(encoding="utf-8"))["config"]
    return settings.load(example_stack.raw(example_stack.changed(config, changes)))


def rehearsed(usd: float = 0.02, peak: float = 0.8, seconds: float = 60.0) -> dict[str, Any]:
    report = Example().report() | {"stack": "real-eks"}
    story = {"seconds": seconds, "cost": report["stories"][0]["cost"] | {"usd": usd, "peak_usd_per_hour": peak}}
    report["stories"] = [report["stories"][0] | story | {"name": name} for name in ("one", "two", "three")]
    report["stories"][0]["tags"] = ["walk-through"]
    return report


def with_a_fault(report: dict[str, Any]) -> dict[str, Any]:
    """A report whose third story has a fault that only a rehearsal can cause."""
    report["stories"][2]["faults"] = [{"t": 1.0, "kind": "publish-image", "detail": {}}]
    return report


@pytest.mark.parametrize("stack", STACKS)
def test_the_shipped_stacks_cost_less_than_three_dollars(stack: str) -> None:
    given = loaded(stack)
    assert given.tags[TAG]
    assert isinstance(given, EksSettings | AksSettings)
    assert not given.cluster.deletion_protection
    found = bill(given, rehearsed()["stories"])
    assert 0.5 < found.usd < 3
    assert found.minutes_until(3) > 60


def test_the_bill_names_what_stands_all_the_time() -> None:
    found = bill(loaded("real-eks"), rehearsed()["stories"])
    assert dict(found.rows) == pytest.approx({"control plane": 0.10, "2 m5.large": 0.192, "1 NAT gateways": 0.05})
    more = bill(loaded("real-eks", network__natGateways="per-zone", cluster__version="1.33"), rehearsed()["stories"])
    assert dict(more.rows)["control plane"] == 0.60
    assert dict(more.rows)["3 NAT gateways"] == pytest.approx(0.15)


def test_no_run_costs_more_than_the_ceiling_at_the_highest_rate() -> None:
    found = bill(loaded("real-eks"), rehearsed()["stories"])
    minutes = found.minutes_until(2.0) + 15 + 25  # until the last stage has ended, and until all is destroyed
    assert (found.hourly + found.peak) * minutes / 60 == pytest.approx(2.0)


def test_a_price_that_is_not_known_is_said() -> None:
    with pytest.raises(UnknowableError, match=r"no price of m5\.large in eu-west-1.*karpstack facts aws eu-west-1"):
        bill(loaded("real-eks", **{"aws:region": "eu-west-1"}), rehearsed()["stories"])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for stack in STACKS:
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(file(stack).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "report.json").write_text(json.dumps(rehearsed()))
    return tmp_path


@pytest.mark.parametrize(("ceiling", "code"), [("3", 0), ("0.5", 1)])
def test_a_ceiling_that_is_too_low_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str], ceiling: str, code: int
) -> None:
    assert main(["cost", "real-eks", "--report", "before", "--ceiling", ceiling]) == code
    said = capsys.readouterr()
    assert "USD: expected in about" in said.out
    assert ("a ceiling of 0.5 USD is too low" in said.err) == bool(code)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("deletionProtection: false", "deletionProtection: true"), "deletionProtection = true, so the run could not"),
        (("karpstack-run: first-run", "owner: somebody"), "karpstack:tags has no karpstack-run"),
    ],
)
def test_a_stack_that_could_not_be_removed_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], said: str
) -> None:
    stack = project / "Pulumi.real-eks.yaml"
    stack.write_text(stack.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    assert main(["cost", "real-eks", "--report", "before"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "given", "said"),
    [
        ({"stack": "another"}, [], "is of the stack another"),
        ({"passed": False}, [], "has not passed"),
        ({}, ["--scenarios", "one,four"], "lacks four"),
        ({}, ["--labels", "nightly"], "has no story that is to be run"),
        ({"stories": []}, [], "has no story"),
        ({}, ["--labels", "walk-through"], "with the names {{ lookup('pipe', 'id') }}, which no scenario can have"),
    ],
)
def test_the_cost_is_that_of_what_is_to_be_run(
    project: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], given: list[str], said: str
) -> None:
    """A rehearsal of one short story promised 3 USD at most for a run of others."""
    report = rehearsed() | change
    for story in report["stories"][1:2]:
        story["name"] = "{{ lookup('pipe', 'id') }}" if "lookup" in said else story["name"]
    (project / "before" / "report.json").write_text(json.dumps(report))
    assert main(["cost", "real-eks", "--report", "before", *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "scenarios"),
    [([], "one,two"), (["--labels", "walk-through"], "one"), (["--scenarios", "three"], "three")],
)
def test_what_is_run_is_what_was_rehearsed(
    project: Path, capsys: pytest.CaptureFixture[str], given: list[str], scenarios: str
) -> None:
    (project / "before" / "report.json").write_text(json.dumps(with_a_fault(rehearsed())))
    assert main(["cost", "real-eks", "--report", "before", "--format", "json", *given]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"] == scenarios


def test_without_a_rehearsal_the_cost_is_not_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "real-eks", "--report", "elsewhere"]) == 2
    assert "rehearse the stack first" in capsys.readouterr().err


def test_nothing_is_removed_without_consent(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remove", "real-eks"]) == 1
    assert "Everything with the tag karpstack-run=first-run would be deleted" in capsys.readouterr().out


def test_the_page_says_what_differs_and_names_nobody(project: Path) -> None:
    before = Example().report()
    after = deepcopy(before)
    after["stack"] = "company-secret"
    after["environment"] |= {"clusterName": "company-secret", "region": "eu-secret-1", "simulated": False}
    story = after["stories"][0]
    for number, claim in enumerate(story["nodeclaims"]):
        claim |= {"name": f"secret-{number}", "node": "ip-10-0-0-1.secret", "zone": "eu-secret-1a"}
    story["nodeclaims"][0]["instance_type"] = "m7i.large"
    for which, content in (("before", before), ("after", after)):
        (project / which).mkdir(exist_ok=True)
        (project / which / "report.json").write_text(json.dumps(content))
    stages = [{"name": "up", "seconds": 901.2, "passed": True}, {"name": "destroy", "seconds": 600, "passed": False}]
    (project / "after" / "run.json").write_text(json.dumps({"stages": stages}))
    assert main(["compare", "before", "after", "--output", "page.md"]) == 0
    text = (project / "page.md").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "1 value differs" in text
    assert "1 m7i.large" in text
    assert "| seconds of up | not run | 901 |" in text
    assert "| seconds of destroy | not run | 600, failed |" in text
    assert "1 created" in text


def test_a_report_of_others_is_shown_as_text(project: Path) -> None:
    before = Example().report()
    after = deepcopy(before)
    after["versions"]["kubernetes"] = "@team <img src=x>"
    after["stories"][0]["nodeclaims"][0]["instance_type"] = "[m5](https://evil.example)"
    for which, content in (("before", before), ("after", after)):
        (project / which).mkdir(exist_ok=True)
        (project / which / "report.json").write_text(json.dumps(content))
    assert main(["compare", "before", "after", "--output", "page.md"]) == 0
    text = (project / "page.md").read_text(encoding="utf-8")
    assert "1 value differs" in text
    assert not any(part in text for part in ("<img", "@team", "](", "https://"))


def test_a_page_replaces_a_page_and_nothing_else(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "before").mkdir(exist_ok=True)
    (project / "before" / "report.json").write_text(json.dumps(Example().report()))
    for _ in range(2):
        assert main(["compare", "before", "before", "--output", "page\x1b.md"]) == 0
        assert "page\\x1b.md: it names" in capsys.readouterr().out
    (project / "notes.md").write_text("mine")
    assert main(["compare", "before", "before", "--output", "notes.md"]) == 2
    assert "notes.md: is no page of a real run" in capsys.readouterr().err
    assert (project / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["run.json", "report.json", "report"])
def test_no_link_in_a_folder_of_results_is_followed(
    project: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project / "linked"
    folder.mkdir()
    (project / "secret" / "report.json").parent.mkdir()
    for path in (folder / "report.json", project / "secret" / "report.json"):
        path.write_text(json.dumps(Example().report()))
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(project / "secret" / ("report.json" if name.endswith(".json") else ""))
    assert main(["compare", "linked", "linked", "--output", "page.md"]) == 2
    assert "so it is not read" in capsys.readouterr().err
    assert not (project / "page.md").exists()


@pytest.mark.parametrize("content", ["{}", "[" * 100_000, '{"stories": [{}]}', "[]"])
def test_what_is_no_report_is_refused(project: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "before" / "report.json").write_text(content)
    assert main(["compare", "before", "before", "--output", "page.md"]) == 2
    assert "before/report.json: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"stages": 1}', '{"stages": [1]}', '{"stages": [{"name": 1, "seconds": "a"}]}']
)
def test_what_is_no_run_is_refused(project: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "before" / "report.json").write_text(json.dumps(Example().report()))
    (project / "before" / "run.json").write_text(content)
    assert main(["compare", "before", "before", "--output", "page.md"]) == 2
    assert "before/run.json: " in capsys.readouterr().err


def test_the_same_run_differs_in_nothing() -> None:
    same = Example().report()
    assert "Nothing of them differs." in page(same, same, {})
