"""Whether the facts by which settings are judged are too old: what was published since is not in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from karpstack.karpenter import fact_dates
from karpstack.karpenter.findings import Finding

from ..problems import finding, key_of

#: A location that the facts do not have is a warning at any age.
_WARNING_ONLY: Final = "locations-"
_KEY: Final = key_of("acceptOldFacts")


def old_facts(cloud: str, region: str, today: date, *, accepted: bool, simulated: bool) -> Iterator[Finding]:
    """Find facts that are older than 60 days, which is a warning, or 180, which is an error.

    Args:
        cloud: `aws` or `azure`.
        region: The stack's region or location.
        today: The day of the judgement.
        accepted: Whether the settings accept facts of any age.
        simulated: Whether the account is simulated, which has what the facts have.
    """
    ages = {name: (today - day).days for name, day in fact_dates.days(cloud, region).items()}
    old = {name: days for name, days in ages.items() if days > fact_dates.OLD}
    if not old:
        return
    listed = ", ".join(f"{name} {days} days" for name, days in sorted(old.items(), key=lambda one: -one[1]))
    judging = [days for name, days in old.items() if not name.startswith(_WARNING_ONLY)]
    refused = max(judging, default=0) > fact_dates.REFUSED and not accepted and not simulated
    code = "facts-too-old" if refused else "facts-old"
    yield finding(code, _KEY, accepted, listed=listed, cloud=cloud, region=region)
