"""What is known of instance types where the stack's clusters are.

Read when a rule first asks. A type, a region or a label that the facts lack is `NotKnownError`: prices and zones of
one region say nothing about another.
"""

from __future__ import annotations

from karpstack.karpenter.instance_types import Facts, FactsError, Region, UnknownRegionError

from .clouds import Cloud
from .regions import REGIONS, Regions
from .rule import NotKnownError


def region_of(cloud: Cloud, regions: Regions | None = None) -> str:
    """The region in which the stack's clusters are; NotKnownError where nothing says it, or where there are several."""
    names = sorted((regions or REGIONS).of(cloud))
    if len(names) != 1:
        what = f"there are clusters in {', '.join(names)}" if names else "nothing says the region of the cluster"
        raise NotKnownError(f"{what}, so prices and zones of the NodePool are not known", "facts", cloud, "region")
    return names[0]


def facts(cloud: Cloud, regions: Regions | None = None) -> Region:
    """What is on sale in the stack's region; NotKnownError where that is not known."""
    name = region_of(cloud, regions)
    try:
        return Facts.load(cloud).region(name)
    except (FactsError, UnknownRegionError) as error:
        raise NotKnownError(str(error), "facts", cloud, name) from error
