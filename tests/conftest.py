"""What all tiers share: golden files, and which of the tiers need nothing but Python.

`pytest --update-goldens` writes what the tests compare; review the difference before committing.
"""

import json
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.alone import alone

HERE = Path(__file__).parent
GOLDENS = HERE / "unit" / "goldens"
#: Tiers whose tests start no processes and connect to no other machine.
ALONE = {"unit", "policies"}

Golden = Callable[[str, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files instead of comparing")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    tier = item.path.relative_to(HERE).parts[0]
    with alone() if tier in ALONE else nullcontext():
        return (yield)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a document with goldens/<name>.json."""

    def compare(name: str, document: Any) -> None:
        path = GOLDENS / f"{name}.json"
        if request.config.getoption("--update-goldens"):
            path.write_text(json.dumps(document, indent=2) + "\n")
        assert json.loads(path.read_text()) == document, f"{path} differs; see --update-goldens"

    return compare
