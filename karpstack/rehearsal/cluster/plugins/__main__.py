"""The two commands that a kubeconfig of EKS or AKS names: print the deployer's token for the rehearsed cluster.

What else `aws` is asked for goes to the user's own, if there is one: the account on this machine has its own address.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

#: Variable with the path of the file that holds the token, once the cluster knows who made it.
TOKEN_FILE = "KARPSTACK_DEPLOYER_TOKEN"  # noqa: S105  # a path's name
#: What an API server that does not know the deployer yet makes of his token: 401.
_NOT_KNOWN_YET = "not-known-yet"


def main(program: str, *arguments: str) -> int:
    """Print an ExecCredential; the exit status."""
    asked = [argument for argument in arguments if not argument.startswith("-")]
    if asked[: 2 if program == "aws" else 1] != (["eks", "get-token"] if program == "aws" else ["get-token"]):
        return _hand_on(program, arguments)
    try:
        token = Path(os.environ[TOKEN_FILE]).read_text()
    except (OSError, KeyError):
        token = _NOT_KNOWN_YET
    version = "client.authentication.k8s.io/v1beta1"
    print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": {}, "status": {"token": token}}))
    return 0


def _hand_on(program: str, arguments: tuple[str, ...]) -> int:
    here = str(Path(__file__).parent)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder != here and os.access(Path(folder, program), os.X_OK):
            os.execv(Path(folder, program), [program, *arguments])  # noqa: S606  # the user's own command
    print(
        f"{program} {' '.join(arguments)}: the rehearsal stands in for get-token only, and no other {program} is in "
        f"the PATH; install {program}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
