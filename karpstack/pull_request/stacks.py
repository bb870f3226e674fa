"""Which stacks a change touches, by the paths that differ between two commits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from karpstack.text import git, shown
from karpstack.text.names import is_stack_name
from karpstack.text.projects import other_folder

#: Whether a what-if is asked, and otherwise why not.
WhatIf = Literal["asked", "new", "policies", "off"]

_STACK_FILE: Final = re.compile(r"Pulumi\.(.+)\.yaml", re.DOTALL)
_SETTINGS: Final = re.compile(r"policies/([^/]+)\.json", re.DOTALL)
_PROJECT: Final = "Pulumi.yaml"
_OTHER_PROJECT: Final = "Pulumi.json"
#: What every stack is made by; what ends with a slash is a folder, and with a dot a name with any suffix.
_PROGRAM: Final = (
    "__main__.py",
    _PROJECT,
    "karpstack",
    "components",
    "components/",
    "karpstack/components",  # a link, which may become another, or a folder
    "karpstack/components/",
    "karpstack/__init__.",  # Python takes .so before .py
    "karpstack/__pycache__/",
    "karpstack/karpenter",
    "karpstack/karpenter/",
    "karpstack-facts/",  # the project's own, by which the program accepts a stack
    "requirements.lock",
)
_MODULES: Final = (".py", ".pyc", ".so")
#: Folders, of which no module is the program's own but those above.
_APART: Final = frozenset({"docs", "examples", "karpstack", "playbooks", "policies", "templates", "tests"})
#: No modules, though they have no suffix.
_NO_MODULES: Final = frozenset({"Dockerfile", "LICENSE", "Makefile", *_APART})
#: What every stack is judged by.
_POLICIES: Final = "policies/"
_DOCUMENTS: Final = ".md"


class StacksError(ValueError):
    """The two commits cannot be compared, or there is no such stack; the text says what to give instead."""


@dataclass(frozen=True)
class AffectedStack:
    """A stack to rehearse.

    Attributes:
        stack: Its name.
        why: A path that differs, or that it was asked for.
        whatif: `asked`; `new`, as the base has no such stack to compare with; `policies`, as what judges the stack
            differs and the stack does not; `off`, as nobody wants one.
        sides: Options of the what-if that name its sides, if they are manifests; there is no review then.
        like: The stack whose engines are needed, if it has another name.
    """

    stack: str
    why: str
    whatif: WhatIf
    sides: tuple[str, ...] = ()
    like: str = ""


@dataclass(frozen=True)
class Change:
    """What differs between two commits, as two trees: it does not matter where they parted.

    Attributes:
        base: The commit before, in full.
        paths: What differs, relative to the project; both names of what was renamed.
        before: Names of the stacks that the base has.
        after: Names of the stacks that there are now.
        head: The commit after, in full.
        links: Stack files and settings of policies that are links in one of the commits, if these differ anywhere: what
            they lead to may be what differs.
    """

    base: str
    paths: Sequence[str]
    before: Sequence[str]
    after: Sequence[str]
    head: str = ""
    links: Sequence[str] = ()

    def touched(self) -> list[AffectedStack]:
        """The stacks that this change touches, by name."""
        whys = {stack: self._why(stack) for stack in self.after}
        return [self._one(stack, why) for stack, why in whys.items() if why]

    def named(self, stacks: Sequence[str]) -> list[AffectedStack]:
        """These stacks, touched or not.

        Raises:
            StacksError: One of them has no file.
        """
        if unknown := [stack for stack in stacks if stack not in self.after]:
            raise StacksError(
                f"stack = {unknown[0]!r}: there is no Pulumi.{unknown[0]}.yaml, so there is nothing to rehearse; "
                f"there are {', '.join(self.after) or 'none'}"
            )
        return [self._one(stack, self._why(stack) or "asked for") for stack in dict.fromkeys(stacks)]

    def _one(self, stack: str, why: str) -> AffectedStack:
        if stack not in self.before:
            return AffectedStack(stack, why, "new")
        return AffectedStack(stack, why, "policies" if why.startswith(_POLICIES) else "asked")

    def _why(self, stack: str) -> str:
        """The path that says most: what makes the stack is before what judges it. Empty for a stack as it was."""
        # The others are the network and the cluster that the simulated account has for it.
        own = {f"Pulumi.{stack}.{ending}" for ending in ("yaml", "network.json", "cluster.json")}
        made = [path for path in (*self.paths, *self.links) if path in own]
        made += [path for path in self.paths if _is_of_program(path)]
        judged = [path for path in (*self.paths, *self.links) if _judges(path, stack)]
        return next(iter([*made, *judged]), "")


def change(project: Path, base: str, head: str = "HEAD") -> Change:
    """Compare two commits.

    Args:
        project: Folder with Pulumi.yaml, in a git repository.
        base: A ref or a commit: what is there before.
        head: What there is after.

    Raises:
        StacksError: One of them is no commit of the repository, or git cannot read it.
    """
    before, after = (commit(project, ref, option) for ref, option in ((base, "--base"), (head, "--head")))
    differing = _lines(
        project,
        *("diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--relative", "-z"),
        *(before, after),
    )
    entries = [_lines(project, "ls-tree", "-z", commit, "./", _POLICIES) for commit in (before, after)]
    earlier, names = ([entry.partition("\t")[2] for entry in listed] for listed in entries)
    if _OTHER_PROJECT in names and (_PROJECT in names or _PROJECT in differing):
        raise StacksError(
            f"{_OTHER_PROJECT} is beside {_PROJECT}, so Pulumi reads it and its Pulumi.STACK.json, and not the files "
            "that are rehearsed; remove it"
        )
    trees = {git.git(project, "rev-parse", f"{commit}^{{tree}}").stdout for commit in (before, after)}
    linked = {entry.partition("\t")[2] for listed in entries for entry in listed if entry.startswith(git.LINK)}
    links = sorted(linked) if len(trees) > 1 else []
    return Change(before, sorted(differing), _stacks(earlier), _stacks(names), after, links)


def check_stack_files(project: Path, changed: Change) -> None:
    """Check that Pulumi reads the stack files of the project's folder.

    Raises:
        StacksError: Pulumi.yaml names another folder, whose files are not compared.
    """
    found = git.git(project, "show", f"{changed.head}:./{_PROJECT}")
    if refused := other_folder(found.stdout):
        raise StacksError(f"{_PROJECT}: {refused}")


def unnamed(changed: Change) -> list[str]:
    """Files that look like a stack's, and can be none by their name."""
    found = [path for path in changed.paths if _STACK_FILE.fullmatch(path)]
    return [path for path in found if not is_stack_name(path.removeprefix("Pulumi.").removesuffix(".yaml"))]


def removed(changed: Change) -> list[str]:
    """Stacks of the base that are no more."""
    return [stack for stack in changed.before if stack not in changed.after]


def reasons(touched: Sequence[AffectedStack]) -> Mapping[str, str]:
    """Stack -> in words, why it is rehearsed and how."""
    words: Mapping[WhatIf, str] = {
        "asked": "review and what-if",
        "new": "review alone: the base has no such stack to compare with",
        "policies": "review alone: what judges it differs, and the stack does not",
        "off": "review alone",
    }
    of_manifests = {**words, "asked": "what-if", "off": "no what-if"}
    return {
        one.stack: f"{shown.value(one.why)}: {(of_manifests if one.sides else words)[one.whatif]}" for one in touched
    }


def _is_of_program(path: str) -> bool:
    if path.endswith(_DOCUMENTS):
        return False
    return _can_be_imported(path) or any(
        path.startswith(part) if part.endswith(("/", ".")) else path == part for part in _PROGRAM
    )


def _can_be_imported(path: str) -> bool:
    """Whether Python may find a module there, which `__main__.py` imports or which hides a library of that name."""
    first, is_inside, _ = path.partition("/")
    if path.endswith(_MODULES):
        return first not in _APART and not first.startswith(".")
    return not is_inside and first.isidentifier() and first not in _NO_MODULES  # a link to a folder


def _judges(path: str, stack: str) -> bool:
    """Whether a path is of the rules, or of this stack's settings of them."""
    path = path.removeprefix("karpstack/")  # a link to the folder, which may become another, or a folder
    if not f"{path}/".startswith(_POLICIES) or path.endswith(_DOCUMENTS):
        return False
    settings = _SETTINGS.fullmatch(path)
    return settings[1] == stack if settings else True


def _stacks(names: Sequence[str]) -> list[str]:
    """The stacks of a commit, by the names in the project's folder."""
    matches = map(_STACK_FILE.fullmatch, names)
    return sorted(found[1] for found in matches if found and is_stack_name(found[1]))


def commit(project: Path, ref: str, option: str) -> str:
    """Return the commit of a ref, in full.

    Raises:
        StacksError: There is none in the repository.
    """
    try:
        return git.commit(project, ref)
    except git.NoCommitError as error:
        raise StacksError(
            f"{option} {ref!r} is no commit of the repository of {project}{error}, so there is "
            "nothing to compare; name a ref that is here, and fetch it first: a checkout of one commit has no other "
            "(on GitHub `fetch-depth: 2`, on GitLab GIT_DEPTH)"
        ) from error
    except FileNotFoundError as error:
        raise StacksError("there is no git in PATH, so no commits can be compared; install it") from error


def _lines(project: Path, *arguments: str) -> list[str]:
    found = git.git(project, *arguments)
    if found.returncode:
        raise StacksError(f"git {arguments[0]} in {project}: {found.stderr.decode(errors='replace').strip()}")
    return [name for name in found.stdout.decode(errors="surrogateescape").split("\0") if name]
