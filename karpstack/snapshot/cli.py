"""The command line: `karpstack snapshot take|convert|check|show|anonymize|stack-file|curve|schema`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from karpstack.text import files
from karpstack.text.json_file import FileError
from karpstack.text.shown import visible

from .anonymise import VARIABLE, anonymised, hash_key
from .cluster import ClusterError, take
from .conversion import convert
from .model import Snapshot
from .objects import objects
from .portability import Place
from .reading import Read, SnapshotError, check_output, load, write
from .reference import schema
from .shown import headline, told
from .stack_file import refusal, stack_file
from .trace_curve import as_csv, curve_of
from .unevictable import unevictable
from .unschedulable import unschedulable

REFUSED: Final = 2
_WRITING: Final = ("take", "convert", "anonymize")
_EXPORT: Final = "kubectl get pods,replicasets,deployments,statefulsets,daemonsets,jobs -A -o json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say.

    Returns:
        0; 2 where a file or the cluster cannot be read or holds no workload, or the snapshot not be written.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.command in _WRITING:
            check_output(given.output, "--output")  # before a cluster is read for nothing
        _run(given)
    except (ClusterError, FileError, SnapshotError) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return REFUSED
    return 0


def _run(given: argparse.Namespace) -> None:
    match given.command:
        case "schema":
            print(json.dumps(schema(), indent=2))
        case "show":
            read = load(given.file, known_only=given.known_only)
            print(told(read.snapshot, read.passed_over))
        case "check":
            read = load(given.file, known_only=given.known_only)
            _check(read, Place(given.cloud, given.region))
        case "stack-file":
            _stack_file(given)
        case "curve":
            found = curve_of(given.file)
            _write_text(given.output, as_csv(found))
            print(f"{visible(given.output)}: a curve for {', '.join(map(visible, found))}")
        case "anonymize":
            _write(given, load(given.file, known_only=given.known_only).snapshot)
        case "convert":
            _write(given, _with_workloads(convert(given.files, known_only=given.known_only)))
        case "take":
            _write(given, take(given.kubeconfig, given.context))


def _check(read: Read, place: Place) -> None:
    print(headline(read.snapshot))
    loaded = objects(read.snapshot, {}, place)
    print(f"objects that would be made: {len(loaded.objects)}, of them workloads: {len(loaded.workloads)}")
    for sentence in (*read.passed_over, *unschedulable(read.snapshot), *unevictable(read.snapshot), *loaded.notes):
        print(f"note: {visible(sentence)}")


def _stack_file(given: argparse.Namespace) -> None:
    made = stack_file(load(given.file, known_only=given.known_only).snapshot, given.like)
    if not given.unchecked and (why := refusal(made.text)):
        raise SnapshotError(
            f"{given.output}: is not written, for the program would refuse it; write it with --unchecked, and mend "
            f"what is said here:\n{why}"
        )
    _write_text(given.output, made.text)
    print(f"{visible(given.output)}: node classes have the images, and all has the version, of {given.like}")
    for sentence in made.notes:
        print(f"note: {visible(sentence)}")


def _write_text(path: Path, text: str) -> None:
    try:
        files.check_output(path, "--output")
        files.write(path, text)
    except files.OutputError as error:
        raise SnapshotError(str(error)) from error
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be written ({error.strerror}); give another") from error


def _with_workloads(made: Snapshot) -> Snapshot:
    """The same, if there is anything in it to load."""
    if made.workloads:
        return made
    found = [headline(made), *(f"left out: {one.what}: {one.count}; {one.why}" for one in made.left_out)]
    raise SnapshotError(
        "the files hold no workload, so there would be nothing to load, and no snapshot is written; add an export of "
        f"pods, or of their controllers: {_EXPORT}\n" + "\n".join(map(visible, found))
    )


def _write(given: argparse.Namespace, snapshot: Snapshot) -> None:
    if given.command == "anonymize" or given.anonymise:
        snapshot = anonymised(snapshot, hash_key(os.environ.get(VARIABLE)))
    try:
        write(snapshot, given.output)
    except OSError as error:
        raise SnapshotError(f"{given.output}: cannot be written ({error.strerror}); give another file") from error
    print(f"{visible(given.output)}: {headline(snapshot)}")
    for one in snapshot.left_out:
        print(f"left out: {visible(one.what)}: {one.count}; {visible(one.why)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack snapshot",
        description="A cluster as a file: what scheduling and disruption of its pods depend on, and nothing else of "
        "it. Exit code 2: something could not be read or written, and nothing was changed.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    reading = commands.add_parser("take", help="read the cluster of a kubeconfig, by lists alone, and write a snapshot")
    reading.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig (default: KUBECONFIG's)")
    reading.add_argument("--context", metavar="NAME", help="its context (default: the current one)")
    converting = commands.add_parser(
        "convert", help="make a snapshot of `kubectl get -o json`, of kubereplay's file or of a trace of SimKube's"
    )
    converting.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files, or folders of kubectl's")
    hashing = commands.add_parser("anonymize", help="write a snapshot with hashes instead of names")
    checking = commands.add_parser("check", help="say whether a file is a snapshot, and what of it will not go")
    checking.add_argument("--cloud", default="", choices=["", "aws", "azure"], help="where it is to be loaded")
    checking.add_argument("--region", default="", help="the region there")
    stacking = commands.add_parser(
        "stack-file", help="write a stack file with its NodePools and node classes, the base of a what-if"
    )
    stacking.add_argument("--like", type=Path, required=True, metavar="FILE", help="stack file that all else is from")
    stacking.add_argument("--output", type=Path, required=True, metavar="FILE", help="the stack file")
    stacking.add_argument(
        "--unchecked", action="store_true", help="write it also if the program would refuse it, to be mended by hand"
    )
    curving = commands.add_parser(
        "curve", help="make a daily curve of replicas of a trace of kubereplay's or SimKube's, for `whatif --curve`"
    )
    curving.add_argument("file", type=Path, metavar="FILE", help="the trace")
    curving.add_argument("--output", type=Path, required=True, metavar="FILE", help="the curve, as CSV")
    showing = commands.add_parser("show", help="say what is in a snapshot")
    commands.add_parser("schema", help="print the JSON schema of the format")
    for command in (hashing, checking, showing, stacking):
        command.add_argument("file", type=Path, metavar="FILE", help="the snapshot")
    for command in (converting, hashing, checking, showing, stacking):
        command.add_argument(
            "--known-only", action="store_true", help="pass over what a snapshot has that is not known here"
        )
    for command in (reading, converting, hashing):
        command.add_argument(
            "--output", type=Path, required=True, metavar="FILE", help="the snapshot, compressed if it ends in .gz"
        )
    for command in (reading, converting):
        command.add_argument(
            "--anonymise",
            action="store_true",
            help=f"hashes instead of names, with the key in {VARIABLE} (default: one that nobody knows afterwards)",
        )
    return parser
