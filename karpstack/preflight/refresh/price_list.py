"""`karpstack prices fetch`: the prices of a region as a file, got with the user's own read-only credentials."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.karpenter import price_file
from karpstack.karpenter.type_facts import VM_SIZE
from karpstack.text import files, yaml_file
from karpstack.text.codes import Code, reported
from karpstack.text.files import OutputError
from karpstack.text.shown import listed, visible

from ..answers import OTHER_SHAPE
from ..aws.asking import Aws
from ..finding import InputError, NotAskedError, UnknowableError
from . import aws, azure
from .savings_plans import discounts as savings_plans_of

_CODES: Final[Mapping[type[BaseException], Code]] = {
    InputError: Code.WRONG,
    OutputError: Code.WRONG,
    OSError: Code.WRONG,
    UnknowableError: Code.UNKNOWN,
}
_NAMED: Final = 5
#: How a file of prices begins, also after comments that somebody has added.
_BEGINS: Final = re.compile(rb"(?:#.*\n|\s)*kind: *(['\"]?)%b\1 *\n" % price_file.KIND.encode())
_DISCOUNTS: Final = "discounts"


@reported(_CODES)
def fetch(
    cloud: Literal["aws", "azure"], region: str, output: Path, *, profile: str = "", savings_plans: bool = False
) -> int:
    """Get the prices of a region and write them."""
    if savings_plans and cloud != "aws":
        raise InputError(
            f"--savings-plans: {cloud} has none that can be asked for, so no prices are written; leave the option out, "
            "and add `discounts` to the file"
        )
    files.check_output(output, "--output", "file of prices", lambda it: bool(_BEGINS.match(it)))
    discounts = _discounts(output)
    print(f"Asking for the prices of {region}", file=sys.stderr, flush=True)
    try:
        ask = cache(lambda where: Aws.connect(where, profile))
        document = _of(cloud, region, ask)
        if savings_plans:
            discounts = {_DISCOUNTS: savings_plans_of(ask, region, document["onDemand"])}
    except NotAskedError as error:
        raise UnknowableError(_not_fetched(region, error)) from error
    except OTHER_SHAPE as error:
        raise UnknowableError(
            f"{region}: the answer has another shape ({type(error).__name__}: {error}), so no prices are written; "
            "report it"
        ) from error
    files.write(output, price_file.text(document | discounts))
    on_demand, spot = document["onDemand"], document["spot"]
    if without := sorted(spot.keys() - on_demand.keys()):
        print(f"note: no on-demand price is listed for {listed(without, _NAMED)}", file=sys.stderr)
    kept = "; its discounts are kept" if discounts else ""
    if savings_plans:
        kept = f"; instance families with a discount of your Savings Plans: {len(discounts[_DISCOUNTS])}"
    print(f"{visible(output)}: prices of {region}: {len(on_demand)} on demand, {len(spot)} on spot{kept}")
    return Code.GOOD


def _discounts(output: Path) -> dict[str, Any]:
    """The discounts that a person has added to the file that is fetched again.

    Raises:
        OutputError: It cannot be read, so they would be lost.
    """
    if not output.exists():
        return {}
    try:
        content = yaml_file.read(output) or {}
    except yaml_file.YamlError as error:
        raise OutputError(
            f"--output {visible(output)}: {error}: discounts that you added to it would be lost; mend it, or move it "
            "away"
        ) from error
    return {key: value for key, value in content.items() if key == _DISCOUNTS}


def _of(cloud: str, region: str, ask: aws.Ask) -> dict[str, Any]:
    """The content of the file.

    Raises:
        NotAskedError: A call is refused or fails, or lists no price, or one that cannot be.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    on_demand: Mapping[str, float]
    spot: Mapping[str, price_file.Spot]
    if cloud == "aws":
        on_demand, spot = aws.on_demand(ask, region), aws.spot(ask, region, now)
    else:
        # Price lists have dedicated hosts too.
        on_demand, spot = (
            {name: usd for name, usd in found.items() if VM_SIZE.fullmatch(name)} for found in azure.price_list(region)
        )
    for name, usd in [*on_demand.items(), *((name, each) for name, one in spot.items() for each in _each(one))]:
        if not 0 < usd <= price_file.HIGHEST:
            raise NotAskedError("the price list", f"{name} costs {usd} USD an hour, which cannot be", refused=False)
    return price_file.document(cloud, region, now.isoformat(), on_demand, spot)


def _each(spot: price_file.Spot) -> list[float]:
    return list(spot.values()) if isinstance(spot, Mapping) else [spot]


def _not_fetched(region: str, error: NotAskedError) -> str:
    mend = f"grant {error.call} to these credentials" if error.refused else "see why it does, and ask again"
    return f"{region}: {error.call}: {error}, so no prices are written; {mend}"
