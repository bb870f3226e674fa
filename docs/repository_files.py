"""Make files outside docs part of the site: a hook of MkDocs.

Pages link to files of the repository by relative paths, so that the links work on a code host too. Here each such file
becomes a part of the site: a Markdown file as a page, any other file as it is. A link to a missing file, or to a
missing heading, fails `make docs`.

Only what is in git is published: a link to another file, such as `.git/config`, fails as one to a missing file does.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
#: The folder of the site for files that are not in docs.
_FOLDER: Final = "repository"
_LINK: Final = re.compile(r'(\]\(|(?:src|href)=")([^)"\s#:]+)(?=[)"#])')
#: A link to a folder, whose files the site does not list.
_FOLDER_LINK: Final = re.compile(r"\[([^]\n]+)\]\(([^)\s#:]+)\)")
#: Code blocks and inline code, in which a link is an example.
_REGULAR: Final = ("100644", "100755")  # as git has the modes of files that are no links
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`|^    .*?$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add README.md, and the repository's files to which it or a page links, directly or by such a file."""
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    found = [ROOT / "README.md", *(path for page in pages for path in _linked(page))]
    added: set[Path] = set()
    while found:
        path = found.pop()
        if path not in added and DOCS not in path.parents and _is_published(path):
            added.add(path)
            files.append(File.generated(config, _place(path), abs_src_path=str(path)))
            found += _linked(path) if path.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point each link to the place that its file has in the site."""
    source = Path(str(page.file.abs_src_path))

    def without(link: re.Match[str]) -> str:
        return link[1] if _target(source, link[2]).is_dir() else link[0]

    def moved(link: re.Match[str]) -> str:
        path = _target(source, link[2])
        here = Path(page.file.src_uri).parent
        there = path.is_file() if DOCS in path.parents else _is_published(path)
        return link[1] + (os.path.relpath(_place(path), here) if there else link[2])

    return _LINK.sub(moved, _FOLDER_LINK.sub(without, markdown))


def _linked(source: Path) -> Iterator[Path]:
    text = _CODE.sub("", source.read_text(encoding="utf-8"))
    yield from (_target(source, link[2]) for link in _LINK.finditer(text))


def _target(source: Path, link: str) -> Path:
    """Return what a link names; of a folder, its README if it has one."""
    path = Path(os.path.normpath(source.parent / link))
    return path / "README.md" if (path / "README.md").is_file() else path


def _is_published(path: Path) -> bool:
    """Whether a file is one of the repository, and no link to another."""
    if (listed := _in_git()) is not None:
        return path in listed
    return path.is_file() and path.resolve() == path and ROOT in path.parents and ".git" not in path.parts


@cache
def _in_git() -> frozenset[Path] | None:
    """Files that git has, without links; None where this is no checkout of git's, as in a release's archive."""
    command = ["git", "-C", str(ROOT), "ls-files", "--stage", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry.startswith(_REGULAR))
    return frozenset(ROOT / name for _, _, name in entries)


def _place(path: Path) -> str:
    """Return a file's path in the site, which has no hidden folders."""
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    return "/".join([_FOLDER, *(part.lstrip(".") for part in path.relative_to(ROOT).parts)])
