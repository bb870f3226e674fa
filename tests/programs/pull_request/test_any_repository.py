"""`examples/any-repository` as a repository of its own, which has nothing of karpstack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karpstack.pull_request.manifests import check_results
from karpstack.pull_request.stacks import StacksError
from karpstack.rehearsal.whatif.manifests import Cluster
from tests.programs.pull_request.github_server import WRITES, GitHubServer, served
from tests.programs.pull_request.repository import ROOT, STACK, Repository, act

EXAMPLE = ROOT / "examples" / "any-repository"
GENERAL = "nodepools/general.yaml"
CHANGED = (EXAMPLE / GENERAL).read_text().replace('["4"]', '["6"]')
WORKFLOW = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "rehearse.yml").read_text())
INPUTS = {name: value for name, value in WORKFLOW["jobs"]["rehearse"]["steps"][1]["with"].items() if "$" not in value}
ROW = "| nodepools | within the limits | none: manifests alone, so there is no stack to review |"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repository"
    shutil.copytree(EXAMPLE, folder)
    made = Repository(folder, tmp_path / "action")
    made.lay_down_program()
    (made.program / "Pulumi.eks.yaml").write_text(STACK.format(cloud="aws"))
    made.commit()
    return made


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with served() as server:
        yield server


def asked_of(repository: Repository, folder: str = "nodepools", base: str = "HEAD^1") -> list[object]:
    """What is asked about a folder: both sides are of commits."""
    commit = repository.git("rev-parse", "HEAD")
    before = {"--base": f"{repository.git('rev-parse', base)}:{folder}"} if base else {}
    workloads = str(repository.folder / "cluster.json")
    sides = {"--project": str(repository.folder), **before, "--change": f"{commit}:{folder}"}
    return ["whatif", "", {**sides, "--workloads": workloads}]


def test_a_changed_node_pool_is_rehearsed_and_told_of(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{GENERAL: CHANGED})
    assert act(repository, github, **INPUTS) == 0
    assert repository.asked() == [asked_of(repository)]
    found = repository.outputs["stacks"]
    assert (found["stacks"], found["files"]) == ('["nodepools"]', "Pulumi.eks.yaml")
    (comment,) = github.comments
    assert ROW in comment["body"]
    assert "## whatif of " in comment["body"]
    assert not (repository.folder / "build").exists()


def test_another_change_is_not(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{"README.md": "shop\n", "nodepools-of-others/a.yaml": CHANGED})
    assert act(repository, github, **INPUTS) == 0
    assert (repository.asked(), github.comments) == ([], [])
    assert act(repository, github, **INPUTS, stacks="all") == 0
    assert len(repository.asked()) == 1


def test_nothing_that_the_pull_request_brings_is_run_or_believed(repository: Repository, github: GitHubServer) -> None:
    program = "import os, pathlib\npathlib.Path(os.environ['HOME'], 'pwned').touch()\n"
    names = ("json.py", "pip.py", "sitecustomize.py", "karpstack/__init__.py", "karpstack/__main__.py", "yaml.py")
    forged = {"stack": "prod", "review": "passed", "whatif": "within limits"}
    repository.merged(
        **dict.fromkeys(names, program),
        **{
            GENERAL: CHANGED,
            "requirements.lock": "urllib3==0\n",
            "Pulumi.prod.yaml": "config: {}\n",
            "build/pull-request/prod/outcome.json": json.dumps(forged),
        },
    )
    assert act(repository, github, **INPUTS) == 0
    assert not (repository.folder.parent / "pwned").exists()
    assert "urllib3==0" not in (repository.folder.parent / "urllib3.lock").read_text()
    assert [one[0] for one in repository.asked()] == ["whatif"]
    assert ROW in github.comments[0]["body"]
    assert "prod" not in github.comments[0]["body"]


def test_results_that_a_change_brings_are_refused(repository: Repository) -> None:
    repository.commit(**{"build/pull-request/prod/outcome.json": "{}"})
    (repository.folder / "link").symlink_to("build")
    commit = repository.git("rev-parse", "HEAD")
    for folder in ("build", "link"):
        with pytest.raises(StacksError, match="has files there, which would be shown as results"):
            check_results(repository.folder, commit, repository.folder / folder / "pull-request")
    check_results(repository.folder, commit, repository.folder / "build" / "others")


@pytest.mark.parametrize("brought", ["cluster.json", "limits/nodepools.yml", "Pulumi.eks.yaml"])
def test_a_pull_request_does_not_choose_its_own_answer(
    brought: str, repository: Repository, github: GitHubServer
) -> None:
    text = (repository.folder / "cluster.json").read_text() if brought == "cluster.json" else "whatif: {}"
    repository.merged(**{GENERAL: CHANGED, brought: f"{text}\n\n"})
    assert act(repository, github, **INPUTS, limits="limits") == 2
    assert repository.asked() == []
    assert "| nodepools | **no answer**" in github.comments[0]["body"]


def test_a_link_on_the_way_to_the_snapshot_decides_the_answer_too(repository: Repository, github: GitHubServer) -> None:
    snapshot = (repository.folder / "cluster.json").read_text()
    repository.commit(**{"old/cluster.json": snapshot, "new/cluster.json": snapshot})
    (repository.folder / "snapshots").symlink_to("new")
    repository.commit()
    (repository.folder / "snapshots").unlink()
    (repository.folder / "snapshots").symlink_to("old")
    repository.merged(**{GENERAL: CHANGED})
    assert act(repository, github, **{**INPUTS, "workloads": "snapshots/cluster.json"}) == 2
    assert repository.asked() == []


@pytest.mark.parametrize(
    ("links", "changed", "to"),
    [
        ({"given/default.json": "../shared/a.json"}, "shared/a.json", "b.json"),
        ({"given/default.json": "../first", "first": "second", "second": "shared/a.json"}, "second", "shared/b.json"),
        ({"given/nodepools.json": "../shared/a.json", "given/default.json": "../shared/b.json"}, "shared/a.json", ""),
    ],
)
def test_a_link_in_a_folder_of_snapshots_decides_the_answer_too(
    links: dict[str, str], changed: str, to: str, repository: Repository, github: GitHubServer
) -> None:
    snapshot = (repository.folder / "cluster.json").read_text()
    repository.commit(**{"shared/a.json": snapshot, "shared/b.json": snapshot, "given/README.md": ""})
    for place, target in links.items():
        (repository.folder / place).symlink_to(target)
    repository.commit()
    (repository.folder / changed).unlink()
    if to:
        (repository.folder / changed).symlink_to(to)
    repository.merged(**{GENERAL: CHANGED})
    assert act(repository, github, **{**INPUTS, "workloads": "given"}) == 2
    assert repository.asked() == []


def test_several_clusters_are_rows_with_a_snapshot_each(repository: Repository, github: GitHubServer) -> None:
    snapshot = (repository.folder / "cluster.json").read_text()
    repository.commit(**{"snapshots/clusters-prod.json": snapshot, "snapshots/default.json": snapshot})
    repository.merged(**{f"clusters/{name}/nodepools.yaml": CHANGED for name in ("prod", "test")})
    given = {"manifests": "clusters/prod/, clusters/test", "workloads": "snapshots", "what-if": "true"}
    assert act(repository, github, **given) == 0
    folder = repository.folder / "snapshots"
    expected = [asked_of(repository, f"clusters/{name}", base="") for name in ("prod", "test")]
    for one, file in zip(expected, ("clusters-prod.json", "default.json"), strict=True):
        one[2]["--workloads"] = str(folder / file)  # type: ignore[index]
    assert repository.asked() == expected
    assert "| clusters-prod | within" in github.comments[0]["body"]


@pytest.mark.parametrize("file", ["base/spot.yaml", "base/Kustomization", "base/pool.txt"])
@pytest.mark.parametrize("below", ["", "inner/"])
def test_a_kustomization_may_use_other_folders(
    below: str, file: str, repository: Repository, github: GitHubServer
) -> None:
    repository.commit(**{f"nodepools/{below}kustomization.yaml": "resources: [general.yaml, ../base]\n"})
    repository.merged(**{file: CHANGED})
    assert act(repository, github, **INPUTS) == 0
    assert repository.asked() == [asked_of(repository)]


def test_a_link_in_the_folder_may_lead_to_other_folders(repository: Repository, github: GitHubServer) -> None:
    (repository.folder / "nodepools" / "linked.yaml").symlink_to("../shared/pool.yaml")
    repository.commit(**{"shared/pool.yaml": "kind: A\n"})
    repository.merged(**{"shared/pool.yaml": CHANGED})
    assert act(repository, github, **INPUTS) == 0
    assert repository.asked() == [asked_of(repository)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"manifests": "pools"}, "--manifests 'pools': is no folder below the root of commit "),
        ({"manifests": "."}, "is no folder below the root of commit "),
        ({"manifests": "../repository"}, "is no folder below the root of commit "),
        ({"manifests": GENERAL}, "is no folder below the root of commit "),
        ({"manifests": "node pools"}, "has a space in its path"),
        ({"workloads": ""}, "nodepools: --workloads names no snapshot"),
        ({"workloads": "nodepools"}, "give a file, or a folder with nodepools.json.gz"),
        ({"workloads": "README.md"}, "README.md: not JSON"),
        ({"workloads": "odd.json"}, "is no cloud of karpstack"),
        ({"manifests": "nodepools,a/b,a-b"}, "two folders would both be called a-b"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_before_anything_is_built(
    given: dict[str, str], said: str, repository: Repository
) -> None:
    odd = json.dumps({"cluster": {"cloud": "a\nstacks=[]"}})
    repository.merged(
        **{GENERAL: CHANGED, "node pools/a.yaml": CHANGED, "odd.json": odd, "a/b/c.yaml": "", "a-b/c": ""}
    )
    refused = repository.step("stacks", {}, {**INPUTS, **given})
    assert (refused.returncode, repository.outputs["stacks"]) == (2, {})
    assert said in refused.stderr


def test_the_example_is_the_cluster_of_its_snapshot(repository: Repository, tmp_path: Path) -> None:
    """A pull request compares the folder with what runs, so that nothing else than its change is rehearsed."""
    repository.merged(**{GENERAL: CHANGED})
    cluster = Cluster(EXAMPLE / "cluster.json", "eks", repository.folder, tmp_path / "base")
    base = cluster.side("HEAD^1:nodepools")
    change = Cluster(cluster.snapshot, "eks", repository.folder, tmp_path / "change").side(
        "HEAD:nodepools", base.manifests
    )
    of_snapshot, before, after = (
        yaml.safe_load(side.stack_file.path.read_text())["config"] for side in (cluster.base(), base, change)
    )
    assert of_snapshot == before
    differing = [
        name for name, pool in before["karpstack:nodePools"].items() if pool != after["karpstack:nodePools"][name]
    ]
    assert differing == ["general"]
    assert {key for key in before if before[key] != after[key]} == {"karpstack:nodePools"}


def test_a_folder_of_whose_job_nothing_came_is_told_as_failed(repository: Repository, github: GitHubServer) -> None:
    repository.merged(**{GENERAL: CHANGED})
    repository.step("stacks", {}, INPUTS).check_returncode()
    posted = repository.step("comment", {"GITHUB_API_URL": github.url}, {**INPUTS, "token": WRITES})
    assert posted.returncode == 0, posted.stderr
    assert "| nodepools | **no answer**" in github.comments[0]["body"]
