"""Projects are found only where other users could not put them, stacks only by names that a shell leaves alone."""

import os
from pathlib import Path

import pytest

from karpstack.text.projects import ProjectError, find_project, find_stack_files, stack_names


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A folder in which every user may write, as /tmp; somebody has put a project there."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "Pulumi.yaml").write_text("runtime: python")
    (folder / "Pulumi.evil.yaml").touch()
    return folder


def test_a_project_above_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "Pulumi.eks.yaml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert find_project() == find_stack_files() == tmp_path
    assert stack_names() == ["eks"]


def test_a_project_in_a_folder_above_that_all_may_write_is_not_taken(
    open_to_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = open_to_all / "mine"
    mine.mkdir()
    monkeypatch.chdir(mine)
    with pytest.raises(ProjectError):
        find_project()
    assert find_stack_files() == mine
    assert stack_names() == []


def test_a_project_in_the_current_folder_is_taken(open_to_all: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(open_to_all)
    assert find_project() == open_to_all


@pytest.mark.parametrize("name", [r"\$(touch pwned)", "$(touch pwned)", "a b", "-x", "\x1b[31m"])
def test_a_name_that_no_stack_has_completes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.eks.yaml").touch()
    (tmp_path / f"Pulumi.{name}.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert stack_names() == ["eks"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder to another user")
def test_a_project_in_a_folder_of_another_user_above_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs" / "mine").mkdir(parents=True)
    (tmp_path / "theirs" / "Pulumi.yaml").touch()
    os.chown(tmp_path / "theirs", 65534, 65534)
    monkeypatch.chdir(tmp_path / "theirs" / "mine")
    with pytest.raises(ProjectError):
        find_project()
