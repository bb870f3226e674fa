"""Sides of a what-if that are manifests: what is meant by them, and the stack files that are made of them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
import yaml

from karpstack.rehearsal.whatif import candidate, command
from karpstack.rehearsal.whatif.manifests import Cluster, Limits, are_manifests
from karpstack.rehearsal.whatif.sources import Source, SourceError
from karpstack.text.codes import Code
from karpstack.text.packaged import PROGRAM
from karpstack.text.projects import ProjectError, stack_of

SMALL = PROGRAM / "examples" / "snapshots" / "20-pods.json"
POOL = next(one for one in json.loads(SMALL.read_text())["nodePools"] if one["name"] == "general")


def pool(weight: int | None, name: str = "general") -> str:
    spec = {**POOL["spec"], **({} if weight is None else {"weight": weight})}
    return yaml.safe_dump(
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "repository" / "nodepools").mkdir(parents=True)
    (tmp_path / "repository" / "nodepools" / "general.yaml").write_text(pool(7))
    return Cluster(SMALL, "eks", tmp_path / "repository", tmp_path / "into")


def weight(path: Path, name: str = "general") -> object:
    return yaml.safe_load(path.read_text())["config"]["karpstack:nodePools"][name].get("weight")


def test_the_base_is_the_snapshot_and_a_folder_changes_it(cluster: Cluster) -> None:
    base = cluster.base()
    change = cluster.side(str(cluster.project / "nodepools"))
    assert (base.name, change.name) == ("snapshot", "nodepools")
    assert (weight(base.stack_file.path), weight(change.stack_file.path)) == (POOL["spec"].get("weight"), 7)
    assert any("stay as the snapshot has them" in note for note in change.notes)


def test_a_base_may_have_another_image_than_the_snapshot(cluster: Cluster) -> None:
    (named,) = json.loads(SMALL.read_text())["nodeClasses"]
    spec = {**named["spec"], "amiSelectorTerms": [{"alias": "al2023@v20261115"}]}
    item = {key: named[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": named["name"]}, "spec": spec}
    folder = cluster.project / "nodepools"
    (folder / "class.yaml").write_text(yaml.safe_dump(item))
    base = cluster.before(str(folder))
    assert any("of the base is not that of the snapshot" in note for note in base.notes)
    assert replace(cluster, into=cluster.into / "after").side(str(folder), base.manifests).unseen == ()
    with pytest.raises(SourceError, match="amiSelectorTerms changes"):
        replace(cluster, into=cluster.into / "alone").side(str(folder))


def test_a_command_prints_the_manifests(cluster: Cluster) -> None:
    change = cluster.side(f"cat {cluster.project / 'nodepools' / 'general.yaml'}")
    assert weight(change.stack_file.path) == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-such-program -f x", "cannot be run"),
        ("false -x", "exit code 1"),
        ("cat 'x", "close the quotes"),
        ("sh -c 'echo ::x >&2; exit 3'", r"\n\| ::x"),
    ],
)
def test_a_command_that_fails_is_refused(cluster: Cluster, given: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        cluster.side(given)


def test_a_base_and_a_change_of_one_name_are_two_files(cluster: Cluster) -> None:
    for folder, number in (("old", 3), ("new", 77)):
        (cluster.project / folder / "nodepools").mkdir(parents=True)
        (cluster.project / folder / "nodepools" / "general.yaml").write_text(pool(number))
    asked: list[tuple[object, object]] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append((weight(question.base.stack_file.path), weight(change.stack_file.path)))
        return 0

    options = command.WhatifOptions(
        "eks",
        base=str(cluster.project / "old" / "nodepools"),
        changes=[str(cluster.project / "new" / "nodepools")],
        workloads=SMALL,
        project=cluster.project,
        output=cluster.into,
    )
    assert command.run(options, command.Tools(rehearse=rehearse)) == 0
    assert asked == [(3, 77)]
    assert [one.name for one in cluster.into.iterdir() if one.name.startswith(".sources")] == []


def test_a_kustomization_on_one_side_alone_is_refused(cluster: Cluster) -> None:
    """`kubectl apply -f` of the folder ignores it, so it could hide a change of the folder's files."""
    folders = [cluster.project / name for name in ("plain", "built")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "general.yaml").write_text(pool(3))
    (folders[1] / "Kustomization").write_text("resources: [general.yaml]\n")
    plain, built = (cluster.side(str(folder)).manifests for folder in folders)
    for before, after in ((plain, folders[1]), (built, folders[0])):
        with pytest.raises(SourceError, match="only one of base and change has a kustomization"):
            cluster.side(str(after), before)


@pytest.mark.parametrize(
    "resource", ["file:///nowhere//b?ref=--upload-pack=touch%20{}%20%23", "https://198.51.100.1/general.yaml"]
)
def test_a_kustomization_fetches_nothing_and_so_runs_nothing(cluster: Cluster, tmp_path: Path, resource: str) -> None:
    folder = cluster.project / "nodepools"
    (folder / "kustomization.yaml").write_text("resources: [general.yaml]\n")
    assert weight(cluster.side(str(folder)).stack_file.path) == 7
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [resource.format(tmp_path / "ran")]}))
    with pytest.raises(SourceError, match="for a folder nothing is fetched"):
        cluster.side(str(folder))
    assert not (tmp_path / "ran").exists()


def test_a_kustomization_fetches_nothing_from_this_machine_either(cluster: Cluster) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    asked: list[str] = []
    folder = cluster.project / "nodepools"
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/general.yaml"
        (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["general.yaml", url]}))
        with pytest.raises(SourceError, match="for a folder nothing is fetched"):
            cluster.side(str(folder))
        server.shutdown()
    assert asked == []


def test_a_command_that_prints_without_end_is_refused(cluster: Cluster) -> None:
    with pytest.raises(SourceError, match="prints more than 16 MiB"):
        cluster.side("yes kind")


@pytest.mark.parametrize("given", ["sleep 612", "sh -c 'sleep 612; true'", "sh -c 'exec >&-; sleep 612'"])
def test_a_command_that_does_not_end_is_stopped_with_its_children(cluster: Cluster, given: str) -> None:
    with pytest.raises(SourceError, match="the command did not end within 1 s and was stopped"):
        replace(cluster, limits=Limits(seconds=1)).side(given)
    assert not [one for one in psutil.Process().children(recursive=True) if "612" in one.cmdline()]


def kustomization_that_doubles(folder: Path, levels: int) -> Path:
    """A few small files, of which Kustomize makes as many objects as two to the power of the levels."""
    for level in range(1, levels):
        for half in ("a", "b"):
            (folder / f"l{level}" / half).mkdir(parents=True)
            (folder / f"l{level}" / half / "kustomization.yaml").write_text(
                f"nameSuffix: -{half}{level}\nresources: [../../l{level - 1}]\n"
            )
        (folder / f"l{level}" / "kustomization.yaml").write_text("resources: [a, b]\n")
    (folder / "l0").mkdir()
    (folder / "l0" / "general.yaml").write_text(pool(7))
    (folder / "l0" / "kustomization.yaml").write_text("resources: [general.yaml]\n")
    return folder / f"l{levels - 1}"


def test_a_kustomization_that_does_not_end_is_stopped(cluster: Cluster) -> None:
    with pytest.raises(SourceError, match="Kustomize did not end within 1 s and was stopped"):
        replace(cluster, limits=Limits(kustomize=1)).side(str(kustomization_that_doubles(cluster.project, 24)))


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")
@pytest.mark.parametrize(("limits", "said"), [(Limits(memory=2**29), "memory"), (Limits(cpu=1), "exit code -9")])
def test_a_kustomization_gets_not_all_of_the_machine(cluster: Cluster, limits: Limits, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        replace(cluster, limits=limits).side(str(kustomization_that_doubles(cluster.project, 24)))


def test_a_folder_of_a_git_ref_is_a_side_and_what_is_gone_since_is_removed(cluster: Cluster) -> None:
    folder = cluster.project / "nodepools"
    (folder / "batch.yaml").write_text(pool(3, "batch"))
    commit(cluster.project)
    (folder / "batch.yaml").unlink()
    (folder / "general.yaml").write_text(pool(9))
    base = cluster.side("HEAD:nodepools")
    change = cluster.side(str(folder), base.manifests)
    assert (weight(base.stack_file.path), weight(change.stack_file.path)) == (7, 9)
    assert weight(base.stack_file.path, "batch") == 3
    with pytest.raises(KeyError):
        weight(change.stack_file.path, "batch")
    with pytest.raises(SourceError, match="nothing to compare"):
        cluster.side("no-such-ref:nodepools")


def commit(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


@pytest.mark.parametrize("given", ["main:nodepools", "main", "cat nodepools"])
def test_a_path_that_is_also_a_ref_or_a_command_is_refused(
    cluster: Cluster, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(cluster.project)
    subprocess.run(["git", "-C", str(cluster.project), "branch", "--force", "--move", "main"], check=True)
    monkeypatch.chdir(cluster.project)
    (cluster.project / given).mkdir()
    (cluster.project / given / "general.yaml").write_text(pool(3))
    with pytest.raises(SourceError, match=f"is a path and a .* write ./{given} for the path"):
        cluster.side(given)
    assert weight(cluster.side(f"./{given}").stack_file.path) == 3


def test_a_submodule_in_a_folder_of_a_git_ref_is_refused(cluster: Cluster) -> None:
    commit(cluster.project)
    added = f"160000,{'1' * 40},nodepools/sub"
    subprocess.run(["git", "-C", str(cluster.project), "update-index", "--add", "--cacheinfo", added], check=True)
    (cluster.project / "nodepools" / "sub").mkdir()
    commit(cluster.project)
    with pytest.raises(SourceError, match=r"has submodules \(sub\)"):
        cluster.side("HEAD:nodepools")


def test_attributes_in_a_git_ref_hide_and_change_nothing(cluster: Cluster) -> None:
    folder = cluster.project / "nodepools"
    (folder / ".gitattributes").write_text("batch.yaml export-ignore\ngeneral.yaml export-subst\n")
    (folder / "batch.yaml").write_text(pool(3, "batch"))
    (folder / "general.yaml").write_text(pool(9).replace("  weight: 9", "  #$Format:%n  weight: 8 #$\n  weight: 9"))
    commit(cluster.project)
    change = cluster.side("HEAD:nodepools")
    assert (weight(change.stack_file.path), weight(change.stack_file.path, "batch")) == (9, 3)


def test_a_kustomization_of_a_git_ref_is_built_with_the_folders_beside_it(cluster: Cluster) -> None:
    for name, weight_there in (("base", 3), ("overlay", 5)):
        (cluster.project / name).mkdir()
        (cluster.project / name / "pool.yaml").write_text(pool(weight_there))
    (cluster.project / "base" / "kustomization.yaml").write_text("resources: [pool.yaml]\n")
    (cluster.project / "overlay" / "kustomization.yaml").write_text(
        "resources: [../base]\npatches: [{path: pool.yaml}]\n"
    )
    commit(cluster.project)
    head = subprocess.run(["git", "-C", str(cluster.project), "rev-parse", "HEAD"], check=True, capture_output=True)
    full = head.stdout.decode().strip()
    side = cluster.side(f"{full}:overlay")
    assert (side.name, weight(side.stack_file.path)) == (f"{full[:12]}-overlay", 5)


@pytest.mark.parametrize("given", ["v1.2:nodepools", "cat {}/general.yaml"])
def test_one_of_several_candidates_has_the_same_name_in_a_command_of_its_own(cluster: Cluster, given: str) -> None:
    commit(cluster.project)
    subprocess.run(["git", "-C", str(cluster.project), "tag", "v1.2"], check=True)
    side = cluster.side(given.format(cluster.project / "nodepools"))
    assert replace(cluster, into=cluster.into / "again").side(side.given).name == side.name


@pytest.mark.parametrize("refused", ["", "no"])
def test_what_a_command_printed_does_not_stay(cluster: Cluster, refused: str) -> None:
    """A plan of Terraform has secrets in plain text."""
    file = cluster.project / "nodepools" / "general.yaml"
    file.write_text(f"{file.read_text()}# a secret\n")
    given = command.WhatifOptions("eks", changes=[f"cat {file}"], workloads=SMALL, output=cluster.into)
    tools = command.Tools(lambda *_: "", lambda _: refused, lambda *_, **__: 0)
    assert command.run(given, tools) == (2 if refused else 0)
    assert not [one for one in cluster.into.rglob("*") if one.is_file() and "a secret" in one.read_text()]


def test_what_the_snapshot_command_refuses_is_refused_in_its_words(cluster: Cluster) -> None:
    (cluster.project / "nodepools" / "general.yaml").write_text("a: [\n")
    with pytest.raises(SourceError, match=r"general\.yaml: not YAML"):
        cluster.side(str(cluster.project / "nodepools"))


def test_without_a_base_and_a_stack_both_are_the_snapshots(cluster: Cluster) -> None:
    asked: list[tuple[str, str, str]] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append((question.stack, question.base.name, change.name))
        return 0

    tools = command.Tools(lambda *_: "", lambda _: "", rehearse)
    given = command.WhatifOptions(None, workloads=SMALL, output=cluster.into)
    assert command.run(replace(given, changes=[str(cluster.project / "nodepools")]), tools) == 0
    assert command.run(replace(given, new_image=True), tools) == 0
    assert asked == [("eks", "snapshot", "nodepools"), ("eks", "snapshot", "new-image")]


NODE_CLASS = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}}
NODE_CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "alone"}, "spec": {}}


@pytest.mark.parametrize("unseen", [{**NODE_CLASS, "spec": {"role": "another"}}, NODE_CLAIM], ids=["field", "kind"])
@pytest.mark.parametrize("other_change", [False, True])
def test_a_change_of_which_a_snapshot_shows_nothing_is_no_question_of_its_own(
    cluster: Cluster, unseen: dict[str, object], other_change: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the manifests before it, it is not known whether anything changes: `Changes nothing` would be wrong."""
    folder = cluster.project / "nodepools"
    (folder / "general.yaml").write_text(pool(7 if other_change else POOL["spec"].get("weight")))
    (folder / "unseen.yaml").write_text(yaml.safe_dump(unseen))
    asked: list[Source] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append(change)
        return 0

    given = command.WhatifOptions(None, workloads=SMALL, output=cluster.into, changes=[str(folder)])
    tools = command.Tools(lambda *_: "", lambda _: "", rehearse)
    if other_change:
        assert command.run(given, tools) == 0
        assert len(asked[0].unseen) == 1
        assert set(asked[0].unseen) < set(asked[0].notes)
        return
    assert command.run(given, tools) == Code.WRONG
    assert "differ from the base only in fields that are not rehearsed" in capsys.readouterr().err
    assert command.run(replace(given, base=str(folder)), tools) == 0


@pytest.mark.parametrize(("at", "hidden"), [(None, 0), ("2026-11-22T03:00+00:00", 1), ("2026-11-23T03:00+00:00", 0)])
def test_a_changed_schedule_that_makes_no_difference_at_the_moment_that_is_asked_about_is_told(
    cluster: Cluster, at: str | None, hidden: int
) -> None:
    """The rehearsal has the same budgets before and after, so `Changes nothing` alone would be wrong."""
    folders = {name: cluster.project / name for name in ("before", "after")}
    for folder, span in zip(folders.values(), ("24h", "48h"), strict=True):
        folder.mkdir()
        budget = {"nodes": "0", "schedule": "0 0 * * sun", "duration": span}
        item = yaml.safe_load(pool(7))
        item["spec"]["disruption"] = {"consolidateAfter": "30s", "budgets": [budget]}
        (folder / "general.yaml").write_text(yaml.safe_dump(item))
    asked: list[Source] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append(change)
        return 0

    given = command.WhatifOptions(
        None,
        workloads=SMALL,
        output=cluster.into,
        base=str(folders["before"]),
        changes=[str(folders["after"])],
        at=datetime.fromisoformat(at) if at else None,
    )
    assert command.run(given, command.Tools(lambda *_: "", lambda _: "", rehearse)) == 0
    (change,) = asked
    assert [one.partition(" is not")[0] for one in change.unseen] == [
        "NodePool general: the change of budgets"
    ] * hidden
    assert set(change.unseen) <= set(change.notes)


@pytest.mark.parametrize(("key", "said"), [("example.com/own", True), ("ebs.csi.aws.com/agent-not-ready", False)])
def test_a_startup_taint_that_nobody_lifts_in_a_rehearsal_is_in_the_answer(
    cluster: Cluster, key: str, said: bool
) -> None:
    """In the cluster something lifts it, perhaps; here, its nodes never become ready."""
    item = yaml.safe_load(pool(7))
    item["spec"]["template"]["spec"]["startupTaints"] = [{"key": key, "effect": "NoExecute"}]
    (cluster.project / "nodepools" / "general.yaml").write_text(yaml.safe_dump(item))
    asked: list[Source] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append(change)
        return 0

    given = command.WhatifOptions(
        None, workloads=SMALL, output=cluster.into, changes=[str(cluster.project / "nodepools")]
    )
    assert command.run(given, command.Tools(lambda *_: "", lambda _: "", rehearse)) == 0
    assert [f"lifts its startup taint {key}" in one for one in asked[0].unseen] == [True] * said


def test_what_is_given_as_manifests(cluster: Cluster) -> None:
    stack_file = PROGRAM / "Pulumi.eks.yaml"
    file = cluster.project / "nodepools" / "general.yaml"
    given = [str(file), str(file.parent), "HEAD:nodepools", "helm template ."]
    assert [are_manifests(one) for one in given] == [True] * 4
    assert not any(are_manifests(one) for one in (str(stack_file), "origin/main", "no-such-file.yaml"))


@pytest.mark.parametrize(
    ("data", "stack"),
    [
        ({"cluster": {"cloud": "aws"}}, "eks"),
        ({"cluster": {"cloud": "azure"}, "workloads": [{"name": "web"}]}, "aks-nap"),
        ({"cluster": {"cloud": "azure"}, "workloads": [{"name": "karpenter"}]}, "aks-self-hosted"),
        ({"cluster": {"cloud": "azure"}, "karpenter": {"version": "1.14.2"}}, "aks-self-hosted"),
    ],
)
def test_the_stack_is_that_of_clusters_like_the_snapshots(tmp_path: Path, data: object, stack: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(data))
    assert stack_of(tmp_path / "a.json") == stack


def test_a_snapshot_without_a_cloud_needs_the_name_of_a_stack(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"cluster": {}}))
    with pytest.raises(ProjectError, match="name the stack"):
        stack_of(tmp_path / "a.json")
