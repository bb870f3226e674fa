"""What all tiers share: golden files, and which of the tiers need nothing but Python.

`pytest --update-goldens` writes what the tests compare; review the difference before committing.
"""

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import nullcontext
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from karpstack.karpenter import fact_dates
from karpstack.karpenter.fact_files import FOLDER, VARIABLE
from tests.alone import alone
from tests.garbage import collect_seldom, spare_what_is_here

HERE = Path(__file__).parent
GOLDENS = HERE / "unit" / "goldens"
#: Tiers whose tests start no processes and connect to no other machine.
ALONE = {"unit", "policies"}

Golden = Callable[[str, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files instead of comparing")


#: The day of all tests in this process but those of the age of facts: they hold whenever they run.
DAY = date(2026, 11, 24)
_days = fact_dates.days


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # A job of CI is ended so, and `docker stop` ends a container: as after Ctrl-C, no rehearsal is left.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    platform.platform()  # azure.identity asks it when it is imported; the answer, which takes a process, is kept
    os.environ[VARIABLE] = str(FOLDER)  # not what this checkout may have refreshed
    fact_dates.today = lambda: DAY
    fact_dates.days = cache(lambda cloud, region="": {})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """After Ctrl-C or SIGTERM, stop the rehearsals whose fixtures were not finished: the workers have ended by now."""
    config: Any = session.config
    if exitstatus != pytest.ExitCode.INTERRUPTED or hasattr(config, "workerinput"):
        return
    for stack in Path(config._tmp_path_factory.getbasetemp()).glob("**/state/*/karpstack-rehearsal"):
        name, state = stack.parent.name, str(stack.parent.parent)
        command = [sys.executable, "-m", "karpstack", "down", name, "--state", state, "--force"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


@pytest.fixture
def days_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are as old as their files say."""
    monkeypatch.setattr(fact_dates, "days", _days)
    collect_seldom()


#: Files whose tests have begun in this process.
_begun: set[Path] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    tier = item.path.relative_to(HERE).parts[0]
    if item.path not in _begun:
        # What the files before left is there to stay: what they imported, in a function's body too.
        _begun.add(item.path)
        spare_what_is_here()
    with alone() if tier in ALONE else nullcontext():
        return (yield)


#: Files whose tests share the stack `eks`: one worker runs them one after another, or each would bring up its own.
SHARING = frozenset(
    f"tests/rehearsal/test_{name}.py" for name in ("engines_guarded", "import", "lifecycle", "listeners", "policies")
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, what shares a stack is one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByStack(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the stack eks" if file in SHARING else file

    return ByStack(config, log)


#: What takes longest is begun first, or the other workers would wait for it in the end.
LONGEST = tuple(
    HERE / "rehearsal" / f"test_{name}.py"
    for name in (
        "stories",
        "aks_self_hosted",
        "existing_aks_cluster",
        "existing_cluster",
        "broken_environments",
        "lifecycle",
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path) if item.path in LONGEST else len(LONGEST))


def is_same(path: Path, document: Any) -> bool:
    """Whether a file has a document, whatever the order of its keys."""
    try:
        written = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return json.dumps(written, sort_keys=True) == json.dumps(document, sort_keys=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a document with goldens/<name>.json."""

    def compare(name: str, document: Any) -> None:
        path = GOLDENS / f"{name}.json"
        if request.config.getoption("--update-goldens") and not is_same(path, document):
            path.write_text(json.dumps(document, indent=2) + "\n")
        assert is_same(path, document), f"{path} differs; see --update-goldens"

    return compare
