"""Find the project, and the stack files, that a command means: those of the folder in which it is run.

Standard library only, as `files` is.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .json_file import FileError, read
from .names import is_stack_name

#: Cloud of a snapshot -> the stack whose program makes clusters of that cloud.
STACKS: Final[Mapping[str, str]] = {"aws": "eks", "azure": "aks-nap"}
#: The stack for a snapshot of Azure that has Karpenter's Deployment.
SELF_HOSTED: Final = "aks-self-hosted"
#: A folder with one of these files is what Kustomize makes of it.
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
#: What names another folder for stack files in Pulumi.yaml; earlier releases of Pulumi called it `config`.
_FOLDER: Final = re.compile(
    rb"""(?:^|[{,])\s*["']?(stackConfigDir)["']?\s*:|^["']?(config)["']?[ \t]*:[ \t]+[^\s#{]""", re.MULTILINE
)
# Of a snapshot: bytes, levels and values.
_MOST, _DEPTH, _VALUES = 64 * 2**20, 40, 1_000_000


class ProjectError(ValueError):
    """There is no project; the text says what to do."""


def find_project() -> Path:
    """Return the nearest folder upward from the current folder that has Pulumi.yaml.

    Raises:
        ProjectError: There is none.
    """
    for folder in _upward():
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ProjectError(
        f"{Path.cwd()}: neither this folder nor one above it has a Pulumi.yaml, so there is no stack to work on; "
        "change to the folder of your project: cd ~/my-project"
    )


def find_stack_files() -> Path:
    """Return the nearest folder upward that has stack files, or is the root of a git repository; else the current one.

    Such a folder need not have a program: the stack files may be another repository's than the program.
    """
    for folder in _upward():
        if (folder / ".git").exists() or next(folder.glob("Pulumi*.yaml"), None):
            return folder
    return Path.cwd()


def stack_names() -> list[str]:
    """Return the names of the stacks that have a file in the project; none without a project.

    A shell evaluates what completes a line (zsh), so other names of files are left out.
    """
    files = find_stack_files().glob("Pulumi.*.yaml")
    names = (path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in files)
    return sorted(filter(is_stack_name, names))


def other_folder(project_file: bytes) -> str:
    """Return why Pulumi takes its stack files from another folder, by the text of Pulumi.yaml; empty if it does not."""
    found = _FOLDER.search(project_file)
    if not found:
        return ""
    key = (found[1] or found[2]).decode()
    return (
        f"{key} names another folder for stack files, and karpstack reads those beside Pulumi.yaml, so it would answer "
        f"for other files than Pulumi's; remove {key}, and move the stack files beside Pulumi.yaml"
    )


def section(config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """A section of the settings in a stack file, whether Pulumi wrote it (as JSON) or a person.

    Empty where there is none; None where it is no mapping, which the program refuses.
    """
    found = config.get(f"karpstack:{name}")
    try:
        found = json.loads(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return None
    return {} if found is None else found if isinstance(found, dict) else None


def stack_of(snapshot: Path) -> str:
    """Return the stack that makes clusters like that of a snapshot.

    Raises:
        ProjectError: The snapshot names no cloud.
    """
    try:
        data = read(snapshot, most=_MOST, depth=_DEPTH, values=_VALUES)
        cloud = data["cluster"]["cloud"]
        workloads = data.get("workloads") or []
        # The Deployment has the name of Helm's release; node auto provisioning has none.
        runs_karpenter = bool(data.get("karpenter")) or any(one.get("name") == "karpenter" for one in workloads)
    except FileError as error:
        raise ProjectError(str(error)) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ProjectError(
            f"{snapshot} names no cloud, so it is not known which stack its cluster is like; name the stack: karpstack "
            "whatif eks ..."
        ) from error
    return SELF_HOSTED if cloud == "azure" and runs_karpenter else STACKS.get(cloud, str(cloud))


def _upward() -> Iterator[Path]:
    """The current folder and those above it, up to one of another user or that every user may write, such as /tmp.

    What lies there may be anybody's, and a project is a program that is run.
    """
    here = Path.cwd()
    yield here
    trusted = {0, os.getuid(), here.stat().st_uid}
    for folder in here.parents:
        found = folder.stat()
        if found.st_mode & stat.S_IWOTH or found.st_uid not in trusted:
            return
        yield folder
