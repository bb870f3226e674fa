"""The rules about exceptions themselves: none is forgotten, and none outlives its last day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pulumi_policy import PolicyResource

from .exceptions import GRANTED
from .rule import ADVICE, Judgement, Properties, ResourceRule, StackRule
from .tokens import STACK

_TEXT = {"type": "string", "minLength": 1}


def _in_force(resources: list[PolicyResource], judgement: Judgement) -> None:
    for exception in GRANTED.in_force(date.today()):
        excused = sorted(GRANTED.excused.get(exception, ()))
        # One configuration may serve several stacks; what is about another's resources is not reported here.
        if not excused and any(exception.covers(exception.rule, resource.urn) for resource in resources):
            judgement.violation(exception.report_text(None))
        for urn, finding in excused:
            judgement.violation(exception.report_text(finding), urn or None)


def exceptions(rules: Sequence[str]) -> ResourceRule:
    """The rule that reads the exceptions from `rules`, and refuses those that are over."""

    def stack(properties: Properties, judgement: Judgement) -> None:
        for exception in GRANTED.expired(date.today()):
            judgement.violation(f"{exception}. That day is over.")

    def read(settings: Properties) -> None:
        GRANTED.read(settings["granted"], rules)

    return ResourceRule(
        name="exceptions",
        settings={
            # `resource` is a pattern of names or URNs; `until` is the last day.
            "granted": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "rule": _TEXT,  # one of the pack's; compared in code, for a message that names it
                        "resource": _TEXT,
                        "reason": _TEXT,
                        "until": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
                    },
                    "required": ["rule", "resource", "reason", "until"],
                    "additionalProperties": False,
                },
                "default": [],
            }
        },
        checks={STACK: stack},
        before=read,
    )


EXCEPTIONS_IN_FORCE = StackRule(name="exceptions-in-force", enforcement=ADVICE, check=_in_force)
