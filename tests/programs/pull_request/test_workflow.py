"""The action and the workflow: what they may, what they run, and that the commands take what they are given."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.pull_request.__main__ import parser
from karpstack.pull_request.commands import PASSED_ON

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / ".github" / "actions" / "rehearse" / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "rehearse.yml"
FILES = (ACTION, WORKFLOW)
#: The others too, for what holds for each.
ALL = (ACTION, *sorted(WORKFLOW.parent.glob("*.yml")))
EXAMPLE = ROOT / "examples" / "any-repository" / ".github" / "workflows" / "rehearse.yml"
COMPONENT = ROOT / "templates" / "rehearse.yml"
DOCUMENT = ROOT / "docs" / "how-to" / "pull-request.md"

Step = dict[str, Any]


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> Iterator[Step]:
    content = read(path)
    if "runs" in content:
        yield from content["runs"]["steps"]
    for job in content.get("jobs", {}).values():
        yield from job["steps"]


def strings(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        content = [*content.keys(), *content.values()]
    if isinstance(content, list):
        for one in content:
            yield from strings(one)
    elif isinstance(content, str):
        yield content


RUNS = {path: [pytest.param(path, step, id=f"{path.stem}-{number}") for number, step in enumerate(steps(path)) if "run" in step] for path in ALL}  # fmt: skip # noqa: E501


@pytest.mark.parametrize(("path", "step"), [each for runs in RUNS.values() for each in runs])
def test_no_script_is_put_together_of_what_others_wrote(path: Path, step: Step) -> None:
    """GitHub replaces expressions before the shell reads the script, so that a branch's name would be a command."""
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"
    subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


@pytest.mark.parametrize("path", ALL)
def test_what_is_used_is_pinned_by_commit_with_its_version_beside_it(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step and not step["uses"].startswith("./")]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", one) for one in used)
    lines = [line for line in path.read_text().splitlines() if re.search(r"uses: [^.]", line)]
    assert len(lines) == len(used)
    assert all(re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in lines)


def test_one_commit_of_an_action_is_used_everywhere() -> None:
    used = [step["uses"] for path in ALL for step in steps(path) if "@" in step.get("uses", "")]
    pins = {(action.split("/")[1], commit) for action, commit in (one.split("@") for one in used)}
    assert len(pins) == len({action for action, _ in pins})


def test_the_workflow_never_runs_strangers_code_with_our_rights() -> None:
    workflow = read(WORKFLOW)
    assert set(workflow[True]) == {"pull_request", "push"}  # `on` is a truth in YAML
    assert workflow["permissions"] == {}
    writing = {}
    for name, job in workflow["jobs"].items():
        writing[name] = {key for key, value in job["permissions"].items() if value != "read"}
        assert 0 < job["timeout-minutes"] <= 120
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
    assert writing == {
        "stacks": set(),
        "rehearse": set(),
        "code-scanning": {"security-events"},
        "comment": {"pull-requests"},
    }


def test_what_may_write_runs_nothing_of_the_pull_request() -> None:
    jobs = read(WORKFLOW)["jobs"]
    checkout = jobs["comment"]["steps"][0]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert not any("run" in step or step["uses"].startswith("./") for step in jobs["code-scanning"]["steps"])


@pytest.mark.parametrize("path", FILES)
def test_nothing_of_an_event_that_its_author_chose_is_used(path: Path) -> None:
    expressions = {each for text in strings(read(path)) for each in re.findall(r"github\.[\w.]+", text)}
    assert expressions <= {
        "github.event.pull_request.base.sha",
        "github.event.pull_request.number",
        "github.event_name",
        "github.sha",
        "github.token",
    }


def test_no_token_is_in_an_argument_or_with_what_the_pull_request_runs() -> None:
    with_token = [step for path in FILES for step in steps(path) if "github.token" in str(step) or "token" in str(step.get("env"))]  # fmt: skip # noqa: E501
    assert len(with_token) == 2
    for step in with_token:
        assert "TOKEN" in "".join(step["env"])
        assert "TOKEN" not in step["run"]
        assert "pull_request comment" in step["run"]


def test_inputs_and_outputs_that_are_named_exist() -> None:
    action, text = read(ACTION), ACTION.read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    ids = {step["id"] for step in steps(ACTION) if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)\.outputs", text)) == ids
    given = [step["with"] for step in steps(WORKFLOW) if step.get("uses", "").startswith("./")]
    assert given
    assert all(set(one) <= set(action["inputs"]) for one in given)


def test_what_the_workflow_has_as_comments_are_inputs() -> None:
    commented = re.findall(r"^ +# ([a-z-]+): \S+$", WORKFLOW.read_text(), flags=re.MULTILINE)
    assert set(commented) == {"workloads", "prices", "limits", "at", "wait-factor"} <= set(read(ACTION)["inputs"])


def documented() -> list[dict[Any, Any]]:
    """The examples of docs/how-to/pull-request.md: of any repository, of the action, and of GitLab."""
    return [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)]


def test_the_documented_workflow_is_pinned_as_ours_is_and_has_its_permissions() -> None:
    _, github, _ = documented()
    (job,) = github["jobs"].values()
    checkout, act = job["steps"]
    assert checkout in [{key: step[key] for key in ("uses", "with")} for step in steps(WORKFLOW) if "with" in step]
    assert set(act["with"]) <= set(read(ACTION)["inputs"])
    assert github["permissions"] == {"contents": "read", "pull-requests": "write", "security-events": "write"}


def test_the_documented_job_of_gitlab_runs_commands_that_there_are() -> None:
    *_, gitlab = documented()
    script = "\n".join([*gitlab["rehearse"]["script"], *gitlab["rehearse"]["after_script"]])
    commands = re.findall(r"(?:python3? -m karpstack.pull_request|karpstack pull-request) ([^>\n)]*)", script)
    assert [parser().parse_args(shlex.split(each)).command.__name__ for each in commands] == [
        "_stacks",
        "_rehearse",
        "_summary",
    ]
    subprocess.run(["bash", "-n", "-c", script], check=True)


def test_the_component_of_gitlab_hands_each_input_on_as_a_variable() -> None:
    head, jobs = yaml.safe_load_all(COMPONENT.read_text())
    job = jobs["rehearse"]
    inputs = set(head["spec"]["inputs"])
    named = {text: re.findall(r"\$\[\[ inputs\.(\w+) ]]", text) for text in strings(jobs)}
    assert {name for names in named.values() for name in names} == inputs
    # GitLab replaces inputs before the shell reads a script.
    assert not any("[[" in line for line in [*job["script"], *job["after_script"]])
    assert inputs - {"image", "stage"} <= set(read(ACTION)["inputs"])
    subprocess.run(["bash", "-n", "-c", "\n".join([*job["script"], *job["after_script"]])], check=True)
    assert job["script"][0] == "rm -rf build/pull-request"  # what the merge request brought
    (words,) = (line.removeprefix("karpstack pull-request ") for line in job["script"] if "rehearse" in line)
    given = parser().parse_args(shlex.split(words))
    assert {given.base, given.manifests, given.workloads, given.limits, given.prices} <= {
        f"${name}" for name in job["variables"]
    }


@pytest.mark.parametrize(
    ("digest", "unpacked"), [("", False), ("0" * 64, False), ("of another cache", False), ("its own", True)]
)
def test_gitlabs_cache_is_unpacked_only_where_its_digest_is_known(digest: str, unpacked: bool, tmp_path: Path) -> None:
    """A cache carries the manifest of its programs: whoever changes one can change both."""
    home, checkout = tmp_path / "home", tmp_path / "checkout"
    (home / ".cache" / "karpstack").mkdir(parents=True)
    (checkout / "made" / "engines").mkdir(parents=True)
    (checkout / "made" / "engines" / "etcd").write_text("#!/bin/sh\ntouch poisoned\n")
    tar = ["tar", "-cf", "engines.tar", "-C", "made", "engines"]
    subprocess.run(tar, cwd=checkout, check=True)
    own = hashlib.sha256((checkout / "engines.tar").read_bytes()).hexdigest()
    (line,) = (line for line in documented()[2]["rehearse"]["script"] if "tar -xf" in line)
    given = own if digest == "its own" else digest
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "ENGINES_SHA256": given}
    subprocess.run(["bash", "-ec", line], cwd=checkout, env=environment, check=True, capture_output=True)
    assert (home / ".cache" / "karpstack" / "engines" / "etcd").exists() == unpacked
    (checkout / "engines.tar").unlink()  # the first job of all
    subprocess.run(["bash", "-ec", line], cwd=checkout, env=environment, check=True, capture_output=True)


def test_the_workflow_of_the_example_is_the_documented_one_and_ours() -> None:
    """It says OWNER instead of a commit."""
    example, ours = read(EXAMPLE), read(WORKFLOW)
    (job,), (documented_job,) = example["jobs"].values(), documented()[0]["jobs"].values()
    checkout, act = job["steps"]
    assert documented_job["steps"][0] == checkout == ours["jobs"]["stacks"]["steps"][0]
    major = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"].partition(".")[0]
    assert act["uses"] == documented_job["steps"][1]["uses"] == f"OWNER/karpstack/.github/actions/rehearse@v{major}"
    assert set(documented_job["steps"][1]["with"]) <= set(act["with"]) <= set(read(ACTION)["inputs"])
    assert (example[True], example["permissions"], example["concurrency"]) == (
        {"pull_request": None, "push": {"branches": ["main"]}},
        {},
        ours["concurrency"],
    )
    assert job["permissions"] == documented()[0]["permissions"] == {"contents": "read", "pull-requests": "write"}


def test_with_manifests_no_step_imports_from_the_checkout_or_reads_results_in_it() -> None:
    for step in steps(ACTION):
        run = step.get("run", "")
        assert not re.search(r"python\"? (?!-P )", run)
        assert not re.search(r"(?<!/)build/pull-request", run)
        if "build/pull-request" in str(step.get("if")):
            assert "inputs.manifests == ''" in step["if"]


def test_every_input_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert not [name for name in (*read(ACTION)["inputs"], *read(ACTION)["outputs"]) if f"`{name}`" not in text]


# Stand-ins for what a step starts: each writes down its words.
_NOTED = """#!/bin/sh
"{python}" - "$@" <<'EOF' >> "{log}"
import json, sys
print(json.dumps(["{name}", *sys.argv[1:]]))
EOF
case "$*" in *" stacks "*) echo '["eks"]';; *) echo said;; esac
"""


@pytest.mark.parametrize(("path", "step"), [each for path in FILES for each in RUNS[path]])
def test_each_command_takes_what_it_is_given(path: Path, step: Step, tmp_path: Path) -> None:
    hostile = "a b'\"$(touch pwned)`touch pwned`;touch pwned"
    log = tmp_path / "log"
    for name in ("bin/python", ".venv/bin/python", "bin/make"):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_NOTED.format(python=ROOT / ".venv" / "bin" / "python", log=log, name=name))
        program.chmod(0o755)
    (tmp_path / "requirements.lock").write_text((ROOT / "requirements.lock").read_text())
    values = {
        "ROOT": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "WHATIF": "true",
        "STACKS": '["eks"]' if "comment" in step["run"] or "summary" in step["run"] else hostile,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "RUNNER_TEMP": str(tmp_path),
            "HOME": str(tmp_path),
            **{name: values.get(name, hostile) for name in step.get("env", {})},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()
    commands = [json.loads(line) for line in log.read_text().splitlines()]
    assert commands
    for program, *words in commands:
        if program.endswith("make"):
            options = ["--no-print-directory", "-C", str(tmp_path), "-j2"]
            assert words == [*options, "environment", "engines", f"STACK_FILE={hostile}"]
            continue
        _, module, *arguments = words[words.index("-m") :]
        if module == "pip":
            assert {"install", "--no-deps", "--require-hashes"} <= set(arguments)
            pinned = (tmp_path / "urllib3.lock").read_text()
            assert pinned.startswith("urllib3==")
            assert pinned.count("==") == 1
            assert "--hash=sha256:" in pinned
        elif module == "karpstack.rehearsal.engines":
            assert arguments[0] == "--cache-key"
        else:
            assert module == "karpstack.pull_request"
            given = parser().parse_args(arguments)
            if arguments[0] == "rehearse":
                names = ("base", "stacks", "manifests", *PASSED_ON)
                assert {getattr(given, name.replace("-", "_")) for name in names} == {hostile}
