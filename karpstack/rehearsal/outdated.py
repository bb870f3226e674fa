"""Lists what is pinned, and the newest version that can be had: `make outdated`.

Newest is what the package registries of this machine answer, as uv and Go ask them. That a version exists does not say
that it goes with the others: `make lock`, `go mod tidy` and the tests do (docs/contributing/upgrading.md).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karpstack.rehearsal.engines import HERE
from karpstack.rehearsal.engines.builder import BuildError, Go

_ROOT = HERE.parents[2]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PIN = re.compile(rf"({_NAME.pattern})(?:\[.*?\])?==([^\s;]+)")
_MODULES = ("kubernetes", "karpenter-aws", "karpenter-azure", "pulumi", "charts", "addons")
# Kubernetes' own libraries have the version of k8s.io/kubernetes.
_FOLLOWS = re.compile(r"k8s\.io/(?!kubernetes$)")


class RegistryError(Exception):
    """A registry was not reached; the text says which and what to do."""


@dataclass(frozen=True)
class Pin:
    """One pinned version.

    Attributes:
        file: Where it is pinned, from the root of the checkout.
        name: Package or Go module.
        used: The pinned version.
        newest: The newest that can be had, or why that is not known.
    """

    file: str
    name: str
    used: str
    newest: str


def python_pins(outdated: Mapping[str, str]) -> Iterator[Pin]:
    """Pins of the packages in pyproject.toml; and of requirements.lock what is not at its newest.

    Args:
        outdated: Package, in lower case -> its newest version, where that is not the installed one.
    """
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    groups = [project["project"]["dependencies"], *extras.values(), *project["dependency-groups"].values()]
    lines = [line for group in groups for line in group]
    direct = {found[0].lower() for line in lines if (found := _NAME.match(line))}
    seen = set()
    for file, pinned in (
        ("pyproject.toml", lines),
        ("requirements.lock", (_ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()),
    ):
        for name, used in (found.groups() for line in pinned if (found := _PIN.match(line))):
            if name.lower() in seen or name.lower() not in (direct | outdated.keys()):
                continue
            seen.add(name.lower())
            yield Pin(file, name, used, outdated.get(name.lower(), used))


def outdated_packages() -> dict[str, str]:
    """Packages of this Python environment that have a newer version, as uv finds them: name -> newest.

    Raises:
        RegistryError: The index was not reached.
    """
    command = ["uv", "pip", "list", "--outdated", "--format", "json", "--python", sys.executable]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        raise RegistryError(_not_reached("Python packages", "UV_DEFAULT_INDEX, or your uv.toml,", done.stderr))
    return {found["name"].lower(): found["latest_version"] for found in json.loads(done.stdout)}


def go_pins(go: Go) -> Iterator[Pin]:
    """What the engines' go.mod files choose: the modules of their programs, charts and replacements.

    Raises:
        BuildError: go.mod cannot be read.
        RegistryError: No module could be asked for.
    """
    chosen = [
        (module, *pin) for module in _MODULES for pin in _chosen(json.loads(go.run(module, "mod", "edit", "-json")))
    ]
    paths = sorted({path for _, path, _ in chosen})
    # Outside of the module that is asked for, so that its own requirements have no say; -e: one failure hides no other.
    answers = go.run("charts", "list", "-m", "-e", "-json", *(f"{path}@latest" for path in paths))
    newest, failures = {}, []
    for answer in _objects(answers):
        if error := answer.get("Error"):
            failures.append(error["Err"])
            newest[answer["Path"]] = "not answered"
        else:
            newest[answer["Path"]] = answer["Version"]
    if len(failures) == len(paths):
        raise RegistryError(_not_reached("Go modules", "GOPROXY", failures[0]))
    for module, path, used in chosen:
        yield Pin(f"karpstack/rehearsal/engines/{module}/go.mod", path, used, newest[path])


def _chosen(module: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and version of what a go.mod chooses itself; all else follows from that."""
    programs = [tool["Path"] for tool in module.get("Tool") or ()]
    replaced = {one["Old"]["Path"]: one["New"] for one in module.get("Replace") or ()}
    for one in module["Require"]:
        path, new = one["Path"], replaced.get(one["Path"])
        if new and "Version" not in new:  # ours, in a folder beside it
            continue
        if new and not _FOLLOWS.match(path):
            yield new["Path"], new["Version"]
        elif not one.get("Indirect") or any(f"{program}/".startswith(f"{path}/") for program in programs):
            yield path, one["Version"]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects one after another, as Go writes them."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:]


def _not_reached(what: str, setting: str, error: str) -> str:
    return (
        f"the registry of {what} was not reached, so nothing is known of newer versions: "
        f"{' '.join(error.split())}; see that the network is there, and that {setting} names a registry that answers"
    )


def table(pins: list[Pin]) -> str:
    """The pins in columns; what is not at its newest is marked."""
    rows = [("pinned in", "name", "used", "newest", "")]
    rows += [(pin.file, pin.name, pin.used, pin.newest, "" if pin.used == pin.newest else "*") for pin in pins]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def main() -> int:
    """Print the table; 1 where a registry was not reached."""
    try:
        pins = [*python_pins(outdated_packages()), *go_pins(Go.find())]
    except (BuildError, RegistryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(pins))
    return 0


if __name__ == "__main__":
    sys.exit(main())
