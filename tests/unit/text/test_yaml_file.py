"""YAML that somebody else may have written: plain data is read as it is, anything else refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from karpstack.text.yaml_file import BYTES, YamlError, parse, parse_all, read

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"


def bomb(value: str) -> str:
    """Five hundred bytes that are some four hundred million values, by lists or by merges of nine aliases."""
    lines = ["a: &a {k: 1}"]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} {value % ','.join([f'*{before}'] * 9)}")
    return "\n".join(lines)


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.glob("scenarios/*.yml")), ids=lambda path: str(path.stem))
def test_what_ships_is_read_as_yaml_has_it(path: Path) -> None:
    assert read(path) == yaml.safe_load(path.read_text())


def test_what_json_has_not_stays_text() -> None:
    assert parse(b"a: 2026-01-01\nb: 1e400\nc: =\nd: '0x_'") == {"a": "2026-01-01", "b": "1e400", "c": "=", "d": "0x_"}
    assert parse(b"") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bomb("[%s]"), ": more than 1 MiB, aliases"),
        (bomb("{<<: [%s]}"), ": more than 1 MiB, aliases"),
        (f"a: &a '{'x' * 9000}'\nb: [{','.join(['*a'] * 200)}]", "line 2: more than 1 MiB, aliases"),
        ("[" * 100_000, "line 1: more than 40 levels deep"),
        ("a: &a [*a]", r"\*a would hold itself without end"),
        ("a: 1\nb: {c: 1, c: 2}", "line 2: the key 'c' is there twice, of which one would be lost"),
        ("on: 1", "line 1: the key 'on' is not text, so nothing would find it; put it in quotes"),
        ("? [a]\n: 1", "the key that is a list or a mapping is not text"),
        ("a: !!python/name:os.system", "line 1: the tag tag:yaml.org,2002:python/name:os.system makes something else"),
        ("a: !!binary aGVsbG8=", "makes something else than data; leave it out"),
        ("a: .nan", "'.nan' is no number to reckon with"),
        ("a: -1.0e+400", "is no number to reckon with"),
        (f"a: {'9' * 5000}", "is no number to reckon with"),
        (f"a: {'1:' * 2000}1.0", "is no number to reckon with"),
        ("a: 0x_", "'0x_' is no number to reckon with"),
        ("a: \x1b[31m", "not YAML; mend it: .*control characters are not allowed"),
        ("a: [", "not YAML; mend it: line "),
        ("a: 1\n---\nb: 2", "not YAML; mend it: line 3: but found another document"),
        ("x" * BYTES + "x", "has more than 1 MiB"),
    ],
    ids=lambda value: value[:20],
)
def test_what_nobody_would_write_is_refused_in_a_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.yml"
    path.write_text(content)
    with pytest.raises(YamlError, match=message) as refused:
        read(path)
    assert len(str(refused.value)) < 400


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match="not YAML; mend it: "):
        parse(b"a: \xe9")
    with pytest.raises(YamlError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: &a {b: 1}\nc: {b: 2, <<: *a}", "line 2: kubectl merges <<"),
        (b"a: {n: 1}", "line 1: kubectl reads 'n' as another value"),
        (b"a: Y", "kubectl reads 'Y'"),
        (b"a: 1e3", "kubectl reads '1e3'"),
        (b"a: 1.5E7", "kubectl reads"),
        (b"a: 08", "kubectl reads"),
        (b"a: -0o17", "kubectl reads"),
        (b"a: 0X1F", "kubectl reads"),
        (b"017: 1", "the key '017' is not text"),
        (b"a: 1\n---\xc2\xa0\nb: 2", "line 2: kubectl ends a document"),
        (b"a: 1\n--- {b: 2}", "line 2: kubectl ends a document"),
        (b"a: 1\r---\rb: 2", "line 1: kubectl ends a document"),
        (b"a: 1\xc2\x85b: 2", "line 1: kubectl ends a document"),
        ("a: 1".encode("utf-16"), "UTF-16"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_manifests_that_kubectl_reads_otherwise_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(YamlError, match=message):
        parse_all(content)


def test_manifests_are_read_as_kubectl_does() -> None:
    assert parse_all(b"8080: 22:22\n1:30: 12:30\na: 1e23456\nb: [-3]") == [
        {"8080": "22:22", "1:30": "12:30", "a": "1e23456", "b": [-3]}
    ]
    content = b"--- # first\na: 017\nb: on\r\nc: '1e3'\n---\n# second\n--- \nd: v1.0e\ne: 12.5\n---\n- |\n  ---x\n"
    assert parse_all(content) == [{"a": 15, "b": True, "c": "1e3"}, {"d": "v1.0e", "e": 12.5}, ["---x\n"]]
