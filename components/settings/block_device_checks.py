"""Volumes of nodes, as EC2 takes them; the CRD of EC2NodeClass says less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter import images
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.quantities import exact

from ..problems import finding

#: Least and most I/O operations a second of a type of volumes (EC2 API, EbsBlockDevice).
_IOPS: Final[Mapping[str, tuple[int, int]]] = {"gp3": (3_000, 80_000), "io1": (100, 64_000), "io2": (100, 256_000)}
_MUST_SAY_IOPS: Final = frozenset({"io1", "io2"})
#: GiB of the snapshot that is on a family's root device, below which EC2 makes no volume of it.
_ROOTS: Final[Mapping[str, tuple[str, int]]] = {"al2023": ("/dev/xvda", 20), "al2": ("/dev/xvda", 20)}


def block_devices(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Find volumes of a node class that EC2 refuses."""
    devices = spec.get("blockDeviceMappings")
    for index, device in enumerate(devices if isinstance(devices, list) else []):
        ebs = device.get("ebs") if isinstance(device, Mapping) else None
        if isinstance(ebs, Mapping):
            at = ("nodeClasses", name, "blockDeviceMappings", index, "ebs")
            yield from _iops(at, ebs)
            yield from _root(at, spec, str(device.get("deviceName")), ebs.get("volumeSize"))


def _iops(at: tuple[str | int, ...], ebs: Mapping[str, Any]) -> Iterator[Finding]:
    kind, iops = str(ebs.get("volumeType", "gp3")), ebs.get("iops")
    if iops is None and kind in _MUST_SAY_IOPS:
        least = _IOPS[kind][0]
        yield finding("iops-missing", (*at, "iops"), None, kind=kind, least=least)
    if isinstance(iops, int) and kind in _IOPS and not _IOPS[kind][0] <= iops <= _IOPS[kind][1]:
        least, most = _IOPS[kind]
        yield finding(
            "iops-out-of-range",
            (*at, "iops"),
            iops,
            least=least,
            most=most,
            kind=kind,
            or_none=", or leave it out" if kind not in _MUST_SAY_IOPS else "",
        )


def _root(at: tuple[str | int, ...], spec: Mapping[str, Any], device: str, size: Any) -> Iterator[Finding]:
    terms = spec.get("amiSelectorTerms")
    aliases = (
        [str(term.get("alias", "")) for term in terms if isinstance(term, Mapping)] if isinstance(terms, list) else []
    )
    root = next((_ROOTS[family] for family in map(images.family, aliases) if family in _ROOTS), None)
    if root is None or root[0] != device or size is None:
        return
    try:
        amount = exact(size)
    except ValueError:
        return  # the schema's checks say what is wrong with it
    if amount < root[1] * 2**30:
        yield finding("root-volume-too-small", (*at, "volumeSize"), size, gibibytes=root[1])
