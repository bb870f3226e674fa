"""`karpstack prices`: the prices of a region, as a file for what-ifs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from karpstack.text.names import region_name

from .options import argument, option
from .shape import command, group

app = group("prices", "Get the prices of a region, on demand and on spot, as a file for `karpstack whatif --prices`.")


@command(app, "fetch", "karpstack prices fetch aws eu-west-1 --output prices.yaml")
def _fetch(
    cloud: Annotated[Literal["aws", "azure"], argument("CLOUD", "aws or azure")],
    region: Annotated[str, argument("REGION", "region of the cluster: eu-west-1, westus2", parser=region_name)],
    output: Annotated[
        Path | None, option("--output", metavar="FILE", help="the file to write (default: prices-REGION.yaml)")
    ] = None,
    profile: Annotated[
        str, option("--profile", metavar="NAME", help="profile of the AWS CLI (default: AWS_PROFILE's)")
    ] = "",
    savings_plans: Annotated[
        bool,
        option("--savings-plans", help="AWS: also write the discounts of the account's active Savings Plans"),
    ] = False,
) -> int:
    """Write the prices of a region, with your own read-only credentials. Azure's price list needs none.

    On AWS the permissions are pricing:GetProducts and ec2:DescribeSpotPriceHistory; with --savings-plans also
    savingsplans:DescribeSavingsPlans and savingsplans:DescribeSavingsPlanRates. Credentials are not written.

    Exit code 3: the prices could not be read, and nothing was written.
    """
    from karpstack.preflight.refresh import price_list

    return price_list.fetch(
        cloud, region, output or Path(f"prices-{region}.yaml"), profile=profile, savings_plans=savings_plans
    )


@command(app, "check", "karpstack prices check prices.yaml --cloud aws")
def _check(
    file: Annotated[Path, argument("FILE", "a file of prices, fetched or of your own")],
    cloud: Annotated[
        Literal["aws", "azure"] | None,
        option("--cloud", help="check the names of instance types too (default: the cloud in the file)"),
    ] = None,
) -> int:
    """Check a file of prices, as `karpstack whatif --prices` takes it."""
    from karpstack.whatif import commands

    return commands.check_prices(file, cloud)
