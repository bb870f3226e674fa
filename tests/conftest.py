"""Golden files: `pytest --update-goldens` writes what the tests compare; review the difference before committing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDENS = Path(__file__).parent / "unit" / "goldens"

Golden = Callable[[str, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a document with goldens/<name>.json."""

    def compare(name: str, document: Any) -> None:
        path = GOLDENS / f"{name}.json"
        if request.config.getoption("--update-goldens"):
            path.write_text(json.dumps(document, indent=2) + "\n")
        assert json.loads(path.read_text()) == document, f"{path} differs; see --update-goldens"

    return compare
