"""What the rehearsal reads of a stack's configuration, and what it refuses."""

from __future__ import annotations

import itertools
import json
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from karpstack.rehearsal.engines import releases
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError

GOOD = {"config": {"karpstack:cloud": "aws", "aws:region": "us-east-1", "karpstack:name": "demo"}}

AZURE = {"karpstack:cloud": "azure", "azure-native:location": "westus2"}
# Nine lines that stand for 9^9 values.
BOMB = "a: &a [1,2,3,4,5,6,7,8,9]\n" + "".join(
    f"{new}: &{new} [{f'*{old},' * 9}]\n" for old, new in itertools.pairwise("abcdefghi")
)


MERGED = "\n".join(["a: &m0 {x: 1}", *(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 10))])


def refused(path: Path) -> str:
    with pytest.raises(StackFileError) as error:
        StackFile.load(path)
    return str(error.value)


def write(folder: Path, content: object) -> Path:
    path = folder / "Pulumi.eks.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_cloud_and_region_are_read(tmp_path: Path) -> None:
    found = StackFile.load(write(tmp_path, GOOD))
    assert (found.cloud, found.region) == ("aws", "us-east-1")


@pytest.mark.parametrize(
    ("more", "region", "subscription"),
    [
        ({}, "westus2", ""),
        ({"azure-native:location": "West US 2", "azure-native:subscriptionId": "ABC-1"}, "westus2", "abc-1"),
    ],
)
def test_azure_has_a_region_and_a_subscription(
    tmp_path: Path, more: dict[str, str], region: str, subscription: str
) -> None:
    config = {"karpstack:cloud": "azure", "azure-native:location": "westus2", **more}
    found = StackFile.load(write(tmp_path, {"config": config}))
    assert (found.cloud, found.region, found.subscription) == ("azure", region, subscription)


@pytest.mark.parametrize("written", [dict, json.dumps])
def test_an_existing_network_that_is_described_is_read(tmp_path: Path, written: Callable[[object], object]) -> None:
    path = write(tmp_path, {"config": {**GOOD["config"], "karpstack:network": written({"vpcId": "vpc-1"})}})
    assert "network.vpcId = 'vpc-1'" in refused(path)
    file = tmp_path / "Pulumi.eks.network.json"
    file.write_text("{}")
    assert StackFile.load(path).network == file


@pytest.mark.parametrize("written", [dict, json.dumps])
@pytest.mark.parametrize(
    ("config", "described", "version"),
    [
        (GOOD["config"], '{"cluster": {"version": "1.35"}}', "1.35"),
        (GOOD["config"], "{}", ""),
        (GOOD["config"], "cluster:", ""),
        (AZURE, '{"cluster": {"kubernetesVersion": "1.35.4"}}', "1.35"),
        (AZURE, '{"cluster": {"properties": {"kubernetesVersion": "1.36"}}}', "1.36"),
        (AZURE, '{"cluster": {"kubernetesVersion": 1.36}}', ""),
        (AZURE, '{"cluster": []}', ""),
    ],
)
def test_an_existing_cluster_that_is_described_says_its_version(
    tmp_path: Path, config: dict[str, str], described: str, version: str, written: Callable[[object], object]
) -> None:
    path = write(tmp_path, {"config": {**config, "karpstack:cluster": written({"existing": "Shop_1"})}})
    assert "cluster.existing = 'Shop_1'" in refused(path)
    file = tmp_path / "Pulumi.eks.cluster.json"
    file.write_text(described)
    found = StackFile.load(path)
    assert (found.cluster, found.kubernetes) == (file, version)


def test_a_version_of_a_described_cluster_is_refused_by_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": {"existing": "shop"}}})
    path.with_name("Pulumi.eks.cluster.json").write_text(json.dumps({"cluster": {"version": "1.30"}}))
    with pytest.raises(StackFileError, match=r"Pulumi\.eks\.cluster\.json: the cluster's version = \"1\.30\"") as error:
        StackFile.load(path).check_versions()
    assert "karpstack:cluster.version" not in str(error.value)


def test_a_release_that_is_built_before_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARPSTACK_CACHE", str(tmp_path / "no-engines"))
    newest, *_, oldest = releases("kubernetes")
    path = write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": {"version": "1.30"}}})
    with pytest.raises(StackFileError, match=rf"Kubernetes {newest} and {oldest} \(built first, once"):
        StackFile.load(path).check_versions()


def test_a_preview_needs_no_kubernetes_but_that_of_a_cluster_that_is_there(tmp_path: Path) -> None:
    path = write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": {"version": "1.35"}}})
    assert StackFile.load(path).releases_of_preview[0] == ""
    path.with_name("Pulumi.eks.cluster.json").write_text(json.dumps({"cluster": {"version": "1.35"}}))
    path = write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": {"existing": "shop"}}})
    assert StackFile.load(path).releases_of_preview[0] == "1.35"


ONE = "210987654321"


@pytest.mark.parametrize("given", [[ONE], json.dumps([ONE])])
def test_the_one_account_that_is_allowed_is_played(tmp_path: Path, given: object) -> None:
    found = StackFile.load(write(tmp_path, {"config": {**GOOD["config"], "aws:allowedAccountIds": given}}))
    assert found.account == ONE
    assert StackFile.load(write(tmp_path, GOOD)).account == ""
    # It means nothing on another cloud.
    assert StackFile.load(write(tmp_path, {"config": {**AZURE, "aws:allowedAccountIds": given}})).account == ""


@pytest.mark.parametrize("section", [{"version": "1.34"}, '{"version": "1.34"}'])
def test_another_kubernetes_version_is_refused(tmp_path: Path, section: object) -> None:
    found = StackFile.load(write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": section}}))
    assert found.kubernetes == "1.34"
    known, *_, oldest = releases("kubernetes")
    with pytest.raises(
        StackFileError, match=rf'version = "1\.34": .* Kubernetes {known} and {oldest}.* alone, .*Write "{known}"'
    ):
        found.check_versions()
    StackFile.load(
        write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": {"version": oldest}}})
    ).check_versions()


@pytest.mark.parametrize(("name", "part"), [("karpenter", "karpenter-aws"), ("cilium", "charts")])
def test_another_release_of_a_chart_is_refused(tmp_path: Path, name: str, part: str) -> None:
    def loaded(version: object) -> StackFile:
        section = {f"karpstack:{name}": {"chartVersion": version}}
        return StackFile.load(write(tmp_path, {"config": {**GOOD["config"], **section}}))

    for version in releases(part):
        assert version in loaded(version).releases
        loaded(version).check_versions()
    with pytest.raises(StackFileError, match=rf'karpstack:{name}\.chartVersion = "1\.16\.0": the rehearsal has'):
        loaded("1.16.0").check_versions()
    for none in (1.16, "v1.16.0", "1.16", None, ["1.16.0"]):
        loaded(none).check_versions()  # the program's to refuse


@pytest.mark.parametrize("section", [{}, {"version": "latest"}, {"version": 1.35}, {"version": "1.35.1"}, "{", None])
def test_what_is_no_version_is_the_programs_to_refuse(tmp_path: Path, section: object) -> None:
    found = StackFile.load(write(tmp_path, {"config": {**GOOD["config"], "karpstack:cluster": section}}))
    found.check_versions()


TEXTS = {
    "config: [": "Pulumi.eks.yaml: not YAML; mend it",
    "config: {when: !!timestamp 2026-13-45}": "line 1: the tag",
    "[]": "= [] is no mapping",
    "text": "= 'text' is no mapping",
    "config: text": "config = 'text' is no mapping",
    "config: {a: 1, a: 2}": "line 1: the key 'a' is there twice, of which one would be lost",
    "config: {a: 0x" + "f" * 5_000 + "}": "is no number to reckon with",
    "config: {a: " + ":".join(["59"] * 5_000) + "}": "is no number to reckon with",
    "config: {a: &a [*a]}": "*a would hold itself without end",
    "[" * 50_000: "more than 40 levels deep",
    "{a: " * 60: "more than 40 levels deep",
    "config: " + "x" * 1_100_000: "has more than 1 MiB",
    BOMB: "more than 1 MiB, aliases (*) written out",
    MERGED: "more than 1 MiB, aliases (*) written out",
}


@pytest.mark.parametrize(("text", "message"), TEXTS.items(), ids=range(len(TEXTS)))
def test_what_nobody_would_write_is_refused_at_once(tmp_path: Path, text: str, message: str) -> None:
    started = time.monotonic()
    said = refused(write(tmp_path, text))
    assert message in said
    assert len(said) < 1000
    assert time.monotonic() - started < 1


#: Cloud, what is changed in its configuration (null removes), and what is said.
REFUSED = yaml.safe_load((Path(__file__).with_name("stack_files.yaml")).read_text())


@pytest.mark.parametrize(("cloud", "changes", "message"), REFUSED)
def test_refusals(tmp_path: Path, cloud: str, changes: dict[str, object], message: str) -> None:
    config = {**(GOOD["config"] if cloud == "aws" else AZURE), **changes}
    kept = {key: value for key, value in config.items() if value is not None}
    assert message in refused(write(tmp_path, {"config": kept}))


def test_aliases_as_people_use_them_are_read(tmp_path: Path) -> None:
    config = "config: {karpstack:cloud: aws, aws:region: &here us-east-1, karpstack:name: *here}"
    assert StackFile.load(write(tmp_path, config)).region == "us-east-1"


def test_a_missing_file_names_the_stacks_that_exist(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(StackFileError, match=r"no stack file .*Pulumi\.aks\.yaml; the stacks here are: eks"):
        StackFile.load(tmp_path / "Pulumi.aks.yaml")


def test_the_salt_or_key_of_a_stack_that_is_deployed_stays_out_of_the_copy(tmp_path: Path) -> None:
    theirs = {"encryptionsalt": "v1:theirs", "secretsprovider": "awskms://alias/x", "encryptedkey": "AQ"}
    StackFile.load(write(tmp_path, {**theirs, **GOOD})).copy_to(tmp_path / "copy.yaml")
    assert yaml.safe_load((tmp_path / "copy.yaml").read_text()) == GOOD


def test_the_copy_keeps_the_salt_and_the_original_stays(tmp_path: Path) -> None:
    stack_file = StackFile.load(write(tmp_path, GOOD))
    copy = tmp_path / "copy.yaml"
    stack_file.copy_to(copy)
    with copy.open("a") as file:
        file.write("encryptionsalt: v1:abc\n")
    stack_file.copy_to(copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert yaml.safe_load(copy.read_text()) == {**GOOD, "encryptionsalt": "v1:abc"}
    assert yaml.safe_load(stack_file.path.read_text()) == GOOD
