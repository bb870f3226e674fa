"""A command that a message tells the user to run finds the stack's state from the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.rehearsal.session import hints
from karpstack.rehearsal.state.folder import StackFolder


@pytest.mark.parametrize(
    ("here", "state", "words"),
    [
        ("mine", "mine/.rehearsal", "karpstack down dev"),
        ("mine/below", "mine/.rehearsal", "karpstack down dev"),
        (".", "their program/.rehearsal", "karpstack down dev --program 'their program'"),
        ("mine", "mine/theirs/.rehearsal", "karpstack down dev --program theirs"),
        ("mine", "theirs/.rehearsal", "karpstack down dev --program {folder}/theirs"),
        ("mine", "elsewhere", "karpstack down dev --state {folder}/elsewhere"),
        (".", "else where", "karpstack down dev --state 'else where'"),
    ],
)
def test_the_program_or_state_is_named_where_it_is_not_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, state: str, words: str
) -> None:
    (tmp_path / "mine" / "below").mkdir(parents=True)
    (tmp_path / "mine" / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path / here)
    assert hints.command("down", StackFolder("dev", tmp_path / state / "dev")) == words.format(folder=tmp_path)
