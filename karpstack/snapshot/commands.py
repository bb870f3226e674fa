"""What `karpstack snapshot` does: each function is one command, and returns its exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from karpstack.text import files
from karpstack.text.codes import Code, reported
from karpstack.text.findings import lines
from karpstack.text.shown import visible

from .anonymise import VARIABLE, anonymised, hash_key
from .applied import applied
from .cluster import ClusterError
from .cluster import take as read_cluster
from .conversion import convert as converted
from .hidden_changes import hidden
from .manifest_files import read as read_manifests
from .model import Snapshot
from .objects import objects
from .output import as_text, data, headline, summary
from .portability import Place
from .problems import SnapshotError, finding
from .reading import check_output, load, write
from .reference import schema as json_schema
from .release import check_release
from .stack_file import refusal
from .stack_file import stack_file as made_stack_file
from .trace_curve import as_csv, curve_of
from .unevictable import unevictable
from .unschedulable import unschedulable

_UNSEEN: Final = "not seen:"  # as karpstack/rehearsal/whatif/manifests.py reads it
_EXPORT: Final = "kubectl get pods,replicasets,deployments,statefulsets,daemonsets,jobs -A -o json"
Form = Literal["text", "json"]
_CODES: Final[Mapping[type[BaseException], Code]] = {
    ClusterError: Code.UNKNOWN,
    SnapshotError: Code.WRONG,
}


@reported(_CODES)
def take(output: Path, *, kubeconfig: Path | None = None, context: str | None = None, anonymise: bool = False) -> int:
    """Read a cluster and write its snapshot."""
    check_output(output, "--output")  # before a cluster is read for nothing
    return _write(output, read_cluster(kubeconfig, context), anonymise=anonymise)


@reported(_CODES)
def convert(sources: Sequence[Path], output: Path, *, anonymise: bool = False, known_only: bool = False) -> int:
    """Make a snapshot of files of other tools."""
    check_output(output, "--output")
    return _write(output, _with_workloads(converted(sources, known_only=known_only)), anonymise=anonymise)


@reported(_CODES)
def anonymize(file: Path, output: Path, *, known_only: bool = False) -> int:
    """Write a snapshot again, with hashes instead of names."""
    check_output(output, "--output")
    read = load(file, known_only=known_only)
    if output.exists() and output.samefile(file):
        why = f"--output {visible(output)}: is the snapshot itself, whose names would be lost; name another file"
        raise SnapshotError.of(finding("snapshot-output-exists", message=why))
    return _write(output, read.snapshot, anonymise=True)


@reported(_CODES)
def check(file: Path, *, cloud: str = "", region: str = "", known_only: bool = False, form: Form = "text") -> int:
    """Check a snapshot, and print what of it cannot be loaded."""
    read = load(file, known_only=known_only)
    loaded = objects(read.snapshot, {}, Place(cloud, region))
    notes = [*read.passed_over, *unschedulable(read.snapshot), *unevictable(read.snapshot), *loaded.notes]
    if form == "json":
        created = {"objects": len(loaded.objects), "workloads": len(loaded.workloads)}
        print(json.dumps({"snapshot": summary(read.snapshot), "created": created, "notes": notes}, indent=2))
        return Code.GOOD
    print(headline(read.snapshot))
    print(f"objects that a what-if would create: {len(loaded.objects)}, including workloads: {len(loaded.workloads)}")
    for sentence in notes:
        print(f"note: {visible(sentence)}")
    return Code.GOOD


@reported(_CODES)
def show(file: Path, *, known_only: bool = False, form: Form = "text") -> int:
    """Print what is in a snapshot."""
    read = load(file, known_only=known_only)
    if form == "json":
        print(json.dumps(data(read.snapshot, read.passed_over), indent=2))
    else:
        print(as_text(read.snapshot, read.passed_over))
    return Code.GOOD


@reported(_CODES)
def stack_file(
    file: Path,
    like: Path,
    output: Path,
    *,
    manifests: Path | None = None,
    instead_of: Path | None = None,
    unchecked: bool = False,
    known_only: bool = False,
    built: Mapping[str, Sequence[str]] = MappingProxyType({}),
    offered: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> int:
    """Write a stack file with what Karpenter decides by of a snapshot, or as it is after manifests.

    Args:
        built: Cloud -> releases of Karpenter that can be rehearsed.
        offered: Cloud -> those that can be, once their engines are built.
    """
    snapshot = cluster = load(file, known_only=known_only).snapshot
    notes: list[str] = []
    unseen: list[str] = []
    before = read_manifests(instead_of) if instead_of else None
    if before:
        snapshot, notes, unseen = applied(snapshot, before, is_base=True)
    releases = built.get(str(snapshot.cluster.cloud), ())
    if manifests:
        base = snapshot
        snapshot, notes, unseen = applied(base, read_manifests(manifests), before)
        check_release(base, snapshot, releases, offered.get(str(snapshot.cluster.cloud), ()))
    made = made_stack_file(snapshot, like, releases, cluster)
    unseen += made.unseen
    if manifests and base.node_pools:
        unseen = [*unseen, *hidden(base, snapshot, made_stack_file(base, like, releases, cluster), made)]
    if not unchecked and (why := refusal(made.text)):
        found = finding("snapshot-stack-file-refused", output)
        raise SnapshotError(f"{lines([found])}\n{why}", [found])
    _write_text(output, made.text)
    print(visible(f"{output} was written. Kubernetes version and node images are those of {like}"))
    told = [*(("note:", one) for one in (*notes, *made.notes)), *((_UNSEEN, one) for one in unseen)]
    for heading, sentence in told:
        print(heading, visible(" ".join(sentence.split())))  # on one line, whatever a name in it is
    return Code.GOOD


@reported(_CODES)
def curve(file: Path, output: Path) -> int:
    """Write a daily curve of replicas from a trace."""
    found = curve_of(file)
    _write_text(output, as_csv(found.factors))
    print(f"{visible(output)}: a curve for {', '.join(map(visible, found.factors))}")
    for name in found.left_out:
        print(f"left out: {visible(name)}, which had replicas and has 0 when the trace ends, as in its snapshot")
    return Code.GOOD


def schema() -> int:
    """Print the JSON schema of the format."""
    print(json.dumps(json_schema(), indent=2))
    return Code.GOOD


def _write_text(path: Path, text: str) -> None:
    try:
        files.check_output(path, "--output")
        files.write(path, text)
    except files.OutputError as error:
        raise SnapshotError.of(finding("snapshot-output-exists", message=str(error))) from error
    except OSError as error:
        raise SnapshotError.of(finding("snapshot-not-written", path, error=error.strerror)) from error


def _with_workloads(made: Snapshot) -> Snapshot:
    """The same, if there is anything in it to load."""
    if made.workloads:
        return made
    found = finding("snapshot-no-workload", command=_EXPORT)
    left_out = (f"left out: {one.what}: {one.count}; {one.why}" for one in made.left_out)
    raise SnapshotError("\n".join([lines([found]), *map(visible, (headline(made), *left_out))]), [found])


def _write(output: Path, snapshot: Snapshot, *, anonymise: bool) -> int:
    if anonymise:
        snapshot = anonymised(snapshot, hash_key(os.environ.get(VARIABLE)))
    try:
        write(snapshot, output)
    except OSError as error:
        raise SnapshotError.of(finding("snapshot-not-written", output, error=error.strerror)) from error
    print(f"{visible(output)}: {headline(snapshot)}")
    for one in snapshot.left_out:
        print(f"left out: {visible(one.what)}: {one.count}; {visible(one.why)}")
    return Code.GOOD
