"""What the recorder and the report take for a story of five thousand pods: `python -m tests.bench.numbers`.

Made-up watch data through the real follower and recorder, and a made-up timeline into a report. In a process of its
own, so that the memory is theirs.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.market.prices import Table
from karpstack.scale_test.recording.following import BrokenError, Follower, Resource
from karpstack.scale_test.recording.recorder import Recorder
from karpstack.scale_test.recording.timeline import Reader, Writer
from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import load
from tests import synthetic

PODS = 5000
_PAGE = 500
_ROOT = Path(__file__).resolve().parents[2]
_NOWHERE = "http://127.0.0.1:1"


def main() -> int:
    """Print the figures as JSON: MiB and seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = record(folder) | judge(folder)
    print(json.dumps(figures))
    return 0


def record(folder: Path) -> dict[str, float]:
    """Feed a recorder with a list and with four changes of each pod; the process's peak memory."""
    named: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": _NOWHERE}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
    answers = _answers()
    stopping = threading.Event()

    @contextmanager
    def fetch(watched: Resource, query: dict[str, str]) -> Iterator[Iterator[bytes]]:
        answer = next(answers, None)
        if answer is None:
            stopping.set()
            raise BrokenError("no more")
        yield answer

    with Writer(folder / "recorded.jsonl") as writer:
        table = Table(Facts.load("aws"), "us-east-1")
        recorder = Recorder(writer, (), kubeconfig, None, table)
        started = time.monotonic()
        Follower(Resource("Pod", "/api/v1/pods"), fetch, recorder, stopping).run()
    return {
        "recorder_mib": peak_mib(),
        "recorder_seconds": time.monotonic() - started,
    }


def peak_mib() -> float:
    """The most memory that this process has had."""
    status = Path("/proc/self/status")
    if status.is_file():  # on Linux getrusage counts what the parent had when it started us
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _answers() -> Iterator[Iterator[bytes]]:
    for first in range(0, PODS, _PAGE):
        items = [synthetic.pod(number, "pending") for number in range(first, first + _PAGE)]
        more = "more" if first + _PAGE < PODS else ""
        yield iter([json.dumps({"metadata": {"resourceVersion": "1", "continue": more}, "items": items}).encode()])
    yield (
        json.dumps({"type": type_, "object": synthetic.pod(number, stage, version=number + 2)}).encode()
        for type_, stage in (
            ("MODIFIED", "scheduled"),
            ("MODIFIED", "running"),
            ("MODIFIED", "leaving"),
            ("DELETED", "leaving"),
        )
        for number in range(PODS)
    )


def judge(folder: Path) -> dict[str, float]:
    """Make a report of a timeline; seconds from the file to report.json."""
    path = folder / "timeline.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in synthetic.timeline(PODS))
    scenario = next(found for found in load(_ROOT / "playbooks" / "scenarios") if found.name == synthetic.STORY)
    outputs = {"cloud": "aws", "region": "us-east-1", "karpenterVersion": "1"}
    started = time.monotonic()
    made = report.make([scenario], Reader(path).new_lines(), Stack("eks", outputs), facts=Facts.load("aws"))
    (folder / "report.json").write_text(json.dumps(made, indent=2))
    return {"report_seconds": time.monotonic() - started}


if __name__ == "__main__":
    sys.exit(main())
