"""Compares the answer of a what-if with what a case expects, and takes a case's part out of a timeline."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karpstack.text.shown import cut
from karpstack.whatif import commands as whatif

from .cases import Case

#: A cause that the answer does not know.
_UNKNOWN: Final = "unknown"
_LABEL: Final = "karpenter.sh/nodepool"
_DOLLARS: Final = 4  # digits
_WORDS: Final = 160  # characters of a cause
_REFUSED: Final = 300  # characters of why there is no answer
_NAMESPACED: Final = "Pod"

Line = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What came of a case.

    Attributes:
        case: The case.
        word: right, wrong or not decided.
        texts: How the answer differs, or why it does not decide.
    """

    case: Case
    word: str
    texts: list[str]


def verdict(case: Case, folder: Path) -> Verdict:
    """Judge a case by the timeline in its folder."""
    (folder / "whatif.json").unlink(missing_ok=True)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        whatif.report(folder, snapshot=folder / "snapshot.json")
    if not (folder / "whatif.json").is_file():
        return Verdict(case, "not decided", [said.getvalue().strip()])
    answer = json.loads((folder / "whatif.json").read_text())
    if answer["blastRadius"] is None:
        return Verdict(case, "not decided", [f"the change was refused: {cut(answer['refused'], _REFUSED)}"])
    wrong = differences(case, answer)
    if wrong and (why := undecided(case, answer)):
        return Verdict(case, "not decided", [*why, *wrong])
    return Verdict(case, "wrong" if wrong else "right", wrong)


def lines_of(case: Case, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of a timeline that are about a case, and those that are about none."""
    pools = {case.named(name) for name in case.pools}
    claims, nodes = set[str](), set[str]()
    for line in lines:
        found = line.get("object")
        if not isinstance(found, dict):
            yield line
            continue
        metadata = found.get("metadata") or {}
        name, of = str(metadata.get("name")), (metadata.get("labels") or {}).get(_LABEL)
        match line.get("kind"):
            case "NodePool":
                ours = name in pools
            case "NodeClaim":
                ours = of in pools or name in claims
                claims |= {name} if ours else set()
            case "Node":
                ours = of in pools or name in nodes
                nodes |= {name} if ours else set()
            case "Pod":
                ours = metadata.get("namespace") == case.name
            case "Event":
                about = found.get("involvedObject") or {}
                known: Mapping[str, set[str]] = {"NodePool": pools, "NodeClaim": claims, "Node": nodes}
                if about.get("kind") == _NAMESPACED:
                    ours = about.get("namespace") == case.name
                else:
                    ours = about.get("name") in known.get(str(about.get("kind")), {about.get("name")})
            case _:
                ours = True
        if ours:
            yield line


def differences(case: Case, answer: Mapping[str, Any]) -> list[str]:
    """Return how an answer differs from what the case expects, a sentence each."""
    return [text for check in _CHECKS for text in check(case, answer)]


def undecided(case: Case, answer: Mapping[str, Any]) -> list[str]:
    """Return why an answer does not decide the case, a sentence each."""
    found = []
    known = {one["nodeClaim"] for one in (*_replaced(answer), *answer["remaining"])}
    if missing := [name for name in case.nodes if case.named(name) not in known]:
        found.append(f"not there when the change began: {', '.join(missing)}")
    expected = len(case.nodes) + sum(pool.replicas or 0 for pool in case.pools.values())
    if not missing and answer["before"]["nodes"] != expected:
        found.append(f"{answer['before']['nodes']} nodes when the change began, and not {expected}")
    found += [f"{one['phase']}: {one['gaveUp']}" for one in answer["moments"] if one.get("gaveUp")]
    unsaid = [
        name for name in case.answer.stays if case.answer.stays[name] and _whys(case, answer).get(name) == _UNKNOWN
    ]
    if unsaid:
        found.append(f"no cause is said for {', '.join(unsaid)}")
    return found


def _replaced(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((answer["blastRadius"] or {}).get("replaced") or ())


def _short(case: Case, claim: str) -> str:
    return claim.removeprefix(case.named(""))


def _whys(case: Case, answer: Mapping[str, Any]) -> dict[str, str]:
    return {_short(case, one["nodeClaim"]): one["why"] for one in answer["remaining"]}


def _reason(one: Mapping[str, Any]) -> str:
    return " ".join(str(one[key]) for key in ("reason", "details") if one[key])


def _went(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    replaced = {_short(case, one["nodeClaim"]): one for one in _replaced(answer)}
    gone = {name: one for name, one in replaced.items() if one["gone"] is not None}
    if case.answer.counts is None:
        for title, expected, seen in (
            ("gone", case.answer.gone, gone),
            ("leaving", case.answer.leaving, {name: replaced[name] for name in replaced.keys() - gone.keys()}),
        ):
            if expected.keys() != seen.keys():
                yield f"{title}: {_listed(seen)}, expected {_listed(expected)}"
            for name in expected.keys() & seen.keys():
                if not _reason(seen[name]).startswith(expected[name]) or (seen[name]["reason"] and not expected[name]):
                    yield f"{title} {name}: {_reason(seen[name]) or 'no reason'}, expected {expected[name] or 'none'}"
        return
    counted = Counter(_whys(case, answer).values()) | Counter(gone=len(gone), leaving=len(replaced) - len(gone))
    for what, count in case.answer.counts.items():
        if counted[what] != count:
            yield f"{what}: {counted[what]}, expected {count} ({_listed(counted)})"
    for name, one in gone.items():
        if case.answer.reason and one["reason"] != case.answer.reason:
            yield f"gone {name}: {_reason(one) or 'no reason'}, expected {case.answer.reason}"


def _stays(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    whys = _whys(case, answer)
    words = {_short(case, one["nodeClaim"]): one["details"] for one in answer["remaining"]}
    for name, causes in case.answer.stays.items():
        if name in whys and causes and whys[name] not in causes:
            said, wanted = cut(words[name] or "", _WORDS), " or ".join(map(repr, causes))
            yield f"{name} stays for {whys[name]!r} ({said}), expected {wanted}"
    drifted = {_short(case, one["nodeClaim"]) for one in answer["remaining"] if one["drifted"]}
    if case.answer.drifted is not None and drifted != set(case.answer.drifted):
        yield f"drifted and stays: {_listed(drifted)}, expected {_listed(case.answer.drifted)}"


def _course(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    radius, expected = answer["blastRadius"] or {}, case.answer
    order = [_short(case, one["nodeClaim"]) for one in _replaced(answer)]
    if expected.order and [name for name in order if name in expected.order] != expected.order:
        yield f"order: {_listed(order)}, expected {_listed(expected.order)}"
    if expected.at_most is not None and radius["disruptedAtOnce"] > expected.at_most:
        yield f"{radius['disruptedAtOnce']} nodes on their way out at once, expected at most {expected.at_most}"
    if expected.came is not None:
        came = [_bought(case, one) for one in radius["created"] if one["gone"] is None]
        if not _same(came, expected.came):
            yield f"came: {_listed(came)}, expected {_listed(expected.came)}"
    for name, words in expected.held_by.items():
        held = [one for node in _replaced(answer) if _short(case, node["nodeClaim"]) == name for one in node["delays"]]
        named = {text.rpartition("/")[2] for one in held for text in (*one["podDisruptionBudgets"], *one["selecting"])}
        if not set(words) <= named:
            yield f"{name} is held by {_listed(named)}, expected {_listed(words)}"


def _bought(case: Case, node: Mapping[str, Any]) -> str:
    parts = (_short(case, node["pool"]), *(node[key] or "?" for key in ("instanceType", "zone", "capacityType")))
    return " ".join(parts)


def _same(seen: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether each node is one that is expected; where `*` stands, anything may be."""
    left = list(seen)
    for pattern in sorted(expected, key=lambda one: (one.count("*"), -len(one))):
        parts = pattern.split()
        fits = (one for one in left if all(part in ("*", word) for part, word in zip(parts, one.split(), strict=False)))
        if (found := next(fits, None)) is None:
            return False
        left.remove(found)
    return not left


def _pods(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    radius, expected = answer["blastRadius"] or {}, case.answer
    for what, seen, wanted in (
        ("pods moved", radius["podsMoved"], expected.moved),
        ("pods preempted", radius["podsPreempted"], expected.preempted),
    ):
        if wanted is not None and seen != wanted:
            yield f"{what}: {seen}, expected {wanted}"
    without_node = {one["workload"]: one["atTheEnd"] for one in radius["workloadsWithoutNode"] if one["atTheEnd"]}
    if without_node != expected.without_node:
        yield f"without a node at the end: {_listed(without_node)}, expected {_listed(expected.without_node)}"
    workloads = sorted(one["workload"] for one in radius.get("notSchedulableAgain") or ())
    if expected.without_node_pool is not None and workloads != sorted(expected.without_node_pool):
        yield f"without a NodePool: {_listed(workloads)}, expected {_listed(expected.without_node_pool)}"


def _budgets(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    weeks = {one["pool"]: {of["reason"]: of["now"] for of in one["reasons"]} for one in answer["week"]["pools"]}
    for pool, reasons in case.answer.allowed.items():
        seen = weeks.get(case.named(pool), {})
        for reason, count in reasons.items():
            if seen.get(reason) != count:
                yield f"NodePool {pool} allows {seen.get(reason)} for {reason}, expected {count}"


def _dollars(case: Case, answer: Mapping[str, Any]) -> Iterator[str]:
    expected = case.answer.dollars
    if expected is None:
        return
    before, after = answer["before"]["usdPerHour"], (answer["after"] or {}).get("usdPerHour")
    seen = f"{before} to {after} dollars an hour"
    if before is None or after is None:
        yield f"{seen}, expected {expected}"
    elif isinstance(expected, tuple):
        if tuple(round(one, _DOLLARS) for one in (before, after)) != expected:
            yield f"{seen}, expected {expected[0]} to {expected[1]}"
    elif (after > before) != (expected == "up") or after == before:
        yield f"{seen}, expected to go {expected}"


def _listed(names: Iterable[object]) -> str:
    if isinstance(names, Mapping):
        return (
            ", ".join(f"{key} {value}" if isinstance(value, int) else str(key) for key, value in names.items())
            or "none"
        )
    return ", ".join(sorted(map(str, names)) if isinstance(names, set) else map(str, names)) or "none"


_CHECKS: Final[tuple[Callable[[Case, Mapping[str, Any]], Iterator[str]], ...]] = (
    _went,
    _stays,
    _course,
    _pods,
    _budgets,
    _dollars,
)
