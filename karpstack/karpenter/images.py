"""Which images an alias of an EC2NodeClass can stand for: reads `facts/images-aws.json`.

An alias is `family@version`. That its family exists is a rule of the CRD; here is said what depends on the cluster's
Kubernetes version, which the CRD does not know. Where Karpenter finds no image, the node class never gets ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from .fact_files import load
from .releases import number

#: How the versions of a family are written, and how to say so.
_FORMS: Final = {
    "al2": (re.compile(r"v\d{8}", re.ASCII), "v and a day, for example v20251209"),
    "al2023": (re.compile(r"v\d{8}", re.ASCII), "v and a day, for example v20260714"),
    "bottlerocket": (re.compile(r"v?\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII), "a version, for example v1.61.0"),
}
_LATEST: Final = "latest"
#: The last Kubernetes version with images of Amazon Linux 2.
_LAST_OF_AL2: Final = "1.32"


class Verdict(NamedTuple):
    """What is wrong with an alias.

    Attributes:
        said: The consequence.
        wanted: What to write.
        certain: Whether there is no such image; otherwise the facts do not know it.
    """

    said: str
    wanted: str
    certain: bool = True


def family(alias: str) -> str:
    """The family of an alias, in lower case."""
    return alias.partition("@")[0].lower()


def verdict(alias: str, kubernetes: str, today: date) -> Verdict | None:
    """Why an alias has no image for a Kubernetes version such as `1.36` on a day; None where it has one."""
    name, _, version = alias.partition("@")
    name = name.lower()
    if name == "al2" and number(kubernetes) > number(_LAST_OF_AL2):
        return Verdict(
            f"stands for Amazon Linux 2, of which there is no image for Kubernetes {kubernetes}, nor for any after "
            f"{_LAST_OF_AL2}",
            "write al2023@latest",
        )
    if name not in _FORMS or version in ("", _LATEST):
        return None  # or the CRD's own rule refuses it
    form, words = _FORMS[name]
    if not form.fullmatch(version):
        return Verdict(
            f"has the version {version!r}, as no image of {name} is called: none is found", f"write latest, or {words}"
        )
    if "day" in words and not _is_past(version, today):
        return Verdict(
            f"has the version {version!r}, which is no day until today: none is found", f"write latest, or {words}"
        )
    return _pinned(name, version, kubernetes)


def assumed(aliases: Iterable[str], kubernetes: str, today: date) -> str:
    """Return a sentence on images that the facts do not know, so that they are taken to exist; empty without one.

    Args:
        aliases: Of EC2NodeClasses.
        kubernetes: The cluster's version, as `1.36` or `v1.36.2`; empty if it is not known.
        today: The day of the judgement.
    """
    minor = ".".join(kubernetes.removeprefix("v").split(".")[:2])
    verdicts = {alias: verdict(alias, minor, today) for alias in aliases} if minor else {}
    unknown = sorted(alias for alias, found in verdicts.items() if found and not found.certain)
    return f"Assumed to exist, because the facts do not know it: the image {', '.join(unknown)}." if unknown else ""


def _is_past(version: str, today: date) -> bool:
    """Whether a version that is a day has come."""
    try:
        return datetime.strptime(version, "v%Y%m%d").date() <= today
    except ValueError:
        return False


def _pinned(name: str, version: str, kubernetes: str) -> Verdict | None:
    known = _families()[name]
    first, gone = known["first"].get(kubernetes), known.get("gone", {}).get(kubernetes)
    if number(kubernetes) > max(map(number, known["first"])):
        return Verdict(
            f"names a version, and the facts know no image of {name} for Kubernetes {kubernetes}: most likely none is "
            "found",
            f"write {name}@{_LATEST}, or a Kubernetes of which there are images, up to "
            f"{max(known['first'], key=number)}; get newer facts with `karpstack facts` (docs/how-to/facts.md)",
        )
    if first and _ordered(version) < _ordered(first):
        return Verdict(
            f"is older than the first image of {name} for Kubernetes {kubernetes}, {first}: none is found",
            f"write {name}@{first} or a later one",
        )
    if gone and _ordered(version) >= _ordered(gone):
        return Verdict(
            f"has no image for Kubernetes {kubernetes}: the last is older than {gone}",
            f"choose a version before {gone}, or a newer Kubernetes",
        )
    newer = _ordered(version) > _ordered(known["newest"]) if "newest" in known else version not in known["releases"]
    if newer:
        return Verdict(
            f"is no release of {name} that the facts know, so nobody has seen that it exists",
            "compare it with the family's releases; get newer facts with `karpstack facts` (docs/how-to/facts.md)",
            certain=False,
        )
    return None


def _ordered(version: str) -> tuple[int, ...]:
    return number(version.removeprefix("v"))


@cache
def _families() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load("images-aws.json")["families"]
    return found
