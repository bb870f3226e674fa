"""Every command in a code block of the README and of docs/ is run here, is run by a test that documented_commands.yaml
names, or is marked there with what it needs: a cloud, a cluster of the reader's, another tool.

The usage lines of docs/reference/commands.md are left out: tests/unit/test_commands_page.py generates them.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karpstack.text.codes import Code
from tests.unit.command_line import karpstack
from tests.unit.scale_test.example_report import Example
from tests.unit.snapshot import api
from tests.unit.snapshot.test_trace_curve import simkube
from tests.unit.whatif.told import STACK, lines

ROOT = Path(__file__).resolve().parents[2]
TABLE = yaml.safe_load(Path(__file__).with_name("documented_commands.yaml").read_text(encoding="utf-8"))
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?!done |\S+/ )[a-z.][\w./-]*(?: .*)?")
main = karpstack()


def blocks(path: Path) -> Iterator[str]:
    """The code blocks of a page, fenced or indented, without their indentation."""
    found: list[str] = []
    fenced = False
    for line in [*path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines(), "end"]:
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not fence and (fenced or line.startswith("    ") or not line.strip()):
            found.append(line)
        elif text := textwrap.dedent("\n".join(found)).strip():
            yield text
            found = []


def is_data(block: str) -> bool:
    try:
        return all(isinstance(one, dict | list) for one in yaml.safe_load_all(block))
    except yaml.YAMLError:
        return False


def commands_of(block: str) -> list[str]:
    """The commands of a block; of a session with `$`, those without what they print."""
    session = block.startswith("$ ")
    found = [line.removeprefix("$ ") for line in block.splitlines() if not session or line.startswith("$ ")]
    plain = [" ".join(re.split(r"(?:^|\s+)#", line)[0].split()) for line in found if not line.startswith(" ")]
    return [line for line in plain if COMMAND.fullmatch(line) and "[OPTIONS]" not in line]


PAGES = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)]
COMMANDS = sorted({one for page in PAGES for block in blocks(page) if not is_data(block) for one in commands_of(block)})
NAMED = {test: prefixes for part in ("tests", "partly") for test, prefixes in TABLE[part].items()}
ENTRIES = dict.fromkeys(TABLE["run"], "run") | {
    prefix: place for table in (NAMED, TABLE["needs"]) for place, prefixes in table.items() for prefix in prefixes
}


def entry(command: str) -> str:
    """The longest entry of the table that the command is or begins with."""
    fitting = [prefix for prefix in ENTRIES if f"{command} ".startswith((f"{prefix} ", f"{prefix}="))]
    return max(fitting, key=len, default="")


def test_each_command_is_run_or_has_its_test_or_its_need() -> None:
    assert len(COMMANDS) > 150
    assert [command for command in COMMANDS if not entry(command)] == []
    assert ENTRIES.keys() - {entry(command) for command in COMMANDS} == set()


@pytest.mark.parametrize("test", NAMED)
def test_the_named_tests_exist(test: str) -> None:
    file, name = test.split("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the files that the commands name: recorded runs, snapshots, manifests."""
    folder = tmp_path_factory.mktemp("project")
    for path in (*ROOT.glob("Pulumi*.yaml"), *(ROOT / "examples" / "real-run").glob("*.yaml")):
        shutil.copy(path, folder)
    for name in ("examples", "playbooks"):
        (folder / name).symlink_to(ROOT / name)
    small = (ROOT / "examples" / "snapshots" / "20-pods.json").read_bytes()
    for name in ("snapshot.json", "cluster.json"):
        (folder / name).write_bytes(small)
    (folder / "cluster.json.gz").write_bytes(gzip.compress(small))
    (folder / "trace.json").write_text(json.dumps(simkube((0, 3), (9, 12))))
    for name in ("export", "nodepools", "my-scenarios", "snapshots"):
        (folder / name).mkdir()
    (folder / "export" / "all.json").write_text(json.dumps(api.exported(api.cluster())))
    pool = next(one for one in json.loads(small)["nodePools"] if one["name"] == "general")
    manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}}
    (folder / "nodepools" / "general.yaml").write_text(yaml.safe_dump(manifest | {"spec": pool["spec"]}))
    shutil.copy(ROOT / "playbooks" / "scenarios" / "drift.yml", folder / "my-scenarios")
    report = json.dumps(Example().report())
    timeline = ROOT / "tests" / "unit" / "scale_test" / "eks.timeline.jsonl"
    story = [json.loads(line) for line in timeline.read_text().splitlines()]
    story[0]["stack"] = {"name": "eks", "outputs": STACK["outputs"]}
    whatif = lines("eks.consolidation-policies", 3, change_begins={"candidate": "tighter"})
    for name, found in (("build/rehearsal/eks", story), ("build/whatif/eks/working-tree", whatif)):
        (folder / name).mkdir(parents=True)
        (folder / name / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
    (folder / "build" / "rehearsal" / "eks" / "report.json").write_text(report)
    assert main(["whatif", "report", str(folder / "build/whatif/eks/working-tree")]) == Code.GOOD
    for name in ("first", "second", "third"):
        shutil.copytree(folder / "build/whatif/eks/working-tree", folder / name)
    for name in ("old-report", "build/rehearsal/real-eks", "build/real-run/real-eks"):
        (folder / name).mkdir(parents=True)
        stack = "real-eks" if "real" in name else "eks"
        (folder / name / "report.json").write_text(json.dumps(Example().report() | {"stack": stack}))
    (folder / "limits.yml").write_text("whatif: {maxNodes: 100}")
    (folder / "prices.yml").write_text("discounts: {c6g: 0.5}")
    return folder


@pytest.mark.parametrize("command", [command for command in COMMANDS if ENTRIES.get(entry(command)) == "run"])
def test_a_documented_command_succeeds(
    command: str, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(recorded, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if not command.startswith("karpstack "):
        subprocess.run(["bash", "-c", command], check=True)
        return
    given = shlex.split(command.partition(" > ")[0])
    words = [one for word in given for one in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    code = main(words[1:])
    # `doctor` may find that this machine lacks something.
    assert code == Code.GOOD or (code == Code.NO and words[1] == "doctor"), capsys.readouterr()
