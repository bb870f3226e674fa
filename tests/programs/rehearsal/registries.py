"""A real registry for tests: the module github.com/distribution/distribution, built once into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karpstack.rehearsal.engines import builder, cache_folder
from karpstack.text.files import make_ours

_SOURCE = Path(__file__).parent / "registry"
#: A login, and its line in a file of passwords.
USER, SECRET = "user", "secret"
_PASSWORDS = "user:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"


def program() -> Path:
    """The registry's program; the first call builds it, in about a minute."""
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.iterdir()):
        digest.update(path.read_bytes())
    folder = cache_folder() / "tests"
    found = folder / f"registry-{digest.hexdigest()[:16]}"
    make_ours(folder, 0o700)
    with builder._lock(folder / "registry.lock"):
        if not found.exists():
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                go = builder.Go.find()
                own = {"GOMODCACHE": "modules", "GOCACHE": "builds", "GOPATH": "go"}
                environment = go.environment | {name: f"{temporary}/{value}" for name, value in own.items()}
                # What nothing debugs or measures is compiled in half the time.
                flags = ["-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w"]
                command = [go.program, "build", *flags, "-o", f"{temporary}/registry", "."]
                subprocess.run(command, cwd=_SOURCE, env=environment, check=True, capture_output=True)
                shutil.move(f"{temporary}/registry", found)
    return found


@contextmanager
def registry(binary: Path, folder: Path, *, login: bool = False, certificate: Path | None = None) -> Iterator[str]:
    """Run a registry on loopback.

    Args:
        binary: As of `program`.
        folder: Where it keeps everything, `storage` among it.
        login: Whether it asks for a login.
        certificate: Its certificate and key, for TLS.

    Yields:
        Its host and port.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    lines = [
        "version: 0.1",
        "log: {level: error, accesslog: {disabled: true}}",
        f"storage: {{filesystem: {{rootdirectory: {folder / 'storage'}}}}}",
        "http:",
        f"  addr: {address}",
    ]
    if certificate:
        lines.append(f"  tls: {{certificate: {certificate}, key: {certificate}}}")
    if login:
        (folder / "passwords").write_text(_PASSWORDS)
        lines.append(f"auth: {{htpasswd: {{realm: test, path: {folder / 'passwords'}}}}}")
    (folder / "registry.yml").write_text("\n".join(lines))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    process = subprocess.Popen(
        [binary, "serve", folder / "registry.yml"],
        env={**environment, "OTEL_TRACES_EXPORTER": "none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()
