"""Engines go to a real registry and come back; what breaks on the way is refused or compiled."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from karpstack.rehearsal.azure.wire import certificates
from karpstack.rehearsal.engines import EngineSet, artifact, commands, manifest
from karpstack.rehearsal.engines.reference import digest_of
from karpstack.rehearsal.engines.registry import Registry
from karpstack.text.codes import Code
from tests.programs.rehearsal import registries
from tests.serving import serving
from tests.unit.rehearsal.published import FILES, Machines, content_of, left, machines, write

__all__ = ["machines"]
# The first test may build the registry's program.
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def binary() -> Path:
    return registries.program()


@pytest.fixture
def address(binary: Path, machines: Machines, tmp_path: Path) -> Iterator[str]:
    with registries.registry(binary, tmp_path) as found:
        yield found


@pytest.fixture
def place(address: str, machines: Machines, capsys: pytest.CaptureFixture[str]) -> str:
    """Where the engines were published, with the digest."""
    machines.publish(f"oci://{address}/karpstack/engines:1.0")
    return capsys.readouterr().out.splitlines()[-1]


def test_what_was_published_is_pulled(place: str, machines: Machines, capsys: pytest.CaptureFixture[str]) -> None:
    machines.has_go = False
    cache = machines.change("user")
    engines = machines.pull(place)
    assert content_of(engines) == FILES
    assert (machines.built, left(cache)) == ([], [])
    assert manifest.origin(engines.part("charts")) == place
    assert commands.publish(place.partition("@")[0]) == Code.UNKNOWN
    assert "was pulled from" in capsys.readouterr().err


def test_publishing_again_has_the_same_digest_and_sends_no_engine(
    place: str, machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "storage").rglob("data")}
    machines.publish(place.partition("@")[0])
    assert capsys.readouterr().out.splitlines()[-1] == place
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "storage").rglob("data")} == times
    machines.publish(f"oci-archive:{tmp_path / 'engines.tar'}")
    archive = capsys.readouterr().out.splitlines()[-1]
    assert archive.partition("@")[2] == place.partition("@")[2]
    machines.has_go = False
    machines.change("air-gapped")
    assert content_of(machines.pull(archive)) == FILES
    machines.change("publisher")
    machines.publish(f"oci-archive:{tmp_path / 'engines.tar'}")  # an archive is replaced, and nothing else
    (tmp_path / "engines.tar").write_text("mine")
    assert commands.publish(f"oci-archive:{tmp_path / 'engines.tar'}") == Code.WRONG
    assert (tmp_path / "engines.tar").read_text() == "mine"


def test_the_artifact_has_an_sbom_and_a_provenance(place: str, address: str) -> None:
    store = Registry(address, "karpstack/engines")

    def read(kind: str, digest: str) -> bytes:
        with closing(store.open(kind, digest)) as response:  # type: ignore[arg-type]
            content = response.read()
        assert digest_of(content) == digest
        return content

    index = json.loads(read("manifests", place.partition("@")[2]))
    content = json.loads(read("manifests", index["manifests"][0]["digest"]))
    documents = {one["mediaType"]: one["digest"] for one in content["layers"]}
    sbom = json.loads(read("blobs", documents[artifact.SBOM]))
    assert {"type": "library", "name": "github.com/cilium/cilium"}.items() <= sbom["components"][-1].items()
    statement = json.loads(read("blobs", documents[artifact.PROVENANCE]))
    engines = {one["annotations"][artifact.PART]: one["digest"] for one in content["layers"][:2]}
    assert {
        one["name"].partition("/")[0]: f"sha256:{one['digest']['sha256']}" for one in statement["subject"]
    } == engines
    build = statement["predicate"]["buildDefinition"]
    assert "karpstack/rehearsal/engines/kubernetes/go.sum" in {one["name"] for one in build["resolvedDependencies"]}
    assert build["internalParameters"]["commands"]["kubernetes"][:2] == ["go", "build"]


def blobs(storage: Path) -> list[Path]:
    """The blobs of the two layers, by size: charts, kubernetes."""
    found = [path for path in storage.rglob("data") if path.read_bytes()[:2] == b"\x1f\x8b"]
    return sorted(found, key=lambda path: path.stat().st_size)


def cut(storage: Path) -> None:
    path = blobs(storage)[-1]
    path.write_bytes(path.read_bytes()[:-20])


def lost(storage: Path) -> None:
    blobs(storage)[-1].unlink()


def exchanged(storage: Path) -> None:
    path = blobs(storage)[-1]
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))


def index_exchanged(storage: Path) -> None:
    for path in storage.rglob("data"):
        if b"image.index.v1" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"karpstack engines", b"karpstack Engines"))


#: What happened to the registry's storage -> why nothing is pulled.
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "half an upload": (cut, "broke off after "),
    "a layer is missing": (lost, "404 Not Found"),
    "a layer was exchanged": (exchanged, "has another digest, sha256:"),
    "the index was exchanged": (index_exchanged, "has another digest|50[0-9] |404 "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_compiled(
    place: str, machines: Machines, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaging, why = DAMAGES[damage]
    damaging(tmp_path / "storage")
    compiled(machines, place, why, capsys)


def compiled(machines: Machines, place: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    cache = machines.change("one that compiles")
    machines.pull(place)
    assert "kubernetes" in machines.built
    assert left(cache) == []
    said = capsys.readouterr().out
    assert "Not pulled: kubernetes" in said
    assert any(words in said for words in why.split("|")), said


def test_without_a_network_it_is_compiled(machines: Machines, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    compiled(machines, f"oci://127.0.0.1:{port}/r@sha256:{'0' * 64}", "Connection refused", capsys)


def test_a_digest_that_the_registry_does_not_have_is_compiled(
    address: str, machines: Machines, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(machines, f"oci://{address}/karpstack/engines@sha256:{'0' * 64}", "404 Not Found", capsys)


def test_a_login_of_docker_is_used_and_without_one_its_command_is_named(
    binary: Path,
    machines: Machines,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with registries.registry(binary, tmp_path, login=True) as address:
        assert commands.publish(f"oci://{address}/engines") == Code.UNKNOWN
        assert f"docker login {address}" in capsys.readouterr().err
        login = base64.b64encode(f"{registries.USER}:{registries.SECRET}".encode()).decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {address: {"auth": login}}}))
        machines.publish(f"oci://{address}/engines")
        place = capsys.readouterr().out.splitlines()[-1]
        machines.change("user")
        assert content_of(machines.pull(place)) == FILES
        (tmp_path / "config.json").write_text(
            json.dumps({"auths": {address: {"auth": base64.b64encode(b"u:x").decode()}}})
        )
        compiled(machines, place, f"docker login {address}", capsys)


class _Connecting(StreamRequestHandler):
    """A proxy that connects every address to one port of this machine."""

    asked: list[str]
    port: int

    def handle(self) -> None:
        self.asked.append(self.rfile.readline().decode().split()[1])
        while self.rfile.readline().strip():
            pass
        with socket.create_connection(("127.0.0.1", self.port)) as other:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=_copy, args=(other, self.connection), daemon=True).start()
            _copy(self.connection, other)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_registry_behind_a_proxy_and_a_private_authority_is_used(
    binary: Path,
    machines: Machines,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    authority, _ = certificates.create(tmp_path, ["registry.example"])
    with registries.registry(binary, tmp_path, certificate=tmp_path / "server.pem") as address:
        port = int(address.rpartition(":")[2])
        handler: type[_Connecting] = type("Handler", (_Connecting,), {"asked": [], "port": port})
        with serving(ThreadingTCPServer(("127.0.0.1", 0), handler)) as proxy:
            for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_address[1]}")
            for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.delenv(name, raising=False)
            compiled(machines, f"oci://registry.example/e@sha256:{'0' * 64}", "CERTIFICATE_VERIFY_FAILED", capsys)
            machines.change("publisher")
            monkeypatch.setenv(variable, str(authority))
            machines.publish("oci://registry.example/engines")
            place = capsys.readouterr().out.splitlines()[-1]
            machines.change("another")
            assert content_of(machines.pull(place)) == FILES
    assert set(handler.asked) == {"registry.example:443"}


def test_a_registry_on_this_machine_is_asked_without_the_proxy(
    place: str, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    machines.change("user")
    assert content_of(machines.pull(place)) == FILES


def test_another_platform_is_published_when_it_is_built(
    address: str, machines: Machines, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"oci://{address}/engines"
    both = ["linux/amd64", "linux/arm64"]
    assert commands.publish(target, platforms=both) == Code.UNKNOWN
    assert "run: karpstack engines build --platform linux/a" in capsys.readouterr().err
    for engines in map(EngineSet.current, both):
        for part, files in FILES.items():
            if not engines.complete(part):
                write(engines.part(part), files)
    assert commands.publish(target, platforms=both) == Code.GOOD
    place = capsys.readouterr().out.splitlines()[-1]
    machines.change("user")
    assert content_of(machines.pull(place)) == FILES
    assert commands.publish(target, platforms=["linux/s390x"]) == Code.WRONG
    assert "choose linux/amd64 or linux/arm64" in capsys.readouterr().err
