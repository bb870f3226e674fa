"""What files beside a stack's describe, looked at before engines are built and a daemon is started.

Whoever makes it in the account says what the cloud refuses of it; here it is what the files themselves have wrong, and
what the stack names and no file describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Final, TypeVar

from karpstack.rehearsal.engines import EngineSet, required_parts
from karpstack.rehearsal.host.description_files import DescriptionError
from karpstack.rehearsal.session.clouds import CLOUDS
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.text import refusals
from karpstack.text.codes import Code

_T = TypeVar("_T")
#: Settings of karpstack:addons with IDs of what somebody else's subscription has, and what these are.
_NAMED: Final = {"registryIds": "registry", "vaultIds": "vault"}


def check_stack(stack_file: StackFile) -> None:
    """Refuse what cannot be rehearsed.

    Raises:
        StackFileError: With everything that is wrong.
    """
    wrong = [*_unreadable(stack_file), *_not_described(stack_file)]
    if wrong:
        raise StackFileError("\n".join(wrong))


def check_before_building(stack_file: StackFile) -> None:
    """Let the program check the configuration before an engine is built for it.

    Raises:
        StackFileError: It refuses it.
    """
    engines = EngineSet.current()
    if all(map(engines.complete, required_parts([stack_file.cloud], stack_file.releases))):
        return
    stack = stack_file.path.stem.removeprefix("Pulumi.")
    if refused := refusals.settings_refusal(stack_file.path, stack, codes=[Code.WRONG]):
        raise StackFileError(refused)


def _unreadable(stack_file: StackFile) -> Iterator[str]:
    for path, reader in zip((stack_file.network, stack_file.cluster), CLOUDS[stack_file.cloud].readers, strict=True):
        try:
            if path.is_file():
                with named(path):
                    resolve_name(reader)(path)
        except StackFileError as error:
            yield str(error)


def read(path: Path, load: Callable[[Path], _T]) -> _T | None:
    """Read a file beside the stack file; None without it.

    Raises:
        StackFileError: It is refused; the text names the file.
    """
    if not path.is_file():
        return None
    with named(path):
        return load(path)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file by a StackFileError where what it describes is refused."""
    try:
        yield
    except DescriptionError as error:
        raise StackFileError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error


def _not_described(stack_file: StackFile) -> Iterator[str]:
    """Registries and vaults: a role on one that is not there is refused when the cluster has long been made."""
    named = [(key, one) for key in _NAMED for one in stack_file.named_in_addons(key)]
    if not named:
        return
    from karpstack.rehearsal.azure.network import existing

    path = stack_file.network
    try:
        there = {one.id.lower() for one in (existing.load(path) if path.is_file() else ())}
    except DescriptionError:  # said above
        return
    for key, one in named:
        if one.lower() not in there:
            yield (
                f"{stack_file.path}: karpstack:addons.{key} names the {_NAMED[key]} {one}: the simulated subscription "
                f"has it only if {path} describes it, which "
                + ("has none of that ID" if path.is_file() else "is not there")
                + ", so that Azure would refuse the role on it after the cluster was made; add what `az resource show "
                f"--ids {one}` prints, see docs/how-to/aks/existing-vnet.md"
            )
