"""`python -m tests.bench.snapshots`: how long a snapshot of 5,000 pods takes to be written, and to be loaded.

The pods are those of a cluster as its API server tells of them, with all that is left out; they come page by page from
a server on this machine. Not a test: nothing fails when a machine is slow.
"""

from __future__ import annotations

import copy
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from karpstack.snapshot.anonymise import anonymised
from karpstack.snapshot.cluster import COLLECTIONS, take
from karpstack.snapshot.objects import objects
from karpstack.snapshot.reading import load, write
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.snapshot import api

PODS = 5000
NODES = 400
PER_WORKLOAD = 10
PAGE = 500


def cluster() -> list[api.Item]:
    """Five hundred Deployments of ten pods each."""
    items: list[api.Item] = []
    for number in range(PODS // PER_WORKLOAD):
        *above, first, _, _ = copy.deepcopy(list(api.web()))
        text = json.dumps([*above, *([first] * PER_WORKLOAD)]).replace("payroll", f"web-{number}")
        made: list[Any] = json.loads(text)
        for place, pod in enumerate(made[len(above) :]):
            pod["metadata"]["name"] += f"-{place}"
            pod["spec"]["nodeName"] = f"ip-10-0-0-{(number * PER_WORKLOAD + place) % NODES}.ec2.internal"
            pod["spec"]["containers"][0]["env"] *= 20
        items += made
    items += map(api.node, range(NODES))
    items += map(api.claim, range(NODES))
    return items


def serve(server: FakeServer, items: list[api.Item]) -> int:
    """Put the lists where the API server has them; how many bytes they are."""
    size = 0
    for collection in COLLECTIONS:
        found = [one for one in items if one["kind"] == collection.kind]
        pages = [found[start : start + PAGE] for start in range(0, len(found), PAGE)]
        for number, page in enumerate(pages):
            metadata = {"continue": str(number + 1)} if number + 1 < len(pages) else {}
            before = f"&continue={number}" if number else ""
            text = json.dumps({"apiVersion": page[0]["apiVersion"], "metadata": metadata, "items": page})
            server.said[f"{collection.path}?limit={PAGE}{before}"] = 200, text
            size += len(text)
    return size


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as temporary, FakeServer() as server:
        kubeconfig, out = Path(temporary) / "kubeconfig", Path(temporary) / "out.json"
        size = serve(server, cluster())
        contexts = [{"name": "a", "context": {"cluster": "a", "user": "a"}}]
        clusters = [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}]
        kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": clusters,
                    "contexts": contexts,
                    "current-context": "a",
                    "users": [{"name": "a", "user": {}}],
                }
            )
        )
        started = time.monotonic()
        taken = take(kubeconfig)
        write(taken, out)
        written = time.monotonic()
        hidden = anonymised(taken, b"key")
        hashed = time.monotonic()
        made = objects(load(out).snapshot, {"app.kubernetes.io/instance": "whatif"})
        loaded = time.monotonic()
        print(f"{taken.pods} pods on {len(taken.nodes)} nodes, {size / 2**20:.0f} MiB of the API's JSON")
        print(f"read and written in {written - started:.1f} s, as {out.stat().st_size / 2**10:.0f} KiB")
        print(f"anonymised in {hashed - written:.1f} s ({len(hidden.workloads)} workloads)")
        print(f"loaded, as {len(made.objects)} objects, in {loaded - hashed:.1f} s")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        print(f"memory at most {peak / 2**20:.0f} MiB, the server's part included")
    return 0


if __name__ == "__main__":
    sys.exit(main())
