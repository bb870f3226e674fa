"""Several answers as one table: candidates side by side, and the spread of the same question asked several times.

A rehearsal is no clockwork: pods come in another order, and the nodes are others. So a difference that is no larger
than the spread of what was asked several times is called none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from karpstack.scale_test.reports import units
from karpstack.text import shown
from karpstack.text.files import ResultError, read_result
from karpstack.text.json_file import values_at_most
from karpstack.text.markdown import escape, table

from . import wording
from .answer import SCHEMA_VERSION, Answer

FILE = "whatif.json"
BYTES = 64 * 1024 * 1024
_VALUES = 2_000_000


# Of the days that changed clusters lived.
_LIFE = ("dollars a day", "nodes to go in these days", "unschedulable pods in these days", "drifted at their end")


class AnswersError(ValueError):
    """Answers that cannot be read, or not set side by side; the text has the fix."""


@dataclass(frozen=True)
class Spread:
    """One figure of several answers.

    Attributes:
        values: Of each answer; None where it is not known.
    """

    values: tuple[float | None, ...]

    @property
    def known_values(self) -> list[float]:
        """Those that are known, ascending."""
        return sorted(value for value in self.values if value is not None)

    @property
    def middle(self) -> float | None:
        """Their median; None where one is not known."""
        return median(self.known_values) if self.known_values and len(self.known_values) == len(self.values) else None

    @property
    def width(self) -> float:
        """From the least to the most."""
        return round(self.known_values[-1] - self.known_values[0], 6) if self.known_values else 0.0


def load(folders: Sequence[Path]) -> list[Answer]:
    """Read the answers of several folders.

    Raises:
        AnswersError: One has none, or of another form.
    """
    return [_load(folder / FILE) for folder in folders]


def _load(path: Path) -> Answer:
    try:
        content = read_result(path.parent, path.name, most=BYTES)
    except ResultError as error:
        raise AnswersError(str(error)) from error
    if content is None:
        raise AnswersError(
            f"{path}: is not there, so it is missing in the table; make it with `karpstack whatif report {path.parent}`"
        )
    if values_at_most(content) > _VALUES:
        raise AnswersError(f"{path}: has more than {_VALUES:,} values, so it is not read; make it again")
    try:
        return Answer.model_validate_json(content)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        raise AnswersError(
            f"{path}: {shown.key(details['loc']) or FILE}: {shown.value(details['input'])}: {details['msg']}, so it is "
            f"no answer of schema {SCHEMA_VERSION}; make it again with `karpstack whatif report {path.parent}`"
        ) from error


def candidates(answers: Sequence[Answer], missing: Sequence[str] = ()) -> str:
    """A table of several candidates, in Markdown; answers to the same question are one row.

    Args:
        answers: The answers.
        missing: Names of candidates that have no answer.

    Raises:
        AnswersError: The answers are not to the same question about different changes.
    """
    _comparable(answers)
    groups = _by_candidate(answers)
    repeated = [_changes(found) for found in groups.values() if len(found) > 1]
    noise = max((one.width for one in repeated), default=0.0)
    of_life = _LIFE if any(one.simulated_period for one in answers) else ()
    rows = [_row(name, found, noise, of_life) for name, found in groups.items()]
    head = (
        "candidate",
        "verdict",
        "dollars an hour before:",
        "after:",
        "change:",
        "nodes:",
        "replaced:",
        "pods moved:",
        "unschedulable:",
        "still without:",
        *(f"{name}:" for name in of_life),
    )
    rows += [(escape(name), "no answer", *[""] * (len(head) - 2)) for name in missing]
    lines = list(table(head, rows, FILE))
    if repeated:
        notes = [
            f"Differences of {_written(noise, 'USD')} an hour and less are called none: so far apart are answers to "
            "the same question.\n"
        ]
    else:
        notes = ["Each was asked once: how far two rehearsals of the same are apart is not known.\n"]
    notes += [f"{escape(text)}\n" for text in remarks(answers)]
    notes += [
        f"{escape(f'{one.candidate}: {wording.open_end(one.after)}')}\n"
        for one in answers
        if one.after and one.after.open_end
    ]
    return "\n".join([*lines, *notes]).rstrip() + "\n"


def remarks(answers: Sequence[Answer]) -> Iterator[str]:
    """What is to be known of several answers: how far to trust them, and whose prices they have."""
    yield from dict.fromkeys(one.accuracy.sentence for one in answers)
    yield from dict.fromkeys(text for one in answers if (text := one.prices_note))
    if any(one.before.spot_simulated or (one.after and one.after.spot_simulated) for one in answers):
        yield "Spot prices are simulated."


def spread(answers: Sequence[Answer]) -> str:
    """How far several answers to the same question are apart, in Markdown.

    Raises:
        AnswersError: It is not the same question, or asked once.
    """
    _comparable(answers)
    if len(answers) < 2:
        raise AnswersError("one answer has no spread; ask the same question again, and name both folders")
    if len(names := _by_candidate(answers)) > 1:
        raise AnswersError(
            f"{', '.join(map(str, names))} are different questions, so their spread says nothing; name answers to one, "
            "or take `karpstack whatif table`"
        )
    rows = [
        (
            name,
            _written(found.known_values[0] if found.known_values else None, unit),
            _written(found.middle, unit),
            _written(found.known_values[-1] if found.known_values else None, unit),
            _written(found.width, unit) if found.known_values else "",
        )
        for name, unit, found in _figures(answers)
    ]
    lines = list(table(("", "least:", "median:", "most:", "spread:"), rows, FILE))
    change = _changes(answers)
    told = [f"Asked {len(answers)} times. {_difference(change)}\n", *(f"{text}\n" for text in _alike(answers))]
    return "\n".join([*lines, *told]).rstrip() + "\n"


def _comparable(answers: Sequence[Answer]) -> None:
    for what, values in (
        ("stacks", {one.stack for one in answers}),
        ("regions", {one.region for one in answers}),
        ("bases", {one.base for one in answers}),
        ("given prices", {json.dumps(one.price_file, sort_keys=True) for one in answers}),
        ("factors of waits", {one.settings.wait_factor for one in answers}),
        ("moments that are asked about", {one.settings.at for one in answers}),
        (
            "whose nodes the base has",
            {"the cluster's" if one.accuracy.initial_nodes else "Karpenter's" for one in answers},
        ),
        ("snapshots of the workload", {one.snapshot for one in answers}),
        (
            "days that they lived",
            {wording.span(one.simulated_period) if one.simulated_period else "none" for one in answers if one.after},
        ),
        ("curves of replicas", {json.dumps(one.simulated_period.curve) for one in answers if one.simulated_period}),
    ):
        if len(values) > 1:
            raise AnswersError(
                f"the answers differ in {what} ({shown.value(sorted(map(str, values)))}), so a table of them would "
                "mislead; make them with the same"
            )


def _by_candidate(answers: Iterable[Answer]) -> dict[str | None, list[Answer]]:
    found: dict[str | None, list[Answer]] = {}
    for one in answers:
        found.setdefault(one.candidate, []).append(one)
    return found


def _row(name: str | None, answers: Sequence[Answer], noise: float, of_life: Sequence[str]) -> tuple[str, ...]:
    asked = f" (asked {len(answers)} times)" if len(answers) > 1 else ""
    verdicts = ", ".join(dict.fromkeys(map(wording.verdict, answers)))
    figures = {name: (unit, found) for name, unit, found in _figures(answers)}
    return (
        f"{escape(name or 'the change')}{asked}",
        escape(verdicts),
        *(_ranged(figures, key) for key in ("dollars an hour before", "dollars an hour after")),
        _own(_change(answers, noise)),
        *(
            _ranged(figures, key)
            for key in (
                "nodes after",
                "nodes replaced",
                "pods moved",
                "unschedulable pods",
                "pods still without a node",
            )
        ),
        *(_ranged(figures, key) if key in figures else "" for key in of_life),
    )


def _changes(answers: Sequence[Answer]) -> Spread:
    return Spread(tuple(map(_increase, answers)))


def _change(answers: Sequence[Answer], noise: float) -> str:
    if any(one.after and one.after.open_end for one in answers):
        return "not decided yet"
    change = _changes(answers).middle
    before = Spread(tuple(one.before.usd_per_hour for one in answers)).middle
    if change is None or before is None:
        return "not known"
    return "none" if abs(change) <= noise else wording.change(before, before + change)


def _difference(change: Spread) -> str:
    if change.middle is None:
        return "What the change costs is not known, for prices are missing."
    if abs(change.middle) <= change.width:
        spread = _written(change.width, "USD")
        return f"The change makes no difference in dollars that is larger than the spread, {spread}."
    by = _own(wording.signed_dollars(change.middle))
    return f"The change makes a difference of {by} an hour, which is more than the spread."


def _alike(answers: Sequence[Answer]) -> Iterator[str]:
    """Whether answers to one question agree in what is no figure."""
    verdicts = list(dict.fromkeys(map(wording.verdict, answers)))
    yield (
        f"The verdict is the same: {verdicts[0]}." if len(verdicts) == 1 else f"Verdicts differ: {'; '.join(verdicts)}."
    )
    causes = {
        frozenset(Counter((one.pool, one.drifted, *(cause.why for cause in one.causes)) for one in found).items())
        for found in (answer.remaining for answer in answers)
    }
    yield f"Nodes stay for {'the same' if len(causes) == 1 else 'other'} causes."
    went = {
        frozenset(one.node_claim for one in answer.blast_radius.replaced) for answer in answers if answer.blast_radius
    }
    if len(went) > 1:
        yield "Which nodes go differs: among nodes that are alike, Karpenter's order is not decided."


def _increase(answer: Answer) -> float | None:
    before, after = answer.before.usd_per_hour, answer.after.usd_per_hour if answer.after else None
    return None if before is None or after is None else round(after - before, 6)


def _figures(answers: Sequence[Answer]) -> Iterator[tuple[str, str, Spread]]:
    after = [one.after for one in answers]
    radius = [one.blast_radius for one in answers]
    yield "dollars an hour before", "USD", Spread(tuple(one.before.usd_per_hour for one in answers))
    yield "dollars an hour after", "USD", Spread(tuple(one.usd_per_hour if one else None for one in after))
    yield "change, dollars an hour", "change", _changes(answers)
    yield "nodes before", "", Spread(tuple(float(one.before.nodes) for one in answers))
    yield "nodes after", "", Spread(tuple(float(one.nodes) if one else None for one in after))
    yield "nodes replaced", "", Spread(tuple(float(len(one.replaced)) if one else None for one in radius))
    yield "pods moved", "", Spread(tuple(float(one.pods_moved) if one else None for one in radius))
    yield "unschedulable pods", "", Spread(tuple(float(one.pods_without_node) if one else None for one in radius))
    yield "pods still without a node", "", Spread(tuple(float(one.unschedulable) if one else None for one in radius))
    if any(lived := [one.simulated_period for one in answers]):
        gone, homeless, drifted = _LIFE[1:]
        yield _LIFE[0], "USD", Spread(tuple(one.usd_per_day if one else None for one in lived))
        yield gone, "", Spread(tuple(float(sum(one.disruptions.values())) if one else None for one in lived))
        yield homeless, "", Spread(tuple(float(one.pods_without_node) if one else None for one in lived))
        yield drifted, "", Spread(tuple(float(len(one.drifted_nodes)) if one else None for one in lived))


def _ranged(figures: dict[str, tuple[str, Spread]], name: str) -> str:
    unit, found = figures[name]
    if len(found.known_values) > 1 and found.width:
        return f"{_written(found.known_values[0], unit)} to {_written(found.known_values[-1], unit)}"
    return _written(found.middle, unit)


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    match unit:
        case "USD":
            return _own(units.dollars(value))
        case "change":
            return _own(wording.signed_dollars(value))
    return f"{value:g}"


def _own(text: str) -> str:
    return text.replace("$", "\\$")
