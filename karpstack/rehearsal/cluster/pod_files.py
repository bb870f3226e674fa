"""The files of a service account at the path where a pod has them, for one process and nobody else.

Some programs ask for nothing else (client-go's InClusterConfig), so the process gets a private mount namespace in
which /var/run is a folder of ours. The machine's own file system is not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

_WHERE = Path("secrets/kubernetes.io/serviceaccount")
_MOUNT = 'mount --bind "$0" /var/run && exec "$@"'
_UNSHARE = (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount"))
_TIMEOUT = 10.0


class PrivateMountError(Exception):
    """This machine allows no private mount namespace; the text says why and the fix."""


def write(folder: Path, token: str, authority: bytes, namespace: str) -> None:
    """Write the files.

    Args:
        folder: What becomes /var/run; it is made.
        authority: Certificate authority of the API server, PEM.
    """
    files = folder / _WHERE
    files.mkdir(parents=True, mode=0o700)
    for name, content in (("token", token.encode()), ("ca.crt", authority), ("namespace", namespace.encode())):
        (files / name).touch(mode=0o600)
        (files / name).write_bytes(content)


def command(folder: Path, program: Sequence[str]) -> list[str]:
    """The command that runs a program with `folder` as its /var/run.

    The process keeps its pid: nothing stands between it and whoever starts it.

    Raises:
        PrivateMountError: The machine does not allow it.
    """
    return [*_unshare(), "sh", "-c", _MOUNT, os.fspath(folder), *program]


@cache
def _unshare() -> tuple[str, ...]:
    """The first way to a private mount namespace that works here: as root, or as root of a user namespace."""
    if not shutil.which("unshare"):
        raise PrivateMountError(
            "the controller reads its service account's files below /var/run/secrets, which a process can be given "
            "privately on Linux only, with `unshare` (util-linux), and there is no `unshare` on PATH; rehearse this "
            "stack on Linux"
        )
    reasons = []
    for way in _UNSHARE:
        with TemporaryDirectory() as folder:
            tried = subprocess.run(
                [*way, "sh", "-c", _MOUNT, folder, "true"],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        if tried.returncode == 0:
            return way
        reasons.append(f"`{' '.join(way)}`: {tried.stderr.strip() or f'exit code {tried.returncode}'}")
    raise PrivateMountError(
        "the controller reads its service account's files below /var/run/secrets, and this machine allows no private "
        f"mount namespace in which to put them ({'; '.join(reasons)}); run as root with CAP_SYS_ADMIN, or allow user "
        "namespaces (sysctl kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, "
        "where there are such)"
    )
