"""Engines are published, pulled and verified; what differs from what would be compiled never enters the cache."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from karpstack.rehearsal.engines import (
    EngineSet,
    artifact,
    builder,
    commands,
    manifest,
    materials,
    pulling,
    reference,
    registry,
)
from karpstack.rehearsal.engines.archive import created
from karpstack.text.codes import Code
from karpstack.text.files import OutputError
from tests.unit.rehearsal.published import FILES, Machines, archive, content_of, header, layer, left, machines, packed

__all__ = ["machines"]
PREFIX = "kubernetes/{key}/"


def goods() -> dict[str, bytes]:
    return {part: layer(part, files) for part, files in FILES.items()}


def test_an_archive_is_pulled_and_nothing_is_compiled(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.has_go = False
    place = archive(tmp_path / "engines.tar", goods())
    cache = machines.change("user")
    engines = machines.pull(place)
    assert content_of(engines) == FILES
    assert (machines.built, left(cache)) == ([], [])
    assert [manifest.faults(engines.part(part)) for part in FILES] == [[], []]
    said = capsys.readouterr().out
    assert f"Pulling kubernetes, charts (0 MB) from {place}" in said
    machines.pull("nonsense")  # nothing is missing, so the variable is not read
    assert commands.status() == Code.GOOD
    assert f"kubernetes: ready, pulled from {place}\n" in capsys.readouterr().out
    assert commands.status(form="json") == Code.GOOD
    assert [part["pulledFrom"] for part in json.loads(capsys.readouterr().out)["parts"]] == [place, place]


def test_a_damaged_part_is_pulled_again(machines: Machines, tmp_path: Path) -> None:
    place = archive(tmp_path / "engines.tar", goods())
    machines.change("user")
    etcd = machines.pull(place).part("kubernetes") / "bin" / "etcd"
    etcd.write_bytes(b"?")
    assert content_of(machines.pull(place)) == FILES
    assert machines.built == []


def other_key(index: dict[str, Any], content: dict[str, Any]) -> None:
    content["layers"][0]["annotations"][artifact.KEY] = "0123456789abcdef"


def another_platform(index: dict[str, Any], content: dict[str, Any]) -> None:
    index["manifests"][0]["platform"] = {"os": "linux", "architecture": "s390x"}


def too_large(index: dict[str, Any], content: dict[str, Any]) -> None:
    content["layers"][0]["size"] = 2**40


def escaping(index: dict[str, Any], content: dict[str, Any]) -> None:
    content["layers"][0]["digest"] = "sha256:../../etc/passwd"


Change = Callable[[dict[str, Any], dict[str, Any]], object]
#: What the index and the manifest say -> why they are not used.
STRANGERS: dict[str, tuple[Change, str]] = {
    "an image": (lambda index, _: index.pop("artifactType"), "is something else than engines of karpstack"),
    "no index": (lambda index, _: index.update(mediaType="x"), "is something else than engines of karpstack"),
    "no manifests": (lambda index, _: index.pop("manifests"), r"is not as engines are published: KeyError"),
    "manifests of another shape": (lambda index, _: index.update(manifests=3), "is not as engines are published"),
    "another platform": (another_platform, "has engines for linux/s390x, and not for "),
    "no layers": (lambda _, content: content.pop("layers"), "is not as engines are published"),
    "another media type": (lambda _, content: content["layers"][0].update(mediaType="x"), "it has no kubernetes for "),
    "other sources": (other_key, r"its kubernetes is made of other sources \(key '0123456789abcdef'\)"),
    "a size beyond all": (too_large, "which is not used"),
    "a digest that is a path": (escaping, "which is not used"),
    "a manifest of another size": (lambda index, _: index["manifests"][0].update(size=1), "has more than 1 bytes"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_a_stranger_says_is_not_used(
    machines: Machines, tmp_path: Path, stranger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, why = STRANGERS[stranger]
    refused(machines, archive(tmp_path / "engines.tar", goods(), change), why, capsys)


def refused(machines: Machines, place: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Kubernetes is not pulled: it is compiled and the reason is printed; without Go it is an error with both fixes."""
    machines.has_go = False
    cache = machines.change("user without Go")
    with pytest.raises(builder.BuildError, match=rf"kubernetes.* cannot be pulled: .*{why}(.|\n)* Go is needed"):
        machines.pull(place)
    assert left(cache) == []
    machines.has_go = True
    cache = machines.change("user")
    capsys.readouterr()
    engines = machines.pull(place)
    assert "kubernetes" in machines.built
    assert not manifest.origin(engines.part("kubernetes"))
    assert left(cache) == []
    said = capsys.readouterr().out
    assert "Not pulled: kubernetes" in said
    assert ". Compiling instead." in said


ETCD = {"bin/etcd": b"etcd"}
LISTED = json.dumps({"files": {"bin/etcd": {"sha256": "0", "size": 4, "mode": "0755"}}}).encode()
#: What a layer holds besides a program -> why it is not used.
CONTENTS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "a symbolic link": (
        lambda prefix: layer("kubernetes", ETCD, header(f"{prefix}bin/kubectl", tarfile.SYMTYPE, "/bin/sh")),
        "is no regular file",
    ),
    "a hard link": (
        lambda prefix: layer("kubernetes", ETCD, header(f"{prefix}bin/x", tarfile.LNKTYPE, f"{prefix}bin/etcd")),
        "is no regular file",
    ),
    "a device": (lambda prefix: layer("kubernetes", ETCD, header(f"{prefix}x", tarfile.CHRTYPE)), "is no regular file"),
    "a pipe": (lambda prefix: layer("kubernetes", ETCD, header(f"{prefix}x", tarfile.FIFOTYPE)), "is no regular file"),
    "a folder": (lambda prefix: layer("kubernetes", ETCD, header(f"{prefix}x", tarfile.DIRTYPE)), "is no regular file"),
    "a long name": (
        lambda prefix: layer("kubernetes", ETCD, (prefix + "x" * 300, b"")),
        "is no regular file",
    ),
    "a name upward": (lambda prefix: layer("kubernetes", ETCD, (f"{prefix}../../x", b"")), "is not below kubernetes/"),
    "an absolute name": (lambda _: layer("kubernetes", ETCD, ("/etc/x", b"")), "is not below kubernetes/"),
    "an empty step": (lambda prefix: layer("kubernetes", ETCD, (f"{prefix}bin//x", b"")), "is not below kubernetes/"),
    "another part": (lambda _: layer("charts", ETCD), "is not below kubernetes/"),
    "a file twice": (
        lambda prefix: layer("kubernetes", ETCD, (f"{prefix}bin/etcd", b"etcd")),
        "cannot be unpacked: .*File exists",
    ),
    "a file below a file": (
        lambda prefix: layer("kubernetes", ETCD, (f"{prefix}bin/etcd/x", b"")),
        "cannot be unpacked: ",
    ),
    "a file that is not listed": (
        lambda prefix: layer("kubernetes", ETCD, (f"{prefix}bin/python", b"")),
        "bin/python is not part of the set",
    ),
    "no manifest": (lambda prefix: packed((f"{prefix}bin/etcd", b"etcd")), "manifest.json cannot be used"),
    "a manifest without an end": (
        lambda prefix: packed((f"{prefix}manifest.json", b"[" * 200_000), (f"{prefix}bin/etcd", b"etcd")),
        "manifest.json cannot be used: RecursionError",
    ),
    "other content than listed": (
        lambda prefix: packed((f"{prefix}manifest.json", LISTED), (f"{prefix}bin/etcd", b"etcd")),
        "has other content than was built",
    ),
    "nothing that is compressed": (lambda _: b"program", "cannot be unpacked: "),
    "half an archive": (lambda _: layer("kubernetes", {"bin/x": bytes(10**6)})[:-60], "cannot be unpacked: "),
    "a bomb": (
        lambda prefix: packed(header(f"{prefix}zeros", tarfile.REGTYPE, size=2**31 + 1)),
        "unpacks to more than ",
    ),
    "a bomb in a header": (
        lambda prefix: packed(header("x", tarfile.XHDTYPE, size=2**21)),
        "is no regular file",
    ),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_what_a_layer_of_a_stranger_holds_is_not_used(
    machines: Machines, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, why = CONTENTS[kind]
    content = make(f"kubernetes/{EngineSet.current().keys['kubernetes']}/")
    refused(machines, archive(tmp_path / "engines.tar", {**goods(), "kubernetes": content}), why, capsys)
    assert not (tmp_path / "x").exists()


def test_an_archive_that_is_none_is_not_used(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "engines.tar"
    place = f"oci-archive:{path}@sha256:{'0' * 64}"
    refused(machines, place, "cannot be read: No such file", capsys)
    path.write_text("text")
    machines.change("another user")
    machines.pull(place)
    assert machines.built == list(FILES)
    assert "engines.tar cannot be read: " in capsys.readouterr().out
    path.unlink()
    os.mkfifo(path)
    machines.change("a third user")
    machines.pull(place)
    assert "engines.tar cannot be read: a folder, a pipe or a device" in capsys.readouterr().out


def test_an_archive_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    refusal = pytest.raises(
        OutputError, match=r"x\.tar: cannot be written \(No such file or directory\), so nothing was"
    )
    with refusal, created(tmp_path / "missing" / "x.tar"):
        pass


LOOP = f"blobs/sha256/{'0' * 64}"
#: Headers of an archive that would be read forever.
ENDLESS = {
    "a link to itself": header(LOOP, tarfile.SYMTYPE, "0" * 64),
    "a size that leads back": header("x", tarfile.REGTYPE, size=-512),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_archive_without_an_end_is_not_used(
    machines: Machines, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "engines.tar"
    path.write_bytes(
        header("oci-layout", tarfile.REGTYPE).tobuf() + ENDLESS[kind].tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    )
    refused(machines, f"oci-archive:{path}@sha256:{'0' * 64}", "", capsys)


@pytest.mark.parametrize("text", ["oci://h.example/r:1", "oci://127.0.0.1:5000/a/b", "oci-archive:engines.tar"])
def test_without_a_digest_nothing_is_pulled_or_compiled(machines: Machines, text: str) -> None:
    machines.change("user")
    with pytest.raises(builder.BuildError, match=r"^KARPSTACK_ENGINES: .* names no digest.*; append the @sha256:"):
        machines.pull(text)
    assert machines.built == []


@pytest.mark.parametrize(
    "text",
    [
        "h.example/r:1",
        "https://h.example/r",
        "oci://h.example",
        "oci://h.example/R",
        "oci://h.example/../r",
        "oci://user:secret@h.example/r",
        "oci://h.example/r@sha256:12",
        "oci-archive:",
    ],
)
def test_another_way_of_writing_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(reference.PlaceError, match="names no place for engines; write oci://"):
        reference.parse(text)
    assert commands.publish(text) == Code.WRONG
    assert "names no place for engines" in capsys.readouterr().err


def test_the_parts_of_a_place() -> None:
    digest = f"sha256:{'a' * 64}"
    assert reference.parse(f"oci://[::1]:5000/a/b.c:1.0@{digest}") == reference.Reference(
        "oci://[::1]:5000/a/b.c:1.0", digest, "[::1]:5000", "a/b.c", "1.0"
    )
    assert reference.parse(f"oci-archive:/a b/c@d.tar@{digest}").archive == Path("/a b/c@d.tar")


PROGRAM = {
    "GoVersion": "go1.26.11",
    "Path": "karpstack/engines/kubernetes/etcd",
    "Main": {"Path": "karpstack/engines/kubernetes", "Version": "(devel)"},
    "Deps": [
        {"Path": "example/a", "Version": "v1.0.0+incompatible", "Sum": "h1:a"},
        {
            "Path": "example/b",
            "Version": "v1.0.0",
            "Replace": {"Path": "example/c", "Version": "v2.0.0", "Sum": "h1:c"},
        },
        {"Path": "example/d", "Version": "v1.0.0", "Replace": {"Path": "/home/me/d", "Version": "(devel)"}},
    ],
}


def test_the_sbom_has_each_module_once_with_its_checksum_and_no_path_of_a_machine() -> None:
    found = materials.sbom(
        {"kubernetes": [PROGRAM, {**PROGRAM, "Path": "karpstack/engines/kubernetes/kwok"}], "addons": []}
    )
    assert "/home/me" not in json.dumps(found)
    components = {one["bom-ref"]: one for one in found["components"]}
    assert len(components) == len(found["components"])
    assert {"kubernetes/etcd", "kubernetes/kwok", "addons/addons"} < components.keys()
    needs = {one["ref"]: one["dependsOn"] for one in found["dependencies"]}
    assert needs["kubernetes/etcd"] == [
        "pkg:golang/example/a@v1.0.0%2Bincompatible",
        "pkg:golang/example/c@v2.0.0",
        "pkg:golang/example/d@v1.0.0",
        "pkg:golang/karpstack/engines/kubernetes@%28devel%29",
    ]
    assert components["pkg:golang/example/c@v2.0.0"]["properties"] == [{"name": "go:sum", "value": "h1:c"}]
    assert len(needs["addons/addons"]) == 3
    for reference_ in needs["addons/addons"]:
        assert components[reference_]["properties"][0]["value"].startswith("h1:")


def test_the_layer_of_a_part_is_the_same_on_every_machine(tmp_path: Path) -> None:
    from karpstack.rehearsal.engines import publishing

    packed_: list[bytes] = []
    for name, mode in (("one", 0o755), ("two", 0o700)):
        root = tmp_path / name / "engines" / "kubernetes" / "key"
        for file, content in FILES["kubernetes"].items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(content)
            (root / file).chmod(mode)
        manifest.write(root)
        manifest.set_origin(root, name)
        with (tmp_path / f"{name}.tar.gz").open("wb+") as file_:
            publishing._pack(root, "kubernetes/key/", file_)
        packed_.append((tmp_path / f"{name}.tar.gz").read_bytes())
    assert packed_[0] == packed_[1]
    assert b"one" not in gzip.decompress(packed_[0])[:2000]


#: Bodies that make a single read last forever.
CHUNKED = {"size of a chunk": b"0" * 1000, "trailers": b"0\r\n" + b"X: x\r\n" * 1000}


class _Dripping(BaseHTTPRequestHandler):
    """A registry with the content of an archive; what has a word in its path comes byte by byte."""

    word: str
    contents: dict[str, bytes]

    def do_GET(self) -> None:
        content = self.contents.get(self.path.rstrip("?").rpartition("/")[2], b"")
        drips = self.word in self.path
        for _ in range(100 if self.word == "100 Continue" else 0):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.03)
        if self.word == "/token" and not drips:
            self.send_response(401)
            realm = f"http://{self.headers['Host']}/token"
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}"')
        else:
            self.send_response(200)
        if self.word == "headers":
            self.flush_headers()
            content, drips = b"X: " + b"x" * 1000, True
        elif self.word in CHUNKED and "/blobs/" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            content, drips = CHUNKED[self.word], True
        else:
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
        for byte in content[:100] if drips else (content,):
            self.wfile.write(bytes([byte]) if isinstance(byte, int) else byte)
            time.sleep(0.03)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("/manifests/", r"the answer takes longer than 0\.5 s"),
        ("headers", r"the answer takes longer than 0\.5 s"),
        ("/token", r"the answer takes longer than 0\.5 s"),
        ("100 Continue", r"the answer takes longer than 0\.5 s"),
        ("/blobs/", r"sha256:[0-9a-f]+ is too slow: [0-9]+ bytes in 0\.7 s"),
        ("size of a chunk", r"sha256:[0-9a-f]+ is too slow: 0 bytes in 0\.7 s"),
        ("trailers", r"sha256:[0-9a-f]+ is too slow: 0 bytes in 0\.7 s"),
    ],
)
def test_a_registry_that_drips_is_not_waited_for(
    machines: Machines, tmp_path: Path, word: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "IN_ALL", 0.5)
    monkeypatch.setattr(pulling, "_MINUTE", 0.7)
    place = archive(tmp_path / "engines.tar", goods())
    with tarfile.open(tmp_path / "engines.tar") as tar:
        contents = {
            f"sha256:{one.name.rpartition('/')[2]}": file.read() for one in tar if (file := tar.extractfile(one))
        }
    contents["token"] = json.dumps({"token": "x" * 1000}).encode()
    handler = type("Handler", (_Dripping,), {"word": word, "contents": contents})
    machines.has_go = False
    machines.change("user")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(builder.BuildError, match=why):
            machines.pull(f"oci://127.0.0.1:{server.server_port}/e@{place.rpartition('@')[2]}")
        server.shutdown()
