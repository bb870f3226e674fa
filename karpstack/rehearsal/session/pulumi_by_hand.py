"""`pulumi` by hand on a rehearsed stack: which stack file it gets; then this process becomes Pulumi.

Pulumi writes the salt of its encryption into the stack's file, and a stack that is deployed has its own salt or key
there already, which no rehearsal can open. So Pulumi reads a copy with the rehearsal's salt, made from the user's file
for each command, and a command that changes settings gets the user's file itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from karpstack.rehearsal.host import peers
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError

#: Variables with the path of Pulumi itself, of the stack file that the user edits, of the program's folder, and of the
#: copy that Pulumi reads.
PULUMI = "KARPSTACK_PULUMI"
EDITED = "KARPSTACK_STACK_FILE"
PROGRAM = "KARPSTACK_PROGRAM"
COPY = "KARPSTACK_STACK_COPY"
#: Pulumi's own: names of packages and the ports of their providers.
PROVIDERS = "PULUMI_DEBUG_PROVIDERS"
#: Pulumi's own: the stack file, instead of the one beside Pulumi.yaml.
CONFIG_FILE = "PULUMI_OPTION_CONFIG_FILE"

# Commands of `pulumi config` that change settings, by all of their names.
_CHANGING = frozenset(
    ("set", "set-all", "remove", "rm", "delete", "remove-all", "rm-all", "remove-many", "copy", "cp", "env")
)
_WITHOUT_PROVIDERS = frozenset(("about", "config", "help", "history", "stack", "version", "whoami"))
# Options that may stand before a command and take a value, by what they are called here.
_VALUED = {
    **{"-s": "stack", "--stack": "stack", "-C": "cwd", "--cwd": "cwd", "--config-file": "config-file"},
    **{name: name for name in ("--color", "-v", "--verbose", "--tracing", "--profiling", "--memprofilerate")},
    "--otel-traces": "--otel-traces",
}


def main(arguments: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    """Become Pulumi, or end with 1 and say why not."""
    try:
        refuse_strangers(arguments, variables)
        chosen = stack_file(arguments, variables, Path.cwd())
    except (StackFileError, OSError) as error:
        sys.exit(f"error: {error}")
    more = {CONFIG_FILE: str(chosen)} if chosen else {}
    os.execve(variables[PULUMI], [variables[PULUMI], *arguments], {**variables, **more})  # noqa: S606  # the engines'


def refuse_strangers(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Refuse a command of Pulumi that asks providers, where the rehearsal that had them is gone.

    Another user may listen at their ports since, and would get the inputs of all resources, secrets among them.

    Raises:
        StackFileError: Somebody else listens there, or nobody.
    """
    words, _ = _parsed(arguments)
    if not words or words[0] in _WITHOUT_PROVIDERS:
        return
    for provider in filter(None, variables.get(PROVIDERS, "").split(",")):
        name, _, port = provider.rpartition(":")
        if not peers.is_own_listener(int(port)):
            raise StackFileError(
                f"the rehearsal of this shell has ended: no process of yours answers for the provider {name} at "
                f"127.0.0.1:{port}, and whoever listens there would get all inputs, so Pulumi was not started; bring "
                'it up again (karpstack up STACK), and then: eval "$(karpstack env STACK)"'
            )


def stack_file(arguments: Sequence[str], variables: Mapping[str, str], folder: Path) -> Path | None:
    """The stack file for a command of Pulumi; the copy has been made again. None: as Pulumi finds it.

    Raises:
        StackFileError: The user's file cannot be rehearsed, or a secret would be written into it.
    """
    words, options = _parsed(arguments)
    edited, copy = Path(variables[EDITED]), Path(variables[COPY])
    stack = options.get("stack", variables.get("PULUMI_STACK", "")).rpartition("/")[2]
    named = "config-file" in options or CONFIG_FILE in variables
    project = _project(folder / options.get("cwd", ""))
    if named or copy.name != f"Pulumi.{stack}.yaml" or project != Path(variables[PROGRAM]):
        return None
    _refuse_overwriting(words, arguments, edited)
    if words[:1] == ["config"] and words[1:2] and words[1] in _CHANGING:
        if any(word.partition("=")[0] == "--secret" for word in arguments):
            raise StackFileError(
                f"pulumi config {words[1]} --secret: the rehearsal has no key of yours, so what it encrypted into "
                f"{edited} could be opened nowhere else; rehearse a copy with test values: --config-file FILE"
            )
        return edited
    if words[:1] != ["stack"]:  # which reads no setting, and shall answer whatever is in the file
        StackFile.load(edited, any_program=True).copy_to(copy)
    return copy


def _refuse_overwriting(words: Sequence[str], arguments: Sequence[str], edited: Path) -> None:
    if words[:2] == ["config", "refresh"]:
        raise StackFileError(
            f"pulumi config refresh would write over {edited} with what the rehearsal was given, its encryption "
            "included; nothing was done. The file is what counts: edit it, or use pulumi config set"
        )
    if words[:1] in (["up"], ["update"]) and any(
        word.partition("=")[0] in ("-c", "--config") or (word.startswith("-c") and not word.startswith("--"))
        for word in arguments
    ):
        raise StackFileError(
            "pulumi up --config would save the setting into the rehearsal's copy of the stack file, where the next "
            f"command loses it; nothing was done. Set it first: pulumi config set, which writes {edited}"
        )


def _parsed(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words that are no options, and the values of the options that take one."""
    words: list[str] = []
    options: dict[str, str] = {}
    rest: Iterator[str] = iter(arguments)
    for argument in rest:
        name, given, value = argument.partition("=")
        if argument[:2] in _VALUED and len(argument) > 2:  # -sNAME, or -s=NAME
            options[_VALUED[argument[:2]]] = argument[2:].removeprefix("=")
        elif name in _VALUED:
            options[_VALUED[name]] = value if given else next(rest, "")
        elif not argument.startswith("-"):
            words.append(argument)
    return words, options


def _project(folder: Path) -> Path | None:
    """The folder of the project that Pulumi finds from a folder."""
    here = folder.resolve()
    return next((place for place in (here, *here.parents) if (place / "Pulumi.yaml").is_file()), None)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
