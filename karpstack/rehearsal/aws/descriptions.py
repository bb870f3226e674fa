"""botocore's descriptions of AWS's services, read once for the whole process.

Each session reads them again, and moto does for each service: EC2's alone takes a quarter of a second, and finding out
which services there are another tenth.

Changes in botocore and moto: sessions that are made from now on share what they have read, and so do moto's services.
"""

from __future__ import annotations

import functools
from typing import Any

from karpstack.rehearsal.aws.patching import Patches


@functools.cache
def loader() -> Any:
    """What reads botocore's descriptions, and keeps them."""
    from botocore.loaders import create_loader

    return create_loader()


def patch(patches: Patches) -> None:
    """Install it; before moto is imported, which makes sessions then."""
    import botocore.session
    from moto.core import utils

    def shared(original: Any) -> Any:
        # An AWS_DATA_PATH of the user's has others.
        return lambda search_path=None: original(search_path) if search_path else loader()

    patches.wrap(botocore.session, "create_loader", shared)
    # Of its own, for moto adds to some descriptions.
    patches.wrap(utils, "create_loader", functools.cache)
