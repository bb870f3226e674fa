"""What tests/conftest.py says of files is said of files that are there."""

from __future__ import annotations

from tests.conftest import HERE, LONGEST, SHARING


def test_whoever_uses_the_stack_eks_shares_it_but_for_the_stories_which_take_long() -> None:
    using = {
        str(path.relative_to(HERE.parent))
        for path in (HERE / "rehearsal").glob("test_*.py")
        if "(eks: RehearsedStack" in path.read_text()
    }
    assert using == {*SHARING, "tests/rehearsal/test_stories.py"}


def test_the_longest_files_are_there() -> None:
    assert all(path.is_file() for path in LONGEST)
