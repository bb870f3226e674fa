"""The command as a program: how quickly it says what there is, and what it loads for that."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Libraries that take a tenth of a second and more.
HEAVY = {"ansible", "boto3", "jsonschema", "kubernetes", "matplotlib", "moto", "pulumi", "pydantic", "rich", "scipy"}
#: Two programs declare the options of pull-request; their defaults stand in one small module.
DEFAULTS = {"karpstack.pull_request", "karpstack.pull_request.inputs"}


@pytest.mark.parametrize("words", [["--help"], ["whatif", "--help"], ["up", "--help"], ["snapshot", "take", "--help"]])
def test_help_loads_no_large_library(words: list[str]) -> None:
    code = (
        "import json, sys; from karpstack.cli import main; "
        "code = main(sys.argv[1:]); print(json.dumps(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    ours = {name for name in loaded if name.startswith("karpstack.")} - DEFAULTS
    assert {name.split(".")[1] for name in ours} <= {"cli", "text"}, ours


def test_bash_completes_commands_and_stacks() -> None:
    for line, found in (("karpstack whatif aks", "aks-nap"), ("karpstack whatif re", "report")):
        asked = {"_KARPSTACK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "2"}
        done = subprocess.run(
            [sys.executable, "-m", "karpstack"],
            cwd=ROOT,
            env=os.environ | asked,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found in done.stdout.split()


def test_a_python_without_the_environment_says_what_to_run() -> None:
    code = "import sys; sys.modules['psutil'] = None; from karpstack.cli import main; sys.exit(main(['status', 'eks']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert re.search("lacks the module psutil, .*make environment", done.stderr)
