"""Python's collector does not look through what was imported, in a tier that imports much."""

from __future__ import annotations

import gc

from karpstack.components import eks


def test_what_was_there_before_the_file_is_left_alone() -> None:
    assert gc.get_freeze_count() > 0
    assert not any(each is vars(eks) for each in gc.get_objects())
