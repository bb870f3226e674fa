"""A process that sees a service account's files where a pod has them, and a machine that sees none of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from karpstack.rehearsal.cluster import pod_files

WHERE = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    pod_files._unshare.cache_clear()
    yield
    pod_files._unshare.cache_clear()


def test_the_process_alone_sees_the_files(tmp_path: Path) -> None:
    before = WHERE.exists()
    pod_files.write(tmp_path / "run", "token of the test", b"authority", "kube-system")
    try:
        command = pod_files.command(tmp_path / "run", ["cat", *(str(WHERE / name) for name in ("token", "ca.crt"))])
    except pod_files.PrivateMountError as error:
        pytest.skip(f"this machine cannot: {error}")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "token of the testauthority"
    assert WHERE.exists() == before


def test_the_process_is_the_one_that_was_started(tmp_path: Path) -> None:
    pod_files.write(tmp_path / "run", "t", b"a", "n")
    try:
        command = pod_files.command(tmp_path / "run", ["sh", "-c", "echo $$"])
    except pod_files.PrivateMountError as error:
        pytest.skip(f"this machine cannot: {error}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert int(process.communicate()[0]) == process.pid


def test_the_files_are_their_owners_alone(tmp_path: Path) -> None:
    pod_files.write(tmp_path / "run", "t", b"a", "n")
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert file.stat().st_mode & 0o077 == 0


def test_a_machine_that_forbids_it_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text(
        "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n"
    )
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pod_files.PrivateMountError, match=r"Operation not permitted.*run as root.*user namespaces"):
        pod_files.command(tmp_path, ["true"])


def test_a_machine_without_unshare_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pod_files.PrivateMountError, match="Linux"):
        pod_files.command(tmp_path, ["true"])
