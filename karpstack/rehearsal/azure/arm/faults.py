"""Errors to inject.

A fault hits calls that match what it names. Those of Azure that stories ask for have constructors, with Azure's codes,
texts and the moment at which Azure says them: a size that is not available and a quota at once, a failed allocation at
the end of the operation.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Final

from karpstack.rehearsal.azure.arm.errors import ArmError, refused

MACHINE: Final = "Microsoft.Compute/virtualMachines"


@dataclass
class Fault:
    """An error to inject.

    Attributes:
        refusal: Its name in refusals.yaml.
        method: The method that it hits (`PUT`, `GET`, ...); every one when empty.
        type: The type that it hits; every one when empty.
        size: The VM size that it hits; every one when empty.
        zone: The zone (`1`) that it hits; every one when empty.
        priority: `Spot` or `Regular`; both when empty.
        late: Whether the call is accepted and its operation fails, instead of the call itself.
        times: How many calls it hits; for ever when None.
        retry_after: Seconds in the answer's `Retry-After`; none when 0.
        hits: How many calls it has hit.
    """

    refusal: str
    method: str = ""
    type: str = ""
    size: str = ""
    zone: str = ""
    priority: str = ""
    late: bool = False
    times: int | None = None
    retry_after: int = 0
    hits: int = 0

    @classmethod
    def sku_not_available(cls, size: str = "", zone: str = "", priority: str = "") -> Fault:
        """The size cannot be had: restricted, or no spot capacity."""
        return cls("SkuNotAvailable", "PUT", MACHINE, size, zone, priority)

    @classmethod
    def allocation_failed(cls, size: str = "", zone: str = "", priority: str = "") -> Fault:
        """The zone, or without one the region, has no capacity for the size."""
        name = "ZonalAllocationFailed" if zone else "AllocationFailed"
        return cls(name, "PUT", MACHINE, size, zone, priority, late=True)

    @classmethod
    def throttled(cls, times: int, method: str = "", resource_type: str = "", retry_after: int = 1) -> Fault:
        """ARM asks to come back later."""
        return cls("OperationNotAllowed/throttled", method, resource_type, times=times, retry_after=retry_after)


@dataclass
class Faults:
    """The faults of one subscription."""

    _faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def inject(self, fault: Fault) -> None:
        """Make calls fail from now on."""
        with self._lock:
            self._faults.append(fault)

    def end(self) -> None:
        """Forget the faults."""
        with self._lock:
            self._faults.clear()

    def meet(
        self, method: str, resource_type: str, region: str, body: dict[str, Any] | None = None, *, late: bool = False
    ) -> ArmError | None:
        """The error that a call meets now, counted; None when it meets none.

        Args:
            method: HTTP method.
            resource_type: Type of the resource.
            region: For texts.
            body: Body of a PUT; size, zone and priority of a VM are read from it.
            late: Whether faults of the operation are asked for instead of those of the call.
        """
        properties = (body or {}).get("properties") or {}
        size = (properties.get("hardwareProfile") or {}).get("vmSize") or ""
        zone = next(iter((body or {}).get("zones") or []), "")
        priority = properties.get("priority") or "Regular"
        with self._lock:
            for fault in self._faults:
                wanted = (
                    (fault.method, method),
                    (fault.type, resource_type),
                    (fault.size, size),
                    (fault.zone, zone),
                    (fault.priority, priority),
                )
                if (
                    fault.late != late
                    or not all(pattern.lower() in ("", value.lower()) for pattern, value in wanted)
                    or fault.times == 0
                ):
                    continue
                if fault.times is not None:
                    fault.times -= 1
                fault.hits += 1
                error = refused(fault.refusal, size=size, zone=zone, region=region, kind=method)
                error.headers |= {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
                return error
        return None
