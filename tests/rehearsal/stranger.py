"""Asks addresses as somebody else: `python stranger.py [UID]` reads probes as JSON and writes what became of each.

A program of its own, because a process that has become another user cannot become root again. What a probe is, and
what an outcome looks like: `listening.Probe`.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import grpc

_SECONDS = 5.0


def become(uid: int) -> None:
    """Be another user for good, without a way back."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def ask(probe: dict[str, Any]) -> str:
    """The outcome of one probe."""
    try:
        return {"http": _http, "https": _http, "grpc": _grpc, "unix": _unix, "file": _file}[probe["kind"]](probe)
    except grpc.RpcError as error:
        return f"error {error.code().name}"
    except (OSError, http.client.HTTPException) as error:
        return f"error {type(error).__name__}"


def _http(probe: dict[str, Any]) -> str:
    context = _any_server() if probe["kind"] == "https" else None
    host, _, port = probe["address"].rpartition(":")
    connection: http.client.HTTPConnection = (
        http.client.HTTPSConnection(host, int(port), timeout=_SECONDS, context=context)
        if context
        else http.client.HTTPConnection(host, int(port), timeout=_SECONDS)
    )
    connection.request(probe["method"], probe["path"], probe["body"].encode() or None, probe["headers"])
    answer = connection.getresponse()
    # A tunnel has no end.
    body = b"" if probe["method"] == "CONNECT" and answer.status == 200 else answer.read(300)
    return f"{answer.status} {body.decode(errors='replace')}"


def _any_server() -> ssl.SSLContext:
    """A stranger has no authority to check a server by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _grpc(probe: dict[str, Any]) -> str:
    with grpc.insecure_channel(probe["address"]) as channel:
        answer = channel.unary_unary(probe["path"])(base64.b64decode(probe["body"]), timeout=_SECONDS)
        return f"200 {answer[:300]!r}"


def _unix(probe: dict[str, Any]) -> str:
    path = probe["address"].removeprefix("unix:")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect("\0" + path[1:] if path.startswith("@") else path)
    return "200 connected"


def _file(probe: dict[str, Any]) -> str:
    path = Path(probe["address"])
    return f"200 {sorted(each.name for each in path.iterdir()) if path.is_dir() else path.read_text()[:300]}"


def main() -> None:
    """Read, become, ask, write."""
    probes = json.load(sys.stdin)
    for kind in ("http", "https", "grpc"):
        # Nobody is there. Much is loaded at the first use, from files that another user may not be allowed to read.
        ask({"kind": kind, "address": "127.0.0.1:1", "method": "GET", "path": "/", "body": "", "headers": {}})
    if len(sys.argv) > 1:
        become(int(sys.argv[1]))
    json.dump([ask(probe) for probe in probes], sys.stdout)


if __name__ == "__main__":
    main()
