"""A playbook changes one cluster: the stack's, and from its first task to its last the same."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest
import yaml
from ansible.parsing.splitter import parse_kv

from playbooks.plugins.module_utils.actions import run
from tests.programs.playbook import ROOT, begin, play
from tests.serving import serving
from tests.unit.scale_test.api_server import ApiServer

NODE = "/api/v1/nodes/a"
OWN, OTHER = (f"https://{name}.gr7.us-east-1.eks.amazonaws.com" for name in ("own", "other"))
OUTPUTS = {
    "cloud": "aws",
    "clusterEndpoint": OWN,
    "karpenterVersion": "1.15.1",
    "nodePools": ["default"],
    "nodeClasses": ["default", "bottlerocket"],
}


def kubeconfig(path: Path, current: str, **servers: str) -> None:
    """Write a kubeconfig with a context for each server."""
    named = {
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in servers.items()],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in servers],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": current, **named}))


def movable(server: ApiServer) -> None:
    """Let there be a node of a group, and what a move needs."""
    node = {"kind": "Node", "metadata": {"name": "a", "labels": {"eks.amazonaws.com/nodegroup": "general"}}, "spec": {}}
    server.put(NODE, node)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pool = {"kind": "NodePool", "metadata": {"name": "default"}, "spec": {}, "status": ready}
    server.put("/apis/karpenter.sh/v1/nodepools/default", pool)


@pytest.mark.parametrize("how", ["another context is chosen", "the context leads elsewhere"])
def test_a_move_goes_on_with_its_cluster_whatever_becomes_of_the_kubeconfig(how: str, tmp_path: Path) -> None:
    """`kubectx` in another terminal had the other nodes looked for on another cluster, and taken for empty."""
    path = tmp_path / "kubeconfig"
    with serving(ApiServer()) as staging, serving(ApiServer()) as production:
        movable(staging)
        staging.refused[NODE] = {"code": 200, **staging.there[NODE]}
        urls = {name: f"http://127.0.0.1:{one.server_port}" for name, one in (("s", staging), ("p", production))}
        kubeconfig(path, "s", **urls)

        def switch(_: str) -> None:
            staging.there[NODE]["spec"]["unschedulable"] = True
            if how == "another context is chosen":
                kubeconfig(path, "p", **urls)
            else:
                kubeconfig(path, "s", s=urls["p"])

        staging.after_patch = switch
        code, output = play("move.yml", tmp_path, "-e", "from_groups=general", KUBECONFIG=str(path))
        assert production.asked == []
        said = " ".join(output.split())
        if how == "another context is chosen":
            assert code == 0, output
            assert "0 pods of 1 nodes have moved" in said
        else:
            assert code != 0, output
            assert f"context s leads to {urls['p']} now, and led to {urls['s']} when the run began" in said


def test_a_move_whose_playbook_is_killed_evicts_nothing_more(tmp_path: Path) -> None:
    """The module went on with its node, and Ansible's worker with the next ones."""
    with serving(ApiServer()) as server:
        movable(server)
        server.refused[NODE] = {"code": 200, **server.there[NODE]}
        server.after_patch = lambda _: server.there[NODE]["spec"].update(unschedulable=True)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "u", "controller": True}
        metadata = {"name": "w-1", "namespace": "shop", "ownerReferences": [owner]}
        pod = {"metadata": metadata, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}
        server.put("/api/v1/pods/w-1", {"kind": "Pod", **pod})
        eviction = "/api/v1/namespaces/shop/pods/w-1/eviction"
        server.failing[eviction] = (429, {"kind": "Status", "code": 429, "message": "its budget lets none go"})
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        given = ["-e", "from_groups=general", "-e", "accept_waiting=true"]  # the server selects no pods by their phase
        playbook = begin("move.yml", tmp_path, *given, KUBECONFIG=str(config))
        try:
            while not any(eviction in line for line in server.asked):
                assert playbook.poll() is None, playbook.stdout and playbook.stdout.read()
                time.sleep(0.1)
            below = psutil.Process(playbook.pid).children(recursive=True)
        finally:
            playbook.kill()
            playbook.wait()
        _, still_there = psutil.wait_procs(below, timeout=20)
        assert not still_there
        playbook.communicate()


def test_a_group_that_gets_a_new_node_meanwhile_is_not_empty(tmp_path: Path) -> None:
    """The group was said to be empty, and to be scaled to nothing, with the moved pods on its new node."""
    with serving(ApiServer()) as server:
        movable(server)
        server.refused[NODE] = {"code": 200, **server.there[NODE]}

        def replace(_: str) -> None:
            server.there[NODE]["spec"]["unschedulable"] = True
            node = server.there[NODE]
            server.put("/api/v1/nodes/b", node | {"metadata": node["metadata"] | {"name": "b"}})

        server.after_patch = replace
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        code, output = play("move.yml", tmp_path, "-e", '{"from_groups": ["general"]}', KUBECONFIG=str(config))
    assert code != 0, output
    assert "These nodes are new, or take pods again, so general may not be empty: b" in " ".join(output.split())
    assert "Scale them to nothing" not in output


def test_a_dry_run_does_not_say_that_groups_are_empty(tmp_path: Path) -> None:
    with serving(ApiServer()) as server:
        movable(server)
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        code, output = play("move.yml", tmp_path, "--check", "-e", "from_groups=general", KUBECONFIG=str(config))
    assert code == 0, output
    assert "Nothing was changed. These nodes would be emptied: a" in output
    assert "Scale them to nothing" not in output


def test_a_what_if_and_a_scale_test_refuse_another_cluster_than_the_stacks(tmp_path: Path) -> None:
    kubeconfig(tmp_path / "kubeconfig", "c", c=OTHER)
    (tmp_path / "outputs.json").write_text(json.dumps(OUTPUTS))
    (tmp_path / "scenarios").mkdir()
    scenario = yaml.safe_load((ROOT / "playbooks" / "scenarios" / "eks-limit.yml").read_text())
    (tmp_path / "scenarios" / "eks-limit.yml").write_text(yaml.safe_dump(scenario))
    stack = ["-e", f"stack_outputs=@{tmp_path}/outputs.json", "-e", "stack=mine"]
    given = {
        "scale_test.yml": ["-e", "scenario_dir=scenarios", "--check"],
        "whatif.yml": ["-e", "snapshot=none.json", "-e", "change=true"],
    }
    for playbook, more in given.items():
        code, output = play(playbook, tmp_path, *stack, *more, KUBECONFIG=str(tmp_path / "kubeconfig"))
        assert code != 0, output
        said = " ".join(output.split())
        assert "KUBECONFIG names a cluster at other.gr7.us-east-1.eks.amazonaws.com, and the stack's is at own." in said


@pytest.mark.parametrize("words", ["pulumi up --yes", "pulumi --stack=eks", "make OWN=1", "env X= stack=eks"])
def test_words_that_would_have_no_effect_are_refused(words: str, tmp_path: Path) -> None:
    """Ansible ran `pulumi` alone, so that nothing changed and the change was judged good."""
    code, output = play("whatif.yml", tmp_path, "-e", "snapshot=none.json", "-e", f"change={words}")
    assert code != 0, output
    said = " ".join(output.split())
    assert f"-e change={words}: Ansible ends a value at a blank" in said


@pytest.mark.parametrize(
    ("change", "folder", "why"),
    [
        ("nosuchprogram up", ".", "there is no program nosuchprogram"),
        ("./own", ".", "there is no program ./own"),
        ("true", "missing", "missing: no folder"),
        ("'", ".", "no command (No closing quotation)"),
        ("true && true", ".", "without a shell"),
        ("true; true", ".", "without a shell"),
        ("true > file", ".", "without a shell"),
    ],
)
def test_a_change_that_cannot_begin_is_refused_before_anything_is_loaded(
    change: str, folder: str, why: str, tmp_path: Path
) -> None:
    """The workload was loaded, nothing was changed, and the playbook passed."""
    given = {"snapshot": "none.json", "change": change, "change_dir": str(tmp_path / folder)}
    code, output = play("whatif.yml", tmp_path, "-e", json.dumps(given), KUBECONFIG="/none")
    assert code != 0, output
    assert why in " ".join(output.split())
    assert "Choose the cluster" not in output


@pytest.mark.parametrize("change", ["sh -c 'echo; exit 3'", "sh -c 'kill -9 $$'", "./no-executable"])
def test_a_change_that_fails_without_a_word_is_refused_with_one(change: str, tmp_path: Path) -> None:
    """The record had an empty text, which counted as not refused."""
    (tmp_path / "no-executable").write_bytes(b"\x00")
    (tmp_path / "no-executable").chmod(0o755)
    play_ = yaml.safe_load((ROOT / "playbooks" / "whatif.yml").read_text())[0]
    tasks = {task["name"]: task for one in play_["tasks"] if "block" in one for task in one["block"]}
    note = tasks["Note the result of the change"]
    content = note["karpstack.scale_test.action"]["arguments"]["content"]
    told = {"name": "Show it", "ansible.builtin.debug": {"msg": content}, "vars": note["vars"]}
    given = {"change": change, "change_dir": str(tmp_path), "stack_outputs": "x", "whatif_changes": {}}
    alone = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": play_["vars"] | given,
        "tasks": [tasks["Apply the change"], tasks["Show the output of the change"], told],
    }
    (tmp_path / "alone.yml").write_text(yaml.safe_dump([alone]))
    _, output = play(tmp_path / "alone.yml", tmp_path)
    assert "refused: 'the command ended with exit code" in output, output


def test_a_change_is_looked_for_as_ansible_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "change.sh").write_text("#!/bin/sh\n")
    (tmp_path / "infra" / "change.sh").chmod(0o755)
    for command, folder in (
        ("./change.sh --now", "~/infra"),
        ("./change.sh", "$HOME/infra"),
        ("~/infra/change.sh", "/"),
        ("'$HOME/infra/change.sh' a", "/"),
        ("sh -c 'a; b && c > d;'", "/"),
        ("sh -c ';'", "/"),
    ):
        assert run.program(command, folder, check=False) == {"changed": False}


def test_a_misspelt_group_is_told_when_its_nodes_are_to_take_pods_again(tmp_path: Path) -> None:
    with serving(ApiServer()) as server:
        movable(server)
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        given = ["-e", "from_groups=genral", "-e", "undo=true"]
        _, output = play("move.yml", tmp_path, *given, KUBECONFIG=str(config))
    assert "No node of genral is there, so nothing was changed" in output


@pytest.mark.parametrize("patience", ["15m", "-1", ".nan"])
def test_a_wrong_patience_is_told_before_a_node_is_cordoned(patience: str, tmp_path: Path) -> None:
    with serving(ApiServer()) as server:
        movable(server)
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        given = ["-e", "from_groups=general", "-e", f"patience={patience}"]
        code, output = play("move.yml", tmp_path, *given, KUBECONFIG=str(config))
        assert server.patched == []
    assert code != 0, output


@pytest.mark.parametrize(("name", "option"), [("predestroy", "--tags"), ("compare", "--tags"), ("move", "--skip-tags")])
def test_ansibles_own_tags_are_refused(name: str, option: str, tmp_path: Path) -> None:
    """Nothing was done, and nothing failed: `predestroy && pulumi destroy` went on."""
    code, output = play(f"{name}.yml", tmp_path, option, "eks", KUBECONFIG="/none")
    assert code != 0, output
    assert "nothing would be done" in " ".join(output.split())


@pytest.mark.parametrize("tag", ["theirs", "others"])
def test_a_playbook_of_somebody_that_imports_one_of_ours_may_have_tags(tag: str, tmp_path: Path) -> None:
    imported = {"ansible.builtin.import_playbook": str(ROOT / "playbooks" / "compare.yml"), "tags": ["theirs"]}
    (tmp_path / "site.yml").write_text(yaml.safe_dump([imported]))
    code, output = play(tmp_path / "site.yml", tmp_path, "--tags", tag)
    assert ("two folders with a report.json are needed" in " ".join(output.split())) == (tag == "theirs"), output
    assert (code != 0) == (tag == "theirs")


@pytest.mark.parametrize(("outputs", "selected"), [("", "test"), ("@outputs.json", "prod")])
def test_the_change_of_a_what_if_is_one_of_the_stack_that_was_asked(
    outputs: str, selected: str, tmp_path: Path
) -> None:
    """With `-e stack=test`, `pulumi up --yes` changed the stack that was selected."""
    play_ = yaml.safe_load((ROOT / "playbooks" / "whatif.yml").read_text())[0]
    blocks = [task["block"] for task in play_["tasks"] if "block" in task]
    (change,) = (task for block in blocks for task in block if task.get("name") == "Apply the change")
    given = {"change": "sh -c 'echo it is $PULUMI_STACK'", "change_dir": str(tmp_path)}
    told = {"name": "Show it", "ansible.builtin.debug": {"var": "whatif_changed.stdout"}}
    variables = {**given, "stack_outputs": outputs, "stack_name": "test"}
    alone = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [change, told]}
    (tmp_path / "alone.yml").write_text(yaml.safe_dump([alone]))
    _, output = play(tmp_path / "alone.yml", tmp_path, PULUMI_STACK="prod")
    assert f"it is {selected}" in output, output


def test_a_misspelt_variable_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    """With `Undo`, nodes were drained that were to take pods again."""
    code, output = play("move.yml", tmp_path, "-e", "from_groups=general", "-e", "Undo=true", KUBECONFIG="/none")
    assert code != 0, output
    assert "-e Undo: no variable of this playbook, so it would have no effect; did you mean undo?" in output
    assert output.count("no variable of this playbook") == 2  # the error, and the result


@pytest.mark.parametrize(
    "given",
    [
        ["-e", "undo"],
        ["-e", "undo: true"],
        ["-e", "undo true"],
        ["-e", "undo = true"],
        ["-e", ' {"undo": true}'],
        ["-e", "undo=ture"],
        ["-e", "undo="],
        ["-e", "@given.yml"],
        ["-e", '{"udno": true}'],
    ],
    ids=str,
)
def test_nodes_that_are_to_take_pods_again_are_not_drained(given: list[str], tmp_path: Path) -> None:
    (tmp_path / "given.yml").write_text("undoo: true\n")
    code, output = play("move.yml", tmp_path, "-e", "from_groups=general", *given, KUBECONFIG="/none")
    assert code != 0, output
    assert "Choose the cluster" not in output


@pytest.mark.parametrize("changes", ["a.yaml,a.yml", "a.yaml a", "b/c b:c"])
def test_changes_whose_answers_would_have_one_name_are_refused(changes: str, tmp_path: Path) -> None:
    """Of two machines, one's answer was written over the other's, and the table had one row."""
    for name in ("a.yaml", "a.yml", "base.yaml"):
        (tmp_path / name).write_text("config: {}\n")
    (tmp_path / "hosts").write_text("one ansible_connection=local\n")
    given = ["-i", f"{tmp_path}/hosts", "-e", "base=base.yaml", "-e", json.dumps({"changes": changes})]
    code, output = play("sweep.yml", tmp_path, *given)
    assert code != 0, output
    assert "one's answer would be written over the other's" in " ".join(output.split())


def test_variables_of_an_inventory_and_of_other_playbooks_are_not_ours(tmp_path: Path) -> None:
    """`config` in group_vars, or what a playbook before it in a site.yml had set, was refused as misspelt."""
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("node_pools: [a]\nUndo: true\n")
    (tmp_path / "hosts").write_text("localhost\n")
    code, output = play(
        "move.yml", tmp_path, "-i", f"{tmp_path}/hosts", "-e", "from_groups=general", KUBECONFIG="/none"
    )
    assert code != 0, output
    assert "Choose the cluster" in output


@pytest.mark.parametrize("words", ["a=1 b=2", "base='x y'"])
def test_variables_that_are_known_may_be_given_in_one_word(words: str) -> None:
    names = sorted(parse_kv(words))
    given: run.Given = {"names": names, "words": [{"text": words, "names": names}], "playbooks": []}
    assert run.variables(["a", "b", "base"], given, {"a": "yes", "b": True}, check=False) == {"changed": False}


#: Beginnings of variables that a playbook has for itself.
PRIVATE = ("ansible_", "comparison_", "move_", "real_run_", "snapshot_", "sweep_", "whatif_")
PLAYBOOKS = sorted(path for path in (ROOT / "playbooks").glob("*.yml") if "\n  tasks:\n" in path.read_text())


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_playbook_checks_first_what_is_given_and_knows_its_own_variables(path: Path) -> None:
    play_ = yaml.safe_load(path.read_text())[0]
    first = play_["tasks"][0]
    assert first["ansible.builtin.import_tasks"] == "tasks/variables.yml"
    others = {
        name for name in ("scenario_tags", "anonymize", "fail_if_worse", "comparison_rules") if name in path.read_text()
    }
    # An inventory may say it, which a variable of the playbook would hide.
    others |= {"checkout"} if path.stem == "sweep" else set()
    ours = {name for name in play_["vars"] if not name.startswith(PRIVATE)}
    assert set(first["vars"]["variables_known"]) == ours | others
