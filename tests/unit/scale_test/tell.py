"""Keeps a story of a timeline as a told one: `python -m tests.unit.scale_test.tell TIMELINE SCENARIO KIND`.

KIND is the kind of environment, eks for example. What no judgement needs is left out: other stories, what the metrics
told, nodes of the system, events on what is left out, and events that tell a change of an object's conditions, which
the object shows, or time and again why a node stays.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from karpstack.scale_test.recording.timeline import Line

TOLD = Path(__file__).with_name("told")

_OF_METRICS = ("CONTROLLER", "QUEUE", "PRICES", "UNAVAILABLE")
_LASTING = ("NodePool", "EC2NodeClass", "AKSNodeClass")
_OF_STAYING = ("DisruptionBlocked", "Unconsolidatable")


def main(timeline: Path, scenario: str, kind: str) -> int:
    """Write the story into `told`."""
    with timeline.open(encoding="utf-8") as file:
        kept = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in told(map(json.loads, file), scenario))
    target = TOLD / f"{kind}.{scenario}.timeline.jsonl.gz"
    target.write_bytes(gzip.compress(kept.encode(), mtime=0))
    print(f"{target}: {target.stat().st_size} bytes")
    return 0


def told(lines: Iterable[Line], scenario: str) -> Iterator[Line]:
    """The story's lines, after those that say what was there before."""
    before: dict[str, Line] = {}
    prices: list[Line] = []
    seen: set[str] = set()
    running = False
    for line in lines:
        found = line.get("object", {})
        uid = found.get("metadata", {}).get("uid", "")
        if line["type"] == "STORY" and line["scenario"] == scenario:
            running = True
            yield from (*before.values(), *prices)
            yield line
        elif line["type"] in ("START", "SYNCED"):
            yield line
        elif not running:
            if found and line["kind"] in _LASTING:
                before[uid] = line | {"type": "ADDED"}
                seen.add(uid)
                if line["type"] == "DELETED":
                    del before[uid]
            elif line["type"] == "PRICE":
                prices.append(line)
        elif line["type"] == "END":
            yield line
            return
        elif line["type"] in _OF_METRICS:
            continue
        elif line.get("kind") == "Event" and found:  # there is none where a gap is told
            about = found["involvedObject"]
            if (about.get("uid") in seen or about["kind"] == "Node") and not _repeats(found):
                yield line
        elif line.get("kind") != "Node" or "karpenter.sh/nodepool" in found["metadata"].get("labels", {}):
            seen.add(uid)
            yield line


def _repeats(event: dict[str, Any]) -> bool:
    if event.get("message", "").startswith("Status condition transitioned"):
        return True
    return event.get("reason") in _OF_STAYING and event["involvedObject"]["kind"] in ("Node", "NodeClaim")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
