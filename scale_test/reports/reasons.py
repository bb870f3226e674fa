"""Why each node is the one that it is, in sentences; nodes of which the same can be said are one group.

Nothing is added here to what `nodeclaims[].why` of the report has but what holds for every node of a cloud: how the
controller asks for it, and how the cloud chooses.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..market.prices import ASKED_OF_AWS
from ..text.shown import visible
from . import units

Data = Mapping[str, Any]

# MaxInstanceTypes of sigs.k8s.io/karpenter 1.15: of more, the cheapest are written into the NodeClaim.
_WRITTEN = 600
_AZURE_CHOOSES = "On Azure the controller itself asks for the cheapest that it takes for available."
_CHOOSES = {
    ("aws", "spot"): "Among spot offerings AWS chooses by capacity and price (price-capacity-optimized), so not "
    "necessarily the cheapest.",
    # With a NodeOverlay's price, `prioritized` and `capacity-optimized-prioritized`: types.go of the same folder.
    ("aws", "on-demand"): "Of on-demand offerings AWS launches the cheapest that it has (lowest-price; where a "
    "NodeOverlay sets prices, by those).",
    ("azure", "spot"): _AZURE_CHOOSES,
    ("azure", "on-demand"): _AZURE_CHOOSES,
}
_SPECIAL = re.compile(r"([\\`*<>\[\]|])")
# Of names in a sentence.
_NAMED = 10
_UNITS = {"cpu": "CPUs", "nodes": "nodes"}


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
                "The report does not tell; make it anew from its timeline." if story["nodeclaims"] else "No nodes."
            )
    return "\n".join(lines)


def _as_text(text: str) -> str:
    """On one line, and without what begins something in Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))


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


def _sentences(claim: Data, cloud: str, prices_of: str | None) -> Iterator[str]:
    why = claim["why"]
    if why["replaces"]:
        yield f"It replaces a node that is disrupted: {why['replaces']}."
        if why["replaces"] == "Underutilized":
            yield (
                "Consolidation leaves only instance types that are cheaper than what is replaced; where one spot node "
                "replaces another, of those the 15 cheapest at most, or as many as minValues needs."
            )
    yield from _of_pools(why["pools"])
    yield from _of_offer(claim, cloud)
    yield from _of_price(claim, cloud, prices_of)
    for shortage in why["shortages"]:
        yield _of_shortage(shortage)
    price = why["price"]
    by_price_alone = (cloud, claim["capacity_type"]) != ("aws", "spot")
    if price and price["rank"] > 1 and not why["shortages"] and by_price_alone:
        yield "Why no cheaper one was launched is not recorded."


def _of_pools(pools: Sequence[Data]) -> Iterator[str]:
    taken = next((pool for pool in pools if pool["verdict"] == "taken"), None)
    if not pools:
        yield "Which NodePools there were is not recorded."
    for verdict, alike in itertools.groupby(pools, lambda pool: _verdict(pool, taken)):
        names = [f"{pool['name']}, weight {pool['weight']}" for pool in alike]
        yield f"{'NodePool' if len(names) == 1 else 'NodePools'} {'; '.join(names)}: {verdict}."


def _verdict(pool: Data, taken: Data | None) -> str:
    about = ", ".join(pool["about"])
    match pool["verdict"]:
        case "taken":
            return "taken"
        case "later" if taken and pool["weight"] == taken["weight"]:
            return f"as heavy, but asked after {taken['name']} by its name, so not asked"
        case "later":
            return "lighter, so not asked"
        case "static":
            return "it has a fixed number of nodes, so pods get none of it"
        case "going":
            return "it was being deleted"
        case "not ready":
            return "it was not ready"
        case "taint":
            return f"the pods do not tolerate {about}"
        case "requirements":
            return f"its nodes cannot have what the pods ask for: {about}"
        case "limit":
            return _limit(pool["limit"])
        case "short":
            return f"all that it could have launched for the pods was unavailable: {_named(pool['about'])}"
        case "not recorded":
            return (
                "its turn came first; what decides whether it may have the pods, as their tolerations, is not recorded"
            )
    return (
        "its turn came first, and why it was not taken is not known: its taints, requirements and limits, as they are "
        "recorded, do not say; topology, volumes, preferences and shortages are not judged"
    )


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {units.count(rest)} more" if rest > 0 else "")


def _limit(limit: Data) -> str:
    name = limit["resource"]

    def amount(size: float) -> str:
        return units.memory(size) if name == "memory" else f"{size:g}"

    unit = f" {_UNITS[name]}" if name in _UNITS else " of memory"
    at_once = ", some by nodes made at the same moment" if limit["at_once"] else ""
    least = "" if limit["used"] >= limit["limit"] else f", and a node needs {amount(limit['least'])} at least"
    return f"no room in its limit of {amount(limit['limit'])}{unit}: {amount(limit['used'])} taken{at_once}{least}"


def _of_offer(claim: Data, cloud: str) -> Iterator[str]:
    why = claim["why"]
    offered = why["offered"]
    if not offered:
        yield (
            "Which instance types it was offered as is not recorded: the timeline is of an older version, or its "
            "NodeClaim names none."
        )
        return
    kinds = " or ".join(offered["capacity_types"]) or "no capacity type"
    where = f" in {', '.join(offered['zones'])}" if offered["zones"] else ""
    many = units.count(offered["instance_types"])
    one = offered["instance_types"] == 1
    sentence = f"It could have been {many} instance {'type' if one else 'types'}, {kinds}{where}"
    if offered["offerings"] is not None:
        # Of several capacity types, AWS's controller asks for one.
        one_of = cloud == "aws" and claim["capacity_type"] and len(offered["capacity_types"]) > 1
        kind = f" {claim['capacity_type']}" if one_of else ""
        sentence += f": {units.count(offered['offerings'])}{kind} offerings by the facts"
        if offered["unavailable"] is not None:
            sentence += f", of which {units.count(offered['unavailable'])} were unavailable by the controller's metrics"
    yield f"{sentence}."
    if why["availability"] == "not published":
        yield "Which of them were unavailable is not known: Azure's controller publishes no such metric."
    elif why["availability"] == "not recorded":
        yield "Which of them were unavailable is not recorded: the controller's metrics were not asked by then."
    if cloud == "aws" and offered["instance_types"] > ASKED_OF_AWS:
        yield (
            f"AWS is asked for {ASKED_OF_AWS} of them at most: the cheapest that its controller's filters leave "
            "(without minValues, GPUs and bare metal are out where others do, and spot dearer than on demand)."
        )
    if left := list(_left_out(why)):
        yield f"NodePool and pods admit more by the facts: {'; '.join(left)}."
    if offered["min_values"]:
        least = ", ".join(f"{count} of {key}" for key, count in offered["min_values"].items())
        relaxed = "; Karpenter went below that" if offered["min_values_relaxed"] else ""
        yield f"minValues wants as many to choose from: {least}{relaxed}."


def _left_out(why: Data) -> Iterator[str]:
    left_out = why["offered"]["left_out"] or {}
    if small := left_out.get("too_small"):
        yield f"{units.count(small)} with fewer CPUs or less memory than the pods ask for"
    if beyond := left_out.get("beyond_limit"):
        yield f"{units.count(beyond)} with more CPUs than the NodePool's limit had room for"
    if unavailable := left_out.get("unavailable"):
        yield f"{units.count(unavailable)} that the controller's metrics said to be unavailable in every zone"
    if short := left_out.get("short"):
        yield f"{units.count(short)} that an interruption or a refused launch had made unavailable in every zone"
    if others := left_out.get("others"):
        causes = ["too small once the system has its share", "beyond a limit"]
        # The metrics are always older than the node.
        since = " since the metrics were asked" if why["availability"] == "recorded" else ""
        causes.append(f"unavailable{since}")
        if why["offered"]["instance_types"] >= _WRITTEN:
            causes.append(f"not among the {_WRITTEN} cheapest, which are as many as Karpenter writes")
        if why["replaces"] == "Underutilized":
            causes.append("not cheaper than what is replaced")
        why_not = f"{', '.join(causes[:-1])} or {causes[-1]}"
        yield f"{units.count(others)} left out for a reason that is not recorded: {why_not}"


def _of_price(claim: Data, cloud: str, prices_of: str | None) -> Iterator[str]:
    why, price = claim["why"], claim["why"]["price"]
    if why["no_price"]:
        yield f"Where it stands by price is not known: {why['no_price']}."
    if price:
        many = units.count(price["of"])
        own, least = price["usd_per_hour"], price["least_usd_per_hour"]
        more = f"{units.dollars(own)} an hour, {100 * (own / least - 1):.1f} % more than" if least else ""
        if price["rank"] == 1 and own <= least:
            yield f"It is the cheapest of {many} by price: {units.dollars(own)} an hour."
        elif price["rank"] == 1:
            yield f"Its instance type is the cheapest of {many}; in its zone it costs {more} in the cheapest one."
        else:
            rest = price["rank"] - 1 - len(price["cheaper"])
            cheaper = ", ".join(price["cheaper"]) + (f" and {units.count(rest)} more" if rest else "")
            yield (
                f"By price it is no. {price['rank']} of {many}: {more} {price['cheapest']} at {units.dollars(least)}. "
                f"Cheaper: {cheaper}."
            )
        if price["unpriced"]:
            yield f"Of {units.count(price['unpriced'])} others no price is known."
        if price.get("simulated"):
            yield "The prices of spot are simulated: a rule of the rehearsal's, and no market's."
        if prices_of:
            yield f"Dollars are at the prices of {prices_of}, which a rehearsed controller has."
        elif price["source"] == "controller":
            yield "The prices are the controller's, each in the cheapest zone of the region."
    if chooses := _CHOOSES.get((cloud, claim["capacity_type"] or "")):
        yield chooses


def _of_shortage(shortage: Data) -> str:
    names = ", ".join(shortage["instance_types"])
    if shortage["more"]:
        names += f" and {units.count(shortage['more'])} more"
    what = (
        f"{names} ({units.count(shortage['offerings'])} of the offerings)"
        if names
        else "none of what it was offered as"
    )
    match shortage["source"]:
        case "fault":
            return f"The playbook took out of capacity, {_when(shortage['t'])}: {what}."
        case "metrics":
            return f"Unavailable by the controller's metrics, asked {_when(shortage['t'])}: {what}."
        case "metrics, later":
            return (
                f"After it was made, by {_when(shortage['t'])}, the controller's metrics began to say that this is "
                f"unavailable: {what}. Its launch may have met the shortage."
            )
        case "interruption":
            return (
                f"Interrupted, {_when(shortage['t'])}: {names} on spot, which the controller takes for unavailable in "
                "that zone for three minutes."
            )
        case "own event":
            return f"The controller's event on it, {_when(shortage['t'])}: {shortage['message']}"
    return f"The controller's event on an earlier NodeClaim, {_when(shortage['t'])}: {shortage['message']}"


def _when(t: float) -> str:
    if t < 0:
        return f"{units.duration(-t)} before the story began"
    return f"{units.duration(t)} after the story began"
