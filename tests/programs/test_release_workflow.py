"""The workflow of a release: what each job may, and what its scripts do with stand-ins for git hosts and registries."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DIGEST = f"sha256:{'1' * 64}"
BUILDING = {"packages", "engines", "image"}

#: Writes down its words; `answers` has what to print, and `fails` which words end it.
_NOTED = """#!/usr/bin/env python3
import json, os, pathlib, sys
words = [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]
with open("log", "a") as log:
    print(json.dumps(words), file=log)
line = " ".join(words)
if "--digestfile" in words:
    pathlib.Path(words[words.index("--digestfile") + 1]).write_text(os.environ["FOUND"])
if any(each in line for each in json.loads(os.environ.get("FAILS", "[]"))):
    sys.exit(1)
print("".join(text for part, text in json.loads(os.environ.get("ANSWERS", "{}")).items() if part in line), end="")
"""


@cache
def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    return found


def jobs() -> dict[str, Any]:
    found: dict[str, Any] = workflow()["jobs"]
    return found


def script(job: str, name: str) -> str:
    (found,) = [step["run"] for step in jobs()[job]["steps"] if step.get("name") == name]
    return str(found)


def run(text: str, folder: Path, *programs: str, **variables: str) -> subprocess.CompletedProcess[str]:
    for name in programs:
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / name).write_text(_NOTED)
        (folder / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(folder / "output")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False, timeout=60
    )


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


def noted(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def test_each_job_may_only_what_it_does() -> None:
    assert workflow()["permissions"] == {}
    writing = {
        name: {key for key, value in job["permissions"].items() if value == "write"} for name, job in jobs().items()
    }
    assert {name: rights for name, rights in writing.items() if rights} == {
        "registry": {"packages", "id-token", "attestations"},
        "pypi": {"id-token"},
        "github": {"contents", "id-token", "attestations"},
    }
    for name, job in jobs().items():
        assert 0 < job["timeout-minutes"] <= 120
        # Who may approve the environment decides what is published.
        assert (job.get("environment") == "release") is (name not in BUILDING), name
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_nothing_is_published_before_everything_is_built() -> None:
    def before(name: str) -> set[str]:
        needed = jobs()[name].get("needs", [])
        return set(needed).union(*map(before, needed))

    assert all(before(name) >= BUILDING for name in jobs().keys() - BUILDING)
    assert before("github") == jobs().keys() - {"github"}


def test_a_job_that_publishes_runs_nothing_of_the_project_beside_its_login() -> None:
    for name in jobs().keys() - BUILDING:
        scripts = "\n".join(step.get("run", "") for step in jobs()[name]["steps"])
        assert set(re.findall(r"bin/karpstack \w+ \w+", scripts)) <= {"bin/karpstack engines publish"}, name
        assert not re.findall(r"-m karpstack|pytest", scripts), name
        assert set(re.findall(r"make .*", scripts)) <= {"make --no-print-directory environment"}, name
    secret = [step for job in jobs().values() for step in job["steps"] if "secrets." in str(step)]
    assert [step["name"] for step in secret] == ["Publish the collection"]
    assert "TOKEN" not in secret[0]["run"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a version on main, and a commit that is not."""
    who = ("-c", "user.name=mona", "-c", "user.email=mona@example.org", "-c", "commit.gpgsign=false")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "karpstack"\nversion = "1.2.3"\n')
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "pyproject.toml"),
        ("commit", "--quiet", "--message=one"),
        ("update-ref", "refs/remotes/origin/main", "HEAD"),
        ("commit", "--quiet", "--allow-empty", "--message=two"),
    ):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("tag", "commit", "said"),
    [
        ("v1.2.3", "HEAD~1", ""),
        ("v1.2.4", "HEAD~1", "the tag is v1.2.4, and pyproject.toml has version 1.2.3"),
        ("v1.2.3", "HEAD", "the tag v1.2.3 is not on main"),
    ],
)
def test_only_the_version_of_main_is_released(tag: str, commit: str, said: str, checkout: Path) -> None:
    subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=checkout, check=True)
    done = run(script("packages", "Check the tag"), checkout, GITHUB_REF_NAME=tag)
    assert (done.returncode == 0, said in done.stderr) == (not said, True), done.stderr
    if not said:
        assert outputs(checkout) == {"version": "1.2.3"}


@pytest.mark.parametrize("version", ["1.2.3", "1.2", "1.2.4"])
def test_the_notes_are_the_section_of_the_changelog(version: str, tmp_path: Path) -> None:
    (tmp_path / "build" / "release").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n- later [x](a.md)\n\n## [1.2.3] - 2026-11-27\n\n### Added\n\n"
        "- One. [a.md](a.md#part), [y](#y), [z](https://example.org/z)\n\n## [1.2.2] - 2026-01-01\n\n- old\n"
    )
    variables = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "Me/k", "GITHUB_REF_NAME": "v1.2.3"}
    done = run(script("packages", "Write the notes"), tmp_path, VERSION=version, **variables)
    if version != "1.2.3":
        assert done.returncode
        assert f"no section [{version}]" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    notes = (tmp_path / "build" / "release" / "notes.md").read_text()
    assert notes.strip() == (
        "### Added\n\n- One. [a.md](https://git.example/Me/k/blob/v1.2.3/a.md#part), [y](#y), "
        "[z](https://example.org/z)"
    )


@pytest.mark.parametrize("found", [DIGEST, f"sha256:{'2' * 64}"])
def test_what_the_registry_has_must_be_what_was_built(found: str, tmp_path: Path) -> None:
    done = run(
        script("registry", "Push the engines and the image").replace(".venv/bin/", ""),
        tmp_path,
        *("docker", "karpstack", "buildah"),
        **{"VERSION": "1.2.3", "ENGINES": DIGEST, "TOKEN": "secret", "FOUND": DIGEST},
        **{"GITHUB_REPOSITORY": "Me/Karpstack", "GITHUB_ACTOR": "mona"},
        ANSWERS=json.dumps({"karpstack engines publish": f"oci://ghcr.io/me/karpstack-engines:1.2.3@{found}\n"}),
    )
    commands = noted(tmp_path)
    assert "secret" not in str(commands)
    if found != DIGEST:
        assert done.returncode
        assert f"and they were built as {DIGEST}" in done.stderr
        assert not [words for words in commands if words[0] == "buildah"]
        return
    assert done.returncode == 0, done.stderr
    assert outputs(tmp_path) == {
        "name": "ghcr.io/me/karpstack",
        "engines": f"ghcr.io/me/karpstack-engines:1.2.3@{DIGEST}",
        "image": f"ghcr.io/me/karpstack:1.2.3@{DIGEST}",
        "digest": DIGEST,
    }


@pytest.mark.parametrize(
    ("tags", "fails", "moved"),
    [
        (["v1.2.3", "v1.2.2"], [], ["PATCH", "git/refs/tags/v1", "sha=abc", "force=true"]),
        (["v1.2.3"], ["git/ref/tags/v1"], ["POST", "git/refs", "ref=refs/tags/v1", "sha=abc"]),
        (["v1.2.3", "v1.10.0"], [], []),
        (["v1.2.3", "v1.10.0-rc"], [], ["PATCH", "git/refs/tags/v1", "sha=abc", "force=true"]),
    ],
)
def test_the_major_tag_moves_to_the_newest_version_only(
    tags: list[str], fails: list[str], moved: list[str], tmp_path: Path
) -> None:
    answers: Mapping[str, str] = {"matching-refs/tags/v1.": "".join(f"refs/tags/{tag}\n" for tag in tags)}
    done = run(
        script("github", "Move the tag of the major version"),
        tmp_path,
        "gh",
        **{"VERSION": "1.2.3", "GH_REPO": "me/k", "GITHUB_SHA": "abc"},
        **{"ANSWERS": json.dumps(answers), "FAILS": json.dumps(fails)},
    )
    assert done.returncode == 0, done.stderr
    writing = [words for words in noted(tmp_path) if "--method" in words]
    if not moved:
        assert writing == []
        assert "v1 stays, because v1.10.0 is newer" in done.stdout
        return
    ((_, _, _, method, path, _, first, _, second),) = writing
    assert [method, path.removeprefix("repos/me/k/"), first, second] == moved


def test_the_release_names_the_engines_and_the_image(tmp_path: Path) -> None:
    for name in ("notes.md", "karpstack-1.2.3.tar.gz", "SHA256SUMS"):
        (tmp_path / name).write_text(f"{name}\n")
    places = {"ENGINES": f"ghcr.io/me/k-engines:1.2.3@{DIGEST}", "IMAGE": f"ghcr.io/me/k:1.2.3@{DIGEST}"}
    publish = script("github", "Publish the release")
    assert run(publish, tmp_path, "gh", VERSION="1.2.3", **places).returncode == 0
    assert [words[2] for words in noted(tmp_path)] == ["view"]  # it is there already, from a run that failed later
    (tmp_path / "log").unlink()
    done = run(publish, tmp_path, "gh", VERSION="1.2.3", FAILS='["release view"]', **places)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "body.md").read_text() == (
        f"notes.md\n\nEngines: KARPSTACK_ENGINES=oci://ghcr.io/me/k-engines:1.2.3@{DIGEST}\n\n"
        f"Image: ghcr.io/me/k:1.2.3@{DIGEST}\n"
    )
    _, words = noted(tmp_path)
    assert words[:4] == ["gh", "release", "create", "v1.2.3"]
    assert words[-2:] == ["karpstack-1.2.3.tar.gz", "SHA256SUMS"]
