"""The folders and files that are part of the package: the policy pack, the playbooks, and the program itself.

In a checkout they are at top level, and the package has links to them; an installed package has the files. What belongs
to a user's project is found by `projects`, never here. Standard library only, as `files` is.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

#: The package itself.
PACKAGE: Final = Path(str(files("karpstack"))).resolve()
#: The folder from which `karpstack` is imported: the checkout, or site-packages.
IMPORT_ROOT: Final = PACKAGE.parent
#: The policy pack, which is also the root of its own imports.
POLICIES: Final = (PACKAGE / "policies").resolve()
PLAYBOOKS: Final = (PACKAGE / "playbooks").resolve()
SCENARIOS: Final = PLAYBOOKS / "scenarios"
THRESHOLDS: Final = PLAYBOOKS / "thresholds.yml"
#: The folder of karpstack's own Pulumi program, for stack files that have none beside them.
PROGRAM: Final = (PACKAGE / "program" / "Pulumi.yaml").resolve().parent


def is_program(folder: Path) -> bool:
    """Return whether a folder has karpstack's own program, run by this package: the program itself, or a copy of it.

    A copy with a package of its own beside it, such as a commit of the checkout, is another program.
    """
    try:
        return folder == PROGRAM or (
            not (folder / "karpstack").exists()
            and (folder / "__main__.py").read_bytes() == (PROGRAM / "__main__.py").read_bytes()
        )
    except OSError:
        return False
