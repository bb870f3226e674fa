"""`karpstack network`: the account has what it makes, and the look before `up` finds nothing wrong."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import settings
from karpstack.components.settings import AksSettings
from karpstack.preflight.aws import network as aws_look
from karpstack.preflight.azure import network as azure_look
from karpstack.preflight.azure.subject import subject
from karpstack.preflight.stack import State
from karpstack.rehearsal.aws.ec2.existing import Networks
from karpstack.rehearsal.azure.network import existing
from tests.unit.command_line import karpstack
from tests.unit.example_stack import ROOT, raw
from tests.unit.preflight.preflight_azure_world import asked
from tests.unit.preflight.preflight_world import found, looked_at
from tests.unit.rehearsal.aws_world import account
from tests.unit.rehearsal.azure_world import REGION, World

main = karpstack()

#: Keys of the examples that a network of somebody else's changes or removes.
GONE = {
    "eks": {"vpcCidr", "zones", "natGateways", "endpoints", "flowLogRetentionDays"},
    "aks-nap": {"vnetCidr", "subnetCidr"},
}


def stack_file(folder: Path, stack: str) -> Path:
    path = folder / "Pulumi.mine.yaml"
    path.write_text((ROOT / f"Pulumi.{stack}.yaml").read_text())
    return path


def made(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[Path, dict[str, dict[str, Any]], str]:
    """The file, the settings and the words."""
    code = main(["network", "mine", "--config-file", str(path), *more])
    told = capsys.readouterr()
    assert code == 0, told.err
    return path.with_name("Pulumi.mine.network.json"), yaml.safe_load(told.out), told.err


@pytest.mark.parametrize(
    ("more", "zones"), [((), 3), (("--way-out", "transit-gateway", "--zones", "2", "--cidr", "10.8.0.0/20"), 2)]
)
def test_a_vpc_fits_the_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], zones: int
) -> None:
    file, wanted, words = made(stack_file(tmp_path, "eks"), capsys, *more)
    assert "zones, natGateways, flowLogRetentionDays" in " ".join(words.split())
    network = wanted["karpstack:network"]
    assert len(network["subnetIds"]) == zones
    with account(tmp_path, networks=Networks.load(file)) as world:
        ranges = {"podCidr": "10.244.0.0/16", "podCidrMaskSize": 24, "serviceCidr": "172.20.0.0/16"}
        assert found(aws_look.existing, looked_at(world, network=network | ranges)) == []


@pytest.mark.parametrize("way_out", ["nat", "firewall", "load-balancer"])
def test_a_virtual_network_fits_the_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str], way_out: str) -> None:
    path = stack_file(tmp_path, "aks-nap")
    file, wanted, words = made(path, capsys, "--way-out", way_out)
    assert "subnetCidr" in words
    config = yaml.safe_load(path.read_text())["config"]
    config["karpstack:network"] = {
        **{key: value for key, value in config["karpstack:network"].items() if key != "subnetCidr"},
        **wanted["karpstack:network"],
    }
    config["karpstack:cluster"] |= wanted["karpstack:cluster"]
    loaded = settings.load(raw(config))
    assert isinstance(loaded, AksSettings)
    world = World()
    existing.make(existing.load(file), world.arm, world.azure.subscription_id, REGION)
    world.azure.start(tmp_path / "certificates")
    try:
        assert not list(azure_look.subnet(subject(asked(world), loaded, State())))
    finally:
        world.azure.stop()


def test_the_same_comes_out_each_time_and_nothing_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stack_file(tmp_path, "eks")
    file, _, _ = made(path, capsys)
    content = file.read_text()
    file.write_text("[]")
    assert main(["network", "mine", "--config-file", str(path)]) == 2
    assert "is there already, and may be of a real network" in " ".join(capsys.readouterr().err.split())
    assert file.read_text() == "[]"
    made(path, capsys, "--overwrite")
    assert file.read_text() == content
    assert json.loads(content)["Vpcs"][0]["VpcId"].startswith("vpc-")


OF_ITS_OWN = "    zones: 3 # or their names: [us-east-1a, us-east-1b, us-east-1d]\n"


@pytest.mark.parametrize("stack", ["eks", "aks-nap"])
def test_the_stack_file_is_written_where_it_is_asked_and_nothing_is_changed_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str
) -> None:
    path = stack_file(tmp_path, stack)
    # Below a key that goes, and before one that stays.
    if stack == "eks":
        path.write_text(path.read_text().replace(OF_ITS_OWN, f"{OF_ITS_OWN}    # of the gateways\n"))
    before = path.read_text()
    asked = ["network", "mine", "--config-file", str(path), "--write"]
    assert main(asked) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "nothing was written, for these are set already, and would be changed or removed: karpstack:network." in said
    assert ("zones = 3 goes" if stack == "eks" else 'subnetCidr = "10.224.0.0/20" goes') in said
    file = path.with_name("Pulumi.mine.network.json")
    assert (path.read_text(), file.exists()) == (before, False)

    assert main([*asked, "--overwrite"]) == 0
    assert "karpstack:cluster." in capsys.readouterr().err
    written, old = path.read_text(), before.splitlines()
    gone = [line for line in old if line not in written.splitlines()]
    assert all(line.split(":")[0].strip() in GONE[stack] for line in gone), "comments too stay, but those of what goes"
    beside = [*pairwise(written.splitlines())]
    about = [(comment, line) for comment, line in pairwise(old) if comment.strip().startswith("#") and line not in gone]
    assert [pair for pair in about if pair not in beside] == [], "each stays with what it is about"
    assert settings.load(raw(yaml.safe_load(written)["config"]))
    file.unlink()
    assert main(asked) == 0, "nothing of it differs any more"
    assert "it did so already" in capsys.readouterr().err
    assert path.read_text() == written


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_not_set_is_written_without_more_words(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "Pulumi.mine.yaml"
    text = "# mine\nconfig:\n  # my\n  # region\n  aws:region: us-east-1\n\n  karpstack:cloud: aws # here\n"
    path.write_text(text, newline=end)
    assert main(["network", "mine", "--config-file", str(path), "--write"]) == 0
    ends = {line[len(line.rstrip()) :] for line in path.read_bytes().decode().splitlines(keepends=True)}
    assert ends == {end}, "each line ends as before"
    assert path.read_text().startswith(text)
    config = yaml.safe_load(path.read_text())["config"]
    assert [*config["karpstack:network"]] == ["vpcId", "vpcCidr", "subnetIds", "controlPlaneSubnetIds"]
    assert config["karpstack:cluster"] == {"privateAccessCidrs": ["10.20.0.0/16"]}
    assert capsys.readouterr().out == ""


def test_a_section_in_one_value_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "Pulumi.mine.yaml"
    path.write_text("config: {aws:region: us-east-1, karpstack:cloud: aws, karpstack:network: '{}'}\n")
    assert main(["network", "mine", "--config-file", str(path), "--write"]) == 2
    assert "karpstack:network is one value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stack", "key", "cidr"), [("eks", "podCidr", "10.244.0.0/16"), ("aks-nap", "serviceCidr", "")]
)
def test_a_range_that_is_the_clusters_own_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str, key: str, cidr: str
) -> None:
    path = stack_file(tmp_path, stack)
    given = yaml.safe_load(path.read_text())["config"]["karpstack:network"][key]
    assert main(["network", "mine", "--config-file", str(path), "--cidr", cidr or given]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"overlaps karpstack:network.{key} = {given}" in said
    assert not path.with_name("Pulumi.mine.network.json").exists()


def test_zones_are_no_choice_on_azure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stack_file(tmp_path, "aks-nap")
    assert main(["network", "mine", "--config-file", str(path), "--zones", "2"]) == 2
    assert "--zones 2: a subnet of Azure spans all zones" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("stack", "section"),
    [
        ("eks", {"network": {"vpcId": "vpc-1"}}),
        ("aks-nap", {"network": {"subnetId": "/subscriptions/1"}}),
        ("aks-nap", {"cluster": {"existing": "Shop_1"}}),
    ],
)
def test_a_stack_may_name_what_is_not_described_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str, section: dict[str, dict[str, str]]
) -> None:
    path = stack_file(tmp_path, stack)
    content = yaml.safe_load(path.read_text())
    for name, more in section.items():
        content["config"][f"karpstack:{name}"] |= more
    path.write_text(yaml.safe_dump(content))
    file, _, _ = made(path, capsys)
    assert file.is_file()


@pytest.mark.parametrize(
    ("stack", "more", "text"),
    [
        ("eks", ("--zones", "1"), "a control plane needs two"),
        ("eks", ("--zones", "7"), "us-east-1 has 6 that are known here"),
        ("eks", ("--cidr", "10.0.0.0/24"), "no network of /16 to /20"),
        ("aks-nap", ("--cidr", "10.0.0.0/8"), "no network of /16 to /20"),
        ("eks", ("--way-out", "firewall"), "none of AWS's, of which nat, transit-gateway are played"),
        ("aks-nap", ("--way-out", "transit-gateway"), "none of Azure's"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str, more: tuple[str, ...], text: str
) -> None:
    path = stack_file(tmp_path, stack)
    assert main(["network", "mine", "--config-file", str(path), *more]) == 2
    assert text in " ".join(capsys.readouterr().err.split())
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
