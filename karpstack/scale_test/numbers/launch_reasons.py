"""Why Karpenter chose a node: the types that it could choose from, and those that were not available."""

from __future__ import annotations

from typing import Any

from ..judging.replay import NodeClaim, Replay
from .cost import Market
from .launch_offers import Offers
from .node_pool_choice import NodePoolChoice
from .story import Story


class LaunchReasons:
    """The launch reasons of the NodeClaims of a replayed timeline.

    Args:
        replay: The whole timeline.
        market: What could be bought; None where nothing is known of it.
        cloud: `aws` or `azure`.
    """

    def __init__(self, replay: Replay, market: Market | None, cloud: str) -> None:
        self._offers = Offers(replay, market, cloud)
        facts, region = (market.facts, market.region) if market else (None, "")
        self._considering = NodePoolChoice(replay, facts, region, self._offers.shortages)

    def of(self, story: Story, claim: NodeClaim) -> dict[str, Any]:
        """`why` of a node of the report."""
        pods, known_by = self._considering.pods(claim)
        return {
            "pods": len(pods),
            "pods_known_by": known_by,
            "replaces": self._offers.replaces(claim),
            "pools": list(self._considering.pools(claim, pods)),
            **self._offers.offered(story, claim),
        }
