"""The documentation's site holds files of the repository, and no others of the machine that builds it."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import PluginCollection
from mkdocs.structure.files import File, Files

_HOOK = Path(__file__).parents[2] / "docs" / "repository_files.py"


def _hook(root: Path) -> ModuleType:
    """The hook, for another repository."""
    spec = importlib.util.spec_from_file_location("hook", _HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(ROOT=root, DOCS=root / "docs")
    return module


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "LICENSE").write_text("free")
    links = "[a](../secret) [b](../.git/config) [c](../link) [d](../LICENSE) [e](../../outside)"
    (tmp_path / "docs" / "index.md").write_text(links)
    (tmp_path / "README.md").write_text("hello")
    return tmp_path


def _published(root: Path) -> set[str]:
    page = File("index.md", str(root / "docs"), str(root / "site"), use_directory_urls=False)
    config = MkDocsConfig()
    config.plugins = PluginCollection()
    config.plugins._current_plugin = "hook"
    found = _hook(root).on_files(Files([page]), config)
    return {file.src_uri for file in found} - {"index.md"}


def test_what_is_not_in_git_is_not_published(repository: Path) -> None:
    for command in (["init", "-q"], ["add", "README.md", "LICENSE", "link", "docs"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    assert _published(repository) == {"repository/README.md", "repository/LICENSE"}


def test_without_git_no_link_is_followed(repository: Path) -> None:
    assert _published(repository) == {"repository/README.md", "repository/LICENSE", "repository/secret"}
