"""Volumes of nodes, as EC2 takes them; the CRD of EC2NodeClass says less."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from karpstack.karpenter import images
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.quantities import exact

from ..problems import finding


class _VolumeType(NamedTuple):
    """The limits of one type of volumes; a setting without limits is none of that type.

    Attributes:
        sizes: Least and most GiB.
        iops: Least and most I/O operations a second.
        iops_per_gib: Most I/O operations a second for each GiB; the least is allowed for any size.
        throughput: Least and most MiB a second.
        must_say_iops: Whether EC2 has no default for `iops`.
        boots: Whether it may be an instance's root volume.
    """

    sizes: tuple[int, int]
    iops: tuple[int, int] | None = None
    iops_per_gib: int = 0
    throughput: tuple[int, int] | None = None
    must_say_iops: bool = False
    boots: bool = True


#: EBS User Guide, ebs-volume-types (gp3 as raised in September 2025), and EC2 API, EbsBlockDevice. Karpenter's CRD
#: limits neither iops nor throughput, and passes them on.
_TYPES: Final[Mapping[str, _VolumeType]] = {
    "gp3": _VolumeType((1, 65_536), iops=(3_000, 80_000), iops_per_gib=500, throughput=(125, 2_000)),
    "gp2": _VolumeType((1, 16_384)),
    "io1": _VolumeType((4, 16_384), iops=(100, 64_000), iops_per_gib=50, must_say_iops=True),
    "io2": _VolumeType((4, 65_536), iops=(100, 256_000), iops_per_gib=1_000, must_say_iops=True),
    "st1": _VolumeType((125, 16_384), boots=False),
    "sc1": _VolumeType((125, 16_384), boots=False),
    "standard": _VolumeType((1, 1_024)),
}
#: I/O operations a second for each MiB a second of a volume's throughput: EC2 allows at most 0.25 MiB/s for one.
_IOPS_PER_MIB: Final = 4
#: The root device of a family's images, and GiB of its snapshot, below which EC2 makes no volume of it; 0: not known.
_ROOTS: Final[Mapping[str, tuple[str, int]]] = {
    "al2023": ("/dev/xvda", 20),
    "al2": ("/dev/xvda", 20),
    "bottlerocket": ("/dev/xvda", 0),
}


def block_devices(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Find volumes of a node class that EC2 refuses."""
    devices, root, seen = spec.get("blockDeviceMappings"), _root(spec), set()
    for index, device in enumerate(devices if isinstance(devices, list) else []):
        if not isinstance(device, Mapping):
            continue
        at = ("nodeClasses", name, "blockDeviceMappings", index)
        path = device.get("deviceName")
        if isinstance(path, str):
            if path in seen:
                yield finding("device-name-twice", (*at, "deviceName"), path)
            seen.add(path)
        ebs = device.get("ebs")
        kind = str(ebs.get("volumeType") or "gp3") if isinstance(ebs, Mapping) else ""
        if isinstance(ebs, Mapping) and kind in _TYPES:  # the schema's checks say what is wrong with another
            yield from _volume((*at, "ebs"), ebs, kind, root[1] if root and root[0] == path else None)


def _volume(at: tuple[str | int, ...], ebs: Mapping[str, Any], kind: str, snapshot: int | None) -> Iterator[Finding]:
    """Problems of one volume; `snapshot`: GiB of the image's snapshot if it is the root volume."""
    limits, size = _TYPES[kind], _gibibytes(ebs.get("volumeSize"))
    if snapshot is not None and not limits.boots:
        yield finding("volume-type-not-bootable", (*at, "volumeType"), kind)
    if size is not None:
        least, most = limits.sizes
        words: dict[str, Any] = {"least": least, "most": most, "kind": kind, "gibibytes": snapshot}
        if not max(least, snapshot or 0) <= size <= most:
            code = "root-volume-too-small" if size < (snapshot or 0) else "volume-size-out-of-range"
            yield finding(code, (*at, "volumeSize"), ebs["volumeSize"], **words)
    for field, allowed in (("iops", limits.iops), ("throughput", limits.throughput)):
        if allowed is None and ebs.get(field):
            yield finding("volume-setting-of-other-type", (*at, field), ebs[field], kind=kind)
    if limits.iops is not None:
        iops = ebs.get("iops") or None  # Karpenter takes 0 for not set
        yield from _iops(at, iops, kind, limits.iops, size)
        if limits.throughput is not None:
            # What is wrong with iops is said of iops.
            iops = max(iops, limits.iops[0]) if isinstance(iops, int) else limits.iops[0]
            yield from _throughput(at, ebs.get("throughput") or None, kind, limits.throughput, iops)


def _iops(
    at: tuple[str | int, ...], iops: Any, kind: str, allowed: tuple[int, int], size: int | None
) -> Iterator[Finding]:
    (least, most), must = allowed, _TYPES[kind].must_say_iops
    if iops is None and must:
        yield finding("iops-missing", (*at, "iops"), None, kind=kind, least=least)
    reached = most if size is None else min(most, max(least, size * _TYPES[kind].iops_per_gib))
    if isinstance(iops, int) and not least <= iops <= reached:
        words: dict[str, Any] = {
            "least": least,
            "most": reached,
            "kind": kind,
            "of_size": f" and {size} GiB" if reached < most else "",
            "or_none": "" if must else ", or leave it out",
        }
        yield finding("iops-out-of-range", (*at, "iops"), iops, **words)


def _throughput(
    at: tuple[str | int, ...], throughput: Any, kind: str, allowed: tuple[int, int], iops: int
) -> Iterator[Finding]:
    least, most = allowed
    reached = min(most, iops // _IOPS_PER_MIB)
    if isinstance(throughput, int) and not least <= throughput <= reached:
        more = f", or set iops to {throughput * _IOPS_PER_MIB} or more" if reached < throughput <= most else ""
        words: dict[str, Any] = {"least": least, "most": reached, "kind": kind, "or_more": more}
        words["of_iops"] = f" and {iops} IOPS" if reached < most else ""
        yield finding("throughput-out-of-range", (*at, "throughput"), throughput, **words)


def _root(spec: Mapping[str, Any]) -> tuple[str, int] | None:
    """The root device of the images that a node class chooses by an alias, as `_ROOTS` has it."""
    terms = spec.get("amiSelectorTerms")
    aliases = (
        [str(term.get("alias", "")) for term in terms if isinstance(term, Mapping)] if isinstance(terms, list) else []
    )
    return next((_ROOTS[family] for family in map(images.family, aliases) if family in _ROOTS), None)


def _gibibytes(size: Any) -> int | None:
    """The GiB that Karpenter asks EC2 for: rounded up."""
    try:
        return None if size is None else math.ceil(exact(size) / 2**30)
    except ValueError:
        return None  # the schema's checks say what is wrong with it
