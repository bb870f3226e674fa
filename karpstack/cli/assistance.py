"""`karpstack explain`, `doctor`, `completion` and `version`: help with the tool itself."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from karpstack.text.packaged import PACKAGE, POLICIES

from .options import Format, argument
from .shape import command

_SETTINGS: Final = "a stack file"
#: What a catalogue of findings is about -> its file.
CATALOGUES: Final = {
    _SETTINGS: PACKAGE / "components" / "findings.yaml",
    "an account or a cluster": PACKAGE / "preflight" / "findings.yaml",
    "a scenario file": PACKAGE / "scale_test" / "scenarios" / "findings.yaml",
    "a snapshot": PACKAGE / "snapshot" / "findings.yaml",
    "a rule of the policy pack": POLICIES / "rules" / "rules.yaml",
}


def _explain(
    code: Annotated[str, argument("CODE", "code of a finding, or name of a rule, as messages and documents show it")],
    form: Format = "text",
) -> int:
    """Explain a finding by its code: what is wrong, what would happen, how to fix it."""
    from karpstack.text.explanation import explain

    return explain(code, CATALOGUES, without_subject=[_SETTINGS], form=form)


def _doctor(form: Format = "text") -> int:
    """Check what a rehearsal needs on this machine, and say how to get what is missing."""
    from karpstack.rehearsal.doctor import doctor

    return doctor(form=form)


def _version() -> int:
    """Print the version."""
    from karpstack.scale_test.version import version

    print(f"karpstack {version()}")
    return 0


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    command(app, "explain", "karpstack explain eks-pod-cidr-too-small")(_explain)
    command(app, "doctor", "karpstack doctor")(_doctor)
    command(app, "version", "karpstack version")(_version)
