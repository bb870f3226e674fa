"""The action that takes a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from karpstack.snapshot.anonymise import anonymised, hash_key
from karpstack.snapshot.cluster import ClusterError, take
from karpstack.snapshot.conversion import convert
from karpstack.snapshot.output import headline
from karpstack.snapshot.reading import SnapshotError, check_output, write
from karpstack.snapshot.unschedulable import unschedulable

from . import FailedError, Result

ERRORS: Final = (ClusterError, SnapshotError)


def snapshot(
    out: Path,
    exports: list[Path],
    anonymise: bool,
    kubeconfig: Path | None = None,
    context: str | None = None,
    key: str | None = None,
    *,
    check: bool,
) -> Result:
    """Take a snapshot of a cluster, or convert exports, and write the file, but not in check mode."""
    try:
        check_output(out, "out:")
        taken = convert(exports) if exports else take(kubeconfig, context)
        if anonymise:
            taken = anonymised(taken, hash_key(key))
        if not check:
            write(taken, out)
    except OSError as error:
        raise FailedError(f"out: {out}: cannot be written ({error.strerror}); give another file") from error
    return {
        "changed": True,
        "summary": headline(taken),
        "left_out": [one.model_dump(mode="json") for one in taken.left_out],
        "notes": unschedulable(taken),
    }
