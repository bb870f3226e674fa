"""review.html: one page that needs nothing but itself. The template is data beside this module."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import wording
from .model import Review

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"


def render(review: Review) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["money"] = wording.money
    environment.filters["doing"] = wording.doing
    environment.filters["subject"] = wording.subject
    # An address that is not the web's, in another pack's rule for example, is text and no link.
    environment.tests["web"] = lambda address: address.startswith("https://")
    return environment.get_template("review.html.j2").render(
        review=review,
        stylesheet=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        headline=wording.headline(review).rstrip("."),
        summary=wording.summary(review),
        totals=wording.totals(review),
        by_severity=wording.by_severity(review.findings),
        stack_cost=wording.stack_cost(review.cost, review.pools),
        identities=wording.identities(review.entries, review.permissions),
    )
