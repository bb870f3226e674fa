"""The account's quotas, as Service Quotas tells them: those of an account that has been in use for a while.

Nothing here enforces them. Adds to moto: those quotas that are listed below; it knows some of VPC's only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from karpstack.rehearsal.aws.patching import Patches

#: Service, code -> name and value.
QUOTAS: Final[dict[tuple[str, str], tuple[str, float]]] = {
    ("ec2", "L-1216C47A"): ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152.0),
    ("ec2", "L-34B43A08"): ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 640.0),
    ("ec2", "L-0263D0A3"): ("EC2-VPC Elastic IPs", 5.0),
    ("vpc", "L-F678F1CE"): ("VPCs per Region", 5.0),
    ("vpc", "L-FE5A380F"): ("NAT gateways per Availability Zone", 5.0),
    ("vpc", "L-1B52E74A"): ("Gateway VPC endpoints per Region", 20.0),
    ("eks", "L-1194D53C"): ("Clusters", 100.0),
}


class Quotas:
    """The quotas; `set` gives the account others."""

    def __init__(self) -> None:
        self._values = {key: value for key, (_, value) in QUOTAS.items()}

    def set(self, service: str, code: str, value: float) -> None:
        """Change one, as an increase that AWS grants does."""
        self._values[service, code] = value

    def patch(self, patches: Patches) -> None:
        """Let moto's Service Quotas answer with them."""
        from moto.servicequotas.models import ServiceQuotasBackend

        def get(original: Callable[..., Any]) -> Callable[..., Any]:
            def quota(backend: Any, service_code: str, quota_code: str) -> Any:
                key = (service_code, quota_code)
                if key not in self._values:
                    return original(backend, service_code, quota_code)
                return {
                    "ServiceCode": service_code,
                    "QuotaCode": quota_code,
                    "QuotaName": QUOTAS[key][0],
                    "Value": self._values[key],
                    "Unit": "None",
                    "Adjustable": True,
                    "GlobalQuota": False,
                }

            return quota

        patches.wrap(ServiceQuotasBackend, "get_service_quota", get)
