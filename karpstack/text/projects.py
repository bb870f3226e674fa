"""Find the project, and the stack files, that a command means: those of the folder in which it is run.

Standard library only, as `files` is.
"""

from __future__ import annotations

from pathlib import Path


class ProjectError(ValueError):
    """There is no project; the text says what to do."""


def find_project() -> Path:
    """Return the nearest folder upward from the current folder that has Pulumi.yaml.

    Raises:
        ProjectError: There is none.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ProjectError(
        f"{here}: neither this folder nor one above it has a Pulumi.yaml, so there is no stack to work on; change to "
        "the folder of your project: cd ~/my-project"
    )


def find_stack_files() -> Path:
    """Return the nearest folder upward that has stack files, or is the root of a git repository; else the current one.

    Such a folder need not have a program: the stack files may be another repository's than the program.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".git").exists() or next(folder.glob("Pulumi*.yaml"), None):
            return folder
    return here


def stack_names() -> list[str]:
    """Return the names of the stacks that have a file in the project; none without a project."""
    files = find_stack_files().glob("Pulumi.*.yaml")
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in files)
