"""`karpstack doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.rehearsal.doctor import _built
from karpstack.rehearsal.engines.reference import VARIABLE


@pytest.mark.parametrize(
    ("missing", "severity", "found"),
    [
        ([], "good", "built, engines"),
        (["karpenter-aws", "addons"], "note", "not built: karpenter-aws, addons; complete for azure"),
        (["kubernetes"], "bad", "not built: kubernetes"),
    ],
)
def test_engines_of_one_cloud_are_enough(missing: list[str], severity: str, found: str) -> None:
    check = _built(missing, Path("engines"))
    assert (check.severity, check.found) == (severity, found)


def test_published_engines_are_pulled_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "oci://registry.example/engines@sha256:0")
    check = _built(["kubernetes"], Path("engines"))
    assert (check.severity, check.fix) == ("note", "")
    assert check.found == f"not built: kubernetes; a rehearsal pulls them from {VARIABLE}"
