"""Whether a cluster that is there is one on which Karpenter can work, by the rules that the program itself has."""

from __future__ import annotations

from collections.abc import Iterator

from karpstack.components.settings import existing_cluster
from karpstack.karpenter import findings

from ..finding import Finding
from ..settings_findings import convert_findings
from . import network
from .existing_cluster import CALL
from .subject import ExistingSubject


def existing(subject: ExistingSubject) -> Iterator[Finding]:
    """What `pulumi preview` and `up` would refuse of it, or warn of."""
    settings, found = subject.settings, subject.cluster
    problems = (
        existing_cluster.missing(settings).problems if found is None else existing_cluster.problems(settings, found)
    )
    yield from convert_findings(problems, _source_call)


def _source_call(problem: findings.Finding) -> str:
    return network.source_call(problem) if ":network." in problem.key else CALL
