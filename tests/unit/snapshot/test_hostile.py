"""Whatever somebody writes into a file: it is read, or refused in sentences, and what is read can be used."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from karpstack.snapshot.anonymise import anonymised
from karpstack.snapshot.examples import made
from karpstack.snapshot.from_api import snapshot_of
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.objects import objects
from karpstack.snapshot.output import as_text
from karpstack.snapshot.portability import Place
from karpstack.snapshot.reading import SnapshotError, as_data, checked
from karpstack.text.shown import visible
from tests.mutations import mutations, taken
from tests.unit.snapshot import api

EXAMPLE = as_data(made(20))
CLUSTER = api.cluster()


def used(snapshot: Snapshot) -> None:
    """All that is done with a snapshot."""
    assert checked(as_data(snapshot)).snapshot == snapshot
    hidden = anonymised(snapshot, b"key")
    for one in (snapshot, hidden):
        objects(one, {"app.kubernetes.io/instance": "whatif"}, Place("azure", "westeurope"))
        text = as_text(one)
        assert visible(text) == text


@settings(max_examples=20, deadline=None, derandomize=True)
@given(mutations(EXAMPLE))
def test_no_snapshot_ends_in_a_traceback(data: Any) -> None:
    read = taken(lambda: checked(data), SnapshotError)
    if read is None:
        read = taken(lambda: checked(data, known_only=True), SnapshotError)
    if read is not None:
        used(read.snapshot)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(mutations(CLUSTER))
def test_no_cluster_ends_in_a_traceback(data: Any) -> None:
    items = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    found = taken(lambda: snapshot_of(items, datetime(2026, 11, 22, tzinfo=UTC), "exports"), SnapshotError)
    if found is not None:
        assert api.CANARY not in json.dumps(as_data(found))
        used(found)


@pytest.mark.parametrize("key", ["namespace", "name", "labels", "annotations", "ownerReferences"])
def test_no_empty_metadata_ends_in_a_traceback(key: str) -> None:
    first = {item["kind"]: item for item in reversed(CLUSTER)}
    empty: list[Any] = [None, "", 0, False, [], {}, ...]
    for value in empty:
        items = copy.deepcopy([*CLUSTER, *first.values()])
        for item in items[len(CLUSTER) :]:
            item["metadata"].pop(key, None)
            if value is not ...:
                item["metadata"][key] = value
        assert snapshot_of(items, datetime(2026, 11, 22, tzinfo=UTC), "exports").workloads
