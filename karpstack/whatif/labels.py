"""The labels by which the workload of a what-if is known."""

from __future__ import annotations

from typing import Final

from karpstack.scale_test.labels import SCENARIO_LABEL, WORKLOAD_SELECTOR

#: The scenario whose label it has.
SCENARIO: Final = "whatif"
LABELS: Final = {**dict([WORKLOAD_SELECTOR.split("=")]), SCENARIO_LABEL: SCENARIO}
SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
