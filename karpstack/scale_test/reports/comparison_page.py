"""The page of a comparison: verdict first, then the differences, then what differs in versions and configuration."""

from __future__ import annotations

from karpstack.text.files import page_begins

from .charts import ecdf
from .comparison import Comparison, Report, Rules, written
from .page import template

#: How every page begins.
BEGINS = page_begins(rb"[^<]* scale tests compared</title>")


def render(comparison: Comparison, before: Report, after: Report, rules: Rules) -> str:
    """The page.

    Args:
        comparison: What is shown.
        before: The report that it compares with.
        after: The report that it judges.
        rules: Those by which it did.

    Returns:
        HTML.

    Raises:
        ValueError: The folder lacks a template.
    """
    charts = {
        story.name: [
            ecdf(
                story.name,
                f"{phase[:1].upper()}{phase[1:]}",
                [("before", old, faked), ("after", new, faked)],
                paired=True,
            )
            for phase, old, new, faked in story.curves
        ]
        for story in comparison.stories
    }
    return template("comparison.html.j2").render(
        comparison=comparison,
        before=before,
        after=after,
        charts_of=charts,
        written=written,
        rules=rules.model_dump(mode="json"),
    )
