"""Write the tables of docs/contributing/recorded.md: `python -m tests.unit.rehearsal.recordings_page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.unit.rehearsal.recordings import Record, changes, records, unanswered

PAGE = Path(__file__).resolve().parents[3] / "docs" / "contributing" / "recorded.md"
PACKAGES = ("aws", "azure-native")
#: What follows this line on the page is written by this module.
MARK = "<!-- What follows is written from tests/unit/rehearsal/recorded. -->\n"


def tables() -> str:
    """Recordings, changes and unanswered outputs, as Markdown."""
    known = [record for package in PACKAGES for record in records(package).values()]
    called = [change for package in PACKAGES for change in changes(package)]
    return "\n".join(
        (
            "## Recordings\n",
            *_table(("type", "recorded in", "provider", "remaining differences"), map(_recording, known)),
            "\n## Changes\n",
            *_table(("type", "property", "real provider", "simulated provider"), map(_change, called)),
            "\n## Outputs of the SDK that the simulated provider does not have\n",
            *_table(("type", "output", "why"), _left_out()),
            "",
        )
    )


def _recording(record: Record) -> tuple[str, ...]:
    repository, path = record.recorded["repository"], record.recorded["path"]
    folder = path.rpartition("/")[0].partition("/recorded/")[2]
    link = f"[{repository.partition('/')[2]}, {folder}](https://github.com/{repository}/blob/HEAD/{path})"
    left = "; ".join(f"`{place}`: {reason}" for place, reason in record.differences.items())
    return f"`{record.token}`", link, record.recorded["provider"], left


def _change(change: Mapping[str, str]) -> tuple[str, ...]:
    other = {"update": "replace", "replace": "update"}[change["kind"]]
    here = f"{other}: {change['difference']}" if "difference" in change else change["kind"]
    return f"`{change['type']}`", f"`{change['property']}`", f"[{change['kind']}]({change['recorded']})", here


def _left_out() -> Iterator[tuple[str, ...]]:
    for token, outputs in unanswered().items():
        for name, reason in outputs.items():
            yield f"`{token}`", f"`{name}`", reason


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    text, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{text}{MARK}\n{tables()}")
