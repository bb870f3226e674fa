"""A program in a Python environment of its own: run by that environment's Python, this imports nothing of ours.

It reads a RunRequest of Pulumi's protocol from its standard input, runs the program with the SDK that the environment
has (the automation API's server, as `language_host` does), and writes the RunResponse into the file that it is given.
"""

import os
import runpy
import sys
from pathlib import Path

from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2


def main() -> None:
    """Run the program."""
    engine_address, response_file = sys.argv[1:]
    request = language_pb2.RunRequest.FromString(sys.stdin.buffer.read())
    folder = Path(request.info.program_directory)
    entry = folder / (request.info.entry_point or "__main__.py")
    script = entry / "__main__.py" if entry.is_dir() else entry
    os.chdir(folder)
    sys.path[0] = str(folder)  # was this file's
    request.args[:] = [engine_address]

    def program() -> None:
        runpy.run_path(str(script), run_name="__main__")

    response = LanguageServer(program).Run(request, None)  # type: ignore[no-untyped-call]
    Path(response_file).write_bytes(response.SerializeToString())


if __name__ == "__main__":
    main()
