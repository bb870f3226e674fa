"""A change in a repository, from the action's first script to its last; the rehearsal is a stand-in."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from karpstack.pull_request import outcome, stacks
from karpstack.pull_request.__main__ import main
from karpstack.pull_request.commands import PASSED_ON
from karpstack.pull_request.inputs import file_for_stack
from karpstack.pull_request.outcome import Outcome
from karpstack.pull_request.stacks import AffectedStack, StacksError
from karpstack.pull_request.text import marker
from tests.programs.pull_request.github_server import WRITES, GitHubServer, served
from tests.programs.pull_request.repository import STACK, Repository, act
from tests.unit.command_line import parsed


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repository"
    made = Repository(folder, folder)
    made.lay_down_program()
    made.folder.joinpath(".gitignore").write_text("/.venv/\n/build/\n/asked.jsonl\n__pycache__/\n")
    made.commit(
        **{
            "Pulumi.yaml": "name: karpstack\n",
            "Pulumi.eks.yaml": STACK.format(cloud="aws"),
            "Pulumi.aks-nap.yaml": STACK.format(cloud="azure"),
            "policies/eks.json": "{}\n",
            "docs/a.md": "a\n",
        }
    )
    return made


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with served() as server:
        yield server


def test_another_project_file_that_pulumi_prefers_is_refused(repository: Repository) -> None:
    repository.commit(**{"Pulumi.json": "{}", "Pulumi.eks.json": "{}"})
    with pytest.raises(StacksError, match=r"Pulumi\.json is beside Pulumi\.yaml"):
        stacks.change(repository.folder, "HEAD^")


def test_stack_files_of_another_folder_are_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit(**{"Pulumi.yaml": "name: karpstack\nstackConfigDir: stacks\n"})
    repository.commit(**{"stacks/Pulumi.eks.yaml": STACK.format(cloud="aws")})
    monkeypatch.chdir(repository.folder)
    assert main(["stacks", "--base", "HEAD^1"]) == 2
    assert "error: Pulumi.yaml: stackConfigDir names another folder" in capsys.readouterr().err


def test_the_stack_that_a_pull_request_changes_is_rehearsed_and_told_of(
    repository: Repository, github: GitHubServer, tmp_path: Path
) -> None:
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  a: 1\n"})
    assert act(repository, github, limits="limits.yml", patience="60") == 0
    base = repository.git("rev-parse", "HEAD^1")
    options = {"--base": base, "--limits": str(repository.folder / "limits.yml"), "--patience": "60"}
    assert repository.asked() == [["review", "eks", {}], ["whatif", "eks", options]]
    found = repository.outputs["stacks"]
    assert (found["stacks"], found["files"]) == ('["eks"]', "Pulumi.eks.yaml")
    assert found["engines"] == str(tmp_path / ".cache" / "karpstack" / "engines")
    assert found["key"].startswith("engines-")
    (comment,) = github.comments
    assert comment["body"].startswith(f"{marker()}\n## Rehearsed: nothing is in the way\n")
    assert "## whatif of eks" in comment["body"]
    assert "## review of eks" in comment["body"]
    assert repository.outputs["comment"]["url"] == comment["html_url"]
    assert "## whatif of eks" in (tmp_path / "summary.md").read_text()


def test_each_stack_has_a_snapshot_of_its_own(repository: Repository, github: GitHubServer) -> None:
    repository.merged(
        **{f"Pulumi.{name}.yaml": f"{STACK.format(cloud='aws')}  a: 1\n" for name in ("eks", "aks-nap")},
        **{"snapshots/eks.json.gz": "", "snapshots/default.json": "", "prices/eks.yml": ""},
    )
    assert act(repository, github, workloads="snapshots", prices="prices", at="2026-11-29T03:00+01:00") == 0
    base, folder = repository.git("rev-parse", "HEAD^1"), repository.folder
    same = {"--base": base, "--at": "2026-11-29T03:00+01:00"}
    asked = {stack: options for command, stack, options in repository.asked() if command == "whatif"}
    assert asked == {
        "aks-nap": {**same, "--workloads": str(folder / "snapshots" / "default.json")},
        "eks": {
            **same,
            "--workloads": str(folder / "snapshots" / "eks.json.gz"),
            "--prices": str(folder / "prices" / "eks.yml"),
        },
    }
    said = repository.step("rehearse", {}, {"prices": "prices"}).stderr
    assert f"aks-nap: {folder}/prices has no aks-nap.yml and no default.yml, so the what-if takes those of the" in said


def test_a_link_that_leads_nowhere_does_not_make_the_others_limits_count(tmp_path: Path) -> None:
    """To a submodule that is not there, for example: the what-if says that it cannot be read."""
    (tmp_path / "default.yml").touch()
    (tmp_path / "prod.yml").symlink_to("submodule/limits.yml")
    assert file_for_stack("limits", tmp_path, "prod") == tmp_path / "prod.yml"
    assert file_for_stack("limits", tmp_path, "dev") == tmp_path / "default.yml"


def test_the_rehearsal_knows_what_it_is_asked() -> None:
    """The stand-in takes everything."""
    number = {"wait-factor": "2", "patience": "60", "at": "2026-11-29T03:00+01:00"}
    words = [f"--{name}={number.get(name, 'file.yml')}" for name in (*PASSED_ON, "base", "output")]
    command, options = parsed(["whatif", "eks", *words])
    assert (command, options["patience"]) == ("karpstack whatif stack", 60)


def test_a_repository_of_stack_files_is_not_taken_for_karpstacks(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own commits are meant; nothing is built or written there, and what can be done is said."""
    shutil.rmtree(repository.folder / "karpstack" / "rehearsal")
    (repository.folder / "karpstack" / "__main__.py").unlink()
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  a: 1\n"})
    monkeypatch.chdir(repository.folder)
    assert main(["stacks", "--base", "HEAD^1"]) == 0
    assert capsys.readouterr().out == '["eks"]\n'
    assert main(["rehearse", "--base", "HEAD^1"]) == 2
    assert f"karpstack whatif STACK --project {repository.folder} --base " in capsys.readouterr().err
    assert not (repository.folder / "build").exists()


def test_another_commit_than_the_one_that_is_checked_out_is_not_judged(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files that were checked out were judged, and passed for those of --head."""
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  a: 1\n"})
    monkeypatch.chdir(repository.folder)
    subprocess.run(["git", "checkout", "-q", "HEAD^1"], check=True)
    assert main(["rehearse", "--base", "HEAD", "--head", "@{1}"]) == 2
    assert "another commit is checked out, and its files would be judged" in capsys.readouterr().err
    assert repository.asked() == []


def test_no_stack_leads_out_of_the_folder_of_results(repository: Repository) -> None:
    """`Pulumi....yaml` is the file of a stack called `..`, whose results would lie above all others'."""
    repository.merged(**{"Pulumi....yaml": STACK.format(cloud="aws")})
    other = repository.folder / "build" / "review" / "review.md"
    other.parent.mkdir(parents=True)
    other.write_text("another review")
    (repository.folder / "build" / "outcome.json").write_text("{}")
    repository.step("stacks", {}, {}).check_returncode()
    refused = repository.step("rehearse", {}, {"stacks": ".."})
    assert refused.returncode == 2
    assert "there is no Pulumi....yaml" in refused.stderr
    assert other.read_text() == "another review"
    assert repository.asked() == []


@pytest.mark.parametrize(("base", "code"), [("HEAD", 0), ("nowhere", 2)])
def test_what_was_rehearsed_before_is_not_told_as_the_answer(
    base: str, code: int, repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the change touches nothing, nor where it is refused."""
    results = repository.folder / "build" / "pull-request"
    outcome.write(Outcome("eks", "passed", "within limits"), results / "eks")
    monkeypatch.chdir(repository.folder)
    assert main(["rehearse", "--base", base]) == code
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert main(["summary"]) == 0
    assert "passed" not in capsys.readouterr().out


def test_the_next_push_changes_the_comment(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  # review refuses, whatif breaks\n"})
    assert act(repository, github) == 3
    assert "| eks | **no answer**: the job's log says why | **refused**" in github.comments[0]["body"]
    repository.commit(**{"Pulumi.eks.yaml": STACK.format(cloud="aws"), "docs/a.md": "b\n"})
    assert act(repository, github, base="HEAD~2^1") == 0
    assert len(github.comments) == 1


def test_when_nothing_is_touched_any_more_the_comment_says_so(repository: Repository, github: GitHubServer) -> None:
    github.add(f"{marker()}\nbefore")
    repository.merged(**{"docs/a.md": "b\n"})
    assert act(repository, github) == 0
    assert repository.outputs["stacks"]["stacks"] == "[]"
    assert "touches no stack" in github.comments[0]["body"]
    assert repository.asked() == []


@pytest.mark.parametrize(
    ("said", "code", "row"),
    [
        ("review refuses", 1, "| eks | within the limits | **refused**"),
        ("review fails", 3, "| eks | within the limits | **failed**"),
        ("review breaks", 3, "| eks | within the limits | **failed**"),
        ("whatif refuses", 1, "| eks | **not within the limits** | passed |"),
        ("whatif fails", 3, "| eks | **no answer**"),
        ("whatif breaks", 3, "| eks | **no answer**"),
    ],
)
def test_what_is_refused_is_told_from_what_broke(
    said: str, code: int, row: str, repository: Repository, github: GitHubServer
) -> None:
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  # {said}\n"})
    assert act(repository, github) == code
    assert row in github.comments[0]["body"]
    assert len(repository.asked()) == 2


def test_what_an_earlier_rehearsal_said_is_not_taken_for_this_ones(
    repository: Repository, github: GitHubServer
) -> None:
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  # whatif refuses\n"})
    assert act(repository, github) == 1
    repository.commit(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  # whatif breaks\n"})
    assert act(repository, github, base="HEAD~1^1") == 3
    assert "| eks | **no answer**" in github.comments[0]["body"]
    assert "## whatif of eks" not in github.comments[0]["body"]


def test_a_new_stack_and_one_that_is_judged_anew_are_reviewed_alone(
    repository: Repository, github: GitHubServer
) -> None:
    repository.merged(**{"Pulumi.new.yaml": STACK.format(cloud="aws"), "policies/eks.json": "{ }\n"})
    assert act(repository, github) == 0
    assert repository.asked() == [["review", "eks", {}], ["review", "new", {}]]
    assert "| new | none: the stack is new" in github.comments[0]["body"]
    assert "| eks | none: what judges the stack differs" in github.comments[0]["body"]


def test_stacks_can_be_named_and_the_review_be_alone(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{"docs/a.md": "b\n"})
    assert act(repository, github, stacks="eks,aks-nap", **{"what-if": "false"}) == 0
    assert repository.asked() == [["review", "eks", {}], ["review", "aks-nap", {}]]


@pytest.mark.parametrize("ending", ["yaml", "network.json", "cluster.json"])
def test_what_describes_a_stack_is_of_the_stack(ending: str) -> None:
    path = f"Pulumi.eks.{ending}"
    changed = stacks.Change("base", [path], ["aks-nap", "eks"], ["aks-nap", "eks"])
    assert changed.touched() == [AffectedStack("eks", path, "asked")]


@pytest.mark.parametrize(
    ("link", "whatif"),
    [("Pulumi.eks.yaml", "asked"), ("Pulumi.eks.cluster.json", "asked"), ("policies/eks.json", "policies")],
)
def test_a_link_is_touched_by_what_differs_anywhere(
    link: str, whatif: Literal["asked", "policies"], repository: Repository
) -> None:
    """It may lead there, also outside of the project."""
    folder = repository.folder / "infrastructure"
    repository.commit(
        **{"infrastructure/Pulumi.yaml": "", "shared/one": "{}\n", "README.md": "a\n"},
        **{f"infrastructure/Pulumi.{stack}.yaml": STACK.format(cloud="aws") for stack in ("eks", "other")},
    )
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).unlink(missing_ok=True)
    (folder / link).symlink_to(repository.folder / "shared" / "one")
    repository.commit()
    repository.commit(**{"shared/one": "{ }\n"})
    assert stacks.change(folder, "HEAD^").touched() == [AffectedStack("eks", link, whatif)]
    assert stacks.change(folder, "HEAD").touched() == []


def test_a_stack_of_whose_job_nothing_came_is_told_as_failed(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{"Pulumi.eks.yaml": f"{STACK.format(cloud='aws')}  a: 1\n"})
    repository.step("stacks", {}, {}).check_returncode()
    repository.step("comment", {"GITHUB_API_URL": github.url}, {"token": WRITES}).check_returncode()
    assert "| eks | **no answer**: the job's log says why | **failed**" in github.comments[0]["body"]


def test_a_checkout_of_one_commit_is_told_how_to_get_the_other(repository: Repository, tmp_path: Path) -> None:
    repository.merged(**{"docs/a.md": "b\n"})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", repository.folder.as_uri(), shallow], check=True)
    with pytest.raises(StacksError, match=r"--base 'HEAD\^1' is no commit .* `fetch-depth: 2`"):
        stacks.change(shallow, "HEAD^1")
    subprocess.run(["git", "-C", shallow, "fetch", "--quiet", "--depth=2", "origin"], check=True)
    assert stacks.change(shallow, "HEAD^1").paths == ["docs/a.md"]


def test_another_repository_that_the_environment_names_is_not_asked(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a hook of another repository, no stack was touched."""
    repository.merged(**{"docs/a.md": "b\n"})
    subprocess.run(["git", "init", "--quiet", tmp_path / "other"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert stacks.change(repository.folder, "HEAD^1").paths == ["docs/a.md"]


def test_the_project_can_be_a_folder_of_a_repository(repository: Repository) -> None:
    repository.commit(**{"infrastructure/Pulumi.yaml": "", "infrastructure/Pulumi.mine.yaml": "a: 1\n"})
    repository.commit(**{"infrastructure/Pulumi.mine.yaml": "a: 2\n", "Pulumi.eks.yaml": "a: 2\n"})
    found = stacks.change(repository.folder / "infrastructure", "HEAD^")
    assert found.touched() == [AffectedStack("mine", "Pulumi.mine.yaml", "asked")]


def test_a_stack_with_another_name_is_a_new_one_and_one_that_is_gone(repository: Repository) -> None:
    repository.git("mv", "Pulumi.eks.yaml", "Pulumi.eks-2.yaml")
    repository.commit()
    found = stacks.change(repository.folder, "HEAD^")
    assert found.touched() == [AffectedStack("eks-2", "Pulumi.eks-2.yaml", "new")]
    assert stacks.removed(found) == ["eks"]


def test_what_is_moved_away_was_there(repository: Repository) -> None:
    repository.commit(**{"components/a.py": "a = 1\n" * 20})
    repository.git("mv", "components/a.py", "docs/a.py")
    repository.commit()
    found = stacks.change(repository.folder, "HEAD^")
    assert [one.why for one in found.touched()] == ["components/a.py"] * 2


def test_what_files_are_called_is_no_part_of_any_command(repository: Repository, github: GitHubServer) -> None:
    names = [
        "Pulumi.$(touch pwned).yaml",
        "Pulumi.-x.yaml",
        "Pulumi.a b.yaml",
        "components/a\n::error::b.py",
        "Pulumi.ä.yaml",
    ]
    repository.merged(**dict.fromkeys(names, "a: 1\n"))
    act(repository, github)
    assert json.loads(repository.outputs["stacks"]["stacks"]) == ["aks-nap", "eks", "other"]
    assert not list(repository.folder.rglob("pwned"))
    said = repository.step("stacks", {}, {})
    assert not [line for line in said.stderr.splitlines() if line.startswith("::")]
    assert "names no stack that Pulumi would take" in said.stderr


def test_a_repository_that_is_none_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(StacksError, match=r"not a git repository"):
        stacks.change(tmp_path, "HEAD")
