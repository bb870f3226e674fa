"""Makes the changes of cases, for playbooks/whatif.yml to call: `python -m tests.truths.change FILE`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.acting.rehearsal_control import RehearsalControl, RehearsalError


def main() -> int:
    """Take the steps that a file lists."""
    cluster = Cluster()
    try:
        for step in json.loads(Path(sys.argv[1]).read_text()):
            take(cluster, step)
    except (ClusterError, RehearsalError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def take(cluster: Cluster, step: dict[str, Any]) -> None:
    """Take one step.

    Raises:
        ClusterError: The API server does not answer or refuses, or the object is not there.
        RehearsalError: The rehearsal refuses.
    """
    wanted = step["object"]
    match step["do"]:
        case "create":
            cluster.create(wanted)
        case "patch":
            cluster.change(wanted, step["patch"])
        case "delete":
            cluster.delete(wanted, (cluster.read(wanted) or {})["metadata"]["uid"])
        case "interrupt":
            claim = cluster.read(wanted) or {}
            control = RehearsalControl(os.environ["KARPSTACK_REHEARSAL_URL"])
            control.interruption("interruption", claim["status"]["providerID"])


if __name__ == "__main__":
    sys.exit(main())
