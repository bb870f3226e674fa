"""`karpstack review --live`, from the root of the checkout."""

import signal
import sys
from pathlib import Path


def run() -> int:
    """Run the command; interrupted at any moment, also while it is loaded, it says so in a sentence."""
    try:
        # A shell that started this in the background has SIGINT ignored, and Python would leave it so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Whoever ends this otherwise (a CI job, a terminal that is closed) gets the end of a Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
        # The pack's folder is the root of its imports, as the engine runs it.
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "policies"))
        from karpstack.review.command import main
        from karpstack.text.output import run as run_read

        return run_read(main)
    except KeyboardInterrupt:
        print("Stopped. Nothing was created or changed.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
