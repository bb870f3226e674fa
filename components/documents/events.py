"""Patterns of the EventBridge events that Karpenter's interruption controller understands.

The source is upstream's getting-started CloudFormation template for 1.14. The messages themselves are parsed
by the controller, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


def _pattern(source: str, detail_type: str) -> dict[str, Any]:
    return {"source": [source], "detail-type": [detail_type]}


#: Short name of each rule to the pattern that it matches.
EVENT_PATTERNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "health-event": _pattern("aws.health", "AWS Health Event"),
    "spot-interruption": _pattern("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": _pattern("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": _pattern("aws.ec2", "EC2 Instance State-change Notification"),
    "capacity-reservation": _pattern("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
