"""The role `story` as Ansible plays it, with an API server of a few lines."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karpstack.scale_test.recording.timeline import Reader, Writer
from karpstack.scale_test.scenarios.objects import objects
from karpstack.scale_test.scenarios.scenario import load, parse
from tests.programs.playbook import ROOT, play
from tests.serving import serving
from tests.unit.scale_test.api_server import ApiServer

FIT = "eks-cheapest-fit"
NAMESPACE, POOL = "/api/v1/namespaces/other", "/apis/karpenter.sh/v1/nodepools/cheapest-fit"
OWN_NAMESPACE, OWN_DEPLOYMENT = "/api/v1/namespaces/own", "/apis/apps/v1/namespaces/own/deployments/inflate"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving(ApiServer()) as running:
        yield running


def test_a_story_leaves_alone_what_is_somebody_elses_and_evidence_of_what_it_saw(
    server: ApiServer, tmp_path: Path
) -> None:
    """A taken name fails one story; the next one removes what was left and what it made. What may not be read of the
    evidence is told, and the rest saved.
    """
    victim = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "victim"}}}
    theirs = copy.deepcopy(server.put(NAMESPACE, victim))
    server.forbidden = {"/api/v1/nodes"}
    (fit,) = [one for one in load(ROOT / "playbooks" / "scenarios") if one.name == FIT]
    data = fit.model_dump(mode="json", by_alias=True, exclude_none=True)
    own = parse({**data, "name": "own", "workload": {**data["workload"], "namespace": "own"}}, "own.yml")
    left = server.put(OWN_NAMESPACE, objects(own)[0])
    stories = [fit, own]
    story = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "karpstack.scale_test.story"},
                "loop": [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in stories],
                "loop_control": {"loop_var": "story_scenario"},
                "vars": {
                    "story_objects": "{{ all_objects[story_scenario.name] }}",
                    "all_objects": {one.name: objects(one) for one in stories},
                    "story_node_class": {"kind": "EC2NodeClass", "path": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"},
                    "story_report_dir": str(tmp_path),
                    "story_leftovers": ["own"],
                    "story_titles": ["1 of 1: scale to 5"],
                    "story_breaks": False,
                    "story_stack_outputs": {"cloud": "azure"},
                    "story_rehearsal_url": "",
                },
            }
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([story]))
    kubeconfig = str(server.write_kubeconfig(tmp_path / "kubeconfig"))
    with Writer(tmp_path / "timeline.jsonl", recording=True) as recorder:  # stories wait for one
        recorder.write("SYNCED")
        variables = {**dict.fromkeys(("KUBECONFIG", "K8S_AUTH_KUBECONFIG"), kubeconfig), "PYTHONPATH": str(ROOT)}
        code, output = play(tmp_path / "play.yml", tmp_path, **variables, TMPDIR=str(tmp_path))
    assert code == 0, output
    assert server.there[NAMESPACE] == theirs, output
    assert server.patched == [OWN_DEPLOYMENT]
    errors = [line for line in Reader(tmp_path / "timeline.jsonl").new_lines() if line["type"] == "ERROR"]
    assert [line["scenario"] for line in errors] == [FIT, "own"], output
    assert errors[0]["message"].startswith("Namespace other is on the cluster already: it is none of a scale test's")
    # The second story fails at its step: this API server scales nothing. It had made and removed all the same.
    assert errors[1]["task"].startswith("Take step 1 of 1: scale to 5"), output
    assert server.deleted == [OWN_NAMESPACE, OWN_NAMESPACE, POOL], output
    assert left["metadata"]["deletionTimestamp"]
    assert {NAMESPACE, OWN_DEPLOYMENT} == set(server.there)

    assert "Evidence of own: not all could be saved: Node: 403" in output
    evidence = {path.stem: yaml.safe_load(path.read_text()) for path in (tmp_path / "evidence" / "own").iterdir()}
    assert set(evidence) >= {"deployment", "pod", "nodepool", "nodeclaim", "ec2nodeclass", "event"}
    assert [found["metadata"]["name"] for found in evidence["deployment"]] == ["inflate"]
