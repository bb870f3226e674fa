"""The language host with policy packs, asked as the engine asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from karpstack.rehearsal.host.processes import ends

ROOT = Path(__file__).resolve().parents[3]
# What a pack's process is: where it is, what it was given, what it sees, and how it ends.
_PACK = """
import os, sys
import helper
from pathlib import Path
print(Path.cwd().name, sys.argv[0], Path(sys.argv[-1]).name, helper.NAME, os.environ["GIVEN"], __name__)
print("spoken by a pack", file=sys.stderr)
Path("pid").write_text(str(os.getpid()))
input_ = sys.stdin.read()
assert not input_
if Path("waits").exists():
    import time
    time.sleep(60)
raise SystemExit(3)
"""


@contextmanager
def language_host() -> Iterator[tuple[psutil.Process, Any]]:
    """A host as the engine starts it, and what it can be asked."""
    command = [sys.executable, "-m", "karpstack.rehearsal.attachment.language_host", "127.0.0.1:1"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, process_group=0)
    with started as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield psutil.Process(process.pid), language_pb2_grpc.LanguageRuntimeStub(channel)
        finally:
            process.kill()


@pytest.fixture
def host() -> Iterator[tuple[psutil.Process, Any]]:
    with language_host() as found:
        yield found


def pack(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    (made / "__main__.py").write_text(_PACK)
    (made / "helper.py").write_text(f"NAME = 'of {name}'")
    return made


def run(asked: Any, folder: Path) -> Any:
    info = language_pb2.ProgramInfo(root_directory=str(folder), program_directory=str(folder))
    request = language_pb2.RunPluginRequest(args=["127.0.0.1:1"], env=["GIVEN=a value=b"], info=info)
    return asked.RunPlugin(request)


def told(answers: Any) -> tuple[str, str, int]:
    parts = list(answers)
    stdout, stderr = (b"".join(getattr(part, name) for part in parts).decode() for name in ("stdout", "stderr"))
    return stdout, stderr, parts[-1].exitcode


def test_each_pack_has_a_process_of_its_own(host: tuple[psutil.Process, Any], tmp_path: Path) -> None:
    process, asked = host
    pids = {process.pid}
    # The first one has the process that waited for it, the second a new one: nobody may see which.
    for name in ("first", "second"):
        folder = pack(tmp_path, name)
        stdout, stderr, code = told(run(asked, folder))
        assert stdout.split() == [name, str(folder), name, "of", name, "a", "value=b", "__main__"]
        assert "spoken by a pack" in stderr
        assert code == 3
        pids.add(int((folder / "pid").read_text()))
    assert len(pids) == 3


def test_a_package_is_run_as_a_program(host: tuple[psutil.Process, Any], tmp_path: Path) -> None:
    _, asked = host
    (tmp_path / "__main__.py").write_text("import sys; print(*sys.argv[1:], __name__)")
    info = language_pb2.ProgramInfo(root_directory=str(tmp_path), program_directory=str(tmp_path))
    request = language_pb2.RunPluginRequest(kind="resource", args=["127.0.0.1:1"], info=info)
    assert told(asked.RunPlugin(request)) == ("127.0.0.1:1 __main__\n", "", 0)


@pytest.mark.parametrize("others", [0, 1])
def test_a_pack_ends_when_the_engine_hangs_up(host: tuple[psutil.Process, Any], tmp_path: Path, others: int) -> None:
    _, asked = host
    for number in range(others):
        told(run(asked, pack(tmp_path, f"other-{number}")))
    folder = pack(tmp_path, "waiting")
    (folder / "waits").touch()
    answers = run(asked, folder)
    next(answers)
    running = psutil.Process(until(folder / "pid"))
    answers.cancel()
    assert ends(running, 20)


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_host_without_packs(host: tuple[psutil.Process, Any], ended_by: signal.Signals) -> None:
    process, _ = host
    (waiting,) = process.children()
    process.send_signal(ended_by)
    assert ends(waiting, 20)


def test_an_interrupt_of_the_group_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    with language_host() as (process, _):
        (waiting,) = process.children()
        os.killpg(process.pid, signal.SIGINT)
        assert ends(waiting, 20)
    assert "Traceback" not in capfd.readouterr().err


def until(file: Path) -> int:
    """The number in a file, once it is written."""
    deadline = time.monotonic() + 20
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())
