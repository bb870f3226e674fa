"""Why Karpenter chose each node, in sentences; nodes with the same explanation are one group.

Nothing is added here to what `nodeclaims[].why` of the report has but what holds for every node of a cloud: how the
controller asks for it, and how the cloud chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template

from karpstack.text.markdown import unlinked
from karpstack.text.shown import listed, visible

from ..market.prices import ASKED_OF_AWS
from . import units

Data = Mapping[str, Any]

# MaxInstanceTypes of sigs.k8s.io/karpenter 1.15: of more, the cheapest are written into the NodeClaim.
_WRITTEN = 600
# Of Markdown and HTML; within a word, as in Standard_D2s_v5, `_` is text.
_SPECIAL = re.compile(r"([\\`*<>\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# Of names in a sentence.
_NAMED = 10
# For a line break in what others wrote.
_BREAK = "\x1e"


@dataclass(frozen=True)
class Reasons:
    """What can be said of some nodes alike.

    Attributes:
        nodes: Names of their NodeClaims.
        what: What they are.
        short: Where they stand, in short.
        sentences: All that can be said.
    """

    nodes: tuple[str, ...]
    what: str
    short: str
    sentences: tuple[str, ...]


def reasons(story: Data, cloud: str | None, prices_of: str | None = None) -> list[Reasons]:
    """A story's nodes, those first of which most are alike; none if the report is older than the question.

    Args:
        story: The story.
        cloud: Where it ran; None where that is not known.
        prices_of: The region whose prices dollars are at, where that is not the stack's.
    """
    groups: dict[tuple[str, ...], list[Data]] = {}
    for claim in story["nodeclaims"]:
        if claim.get("why"):
            made = (claim["instance_type"] or "not launched", claim["capacity_type"] or "", claim["nodepool"])
            groups.setdefault((*made, _short(claim), *_sentences(claim, cloud or "", prices_of)), []).append(claim)
    return [
        Reasons(tuple(claim["name"] for claim in claims), _what(claims), short, (_pods(claims), *sentences))
        for (_, _, _, short, *sentences), claims in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]


def markdown(report: Data) -> str:
    """All stories' nodes as Markdown: a heading a story, a list of groups, and under each its sentences."""
    lines = [f"# Why these nodes: {_as_text(report['stack'])}"]
    for story in report["stories"]:
        lines += ["", f"## {_as_text(story['name'])}", ""]
        groups = reasons(story, report["environment"].get("cloud"), report["environment"].get("prices_of"))
        for group in groups:
            lines.append(f"- **{_as_text(f'{len(group.nodes)} × {group.what}')}**: {_as_text(group.short)}")  # noqa: RUF001
            lines += [f"  - {_as_text(sentence)}" for sentence in group.sentences]
        if not groups:
            lines.append(
                "The report does not tell; make it again from its timeline." if story["nodeclaims"] else "No nodes."
            )
    return "\n".join(lines)


def data(report: Data) -> dict[str, Any]:
    """Return what `markdown` says, as data."""
    environment = report["environment"]
    return {
        "stack": report["stack"],
        "stories": [
            {
                "name": story["name"],
                "groups": [
                    asdict(one) for one in reasons(story, environment.get("cloud"), environment.get("prices_of"))
                ],
            }
            for story in report["stories"]
        ],
    }


def _as_text(text: str) -> str:
    """On one line, no markup, no mention, no link. A terminal shows it too, so it has fewer entities than `escape`."""
    return unlinked(_SPECIAL.sub(r"\\\1", visible(" ".join(text.split())).replace("&", "&amp;")))


def _what(claims: Sequence[Data]) -> str:
    one = claims[0]
    what = " ".join(part for part in (one["instance_type"] or "not launched", one["capacity_type"]) if part)
    zones = ", ".join(sorted({claim["zone"] for claim in claims if claim["zone"]}))
    return f"{what}{f' in {zones}' if zones else ''}, NodePool {one['nodepool'] or 'not known'}"


def _short(claim: Data) -> str:
    why = claim["why"]
    if not why["offered"]:
        return "what it was offered as is not recorded"
    offered = f"{units.count(why['offered']['instance_types'])} offered"
    if not claim["instance_type"]:
        return offered
    if not why["price"]:
        return f"one of {offered}"
    return f"{_rank(why['price']['rank'])} of {offered}"


def _rank(rank: int) -> str:
    return "the cheapest" if rank == 1 else f"no. {rank} by price"


def _pods(claims: Sequence[Data]) -> str:
    counts = sorted(claim["why"]["pods"] for claim in claims)
    pods = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    pods += " pod" if counts[-1] == 1 else " pods"
    each = " each" if len(claims) > 1 else ""
    known = {claim["why"]["pods_known_by"] for claim in claims}
    if known == {"none"}:
        return "No pod that it was made for is recorded."
    judged = f"NodePools are judged by {pods}{each}"
    if known == {"nominated"}:
        return f"{judged}: those that the controller's events name, which leave out many."
    if known == {"ran"}:
        return f"{judged} that ran on it; no event names those that it was made for."
    return f"{judged}: those that the controller's events name, or where they name none, that ran on it."


@cache
def _template() -> Template:
    """The sentences; what is said in them stays on one line until they are taken apart."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701 - text, which the page and `markdown` escape
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda said: said.replace("\n", _BREAK) if isinstance(said, str) else said,
    )
    environment.filters |= {made.__name__: made for made in (units.count, units.dollars, units.duration, units.memory)}
    environment.filters["listed"] = lambda names: listed(names, _NAMED)
    return environment.get_template("reasons.txt.j2")


def _sentences(claim: Data, cloud: str, prices_of: str | None) -> list[str]:
    said = _template().render(
        claim=claim, why=claim["why"], cloud=cloud, prices_of=prices_of, written=_WRITTEN, asked_of_aws=ASKED_OF_AWS
    )
    return [line.replace(_BREAK, "\n") for line in said.split("\n") if line.strip()]
