"""What the rehearsal reads of a stack's configuration, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rehearsal.stack_file import StackFile, StackFileError

GOOD = {"config": {"karpstack:cloud": "aws", "aws:region": "us-east-1", "karpstack:name": "demo"}}


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"config": {**GOOD["config"], "karpstack:cloud": "gcp"}},
            r"karpstack:cloud is 'gcp'; the rehearsal plays: aws",
        ),
        ({"config": {"karpstack:cloud": "aws"}}, r"aws:region is missing; add for example"),
        ({"config": {"karpstack:cloud": "azure"}}, r"azure-native:location is missing; add .*location: westus2"),
        (
            {"config": {**GOOD["config"], "karpstack:cluster": {"keys": [{"secure": "AAAB"}]}}},
            r"karpstack:cluster\.keys\[0\].*--config-file FILE",
        ),
        ("config: [", r"is not valid YAML"),
    ],
)
def test_refusals(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(StackFileError, match=message):
        StackFile.load(write(tmp_path, content))


def test_a_missing_file_names_the_stacks_that_exist(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(StackFileError, match=r"no stack file .*Pulumi\.aks\.yaml; the stacks here are: eks"):
        StackFile.load(tmp_path / "Pulumi.aks.yaml")


def test_the_copy_keeps_the_salt_and_the_original_stays(tmp_path: Path) -> None:
    stack_file = StackFile.load(write(tmp_path, GOOD))
    copy = tmp_path / "copy.yaml"
    stack_file.copy_to(copy)
    with copy.open("a") as file:
        file.write("encryptionsalt: v1:abc\n")
    stack_file.copy_to(copy)
    assert yaml.safe_load(copy.read_text()) == {**GOOD, "encryptionsalt": "v1:abc"}
    assert yaml.safe_load(stack_file.path.read_text()) == GOOD
