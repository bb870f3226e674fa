"""The type checker reads every service module of the Pulumi SDKs that this repository uses."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SDKS = ("pulumi_aws", "pulumi_azure_native", "pulumi_kubernetes")


def services() -> Iterator[str]:
    """Each submodule of an SDK that a source file imports, with dots."""
    for folder in ("components", "policies", "karpstack/rehearsal"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.ImportFrom) or not node.module or node.module.split(".")[0] not in SDKS:
                    continue
                yield from ([node.module] if "." in node.module else (f"{node.module}.{a.name}" for a in node.names))


def test_no_service_of_an_sdk_is_skipped_by_the_type_checker() -> None:
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (followed,) = [entry["module"] for entry in overrides if entry.get("follow_imports") == "normal"]
    found = set(services())
    assert found
    read = tuple(module.removesuffix(".*") for module in followed)
    skipped = sorted(
        module
        for module in found
        if not any(module == name or module.startswith(f"{name}.") for name in read if "." in name)
    )
    assert skipped == [], f"add them to mypy's follow_imports = normal in pyproject.toml: {skipped}"
