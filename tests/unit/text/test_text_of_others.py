"""One rule for names that become paths, and one for text that others wrote, wherever it is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from karpstack.components.problems import shown as in_settings
from karpstack.preflight.output import table as in_preflight
from karpstack.rehearsal.aws.errors import on_the_wire
from karpstack.rehearsal.rights.review_output import _escaped as in_rights
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.rehearsal.session.terminal import plain
from karpstack.scale_test.reports.reasons import _as_text as in_reasons
from karpstack.text import yaml_file
from karpstack.text.findings import sarif_message
from karpstack.text.json_file import FileError, parse
from karpstack.text.markdown import code, escape
from karpstack.text.names import folder_name, is_stack_name, stack_name
from karpstack.text.shown import message, visible
from karpstack.text.yaml_file import YamlError
from tests.steering import STEERING

SHOWN: dict[str, Callable[[str], str]] = {
    "terminal": visible,
    "message": lambda text: message([text]),
    "rehearsal": plain,
    "markdown": escape,
    "markdown, as code": code,
    "a setting that is refused": in_settings,
    "preflight": lambda text: in_preflight(text, []),
    "xml": lambda text: on_the_wire("ec2", is_json=False, code="X", message=text)[1].decode(),
}
HARMLESS = "größe 図 ✅ a-b_c"


@pytest.mark.parametrize("where", SHOWN)
@pytest.mark.parametrize("text", STEERING, ids=ascii)
def test_nothing_acts_instead_of_being_seen(text: str, where: str) -> None:
    said = SHOWN[where](f"before {text} after")
    acting = {one for one in text if not one.isprintable() and one not in "\n\t"}
    assert acting, "of Python's own opinion"
    assert not acting & set(said)
    assert "before" in said
    assert "after" in said or where == "a setting that is refused"


@pytest.mark.parametrize(
    "text",
    [
        *("@torvalds", "é@torvalds", "日@org/team", "éGH-12", "GH-12"),
        *("pay@evil.example", "a mailto:a@evil.example", "XMPP:a", "owner/repo@0badc0d"),
        *("https://evil.example", "1https://evil.example/x", "日https://evil.example/login", "xwww.evil.example"),
    ],
)
def test_nobody_is_notified_and_nothing_is_linked(text: str) -> None:
    """For GitHub's Markdown a letter is one of ASCII."""
    assert not re.search(r"(^|[^A-Za-z0-9_])(@|GH-)[A-Za-z0-9]|https?://|www\.", escape(text))
    assert not re.search(r"@\w|mailto:|xmpp:", escape(text), re.IGNORECASE)


@pytest.mark.parametrize("shown", [in_reasons, in_rights], ids=["why", "rights"])
def test_a_backtick_of_others_begins_no_code(shown: Callable[[str], str]) -> None:
    said = shown("`@octocat `GH-12 `@org/team")
    assert not re.search(r"@\w|GH-\w", said)


def test_a_message_of_sarif_has_no_link() -> None:
    """https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, section 3.11.6"""
    for text in ("[Fix it](https://evil.example)", r"[a\](1)", r"[a\\](1)", "[a [b](c)](d)"):
        assert "](" not in sarif_message(text)["text"]


@pytest.mark.parametrize("where", ["terminal", "message", "rehearsal", "preflight"])
@pytest.mark.parametrize(
    "text",
    [
        *("http://user:s3cret@proxy:3128", "https://s3cret@github.com/a/b"),
        *("HTTP://u:s3cret@p", "http://u:s3c@s3cret@p"),
        *("Invalid header value b'Bearer s3cret\\n' ://***@", "in header value: 's3cret\\n' ://***@"),
        *("403 Bearer s3cret.0-9 ://***@", 'header value "s3c\'ret" ://***@', "basic czNjcmV0s3cret= ://***@"),
        *("the token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJz3cret.s3cret-x_y: ://***@", "(k8s-aws-v1.s3cretABCD_-) ://***@"),
        *("Failed to parse: http://u:a/s3cret#b@p:1, port", "'socks5h://u:s3cret?@p'", "http://:s3cret@[::1]:1"),
    ],
)
def test_who_asks_is_no_part_of_a_url_that_is_shown(text: str, where: str) -> None:
    said = SHOWN[where](text)
    assert "s3cret" not in said
    assert "://***@" in said


@pytest.mark.parametrize(
    "text",
    [
        *("https://medium.com/@user", "oci://registry:5000/a@sha256:1", "https://host:5000/a@sha256:1", "a@b.example"),
        *("the Basic SKU", "Bearer authentication", "Basic constraints: 1", "eyJ.eyJ.a", "a k8s-aws-v1.x"),
        *("http://p:3128 and a@b.example", "https://p?q=a@b.example"),
    ],
)
def test_what_is_no_password_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("where", ["terminal", "message", "rehearsal", "preflight"])
@pytest.mark.parametrize(
    "text",
    [
        *("::error::pwn", "a\n::error title=pwn::hello", "a\n \u3000::Set-Env name=a::b", f"{'x' * 150} ::error::pwn"),
        *("a ##[error]pwn", "##[set-output name=a]b"),
        *(f"{'x' * length}::error file=a::pwn" for length in range(100, 160)),
    ],
)
def test_nothing_is_a_command_to_github(text: str, where: str) -> None:
    """As the runner reads a line: https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs"""
    for line in SHOWN[where](text).splitlines():
        assert "##[" not in line
        assert not re.match("::[^ ]+( .*)?::", line.lstrip())


def test_a_message_has_one_line_for_each_problem() -> None:
    assert message(["a\nerror: b", "c"]) == "a error: b\nc"


@pytest.mark.parametrize(
    "text",
    [
        HARMLESS,
        "two\nlines\tand a tab",
        "::/0 and ::1",
        "urn:pulumi:eks::karpstack::aws:vpc::a",
        "## [a](b)",
        "a::b::c",
    ],
)
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("..", ".", "", "-rf", "a/b", "../../etc", "/etc", "a\\b", "a b", "a\n", "x" * 101, "ä", "\x00"),
        *("x[/y]", "\x1b[31m", "{{ 1 }}"),
    ],
)
def test_no_stack_is_called_like_another_folder(name: str) -> None:
    assert not is_stack_name(name)
    with pytest.raises(ValueError, match=r"stack = .*lead out of the folder.*; name the stack with") as error:
        stack_name(name)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 500
    assert is_stack_name(folder_name(name))
    assert folder_name(name).strip(".") == folder_name(name)


@pytest.mark.parametrize("name", ["eks", "a", "aks-nap", "a.b_c-1", "...", "x" * 100, "_a", "9"])
def test_a_stack_keeps_its_name(name: str) -> None:
    assert stack_name(name) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" + "{}," * 1000 + "{}]", "more than 1,000 values"),
        ("[" + "[]," * 1000 + "[]]", "more than 1,000 values"),
        ("[" * 50 + "]" * 50, "levels deep"),
        ("{" + ",".join(f'"k{number}": 1' for number in range(900)) + ', "k7": 2}', "the key 'k7' is there twice"),
        ("[1e999]", "too large to reckon with"),
        ("[NaN]", "no number of JSON"),
        ("[" * 100_000, "more than 1,000 values"),
        ("{", "not JSON"),
    ],
    ids=lambda it: it[:20],
)
def test_json_is_bounded(text: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        parse(text.encode(), Path("x.json"), depth=40, values=1_000)


def test_where_json_breaks_on_a_long_line_is_said_by_what_stands_before() -> None:
    text = "[" + " " * 7_000_000 + '"the pods of web", x]'
    with pytest.raises(FileError, match=r'line 1, after .* "the pods of web", ') as refused:
        parse(text.encode(), Path("x.json"), depth=40, values=1_000)
    assert "column" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "tab"),
    [("config:\n\tkarpstack:cloud: aws\n", 2), ("a:\n  b: 1\n\tc: 2\n", 3), ("a: [1\n", 0)],
)
def test_a_tab_in_yaml_is_called_a_tab(text: str, tab: int, tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.eks.yaml"
    path.write_text(text)
    said = "is indented with a tab, which YAML does not take; use spaces"
    for read, error in ((yaml_file.read, YamlError), (StackFile.load, StackFileError)):
        with pytest.raises(error) as refused:
            read(path)
        assert (f"line {tab} {said}" in str(refused.value)) == bool(tab)


def test_a_key_that_is_there_twice_among_many_is_found_at_once() -> None:
    """Once the time grew with the square: 100,000 keys took minutes."""
    text = json.dumps({f"k{number}": 1 for number in range(100_000)})[:-1] + ', "k99999": 2}'
    with pytest.raises(FileError, match="the key 'k99999' is there twice"):
        parse(text.encode(), Path("x.json"), depth=40, values=1_000_000)


@pytest.mark.parametrize("unseen", ["\u3164", "\u115f", "\u2800", "\ufe0f", "\u034f"], ids=ascii)
def test_letters_and_marks_that_nobody_sees_are_shown(unseen: str) -> None:
    assert visible(f"admin{unseen}") == f"admin{ascii(unseen)[1:-1]}"
