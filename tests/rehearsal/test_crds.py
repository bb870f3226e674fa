"""karpstack/karpenter/schemas/ is what the pinned charts say."""

from __future__ import annotations

from karpstack.generators import crds
from karpstack.karpenter.crds import FOLDER
from karpstack.rehearsal.engines import EngineSet


def test_the_files_are_what_the_command_writes() -> None:
    for name, text in crds.documents(EngineSet.current()).items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{FOLDER / name} differs; run: make facts"
