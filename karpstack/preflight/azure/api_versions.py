"""API versions of what is asked, by resource provider: stable ones that have all that is read."""

from typing import Final

AUTHORIZATION: Final = "2022-04-01"
COMPUTE: Final = "2025-04-01"
CONTAINER_SERVICE: Final = "2026-01-01"  # httpProxyConfig.enabled
LOG_WORKSPACES: Final = "2023-09-01"
LOCKS: Final = "2020-05-01"
METRIC_WORKSPACES: Final = "2023-04-03"
NETWORK: Final = "2024-05-01"
REGISTRIES: Final = "2025-11-01"
RESOURCES: Final = "2021-04-01"
VAULTS: Final = "2024-11-01"
ZONES: Final = "2024-06-01"
SKUS: Final = "2021-07-01"
SUBSCRIPTIONS: Final = "2022-12-01"
