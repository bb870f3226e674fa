"""Settings that Pulumi does not take from the stack file beside Pulumi.yaml, and who refuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.preflight.finding import InputError
from karpstack.preflight.stack import raw
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.text.project_file import unread_settings
from karpstack.text.projects import other_folder

CONFIG = {"karpstack:cloud": "aws", "karpstack:name": "demo"}


def project(folder: Path, **more: Any) -> Path:
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "karpstack", "runtime": "python", **more}))
    path = folder / "Pulumi.eks.yaml"
    path.write_text(yaml.safe_dump({"config": CONFIG}))
    return path


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("name: a\nstackConfigDir: stacks\n", "stackConfigDir"),
        ("name: a\r\n'stackConfigDir' : stacks\r\n", "stackConfigDir"),
        ('{"name": "a", "stackConfigDir": "stacks"}', "stackConfigDir"),
        ("{\n  name: a,\n  stackConfigDir: stacks\n}\n", "stackConfigDir"),
        ("name: a\nconfig: stacks\n", "config"),
        ("name: a\n# stackConfigDir: stacks\n", ""),
        ("name: a\nconfig:\n  a:b: c\n", ""),
        ("name: a\nconfig: # of all stacks\n  a:b: c\n", ""),
        ("name: a\nconfig: {a:b: c}\n", ""),
        ("name: a\ndescription: no stackConfigDir here\n", ""),
    ],
)
def test_another_folder_for_stack_files_is_found(text: str, key: str) -> None:
    assert other_folder(text.encode()).partition(" names another folder")[0] == key


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"aws:region": "us-east-1"}, "aws:region"),
        ({"aws:region": {"default": "us-east-1"}}, "aws:region"),
        ({"karpstack:network.zones": {"value": 2}, "tags": {"type": "object", "value": {}}}, "karpstack:network.zones"),
        ({"name": {"default": "other"}}, ""),  # the stack file's comes first
        ({"region": {"type": "string"}, "pulumi:tags": {"value": {"a": "b"}}, "mine:key": 1}, ""),
    ],
)
def test_settings_of_the_project_that_are_not_in_the_stack_file_are_named(
    given: dict[str, Any], found: str, tmp_path: Path
) -> None:
    said = unread_settings(project(tmp_path, config=given), {"config": CONFIG})
    assert said.startswith(f"{tmp_path / 'Pulumi.yaml'}: config has {found}, " if found else "")
    assert bool(said) is bool(found)


@pytest.mark.parametrize("more", [{"config": {"aws:region": "us-east-1"}}, {"stackConfigDir": "stacks"}])
@pytest.mark.parametrize(("read", "error"), [(raw, InputError), (StackFile.load, StackFileError)])
def test_whoever_reads_the_stack_file_refuses_such_a_project(
    read: Callable[[Path], object], error: type[Exception], more: dict[str, Any], tmp_path: Path
) -> None:
    path = project(tmp_path, **more)
    with pytest.raises(error, match=r"Pulumi\.yaml: (config has aws:region|stackConfigDir names)"):
        read(path)


@pytest.mark.parametrize("given", [["org/prod"], {"values": {"pulumiConfig": {"aws:allowedAccountIds": ["1"]}}}])
@pytest.mark.parametrize(("read", "error"), [(raw, InputError), (StackFile.load, StackFileError)])
def test_whoever_reads_the_stack_file_refuses_settings_of_an_environment(
    read: Callable[[Path], object], error: type[Exception], given: object, tmp_path: Path
) -> None:
    """Pulumi ESC's: a profile or an account that is allowed there would count for nothing here."""
    path = project(tmp_path)
    path.write_text(yaml.safe_dump({"environment": given, "config": CONFIG}))
    with pytest.raises(error, match=r"Pulumi\.eks\.yaml: environment names a Pulumi ESC environment"):
        read(path)
