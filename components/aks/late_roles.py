"""Makes the cluster again and again while Azure has not spread the rights of its identity yet.

A role that is assigned takes effect seconds or minutes later, Microsoft says up to an hour, and nothing tells when. AKS
looks at once whether the identity may join the subnet, and refuses the cluster; nothing of it exists then.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pulumi

#: What Azure calls a right that is missing on something that the cluster needs: the subnet, its route table.
_CODES: Final = ("LinkedAuthorizationFailed", "MissingPermission")
#: What azure-native says of a resource that is there already.
_EXISTS: Final = "cannot create already existing resource"
#: Pauses of 2, 4, 8, 16 and 32 seconds, then of a minute each: a quarter of an hour in all.
_TRIES: Final = 19
_LONGEST_PAUSE: Final = 60


async def wait_for_roles(failed: pulumi.ErrorHookArgs) -> bool:
    """Error hook of the cluster: whether to try once more, after a pause."""
    tries = len(failed.errors)
    if tries > 1 and _EXISTS in failed.errors[0]:
        # AKS has taken the request, and has failed it afterwards: what is left is not in the stack's state.
        pulumi.log.error(
            f"{failed.name}: AKS has made the cluster in part, with a right missing, and Pulumi does not know it\n"
            "    the stack cannot make it again while it is there\n"
            "    fix: delete it, and run `pulumi up` again: az aks delete, with the name and the resource group of the "
            "error below; roles take effect meanwhile"
        )
        return False
    missing = tries > 0 and any(code in failed.errors[0] for code in _CODES)
    if failed.failed_operation != "create" or not missing or tries > _TRIES:
        return False
    pause = min(2**tries, _LONGEST_PAUSE)
    pulumi.log.info(
        f"Azure says that a right is missing which may just not have taken effect yet; trying again in {pause} s"
    )
    await asyncio.sleep(pause)
    return True


def retry(name: str) -> pulumi.ErrorHook:
    """The hook for the cluster's options; its `name` is unique in the program."""
    return pulumi.ErrorHook(name, wait_for_roles)
