"""Damage to an engine set is found and named, each kind once, and only what changed is hashed again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from karpstack.rehearsal.engines import EngineSet, builder, cache_folder, manifest
from karpstack.rehearsal.state.ancestors import ExposedError
from tests.unit.rehearsal.exposed_folders import EXPOSED, Exposing

ETCD = b"the program etcd"
GO = builder.Go("go", "go1.26.1")


@pytest.fixture
def engines(tmp_path: Path) -> Path:
    """A part of three files."""
    root = tmp_path / "cache" / "engines" / "charts" / "key"
    for name, content in (("bin/etcd", ETCD), ("bin/kwok", b"kwok"), ("charts/cilium/Chart.yaml", b"name: cilium")):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o775 if name.startswith("bin") else 0o664)
    for folder in (root.parents[2], root.parents[1], root.parent):
        folder.chmod(0o700)
    manifest.write(root)
    return root


def settle(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check once, with files that count as old enough for stamps."""
    monkeypatch.setattr(manifest, "_SETTLED_SECONDS", -60.0)
    assert manifest.faults(root) == []


def test_a_set_as_it_was_built_has_no_faults_and_only_its_owner_writes_it(engines: Path) -> None:
    assert manifest.faults(engines) == []
    assert [path for path in (engines, *engines.rglob("*")) if path.stat().st_mode & 0o022] == []


def replaced(etcd: Path) -> None:
    """The same size and times, as an attacker would take care of."""
    times = etcd.stat()
    etcd.write_bytes(b"another program!")
    os.utime(etcd, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (etcd.stat().st_size, etcd.stat().st_mtime_ns) == (times.st_size, times.st_mtime_ns)


def linked(etcd: Path) -> None:
    etcd.rename(etcd.with_name("moved"))
    etcd.symlink_to("moved")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "replaced": (replaced, "has other content than was built"),
    "cut": (lambda etcd: os.truncate(etcd, 3), "has 3 bytes instead of 16"),
    "removed": (Path.unlink, "cannot be read: No such file or directory"),
    "no program": (lambda etcd: etcd.chmod(0o644), "has mode 0644 instead of 0755"),
    "set-uid": (lambda etcd: etcd.chmod(0o4755), "has mode 4755 instead of 0755"),
    "written by others": (lambda etcd: etcd.chmod(0o777), "has mode 0777 instead of 0755"),
    "a link": (linked, "is no regular file"),
    "in an open folder": (lambda etcd: etcd.parent.chmod(0o777), "is in a folder that others may write"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_with_its_file(engines: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    settle(engines, monkeypatch)
    do, words = DAMAGES[damage]
    do(engines / "bin" / "etcd")
    assert f"{engines / 'bin' / 'etcd'} {words}" in manifest.faults(engines)


def test_a_program_that_was_put_beside_them_is_named(engines: Path) -> None:
    # The set's bin is on PATH: a `python` in it would run in place of the user's.
    (engines / "bin" / "python").write_text("")
    assert manifest.faults(engines) == [f"{engines / 'bin' / 'python'} is not part of the set"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_named(engines: Path) -> None:
    os.chown(engines / "bin" / "etcd", 65534, -1)
    assert manifest.faults(engines) == [f"{engines / 'bin' / 'etcd'} belongs to user 65534"]


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"bin/etcd": {}}}', '{"files": {"bin/etcd": 3}}', None])
def test_a_manifest_that_cannot_be_read_is_a_fault(engines: Path, text: str | None) -> None:
    path = engines / "manifest.json"
    path.unlink() if text is None else path.write_text(text)
    (fault,) = manifest.faults(engines)
    assert fault.startswith(f"{path} cannot be used: ")


def test_only_what_changed_is_hashed_again(engines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    digest = manifest._digest

    def recorded(path: Path) -> str:
        hashed.append(path.name)
        return digest(path)

    monkeypatch.setattr(manifest, "_digest", recorded)
    settle(engines, monkeypatch)
    assert sorted(hashed) == ["Chart.yaml", "etcd", "kwok"]
    hashed.clear()
    assert manifest.faults(engines) == []
    assert hashed == []
    (engines / "bin" / "etcd").write_bytes(ETCD)  # the same content, written again
    assert manifest.faults(engines) == []
    assert hashed == ["etcd"]


def test_what_changed_just_now_has_no_stamp_because_it_could_change_again_unseen(engines: Path) -> None:
    assert manifest.faults(engines) == []
    assert not engines.with_name("key.stamps.json").exists()


@pytest.mark.parametrize("text", ["", "3", '{"bin/etcd": 3}'])
def test_broken_stamps_only_cost_time(engines: Path, text: str) -> None:
    engines.with_name("key.stamps.json").write_text(text)
    assert manifest.faults(engines) == []


def test_stamps_of_another_build_do_not_count(engines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(engines, monkeypatch)
    path = engines / "manifest.json"
    content = json.loads(path.read_text())
    content["files"]["bin/etcd"]["sha256"] = "0" * 64
    path.write_text(json.dumps(content))
    assert manifest.faults(engines) == [f"{engines / 'bin' / 'etcd'} has other content than was built"]


@pytest.mark.parametrize("folder", ["cache", "cache/engines", "cache/engines/charts", "cache/engines/charts/key"])
def test_a_folder_that_others_may_write_is_refused_with_the_fix(engines: Path, folder: str) -> None:
    cache = engines.parents[2]
    assert manifest.exposure(cache, engines) is None
    assert manifest.exposure(cache, engines.with_name("not-built-yet")) is None
    path = cache.parent / folder
    path.chmod(0o775)
    said = manifest.exposure(cache, engines)
    assert said
    assert said.startswith(f"{path} may be written by other users")
    assert f"chmod go-w {path}" in said


@pytest.mark.parametrize(("make", "words"), EXPOSED)
def test_a_cache_that_others_could_exchange_is_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Exposing, words: str
) -> None:
    above = make(tmp_path, monkeypatch)
    for variable, cache in (("KARPSTACK_CACHE", above / "cache"), ("XDG_CACHE_HOME", above)):
        monkeypatch.delenv("KARPSTACK_CACHE", raising=False)
        monkeypatch.setenv(variable, str(cache))
        with pytest.raises(ExposedError, match=f"^{tmp_path}{words}.*name a folder of your own in KARPSTACK_CACHE$"):
            builder.ensure(find_go=lambda: pytest.fail("began to build"))
        monkeypatch.delenv(variable)
    assert not (above / "cache").exists()
    assert not (above / "karpstack").exists()


@pytest.mark.parametrize("variable", ["KARPSTACK_CACHE", "XDG_CACHE_HOME"])
def test_the_cache_has_a_path_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (tmp_path / "real" / "karpstack").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    cache = tmp_path / "link"
    monkeypatch.delenv("KARPSTACK_CACHE", raising=False)
    monkeypatch.setenv(variable, str(cache / "karpstack" if variable == "KARPSTACK_CACHE" else cache))
    assert cache_folder() == tmp_path / "real" / "karpstack"
    assert EngineSet.current().root == tmp_path / "real" / "karpstack" / "engines"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_cache_of_somebody_else_is_refused_with_the_fix(engines: Path) -> None:
    cache = engines.parents[2]
    os.chown(cache, 65534, -1)
    said = str(manifest.exposure(cache, engines))
    assert said.startswith(f"{cache} belongs to user 65534")
    assert "KARPSTACK_CACHE" in said


@pytest.fixture
def current(engines: Path, monkeypatch: pytest.MonkeyPatch) -> EngineSet:
    """The part as all that this checkout needs."""
    monkeypatch.setenv("KARPSTACK_CACHE", str(engines.parents[2]))
    found = EngineSet(engines.parents[1], {"charts": "key"})
    monkeypatch.setattr(EngineSet, "current", classmethod(lambda *_: found))
    monkeypatch.setattr(builder, "required_parts", lambda clouds, earlier: ["charts"])
    return found


def test_a_damaged_part_is_built_anew_and_it_is_said(current: EngineSet, capsys: pytest.CaptureFixture[str]) -> None:
    built: list[str] = []
    ensure = partial(builder.ensure, find_go=lambda: GO, build=lambda part, *_: built.append(part))
    assert ensure() is current
    assert (built, capsys.readouterr().out) == ([], "")
    etcd = current.part("charts") / "bin" / "etcd"
    etcd.write_bytes(b"?")
    ensure()
    assert built == ["charts"]
    said = capsys.readouterr().out
    assert "built again" in said
    assert f"{etcd} has 1 bytes instead of 16" in said


def test_a_part_that_others_may_write_is_not_used(current: EngineSet) -> None:
    current.part("charts").chmod(0o777)
    with pytest.raises(builder.BuildError, match=r"cannot be trusted: .*may be written by other users.*chmod go-w"):
        builder.ensure()


def test_a_new_cache_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARPSTACK_CACHE", str(tmp_path / "new"))
    ensure = partial(builder.ensure, find_go=lambda: GO, build=lambda part, folder, go: None)
    before = os.umask(0o002)
    try:
        ensure()
        ensure()
    finally:
        os.umask(before)
    folders = [tmp_path / "new", tmp_path / "new" / "engines", tmp_path / "new" / "engines" / "kubernetes"]
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o700] * 3
