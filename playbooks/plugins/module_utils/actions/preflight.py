"""The action that checks the account of a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from karpstack.preflight.checks import before_destroy, before_up
from karpstack.preflight.finding import UnknowableError
from karpstack.preflight.output import as_result
from karpstack.text.projects import ProjectError, find_project

from . import Result

ERRORS: Final = (ProjectError, UnknowableError)


def preflight(
    stack: str,
    before: Literal["up", "destroy"],
    project: Path | None = None,
    config_file: Path | None = None,
    stack_outputs: Result | None = None,
    kubeconfig: Path | None = None,
    *,
    check: bool,
) -> Result:
    """Check what blocks `pulumi up` or `pulumi destroy` of a stack; read-only."""
    project = project or find_project()
    if before == "up":
        checked = before_up(stack, project=project, config_file=config_file)
    else:
        checked = before_destroy(stack, project=project, outputs=stack_outputs or None, kubeconfig=kubeconfig)
    return {"changed": False, **as_result(checked)}
