"""How often urllib3 sends a request again, and for how long it waits before: never for as long as a server asks.

azure-core's requests have `preflight.azure.asking.Patience` instead.
"""

from __future__ import annotations

from typing import Final

import urllib3

LONGEST_WAIT: Final = 10  # seconds; urllib3 itself waits for up to six hours if `Retry-After` asks it to


def bounded(total: int, backoff: float = 0) -> urllib3.Retry:
    """Return urllib3's setting for so many repetitions; a redirect, which may lead anywhere, is not followed."""
    return urllib3.Retry(total, redirect=False, backoff_factor=backoff, retry_after_max=LONGEST_WAIT)
