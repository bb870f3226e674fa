"""What `make` builds for whom, and what it removes: nothing that the project did not make."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from karpstack.rehearsal import cleaning
from karpstack.scale_test.reports import folder
from karpstack.text.files import make_ours

ROOT = Path(__file__).resolve().parents[3]


def clean(cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "clean-cache", f"KARPSTACK_CACHE={cache}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_the_project_did_not_put_into_the_cache_stays(tmp_path: Path) -> None:
    """A home, for example, where `go` is the user's own: the project's engines go, the rest does not."""
    (tmp_path / "go" / "src" / "mine").mkdir(parents=True)
    (tmp_path / ".ssh").mkdir()
    result = clean(tmp_path)
    assert result.returncode
    assert "Removing" not in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"go", ".ssh"}
    make_ours(tmp_path / "engines")
    make_ours(tmp_path / "go")  # has something in it
    result = clean(tmp_path)
    assert result.returncode
    assert f"Removing what the project made:\n  {tmp_path.name}/engines\nKept" in result.stdout
    assert (tmp_path / "go" / "src" / "mine").is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"go", ".ssh"}


def test_a_link_to_an_engine_folder_is_not_followed(tmp_path: Path) -> None:
    make_ours(tmp_path / "other" / "engines")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "engines").symlink_to(tmp_path / "other" / "engines")
    result = clean(tmp_path / "cache")
    assert result.stdout.startswith("Kept, ")
    assert "  cache/engines" in result.stdout
    assert "Traceback" not in result.stderr
    assert (tmp_path / "other" / "engines").is_dir()


def test_a_cache_folder_of_the_projects_alone_goes(tmp_path: Path) -> None:
    cache = tmp_path / "karpstack"
    for name in ("engines", "go", "uv"):
        make_ours(cache / name)
    (cache / "engines.lock").touch()
    assert clean(cache).returncode == 0
    assert not cache.exists()


@pytest.mark.parametrize("mine", ["engines.lock", "engines.lock/thesis.txt"])
def test_what_only_has_the_name_of_the_lock_stays(tmp_path: Path, mine: str) -> None:
    make_ours(tmp_path / "engines")
    (tmp_path / mine).parent.mkdir(exist_ok=True)
    (tmp_path / mine).write_text("mine")
    assert clean(tmp_path).returncode
    assert (tmp_path / mine).read_text() == "mine"
    assert not (tmp_path / "engines").exists()


@pytest.mark.parametrize("parts", [["engines", "go"], []])
def test_a_cache_folder_that_a_link_names_stays(tmp_path: Path, parts: list[str]) -> None:
    """On another disk, for example. With a link to nothing, no command could make the folder again."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "karpstack").symlink_to(tmp_path / "disk")
    for name in parts:
        make_ours(tmp_path / "disk" / name)
    result = clean(tmp_path / "karpstack")
    assert result.returncode == 0
    assert [line.strip() for line in result.stdout.splitlines()[1:]] == [f"disk/{name}" for name in parts]
    assert (tmp_path / "karpstack").is_symlink()
    assert [*(tmp_path / "karpstack").iterdir()] == []


def test_an_empty_folder_without_marks_stays(tmp_path: Path) -> None:
    assert clean(tmp_path).returncode == 0
    assert tmp_path.is_dir()


def test_caches_of_the_users_own_tools_stay(tmp_path: Path) -> None:
    """KARPSTACK_CACHE=~/.cache: the user's uv, mypy and matplotlib have the same names and tags as the project's."""
    for name in ("uv", "fontconfig", "mypy", "matplotlib", "go/modules/cache"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# by a tool")
    (tmp_path / "matplotlib" / "fontlist-v390.json").touch()
    make_ours(tmp_path / "engines")
    assert clean(tmp_path).returncode
    assert {path.name for path in tmp_path.iterdir()} == {"uv", "fontconfig", "mypy", "matplotlib", "go"}


@pytest.mark.parametrize("name", ["karpstack", "other"])
def test_a_cache_without_markers_stays(tmp_path: Path, name: str) -> None:
    """What the names and the files within are like says nothing about who made a folder."""
    cache = tmp_path / name
    files = ("engines/mine/thesis.txt", "engines/model/v1/manifest.json", "go/modules/cache/one", "uv/one")
    for file in (*files, "matplotlib/fontlist-v390.json"):
        (cache / file).parent.mkdir(parents=True, exist_ok=True)
        (cache / file).touch()
    result = clean(cache)
    assert result.returncode
    assert result.stdout.startswith("Kept, because the project's marker is missing; remove by hand")
    assert f"  {name}/engines\n  {name}/go\n  {name}/matplotlib\n  {name}/uv\n" in result.stdout
    assert all((cache / file).is_file() for file in files)


def test_results_without_a_marker_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("review/eks/review.sarif", "whatif/a/b/timeline.jsonl", "lib/karpstack/py.typed", "bdist.linux/mine")
    files = [tmp_path / "build" / name for name in names]
    for file in (*files, tmp_path / ".venv" / ".ready-1"):
        file.parent.mkdir(parents=True)
        file.touch()
    assert cleaning.clean_checkout(tmp_path) == 0
    assert all(file.is_file() for file in files)
    kept = capsys.readouterr().out.splitlines()[1:]
    assert kept == [f"  {name}" for name in ("build/bdist.linux", "build/lib", "build/review", "build/whatif", ".venv")]


def test_the_folders_of_a_report_below_build_get_markers(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    folder.make_room(tmp_path / "build" / "rehearsal" / "eks")
    assert cleaning.clean_checkout(tmp_path) == 0
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("marked", [True, False])
def test_a_name_that_steers_a_terminal_is_shown_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marked: bool
) -> None:
    name = tmp_path / "build" / "a\x1b[31m\n::error::pwned\t"
    if marked:
        make_ours(name)
    else:
        name.mkdir(parents=True)
    assert cleaning.clean_checkout(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [r"  build/a\x1b[31m\n\x3a:error::pwned\t"]


def test_a_tag_counts_only_by_a_name_that_the_project_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs tag their folders too: cargo its targets, restic and ccache their caches."""
    cache = tmp_path / "karpstack"
    own = [tmp_path / name for name in (".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv")]
    own += [cache / name for name in ("mypy", "uv")]
    others = [tmp_path / "build" / "target", tmp_path / "build" / "uv", cache / "ccache", cache / "restic"]
    for path in (*own, *others):
        path.mkdir(parents=True)
        (path / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# by a tool")
    assert cleaning.clean_checkout(tmp_path) == 0
    assert cleaning.clean_cache(cache) == 1
    assert not any(path.exists() for path in own)
    assert all(path.is_dir() for path in others)
    assert "build/target" in capsys.readouterr().out.split("Kept, ")[1]


def test_of_a_checkout_goes_what_is_marked_and_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended: list[str] = []

    def stop(stack: Path) -> bool:
        ended.append(stack.name)
        return stack.name != "runs"

    for stack in (".rehearsal/eks", ".rehearsal/runs", "build/whatif/eks/change/state/asked"):
        (tmp_path / stack).mkdir(parents=True)
        (tmp_path / stack / "karpstack-rehearsal").touch()
    make_ours(tmp_path / "build" / "review")
    (tmp_path / "build" / "whatif" / ".made-by-karpstack").touch()
    for mine in (".rehearsal/mine", "build/mine", "build/rehearsal", "mine"):
        (tmp_path / mine).mkdir()
    (tmp_path / "build" / "pack").symlink_to(tmp_path / "mine")
    (tmp_path / ".venv").mkdir()
    started = time.monotonic()
    assert cleaning.clean_checkout(tmp_path, stop) == 1
    assert time.monotonic() - started < 5.0
    assert sorted(ended) == ["asked", "eks", "runs"]
    removed, kept = capsys.readouterr().out.split("Kept, ")
    assert removed.split()[5:] == [".rehearsal/eks", "build/review", "build/whatif"]
    assert kept.splitlines()[1:] == [
        f"  {name}" for name in (".rehearsal/mine", "build/mine", "build/pack", "build/rehearsal", ".venv")
    ]
    assert (tmp_path / "mine").is_dir()
    assert not (tmp_path / "build" / "review").exists()
    assert (tmp_path / ".rehearsal" / "runs").is_dir()


@pytest.mark.parametrize("link", [".rehearsal", ".rehearsal/eks", "build"])
def test_no_link_leads_clean_to_a_stack(link: str, tmp_path: Path) -> None:
    checkout, other = tmp_path / "checkout", tmp_path / "other"
    stack = other / {".rehearsal": "eks", "build": "whatif/eks/change/state/asked"}.get(link, "")
    stack.mkdir(parents=True)
    (stack / "karpstack-rehearsal").touch()
    (checkout / link).parent.mkdir(parents=True, exist_ok=True)
    (checkout / link).symlink_to(other)
    asked: list[Path] = []

    def stop(path: Path) -> bool:
        asked.append(path)
        return True

    assert cleaning.clean_checkout(checkout, stop) == 0
    assert not asked
    assert (stack / "karpstack-rehearsal").is_file()
    assert (checkout / link).is_symlink()


def packed(folder: Path, *goal: str) -> subprocess.CompletedProcess[str]:
    """`make pack`, or another goal, in a folder with what the pack is made of."""
    for name in ("policies", "karpstack", "requirements.lock"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    command = ["make", "--no-print-directory", "--file", str(ROOT / "Makefile"), *(goal or ["pack"])]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_pack_replaces_a_pack_and_nothing_else(tmp_path: Path) -> None:
    for _ in range(2):
        assert packed(tmp_path).returncode == 0
        assert (tmp_path / "build" / "pack" / "PulumiPolicy.yaml").is_file()
    (tmp_path / "build" / "pack" / ".made-by-karpstack").unlink()
    assert "build/pack was not made by this project" in packed(tmp_path).stderr
    assert (tmp_path / "build" / "pack" / "PulumiPolicy.yaml").is_file()


def test_a_venv_and_a_site_of_somebody_else_stay(tmp_path: Path) -> None:
    for name in (".venv/.ready-1", "build/docs/mine"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert ".venv was not made by this project" in packed(tmp_path, "environment").stderr
    assert "build/docs was not made by this project" in packed(tmp_path, "--old-file=environment", "docs").stderr
    assert (tmp_path / ".venv" / ".ready-1").is_file()
    assert [path.name for path in (tmp_path / "build" / "docs").iterdir()] == ["mine"]


def test_a_pack_is_not_made_through_a_link(tmp_path: Path) -> None:
    make_ours(tmp_path / "elsewhere" / "pack")
    (tmp_path / "build").symlink_to(tmp_path / "elsewhere")
    assert packed(tmp_path).returncode
    assert [path.name for path in (tmp_path / "elsewhere" / "pack").iterdir()] == [".made-by-karpstack"]


@pytest.mark.parametrize("given", ["LABEL=fault", "Stack=aks-nap", "OPTIONS=--keep"])
def test_a_variable_with_a_typo_is_refused(given: str) -> None:
    """Without a word, the walk-throughs of the default stack would run."""
    command = ["make", "--dry-run", "rehearsal", "STACK=eks", "LABELS=fault,scale", given]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert f"{given.partition('=')[0]} is no variable of this Makefile, so it would have no effect" in result.stderr
    subprocess.run(command[:-1], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize(
    ("goals", "asked"),
    [
        (["rehearsal"], "-m karpstack.rehearsal.engines Pulumi.eks.yaml"),
        (["soak", "STACK=aks-nap"], "-m karpstack.rehearsal.engines Pulumi.aks-nap.yaml"),
        (["rehearsal", "STACK=aks-nap"], "-m karpstack.rehearsal.engines Pulumi.aks-nap.yaml"),
        (["setup"], "-m karpstack.rehearsal.engines Pulumi.eks.yaml"),
        (["setup", "STACK=aks-nap"], "-m karpstack.rehearsal.engines Pulumi.aks-nap.yaml"),
        (["facts"], "-m karpstack.rehearsal.engines"),
        (["test"], "-m karpstack.rehearsal.engines"),
    ],
)
def test_a_stack_needs_the_engines_of_its_cloud_and_the_tests_need_all(goals: list[str], asked: str) -> None:
    result = subprocess.run(["make", "--dry-run", *goals], cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = (
        line for line in result.stdout.splitlines() if "-m karpstack.rehearsal.engines" in line and "--lint" not in line
    )
    assert line.rstrip().endswith(asked)
