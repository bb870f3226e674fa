"""What preflight finds in existing clusters of either cloud: rows of preflight_existing.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.preflight.aws import cluster as eks
from karpstack.preflight.azure import cluster as aks
from karpstack.preflight.finding import Finding
from tests.unit.found import AKS_WORKLOADS, EKS_WORKLOADS, let_run
from tests.unit.preflight import test_preflight_existing_aws as aws
from tests.unit.preflight import test_preflight_existing_azure as azure
from tests.unit.rehearsal.test_aws_described import cluster as described_cluster
from tests.unit.rehearsal.test_azure_described import Subscriptions

ROWS = yaml.safe_load(Path(__file__).with_name("preflight_existing.yaml").read_text(encoding="utf-8"))


@contextmanager
def found(row: dict[str, Any], folder: Path, patch: pytest.MonkeyPatch) -> Iterator[list[Finding]]:
    """The findings of a row."""
    described, runs, changes = {"set": row.get("set", {})}, row.get("runs", {}), row.get("changes", {})
    if row["cloud"] == "aws":
        let_run(patch, replace(EKS_WORKLOADS, **runs))
        with described_cluster(folder, described) as world:
            yield list(eks.existing(aws.looked_at(world, **changes)))
        return
    let_run(patch, replace(AKS_WORKLOADS, **runs))
    subscriptions = Subscriptions(folder)
    changes = {key: value.replace("<vnet>", azure.VNET) for key, value in changes.items()}
    seen = azure.looked_at(subscriptions(described), **changes, **(azure.SELF_HOSTED if "self_hosted" in row else {}))
    if "proxy" in row:
        assert seen.cluster_response
        seen.cluster_response["properties"]["httpProxyConfig"] = {"httpProxy": "http://proxy:3128/", **row["proxy"]}
    yield list(aks.existing(seen))
    subscriptions.made[0].azure.stop()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_finding_has_its_code_its_words_and_its_call(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with found(row, tmp_path, monkeypatch) as told:
        assert {one.code for one in told} == row["finds"].keys()
        for one in told:
            severity, *parts = row["finds"][one.code]
            assert one.severity == severity
            assert all(part in f"{one.what} {one.consequence} {one.fix}" for part in parts), one
            assert one.fix
            assert one.consequence
        assert {one.told_by for one in told} == set(row.get("calls", {one.told_by for one in told}))
