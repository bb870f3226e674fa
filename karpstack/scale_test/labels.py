"""The labels by which objects of a story are told from others."""

from typing import Final

SCENARIO_LABEL: Final = "app.kubernetes.io/instance"
WORKLOAD_SELECTOR: Final = "app.kubernetes.io/part-of=karpstack-scale-test"
WORKLOAD_LABEL: Final = "karpstack.io/workload"  # on a pod: which of the story's workloads it is of
